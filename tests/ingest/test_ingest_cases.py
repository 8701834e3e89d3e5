"""The field cases of usage logs and tables, as far as reading them goes: outcomes of rows, GPU-hours, flags."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, TableMapping, load_mapping, read_slurm, read_table

SACCT = [
    "sacct/sa-01-elapsed-formats", "sacct/sa-02-timelimit-words", "sacct/sa-03-cancelled-by-uid",
    "sacct/sa-04-pipe-in-jobname", "sacct/sa-05-requeue-runs", "sacct/sa-06-arrays-het-steps",
    "sacct/sa-07-tres-generic-and-typed", "sacct/sa-08-legacy-allocgres", "sacct/sa-10-every-state-counts",
    "sacct/sa-11-unknown-none-empty-times", "sacct/sa-12-trailing-separator-and-repeated-header",
    "sacct/sa-14-suspended-time", "time/ti-01-autumn-hour-twice", "time/ti-05-skewed-clocks",
    "time/ti-07-wait-from-eligible",
]  # fmt: skip
TABLES = [
    "generic-csv/cs-01-bom-crlf-header-spelling", "generic-csv/cs-02-decimal-comma",
    "generic-csv/cs-03-spreadsheet-mangled", "generic-csv/cs-04-epoch-units",
    "generic-csv/cs-05-huge-ids-with-gaps", "generic-csv/cs-06-missing-and-odd-gpu-counts",
    "time/ti-02-days-of-23-and-25-hours", "time/ti-03-quarter-borders", "time/ti-04-running-at-the-cut-off",
    "time/ti-06-hour-buckets", "capacity/ca-01-nodes-added", "capacity/ca-04-more-used-than-exists",
    "fairshare/fs-14-owed-from-jobs",
]  # fmt: skip


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None) if text else None


def expectations(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every input of a case with what is expected of it."""
    expected = json.loads((folder / "expected.json").read_text())
    for path in sorted(folder.glob("input*")):
        yield path, expected | expected.get("files", {}).get(path.name, {})


def check(reading: Reading, expected: dict[str, Any]) -> None:
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
    gpu_h = gpu_hours(reading, expected["params"])
    for account, hours in expected.get("gpu_hours_by_account", {}).items():
        assert gpu_h.get(account, 0) == pytest.approx(hours, abs=1e-6)
    for flag, jobs in expected.get("flagged_jobs", {}).items():
        assert reading.flagged.filter(pl.col("flag") == flag)["workload_id"].to_list() == jobs


def gpu_hours(reading: Reading, params: dict[str, Any]) -> dict[str, float]:
    cutoff = moment(params.get("cutoff")) or reading.observed_until
    until = min(filter(None, (cutoff, moment(params.get("window_end")))))
    ends = pl.col("ended_at").fill_null(cutoff).clip(upper_bound=until)
    held_ms = (ends - pl.col("started_at").clip(lower_bound=moment(params.get("window_start")))).dt.total_milliseconds()
    ran = reading.runs.drop_nulls("started_at")
    return dict(ran.group_by("account").agg((held_ms.clip(0) * pl.col("gpus")).sum() / 3_600_000).iter_rows())


@pytest.mark.parametrize("case", SACCT)
def test_a_case_of_sacct_comes_out_as_expected(shared: Path, case: str) -> None:
    for path, expected in expectations(shared / "cases" / case):
        params = expected["params"]
        reading = read_slurm(
            path, cluster="c", timezone=params.get("timezone", "UTC"), observed_until=moment(params.get("cutoff"))
        )

        check(reading, expected)
        runs = {row["workload_id"]: row for row in reading.runs.to_dicts()}
        assert {job: runs[job]["gpus"] for job in expected.get("gpus_by_job", {})} == expected.get("gpus_by_job", {})
        limits = expected.get("timelimit_seconds", {})
        assert {job: runs[job]["walltime_s"] for job in limits} == limits
        starts = {job: moment(text) for job, text in expected.get("start_utc", {}).items()}
        assert {job: runs[job]["started_at"] for job in starts} == starts


@pytest.mark.parametrize("case", TABLES)
def test_a_case_of_a_table_comes_out_as_expected(shared: Path, repository: Path, case: str) -> None:
    generic = load_mapping(repository / "data/mappings/generic.yaml").model_dump(exclude_defaults=True)
    for path, expected in expectations(shared / "cases" / case):
        params = expected["params"]
        ours = {"job_id": "workload_id", "start": "started_at", "end": "ended_at"}
        renamed = {ours.get(name, name): column for name, column in params.get("columns", {}).items()}
        form = {name: params[name] for name in ("decimal", "thousands") if name in params}
        mapping = TableMapping.model_validate(generic | form | {"columns": generic["columns"] | renamed})

        reading = read_table(
            path, mapping, cluster="c", timezone=params.get("timezone"), observed_until=moment(params.get("cutoff"))
        )

        check(reading, expected)
        if "job_ids" in expected:
            assert reading.runs["workload_id"].sort().to_list() == expected["job_ids"]


def test_output_of_fixed_width_is_refused_with_the_option_that_is_needed(shared: Path) -> None:
    path = shared / "cases/sacct/sa-13-fixed-width-output/input.txt"

    with pytest.raises(UnreadableLog, match=r"not_parsable_output: .* ask sacct with -a -X -D -P"):
        read_slurm(path, cluster="c")
