"""The field cases of Kubernetes, and what a reading says about them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from gpupolicy.ingest import Reading


@dataclass(frozen=True)
class Case:
    path: Path
    expected: dict[str, Any]

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.expected["params"])

    @property
    def cutoff(self) -> datetime:
        return utc(self.params["cutoff"])


def case(shared: Path, name: str) -> Case:
    (folder,) = (shared / "cases" / "k8s").glob(f"{name}-*")
    (path,) = folder.glob("input.*")
    return Case(path, json.loads((folder / "expected.json").read_text()))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


def rows(reading: Reading) -> dict[str, Any]:
    """What became of the rows, in the words of expected.json."""
    ignored = dict(reading.ignored.select("reason", "rows").iter_rows())
    rejected = dict(reading.rejected["reason"].value_counts().iter_rows())
    flags = dict(reading.flagged["flag"].value_counts().iter_rows())
    assert reading.accepted + sum(ignored.values()) + sum(rejected.values()) == reading.rows_read
    return {
        "accepted": reading.accepted,
        "ignored": sum(ignored.values()),
        "rejected": sum(rejected.values()),
        "ignored_by_reason": ignored,
        "rejected_by_reason": rejected,
    } | ({"flags": flags} if flags else {})


def gpu_hours(reading: Reading, params: dict[str, Any] | None = None) -> dict[str, float]:
    """GPU-hours of each account, in the window and up to the cut-off."""
    params = params or {}
    cutoff = utc(params["cutoff"]) if "cutoff" in params else reading.observed_until
    until = min(cutoff, utc(params["window_end"])) if "window_end" in params else cutoff
    since = utc(params["window_start"]) if "window_start" in params else None
    ran = reading.runs.drop_nulls("started_at")
    ends = pl.col("ended_at").fill_null(cutoff).clip(upper_bound=until)
    held_ms = (ends - pl.col("started_at").clip(lower_bound=since)).dt.total_milliseconds().clip(0)
    gpu_ms = ran.group_by("account").agg((held_ms * pl.col("gpus")).sum()).sort("account")
    return {account: held / 3_600_000 for account, held in gpu_ms.iter_rows()}


def waits_s(reading: Reading) -> list[float]:
    """The wait of every run in order of its start; None where it is not known."""
    waits = (pl.col("started_at") - pl.col("eligible_at")).dt.total_seconds()
    return reading.runs.drop_nulls("started_at").sort("started_at").select(waits).to_series().to_list()


def spans(reading: Reading) -> list[tuple[str, str | None, str | None, float]]:
    """Id, start, end and GPUs of every row, times as the hour of the day."""
    hours = [pl.col(name).dt.strftime("%d.%H:%M") for name in ("started_at", "ended_at")]
    return reading.runs.select("workload_id", *hours, "gpus").rows()
