"""The Standard Workload Format: -1 is not known, a job that ran in parts stands there twice."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from ingest_cases import check, check_runs, expectations

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, read_swf

HEADER = "; Version: 2.2\n; UnixStartTime: 1767225600\n"
JOB = "1 0 60 3600 4 -1 -1 8 7200 -1 1 7 3 -1 2 5 -1 -1\n"
HELD_GPU_H = (pl.col("ended_at") - pl.col("started_at")).dt.total_milliseconds() * pl.col("gpus") / 3_600_000


def read(folder: Path, text: str | bytes, **options: object) -> Reading:
    (folder / "log.swf").write_bytes(text.encode() if isinstance(text, str) else text)
    return read_swf(folder / "log.swf", cluster="c", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", ["sw-01-minus-one-fields", "sw-02-partial-executions"])
def test_a_case_comes_out_as_expected(shared: Path, case: str) -> None:
    for path, expected in expectations(shared / "cases/swf" / case):
        params = expected["params"]
        reading = read_swf(
            path, cluster="c", gpus_per_processor=params["gpus_per_processor"], account_from=params["account_from"]
        )

        check(reading, expected)
        check_runs(reading, expected)


def test_parts_of_a_job_are_runs_of_one_workload_each_waiting_from_the_end_of_the_one_before(shared: Path) -> None:
    ((path, expected),) = expectations(shared / "cases/swf/sw-02-partial-executions")
    runs = read_swf(path, cluster="c").runs

    from_start = (pl.col("started_at", "ended_at", "submitted_at") - datetime(2026, 1, 1)).dt.total_seconds()
    starts, ends, submitted = runs.select(from_start).get_columns()
    assert [list(pair) for pair in zip(starts, ends, strict=True)] == expected["run_intervals_seconds_from_start"]["10"]
    assert submitted.to_list() == [1000, 2830]
    assert runs["state"].to_list() == ["PREEMPTED", "COMPLETED"]


def test_the_figures_of_an_archived_log_equal_the_reference_to_a_millionth(shared: Path) -> None:
    folder = shared / "traces" / "swf-hpc2n"
    reference = json.loads((folder / "reference.json").read_text())

    reading = read_swf(folder / "hpc2n.swf", cluster="seth")

    runs = reading.runs.filter(pl.col("ended_at") > pl.col("started_at"))
    assert (reading.rows_read, runs.height) == (reference["rows"], reference["valid_rows"])
    assert dict(reading.rejected["reason"].value_counts().iter_rows()) == {"missing_runtime": 25}
    assert runs.select(HELD_GPU_H.sum()).item() == pytest.approx(reference["gpu_hours"], rel=1e-6)
    assert (runs["account"].n_unique(), runs["user_name"].n_unique()) == (reference["n_vc"], reference["n_users"])
    assert reading.notices == ("its header gives the size of the cluster as 240 processors (MaxProcs)",)
    wait_s = runs.select((pl.col("started_at") - pl.col("eligible_at")).dt.total_milliseconds() / 1000).to_series()
    for quantile in (50, 90, 99):
        assert wait_s.quantile(quantile / 100, "linear") == pytest.approx(reference[f"wait_p{quantile}_s"], rel=1e-6)


def test_all_that_a_line_says_of_a_job_is_kept(tmp_path: Path) -> None:
    run = read(tmp_path, HEADER + JOB, gpus_per_processor=0.5, account_from="queue").runs.row(0, named=True)

    assert (run["submitted_at"], run["eligible_at"]) == (datetime(2026, 1, 1), datetime(2026, 1, 1))
    assert (run["started_at"], run["ended_at"]) == (datetime(2026, 1, 1, 0, 1), datetime(2026, 1, 1, 1, 1))
    assert (run["gpus"], run["walltime_s"], run["state"], run["line"]) == (2, 7200, "COMPLETED", 3)
    assert (run["account"], run["user_name"], run["qos"], run["partition"]) == ("2", "7", "2", "5")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (JOB.replace(" 3600 ", " -1 "), "missing_runtime"),
        (JOB.replace(" 60 ", " -1 "), "unknown_start"),
        ("1 -1" + JOB[3:], "missing_value"),
        (JOB.replace(" 3600 ", " -5 "), "bad_number"),
        (JOB.replace(" 3600 ", " long "), "bad_number"),
        (JOB.replace(" 3600 ", " nan "), "bad_number"),
        (JOB.replace(" -1\n", "\n"), "wrong_field_count"),
        (JOB.replace("\n", " 9\n"), "wrong_field_count"),
    ],
)
def test_a_line_that_cannot_be_trusted_is_kept_with_its_reason(tmp_path: Path, line: str, reason: str) -> None:
    reading = read(tmp_path, HEADER + JOB.replace("1 0", "9 0") + line)

    assert reading.runs["workload_id"].to_list() == ["9"]
    assert reading.rejected.select("line", "reason", "text").rows() == [(4, reason, line.rstrip("\n"))]


def test_what_comes_after_a_part_of_unknown_length_began_who_knows_when(tmp_path: Path) -> None:
    parts = [
        "5 0 10 100 1 -1 -1 1 -1 -1 2 7 1 -1 1 1 -1 -1",
        "5 -1 20 -1 1 -1 -1 1 -1 -1 2 7 1 -1 1 1 -1 -1",
        "5 -1 30 100 1 -1 -1 1 -1 -1 3 7 1 -1 1 1 -1 -1",
        "6 500 0 100 1 -1 -1 1 -1 -1 1 7 1 -1 1 1 -1 -1",
    ]
    reading = read(tmp_path, HEADER + "\n".join(parts) + "\n")

    assert reading.runs["workload_id"].to_list() == ["5", "6"]
    assert reading.rejected.select("line", "reason").rows() == [(4, "missing_runtime"), (5, "unknown_start")]


def test_a_job_cancelled_while_it_waited_is_demand_until_then(tmp_path: Path) -> None:
    cancelled = JOB.replace(" 3600 4 ", " -1 -1 ").replace(" -1 1 7 ", " -1 5 7 ")
    run = read(tmp_path, HEADER + cancelled).runs.row(0, named=True)

    assert (run["state"], run["gpus"], run["started_at"]) == ("CANCELLED", 8, None)
    assert run["ended_at"] == datetime(2026, 1, 1, 0, 1)


def test_without_a_beginning_moments_count_from_1970_and_it_says_so(tmp_path: Path) -> None:
    reading = read(tmp_path, gzip.compress(JOB.encode()))

    assert reading.runs["submitted_at"].to_list() == [datetime(1970, 1, 1)]
    assert reading.notices[0].startswith("the header has no UnixStartTime: moments count from 1970")


def test_a_log_without_jobs_is_read_as_such(tmp_path: Path) -> None:
    assert read(tmp_path, HEADER).rows_read == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "empty_file"),
        ("JobID|State\n1|FAILED\n", "other_format: line 1 has 1 fields"),
        (HEADER + "a b c\n", "other_format: line 3 has 3 fields"),
        (HEADER + "curl: (6) Could not resolve host\n", "tool_error"),
        (HEADER + JOB + JOB[:20], "truncated: the last line breaks off"),
    ],
)
def test_what_is_no_workload_log_is_refused_with_the_reason(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(UnreadableLog) as refused:
        read(tmp_path, content)

    assert f"log.swf: {reason}" in str(refused.value)
