"""The field cases of usage logs as far as reading them goes: what is expected, and what a reading says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gpupolicy.ingest import Reading


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None) if text else None


def expectations(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every input of a case with what is expected of it."""
    expected = json.loads((folder / "expected.json").read_text())
    for path in sorted(folder.glob("input*")):
        yield path, expected | expected.get("files", {}).get(path.name, {})


def check(reading: Reading, expected: dict[str, Any]) -> None:
    """Compare the outcomes of rows, the flags, and the GPU-hours in the window by account."""
    outcomes = {
        "accepted": reading.accepted,
        "ignored": int(reading.ignored["rows"].sum()),
        "rejected": reading.rejected.height,
        "ignored_by_reason": dict(reading.ignored.select("reason", "rows").iter_rows()),
        "rejected_by_reason": dict(reading.rejected["reason"].value_counts().iter_rows()),
        "flags": dict(reading.flagged["flag"].value_counts().iter_rows()),
    }
    rows = expected.get("rows", {})
    assert {name: outcomes[name] for name in rows} == rows
    gpu_h = gpu_hours(reading, reading.runs, expected["params"])
    for account, hours in expected.get("gpu_hours_by_account", {}).items():
        assert gpu_h.get(account, 0) == pytest.approx(hours, abs=1e-6)
    for flag, jobs in expected.get("flagged_jobs", {}).items():
        assert reading.flagged.filter(pl.col("flag") == flag)["workload_id"].to_list() == jobs


def check_runs(reading: Reading, expected: dict[str, Any]) -> None:
    """Compare what is expected of single workloads: GPUs, limits, states, starts, waits, runs."""
    told = {
        "gpus_by_job": pl.col("gpus").first(),
        "timelimit_seconds": pl.col("walltime_s").first(),
        "state": pl.col("state").last(),
        "runs_per_job": pl.len(),
        "wait_seconds_by_job": wait_s(pl.col("started_at")).first(),
        "wait_seconds_by_run": wait_s(pl.col("started_at")),
        "abandoned_wait_seconds": wait_s(pl.col("ended_at")).first(),
    }
    by_job = reading.runs.group_by("workload_id", maintain_order=True).agg(**told)
    for key in told:
        answers = dict(by_job.select("workload_id", key).iter_rows())
        assert {job: answers[job] for job in expected.get(key, {})} == expected.get(key, {}), key
    starts = dict(reading.runs.select("workload_id", "started_at").iter_rows())
    assert {job: starts[job] for job in expected.get("start_utc", {})} == {
        job: moment(text) for job, text in expected.get("start_utc", {}).items()
    }
    waiting = reading.runs.filter(pl.col("started_at").is_null() & pl.col("ended_at").is_null())
    asked = dict(waiting.drop_nulls("eligible_at").group_by("account").agg(pl.col("gpus").sum()).iter_rows())
    assert {account: asked[account] for account in expected.get("pending_gpus", {})} == expected.get("pending_gpus", {})


def wait_s(until: pl.Expr) -> pl.Expr:
    """From eligibility; a clock's error is no wait, and more than that means nothing (case ti-05)."""
    seconds = (until - pl.col("eligible_at")).dt.total_seconds()
    return pl.when(seconds >= -300).then(seconds.clip(0))


def gpu_hours(reading: Reading, runs: pl.DataFrame, params: dict[str, Any]) -> dict[str, float]:
    cutoff = moment(params.get("cutoff")) or reading.observed_until
    until = min(filter(None, (cutoff, moment(params.get("window_end")))))
    ends = pl.col("ended_at").fill_null(cutoff).clip(upper_bound=until)
    held_ms = (ends - pl.col("started_at").clip(lower_bound=moment(params.get("window_start")))).dt.total_milliseconds()
    ran = runs.drop_nulls("started_at")
    return dict(ran.group_by("account").agg((held_ms.clip(0) * pl.col("gpus")).sum() / 3_600_000).iter_rows())
