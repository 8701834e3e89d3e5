"""What all targets share: a plan is files made in one go, with a record of what they were made from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from gpupolicy.errors import EnvironmentTrouble

RECORD = "plan.json"


def write_plan(files: Mapping[str, str], out: Path, *, record: Mapping[str, object]) -> list[Path]:
    """Write the files and plan.json beside them; each appears whole. The record gets the digest of every file."""
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    document = json.dumps({**record, "files": digests}, indent=1, ensure_ascii=False) + "\n"
    try:
        out.mkdir(parents=True, exist_ok=True)
        return [_write(out / name, text) for name, text in [*files.items(), (RECORD, document)]]
    except OSError as trouble:
        raise EnvironmentTrouble(f"the plan cannot be written to {out}: {trouble.strerror}") from None


def _write(path: Path, text: str) -> Path:
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)
    return path
