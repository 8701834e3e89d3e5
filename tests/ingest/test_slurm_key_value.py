"""sacct's fields as key=value: any order, any of them missing, quotes around what holds commas."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, read_slurm

Sacct = Callable[..., Reading]

JOB = (
    'v=0.1.0,JobID=7,User=ada,Account=vision,State=FAILED,Start=2026-01-05T01:00:00+01:00,"AllocTRES=cpu=8,'
    'gres/gpu:a100=2,gres/gpu=2",End=2026-01-05T02:00:00+01:00,Submit=2026-01-05T00:50:00+01:00,TimelimitRaw=90\n'
)
HELD_GPU_H = (pl.col("ended_at") - pl.col("started_at")).dt.total_milliseconds() * pl.col("gpus") / 3_600_000


def test_the_figures_of_a_monitored_cluster_equal_the_reference_to_a_millionth(shared: Path) -> None:
    folder = shared / "traces" / "uio-sacct-kv"
    reference = json.loads((folder / "reference.json").read_text())

    reading = read_slurm(folder / "slurm-sacct.csv", cluster="fox")

    valid = reading.runs.filter((pl.col("gpus") > 0) & (pl.col("ended_at") > pl.col("started_at")))
    assert (reading.rows_read, reading.accepted, valid.height) == (876, reference["rows"], reference["valid_rows"])
    assert reading.ignored.rows() == [("step_row", 582, 2)]
    assert valid.select(HELD_GPU_H.sum()).item() == pytest.approx(reference["gpu_hours"], rel=1e-6)
    by_account = dict(valid.group_by("account").agg(HELD_GPU_H.sum()).iter_rows())
    expected = {one["vc"]: one["gpu_hours"] for one in reference["gpu_hours_by_vc_top10"]}
    assert by_account == pytest.approx(expected, rel=1e-6)
    assert valid["user_name"].n_unique() == reference["n_users"]
    wait_s = valid.select((pl.col("started_at") - pl.col("eligible_at")).dt.total_seconds()).to_series()
    for quantile in (50, 90, 99):
        assert wait_s.quantile(quantile / 100, "linear") == pytest.approx(reference[f"wait_p{quantile}_s"], rel=1e-6)


def test_fields_are_found_by_name_and_commas_in_quotes_part_nothing(sacct: Sacct) -> None:
    run = sacct(JOB).runs.row(0, named=True)

    assert (run["workload_id"], run["account"], run["user_name"], run["state"]) == ("7", "vision", "ada", "FAILED")
    assert (run["gpus"], run["gpu_type"], run["walltime_s"]) == (2, "a100", 5400)
    assert (run["started_at"], run["ended_at"]) == (datetime(2026, 1, 5), datetime(2026, 1, 5, 1))


def test_a_name_that_looks_like_a_field_is_a_name(sacct: Sacct) -> None:
    run = sacct(JOB.replace("v=0.1.0", '"JobName=x,User=eve,""gres/gpu=8"""')).runs.row(0, named=True)

    assert (run["user_name"], run["gpus"]) == ("ada", 2)


def test_without_an_allocation_or_an_end_a_job_waits_or_runs(sacct: Sacct) -> None:
    waits = "JobIDRaw=8,State=PENDING,Submit=2026-01-05T00:00:00Z,Eligible=2026-01-05T00:00:00Z,ReqTRES=gres/gpu=4\n"
    runs = "State=RUNNING,JobID=9,Submit=2026-01-05T00:00:00Z,Start=2026-01-05T01:00:00Z,AllocTRES=gres/gpu=1\n"
    reading = sacct(waits + runs)

    assert reading.runs.select("workload_id", "gpus", "started_at", "ended_at").rows() == [
        ("8", 4, None, None),
        ("9", 1, datetime(2026, 1, 5, 1), None),
    ]


def test_a_line_that_is_no_record_is_rejected_alone(sacct: Sacct) -> None:
    reading = sacct(JOB + 'JobID=8,"JobName=half\n\na plain sentence\n' + JOB.replace("=7", "=9"))

    assert reading.runs["workload_id"].to_list() == ["7", "9"]
    assert reading.rejected.select("line", "reason", "text").rows() == [
        (2, "wrong_field_count", 'JobID=8,"JobName=half'),
        (4, "wrong_field_count", "a plain sentence"),
    ]


def test_a_record_that_cannot_be_trusted_keeps_its_text(sacct: Sacct) -> None:
    bad = JOB.replace("End=2026", "End=2025")
    reading = sacct(JOB.replace("=7", "=8") + bad)

    assert reading.rejected.select("line", "reason", "text").rows() == [(2, "end_before_start", bad.strip())]


@pytest.mark.parametrize(
    ("end", "reason"),
    [(JOB[:100], "truncated"), (JOB[:-5], "truncated"), ("sacct: error: slurmdbd: Getting response", "tool_error")],
)
def test_a_file_that_was_not_written_to_its_end_is_refused(sacct: Sacct, end: str, reason: str) -> None:
    with pytest.raises(UnreadableLog, match=reason):
        sacct(JOB + end)


def test_lines_with_the_same_key_twice_take_the_first(sacct: Sacct) -> None:
    assert sacct(JOB.strip() + ",User=eve\n").runs["user_name"].to_list() == ["ada"]
