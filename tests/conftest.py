"""What many tests need: the shared field cases and traces, which are not part of this repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("GPUPOLICY_SHARED", REPOSITORY.parent / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of field cases, traces and captures beside the checkout."""
    if not (SHARED / "traces").is_dir():
        pytest.skip(f"no shared traces and cases at {SHARED} (set GPUPOLICY_SHARED to have these tests run)")
    return SHARED


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY
