"""Texts into readings: what the tests of ingest need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpupolicy.ingest import Reading, read_slurm


@pytest.fixture
def sacct(tmp_path: Path) -> Callable[..., Reading]:
    """Read a text as the output of sacct on cluster c."""

    def read(text: str | bytes, **options: object) -> Reading:
        path = tmp_path / "sacct.psv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_slurm(path, cluster="c", **options)  # type: ignore[arg-type]

    return read


@pytest.fixture
def one(sacct: Callable[..., Reading]) -> Callable[..., dict[str, object]]:
    """The run of a single record, given as fields by name; fields not given have a common value."""

    def read(options: dict[str, object] | None = None, **fields: str) -> dict[str, object]:
        given = {
            "JobID": "7", "Account": "vision", "State": "COMPLETED",
            "Submit": "2026-01-05T00:00:00", "Eligible": "2026-01-05T00:00:00",
            "Start": "2026-01-05T01:00:00", "End": "2026-01-05T02:00:00", "AllocTRES": "gres/gpu=1,node=1",
        } | fields  # fmt: skip
        reading = sacct("|".join(given) + "\n" + "|".join(given.values()) + "\n", **(options or {}))
        assert reading.rejected.is_empty(), reading.rejected.rows()
        return reading.runs.row(0, named=True)

    return read
