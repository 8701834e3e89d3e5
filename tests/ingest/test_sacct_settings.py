"""What a site says about its records: slices and shards, partitions of GPUs only, runs whose end was lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from gpupolicy.ingest import Reading

One = Callable[..., dict[str, object]]
Sacct = Callable[..., Reading]

OPEN = "JobID|State|Submit|Start|End|Timelimit|Suspended|AllocTRES\n"
DAY_5 = {"observed_until": datetime(2026, 1, 5)}


def open_run(job: int, limit: str = "1-00:00:00", suspended: str = "00:00:00", state: str = "RUNNING") -> str:
    """A run that started on the first of January, with one GPU, and has no end."""
    return f"{job}|{state}|2026-01-01T00:00:00|2026-01-01T00:00:00|Unknown|{limit}|{suspended}|gres/gpu=1\n"


@pytest.mark.parametrize(
    ("tres", "gpus", "gpu_type"),
    [
        ("gres/gpu=1,gres/gpu:a100_3g.20gb=1", 3 / 7, "a100"),
        ("gres/gpu=2,gres/gpu:a100_1g.5gb=2", 2 / 7, "a100"),
        ("gres/gpu:h100_7g.80gb=1", 1, "h100"),
        ("gres/gpu:1g.10gb=3", 3 / 7, None),
        ("gres/gpu=3,gres/gpu:a100=1,gres/gpu:a100_1g.5gb=2", 9 / 7, "a100"),
        ("gres/gpu=2,gres/gpu:h100_1g.10gb+me=1,gres/gpu:h200=1", 8 / 7, None),
        ("gres/gpu=8,gres/gpu:h100=8", 8, "h100"),
    ],
)
def test_a_slice_is_as_many_sevenths_of_its_card_as_it_has_compute_slices(
    one: One, tres: str, gpus: float, gpu_type: str | None
) -> None:
    run = one(AllocTRES=tres)

    assert (run["gpus"], run["gpu_type"]) == (pytest.approx(gpus, abs=1e-12), gpu_type)


def test_a_slice_is_a_gpu_of_its_own_type_where_the_site_says_so(one: One) -> None:
    run = one({"mig_rule": "devices"}, AllocTRES="gres/gpu=2,gres/gpu:a100_1g.5gb=2")

    assert (run["gpus"], run["gpu_type"]) == (2, "a100_1g.5gb")


def test_a_waiting_job_asks_for_slices_as_it_would_hold_them(one: One) -> None:
    run = one(Start="Unknown", End="Unknown", State="PENDING", AllocTRES="", ReqTRES="gres/gpu:a100_2g.10gb=7")

    assert (run["gpus"], run["gpu_type"]) == (2, "a100")


def test_shards_are_fractions_of_a_gpu(one: One) -> None:
    assert one({"shards_per_gpu": 8}, AllocTRES="cpu=1,gres/shard=2")["gpus"] == 0.25
    assert one({"shards_per_gpu": 8}, AllocTRES="gres/shard=2,gres/shard:a100=2")["gpus"] == 0.25
    assert one({"shards_per_gpu": 8}, AllocTRES="gres/gpu=1,gres/shard=4")["gpus"] == 1.5


def test_shards_that_nobody_can_count_are_flagged(sacct: Sacct) -> None:
    reading = sacct(
        "JobID|Submit|Start|End|AllocTRES\n1|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00|gres/shard=2\n"
    )

    assert reading.runs["gpus"].to_list() == [0]
    assert reading.flagged.rows() == [("gpu_count_unknown", "1", 2)]


def test_a_run_in_a_partition_of_gpus_only_holds_some_even_if_slurm_does_not_say(sacct: Sacct) -> None:
    times = "2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00"
    reading = sacct(
        "JobID|Partition|Submit|Start|End|ReqTRES|AllocTRES\n"
        f"1|gpu|{times}|cpu=8|cpu=8\n2|gpu|{times}|cpu=8|\n3|gpu|{times}||gres/gpu=1\n4|cpu|{times}|cpu=8|cpu=8\n"
        "5|gpu|2026-01-05T00:00:00|Unknown|Unknown|cpu=8|\n",
        gpu_only_partitions=frozenset({"gpu"}),
    )

    assert reading.flagged.rows() == [("gpu_count_unknown", "1", 2), ("gpu_count_unknown", "2", 3)]


def test_a_run_open_long_after_its_limit_is_accepted_but_set_aside(sacct: Sacct) -> None:
    reading = sacct(OPEN + open_run(1) + open_run(2, limit="10-00:00:00"), **DAY_5)

    assert (reading.accepted, reading.runs["workload_id"].to_list()) == (2, ["2"])
    assert reading.set_aside.select("workload_id", "gpus", "line").rows() == [("1", 1, 2)]
    assert reading.flagged.rows() == [("suspected_runaway", "1", 2)]
    assert any(notice.startswith("suspected_runaway: 1 row, the first in line 2") for notice in reading.notices)


@pytest.mark.parametrize(
    "run",
    [
        open_run(1, limit="UNLIMITED"),
        open_run(1, limit=""),
        open_run(1, limit="3-00:00:00"),  # over for exactly the day of grace
        open_run(1, suspended="2-00:00:00"),  # the limit stood still meanwhile
        open_run(1, state="SUSPENDED"),
        open_run(1).replace("Unknown", "2026-01-04T23:00:00"),
    ],
)
def test_a_run_that_may_well_go_on_is_counted(sacct: Sacct, run: str) -> None:
    assert sacct(OPEN + run, **DAY_5).set_aside.is_empty()


def test_the_grace_is_the_sites_to_say(sacct: Sacct) -> None:
    text = OPEN + open_run(1)

    assert sacct(text, **DAY_5, overrun_grace_h=73).set_aside.is_empty()
    assert sacct(text, **DAY_5, overrun_grace_h=71).set_aside.height == 1
    assert sacct(text, **DAY_5, overrun_grace_h=None).set_aside.is_empty()


def test_without_a_moment_the_newest_stamp_says_what_is_overdue(sacct: Sacct) -> None:
    later = open_run(2, limit="").replace("2026-01-01", "2026-01-04")

    assert sacct(OPEN + open_run(1) + later).set_aside["workload_id"].to_list() == ["1"]


def test_a_record_of_its_end_ends_a_runaway(sacct: Sacct) -> None:
    ended = open_run(1).replace("Unknown", "2026-01-02T00:00:00")
    reading = sacct(OPEN + open_run(1) + ended, **DAY_5)

    assert (reading.set_aside.height, reading.accepted) == (0, 1)
    assert reading.ignored.rows() == [("superseded_record", 1, 2)]
