"""What the fields of sacct come to: GPUs, states, moments, contracts."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from gpupolicy.ingest import Reading
from gpupolicy.ingest.slurm.runs import array_tasks

One = Callable[..., dict[str, object]]
Sacct = Callable[..., Reading]


@pytest.mark.parametrize(
    ("tres", "gpus", "gpu_type"),
    [
        ("billing=8,cpu=1,gres/gpu:h100=8,gres/gpu=8,node=1", 8, "h100"),
        ("cpu=8,gres/gpu:a100=4,mem=64G", 4, "a100"),
        ("gres/gpu:a100=1,gres/gpu:v100=2", 3, None),
        ("gres/gpu=1,gres/gpumem=40G,gres/gpuutil=97", 1, None),
        ("billing=64,cpu=64,mem=500G,node=1", 0, None),
        ("gres/gpu=8,gres/gpu:h100=8,license/matlab=8", 8, "h100"),
    ],
)
def test_typed_entries_are_never_added_to_the_generic_one(one: One, tres: str, gpus: int, gpu_type: str | None) -> None:
    run = one(AllocTRES=tres)

    assert (run["gpus"], run["gpu_type"]) == (gpus, gpu_type)


def test_what_was_asked_for_is_demand_and_what_was_allocated_is_held(one: One) -> None:
    waiting = one(Start="Unknown", End="Unknown", State="PENDING", ReqTRES="gres/gpu=4", AllocTRES="")
    running = one(End="Unknown", State="RUNNING", ReqTRES="gres/gpu=4", AllocTRES="gres/gpu:h100=2")

    assert (waiting["gpus"], waiting["started_at"]) == (4, None)
    assert (running["gpus"], running["gpu_type"], running["ended_at"]) == (2, "h100", None)


def test_a_run_without_a_recorded_allocation_holds_what_it_asked_for_and_says_so(sacct: Sacct) -> None:
    reading = sacct(
        "JobID|Submit|Start|End|ReqTRES|AllocTRES\n"
        "1|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00|gres/gpu=2|\n"
    )

    assert reading.runs["gpus"].to_list() == [2]
    assert reading.flagged.rows() == [("allocation_from_request", "1", 2)]
    assert any(notice.startswith("allocation_from_request: 1 row") for notice in reading.notices)


def test_cpus_are_counted_where_there_are_no_gpus_to_count(one: One) -> None:
    held = one({"count": "cpus"}, NCPUS="12")
    by_tres = one({"count": "cpus"}, AllocTRES="billing=3,cpu=48,node=1")

    assert (held["gpus"], by_tres["gpus"]) == (12, 48)


def test_states_are_the_first_word_in_upper_case(one: One) -> None:
    assert one(State="CANCELLED by 992")["state"] == "CANCELLED"
    assert one(State="Completed")["state"] == "COMPLETED"


def test_an_unknown_state_counts_and_is_flagged(sacct: Sacct) -> None:
    reading = sacct(
        "JobID|State|Submit|Start|End|AllocTRES\n"
        "1|WOBBLING|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00|gres/gpu=2\n"
    )

    assert reading.accepted == 1
    assert reading.flagged["flag"].to_list() == ["unknown_state"]


@pytest.mark.parametrize("start", ["None", "Unknown", "", "2026-01-05T02:00:00"])
def test_a_job_cancelled_before_it_began_never_started(one: One, start: str) -> None:
    run = one(State="CANCELLED by 9", Start=start, ReqTRES="gres/gpu=2", AllocTRES="")

    assert run["started_at"] is None
    assert run["ended_at"] == datetime(2026, 1, 5, 2)


def test_a_held_job_was_never_eligible_and_one_that_ran_was(one: One) -> None:
    held = one(State="PENDING", Eligible="Unknown", Start="Unknown", End="Unknown", ReqTRES="gres/gpu=8")
    ran = one(Eligible="Unknown")

    assert held["eligible_at"] is None
    assert ran["eligible_at"] == ran["submitted_at"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("1|COMPLETED|2026-01-05T00:00:00|||gres/gpu=1", "bad_time"),
        ("1|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|Unknown|gres/gpu=1", "bad_time"),
        ("1|COMPLETED|2026-01-05T00:00:00|yesterday|2026-01-05T00:00:00|gres/gpu=1", "bad_time"),
        ("1|FAILED|2026-01-05T00:00:00|2026-01-05T02:00:00|2026-01-05T01:00:00|gres/gpu=1", "end_before_start"),
        ("1|FAILED|2026-01-05T00:00:00|2026-01-05T01:00:00|2026-01-05T02:00:00|gres/gpu=x", "bad_number"),
        ("|FAILED|2026-01-05T00:00:00|2026-01-05T01:00:00|2026-01-05T02:00:00|gres/gpu=1", "missing_value"),
        ("1|FAILED|Unknown|2026-01-05T01:00:00|2026-01-05T02:00:00|gres/gpu=1", "missing_value"),
    ],
)
def test_a_row_that_cannot_be_trusted_is_kept_with_its_reason_line_and_text(
    sacct: Sacct, fields: str, reason: str
) -> None:
    reading = sacct(f"JobID|State|Submit|Start|End|AllocTRES\n\n{fields}\n")

    assert reading.accepted == 0
    assert reading.rows_read == 1
    assert reading.rejected.select("line", "reason", "text").rows() == [(3, reason, fields)]


@pytest.mark.parametrize(
    ("limit", "raw", "seconds"),
    [
        ("1-00:00:00", "", 86400),
        ("00:30:00", "", 1800),
        ("45-00:00:00", "", 45 * 86400),
        ("00:30:00", "31", 31 * 60),
        ("UNLIMITED", "UNLIMITED", None),
        ("Partition_Limit", "", None),
        ("", "", None),
    ],
)
def test_a_word_instead_of_a_time_limit_is_a_missing_number(
    one: One, limit: str, raw: str, seconds: int | None
) -> None:
    assert one(Timelimit=limit, TimelimitRaw=raw)["walltime_s"] == seconds


def test_the_contract_stands_in_the_comment_and_the_utilization_in_that_of_the_epilog(one: One) -> None:
    run = one(Comment="nightly minrt=900 resumable=yes", AdminComment="gpu_util=87.5")
    silent = one(Comment="", AdminComment="")

    assert (run["minimum_runtime_s"], run["is_resumable"], run["utilization_ratio"]) == (900, True, 0.875)
    assert (silent["minimum_runtime_s"], silent["is_resumable"], silent["utilization_ratio"]) == (None, None, None)


@pytest.mark.parametrize(
    ("qos", "comment", "is_charged"),
    [
        ("funded", "minrt=900", True),
        ("funded", "", True),
        ("", "", True),
        ("funded", "minrt=0", False),
        ("free", "minrt=900", False),
        ("scavenge", "", True),
    ],
)
def test_free_is_what_runs_under_a_free_qos_or_with_minimum_runtime_zero(
    one: One, qos: str, comment: str, is_charged: bool
) -> None:
    assert one(QOS=qos, Comment=comment)["is_charged"] is is_charged


def test_the_names_of_free_qos_can_be_given(one: One) -> None:
    assert one({"free_qos": frozenset({"scavenge"})}, QOS="scavenge")["is_charged"] is False


@pytest.mark.parametrize(
    ("job_id", "tasks"), [("600_[3-6%2]", 4), ("601_[1,3,5-7]", 5), ("602_[0-10:5]", 3), ("40_[7]", 1)]
)
def test_the_waiting_tasks_of_an_array_are_one_record_that_asks_for_all_of_them(
    one: One, job_id: str, tasks: int
) -> None:
    run = one(JobID=job_id, State="PENDING", Start="Unknown", End="Unknown", ReqTRES="gres/gpu=2", AllocTRES="")

    assert array_tasks(job_id) == tasks
    assert run["gpus"] == 2 * tasks


def test_each_run_of_a_requeued_job_is_a_run_of_its_own(sacct: Sacct) -> None:
    reading = sacct(
        "JobID|State|Submit|Start|End|AllocTRES\n"
        "5|PREEMPTED|2026-01-10T00:00:00|2026-01-10T01:00:00|2026-01-10T05:00:00|gres/gpu=8\n"
        "5|COMPLETED|2026-01-10T05:00:00|2026-01-10T06:00:00|2026-01-10T08:00:00|gres/gpu=8\n"
    )

    assert reading.runs.select("workload_id", "state").rows() == [("5", "PREEMPTED"), ("5", "COMPLETED")]


def test_of_several_records_of_a_run_the_finished_one_stays(sacct: Sacct) -> None:
    run = "5|{}|2026-01-10T00:00:00|{}|{}|gres/gpu=8|gres/gpu=8\n"
    ended = run.format("COMPLETED", "2026-01-10T01:00:00", "2026-01-10T05:00:00")
    reading = sacct(
        "JobID|State|Submit|Start|End|AllocTRES|ReqTRES\n"
        + run.format("PENDING", "Unknown", "Unknown")
        + ended * 2
        + run.format("RUNNING", "2026-01-10T01:00:00", "Unknown")
    )

    assert reading.runs.select("state", "line").rows() == [("COMPLETED", 4)]
    assert reading.ignored.select("reason", "rows").rows() == [("duplicate_record", 1), ("superseded_record", 2)]
    assert reading.rows_read == 4


def test_the_raw_job_number_names_a_workload_where_the_file_has_it(one: One) -> None:
    assert one(JobID="15_4", JobIDRaw="28")["workload_id"] == "28"
    assert one(JobID="15_4")["workload_id"] == "15_4"


def test_the_log_was_taken_at_the_newest_moment_that_it_proves(sacct: Sacct) -> None:
    reading = sacct(
        "JobID|State|Submit|Eligible|Start|End|Elapsed|AllocTRES|ReqTRES\n"
        "1|RUNNING|2026-01-31T19:00:00|2026-01-31T19:00:00|2026-01-31T20:00:00|Unknown|04:00:00|gres/gpu=4|\n"
        "2|PENDING|2026-01-31T21:00:00|2026-03-01T00:00:00|Unknown|Unknown|00:00:00||gres/gpu=8\n"
    )

    assert reading.observed_until == datetime(2026, 2, 1)


def test_the_caller_may_say_when_the_log_was_taken(sacct: Sacct) -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(hours=2)
    reading = sacct("JobID|Submit|Start|End|AllocTRES\n", observed_until=at)

    assert reading.observed_until == datetime(2026, 3, 1, 14)
    assert reading.runs.is_empty()


def test_clock_skew_and_impossible_waits_are_told_apart(sacct: Sacct) -> None:
    reading = sacct(
        "JobID|Submit|Start|End|AllocTRES\n"
        "skewed|2026-01-05T10:00:05|2026-01-05T10:00:03|2026-01-05T11:00:03|gres/gpu=1\n"
        "early|2026-01-05T12:00:00|2026-01-05T08:00:00|2026-01-05T09:00:00|gres/gpu=1\n"
    )

    assert reading.flagged.sort("line").select("flag", "workload_id").rows() == [
        ("clock_skew", "skewed"),
        ("implausible_wait", "early"),
    ]


def test_the_given_cluster_replaces_the_files_own_name_with_a_notice(sacct: Sacct) -> None:
    text = (
        "JobID|Cluster|Submit|Eligible|Start|End|AllocTRES\n"
        "1|{}|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00|gres/gpu=1\n"
    )

    assert sacct(text.format("c")).notices == ()
    assert sacct(text.format("moon")).notices == ("the file calls its cluster moon; it was loaded as c",)
    assert sacct(text.format("moon")).runs["cluster"].unique().to_list() == ["c"]


def test_all_rows_fit_the_canonical_schema_whatever_fields_there_are(sacct: Sacct) -> None:
    reading = sacct("JobID|Submit|Start|End|ReqTRES\n1|2026-01-05T00:00:00|Unknown|Unknown|gres/gpu=2\n")

    run = reading.runs.row(0, named=True)
    assert run["eligible_at"] == run["submitted_at"]
    assert reading.notices == ("there is no field Eligible: waits and demand count from submission",)
    assert reading.runs.select(pl.all().is_null()).row(0, named=True) == {
        name: name not in {"cluster", "workload_id", "submitted_at", "eligible_at", "gpus", "is_charged", "line"}
        for name in reading.runs.columns
    }
