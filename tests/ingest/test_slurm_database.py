"""Rows of Slurm's own job table: numbers for states, ids for resources, 0 and all-ones for nothing."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from gpupolicy.errors import InvalidInput, UnreadableLog
from gpupolicy.ingest import Reading, read_slurmdb
from gpupolicy.ingest.slurm.states import state_name

GPUS = {1001: "gpu", 1002: "gpu:h100"}
ROW = {
    "id_job": "7", "account": "vision", "id_user": "1042", "id_qos": "3", "partition": "main", "state": "3",
    "timelimit": "60", "time_submit": "1767225600", "time_eligible": "1767225600", "time_start": "1767226200",
    "time_end": "1767229800", "time_suspended": "0", "array_task_pending": "0", "priority": "10",
    "tres_req": "1=8,1001=2", "tres_alloc": "1=8,2=64000,3=18446744073709551614,4=1,5=8,1001=2,1002=2",
    "deleted": "0",
}  # fmt: skip
HELD_GPU_H = (pl.col("ended_at") - pl.col("started_at")).dt.total_milliseconds() * pl.col("gpus") / 3_600_000


def table(folder: Path, *rows: dict[str, str], **options: object) -> Reading:
    """A job table with tabs, as the mysql client writes it, of rows that differ from ROW."""
    lines = ["\t".join(ROW), *("\t".join((ROW | row).values()) for row in rows)]
    (folder / "job_table.tsv").write_text("\n".join(lines) + "\n")
    keywords = {"cluster": "c", "gpu_tres_ids": GPUS} | options
    return read_slurmdb(folder / "job_table.tsv", **keywords)  # type: ignore[arg-type]


def test_the_figures_of_a_published_table_equal_the_reference_to_a_millionth(shared: Path) -> None:
    folder = shared / "traces" / "supercloud-slurmdb"
    reference = json.loads((folder / "reference.json").read_text())

    reading = read_slurmdb(
        folder / "slurm-log-queueing-clean.csv.gz", cluster="sc", gpu_tres_ids={1001: "gpu:tesla", 1002: "gpu:volta"}
    )

    valid = reading.runs.filter((pl.col("gpus") > 0) & (pl.col("ended_at") > pl.col("started_at")))
    assert (reading.rows_read, reading.accepted, valid.height) == (9628, reference["rows"], reference["valid_rows"])
    assert valid.select(HELD_GPU_H.sum()).item() == pytest.approx(reference["gpu_hours"], rel=1e-6)
    by_partition = dict(valid.group_by("partition").agg(HELD_GPU_H.sum()).iter_rows())
    expected = {one["vc"]: one["gpu_hours"] for one in reference["gpu_hours_by_vc_top10"]}
    assert by_partition == pytest.approx(expected, rel=1e-6)
    assert valid["user_name"].n_unique() == reference["n_users"]
    wait_s = valid.select((pl.col("started_at") - pl.col("submitted_at")).dt.total_seconds()).to_series()
    for quantile in (50, 90, 99):
        assert wait_s.quantile(quantile / 100, "linear") == pytest.approx(reference[f"wait_p{quantile}_s"], rel=1e-6)


def test_ids_that_lost_digits_are_told_and_their_jobs_stay_apart_by_their_times(shared: Path) -> None:
    path = shared / "traces/supercloud-slurmdb/slurm-log-queueing-clean.csv.gz"
    reading = read_slurmdb(path, cluster="sc", gpu_tres_ids={1002: "gpu"})

    assert reading.accepted - reading.runs["workload_id"].n_unique() == 46
    assert reading.notices == ("ids are written as floats: where digits were lost, several jobs may share one",)
    assert dict(reading.runs["state"].value_counts().iter_rows()) == {
        "COMPLETED": 5784, "CANCELLED": 1893, "FAILED": 1077, "TIMEOUT": 841, "OUT_OF_MEMORY": 21, "NODE_FAIL": 12,
    }  # fmt: skip


def test_a_row_says_in_numbers_what_sacct_says_in_words(tmp_path: Path) -> None:
    run = table(tmp_path, {}).runs.row(0, named=True)

    assert (run["workload_id"], run["account"], run["user_name"], run["qos"]) == ("7", "vision", "1042", "3")
    assert (run["state"], run["gpus"], run["gpu_type"], run["walltime_s"]) == ("COMPLETED", 2, "h100", 3600)
    assert (run["submitted_at"], run["started_at"]) == (datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 10))


def test_what_is_not_yet_is_zero_and_what_is_not_is_all_ones(tmp_path: Path) -> None:
    waits = {"state": "0", "time_start": "0", "time_end": "0", "tres_alloc": "NULL", "timelimit": "4294967295"}
    held = waits | {"id_job": "8", "time_eligible": "4294967295"}
    runs = {"id_job": "9", "state": "1", "time_end": "0", "timelimit": "4294967294", "priority": "4294967294"}
    reading = table(tmp_path, waits, held, runs)

    columns = ("eligible_at", "started_at", "ended_at", "walltime_s", "gpus")
    assert reading.runs.select(columns).rows() == [
        (datetime(2026, 1, 1), None, None, None, 2),
        (None, None, None, None, 2),
        (datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 10), None, None, 2),
    ]


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "PENDING"), (3, "COMPLETED"), (11, "OUT_OF_MEMORY"), (1024, "REQUEUED"), (8192, "RESIZING"),
     (1024 + 8, "PREEMPTED"), (524288, "REVOKED"), (99, None), (2**40, None)],
)  # fmt: skip
def test_states_are_numbers_with_flags_above_them(number: int, name: str | None) -> None:
    assert state_name(number) == name


def test_a_requeued_run_counts_and_a_state_of_no_name_is_flagged(tmp_path: Path) -> None:
    reading = table(tmp_path, {"state": "1024"}, {"id_job": "8", "state": "99"})

    assert reading.runs["state"].to_list() == ["REQUEUED", "99"]
    assert reading.flagged.rows() == [("unknown_state", "8", 3)]


def test_the_waiting_tasks_of_an_array_are_one_row(tmp_path: Path) -> None:
    array = {"state": "0", "time_start": "0", "time_end": "0", "tres_alloc": "", "array_task_pending": "5"}

    assert table(tmp_path, array).runs["gpus"].to_list() == [10]


def test_deleted_rows_are_ignored(tmp_path: Path) -> None:
    reading = table(tmp_path, {}, {"id_job": "8", "deleted": "1"})

    assert (reading.rows_read, reading.accepted) == (2, 1)
    assert reading.ignored.rows() == [("deleted_record", 1, 3)]


def test_names_that_the_export_joined_in_go_before_numbers(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "id_job,state,time_submit,time_eligible,time_start,time_end,tres_alloc,id_user,user,qos\n"
        '7,3,1767225600,1767225600,1767226200,1767229800,"1=8,1001=2",1042,ada,free\n'
    )
    run = read_slurmdb(tmp_path / "jobs.csv", cluster="c", gpu_tres_ids=GPUS).runs.row(0, named=True)

    assert (run["user_name"], run["qos"], run["is_charged"]) == ("ada", "free", False)


def test_an_open_run_long_after_its_limit_is_set_aside_unless_it_was_suspended(tmp_path: Path) -> None:
    open_run = {"state": "1", "time_end": "0"}
    two_days = {"id_job": "8", "time_suspended": str(2 * 86400)}
    later = {"id_job": "9", "time_start": "1767400000", "time_end": "1767400200"}
    reading = table(tmp_path, open_run, open_run | two_days, later)

    assert reading.set_aside["workload_id"].to_list() == ["7"]
    assert reading.runs["workload_id"].to_list() == ["8", "9"]


def test_site_resources_that_nobody_named_are_told(tmp_path: Path) -> None:
    reading = table(tmp_path, {"tres_alloc": "1=8,1001=2,1007=4"})

    assert reading.notices == ("resource 1007 of tres_alloc is not counted; `sacctmgr show tres` names it",)


def test_without_the_ids_of_gpus_only_cpus_can_be_counted(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="sacctmgr -nP show tres format=id,type,name"):
        table(tmp_path, {}, gpu_tres_ids=None)
    with pytest.raises(InvalidInput, match="gres/billing: a GPU is called gpu, gpu:TYPE"):
        table(tmp_path, {}, gpu_tres_ids={5: "billing"})

    assert table(tmp_path, {}, gpu_tres_ids=None, count="cpus").runs["gpus"].to_list() == [8]


def test_another_table_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("id_step,state,time_start\n1,3,1767225600\n")

    with pytest.raises(UnreadableLog, match="missing_column: id_job, time_submit, time_end, tres_alloc"):
        read_slurmdb(tmp_path / "other.csv", cluster="c", gpu_tres_ids=GPUS)
