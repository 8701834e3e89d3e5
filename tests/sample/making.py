"""The generator, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = REPOSITORY / "data" / "sample"


def generate(folder: Path, *, seed: int, days: int | None = None) -> Path:
    command = [sys.executable, str(SAMPLE / "generate.py"), "--seed", str(seed), "--out", str(folder)]
    command += [] if days is None else ["--days", str(days)]
    subprocess.run(command, check=True, capture_output=True, cwd=REPOSITORY)
    return folder
