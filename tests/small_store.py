"""Small stores for tests: runs written as a few words each, loaded by the real warehouse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from gpupolicy import cycle
from gpupolicy.ingest.canonical import HOSTS, OUTAGES, RUNS, Reading
from gpupolicy.warehouse import Loaded

NOW = datetime(2026, 12, 1)


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    """A moment of March 2026."""
    return datetime(2026, 3, day, hour, minute)


def reading(
    runs: Iterable[Mapping[str, Any]] = (),
    *,
    hosts: Iterable[Mapping[str, Any]] = (),
    outages: Iterable[Mapping[str, Any]] = (),
    observed_until: datetime | None = None,
) -> Reading:
    """A file as read. A run without a submission was submitted and eligible when it started."""
    frames = {
        "runs": _frame([_run(run) for run in runs], RUNS),
        "hosts": _frame(hosts, HOSTS),
        "outages": _frame(outages, OUTAGES),
    }
    rows = sum(frame.height for frame in frames.values())
    return Reading("test", "test.psv", "digest", observed_until, rows, **frames)


def load(store: Path, *args: Any, **kwargs: Any) -> Loaded:  # noqa: ANN401 - passed on to reading()
    return cycle.ingest(store, reading(*args, **kwargs), loaded_at=NOW)


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    submitted = run.get("submitted_at", run.get("started_at"))
    return {"submitted_at": submitted, "eligible_at": submitted, **run}


def _frame(rows: Iterable[Mapping[str, Any]], schema: pl.Schema) -> pl.DataFrame:
    complete = [{"cluster": "c", "line": line, **row} for line, row in enumerate(rows, start=1)]
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in complete], schema=schema)
