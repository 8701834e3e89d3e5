"""Output of a live Slurm: whatever the form, the same jobs give the same runs, and sreport agrees."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, read_slurm

FORMS = [
    ("sacct-delimiter.psv", "UTC"),  # parted by 0x1f
    ("sacct-duplicates.psv", "UTC"),  # by bars, one of them in a job's name
    ("sacct-epoch.psv", "UTC"),
    ("sacct-steps.psv", "UTC"),
    ("sacct-all.psv", "UTC"),
    ("sacct-berlin.psv", "Europe/Berlin"),
]


def read(shared: Path, name: str, timezone: str = "UTC") -> Reading:
    return read_slurm(shared / "slurm" / "captures" / name, cluster=None, timezone=timezone)


@pytest.mark.parametrize(("name", "timezone"), FORMS)
def test_every_form_of_the_same_jobs_gives_the_same_runs(shared: Path, name: str, timezone: str) -> None:
    known = read(shared, "sacct-delimiter.psv")
    reading = read(shared, name, timezone)

    same = pl.exclude("line", "priority")
    order = ["workload_id", "submitted_at"]
    assert reading.rejected.is_empty()
    assert reading.accepted == 45
    assert reading.runs.select(same).sort(order).equals(known.runs.select(same).sort(order))


def test_gpu_seconds_of_every_user_are_those_of_sreport(shared: Path) -> None:
    runs = read(shared, "sacct-duplicates.psv").runs.drop_nulls(["started_at", "ended_at"])
    held_s = (pl.col("ended_at") - pl.col("started_at")).dt.total_seconds() * pl.col("gpus")
    by_user = dict(runs.group_by("user_name").agg(held_s.sum()).iter_rows())

    assert {user: by_user[user] for user in ("fay", "ben", "eli", "dee")} == {
        "fay": 163,
        "ben": 40,
        "eli": 12,
        "dee": 107,
    }


def test_a_bar_and_line_breaks_in_free_text_are_recovered(shared: Path) -> None:
    runs = read(shared, "sacct.psv").runs.filter(pl.col("workload_id").is_in(["10", "11"]))

    assert runs.select("workload_id", "user_name", "state", "gpus", "line").rows() == [
        ("10", "eli", "COMPLETED", 1, 11),
        ("11", "eli", "COMPLETED", 1, 12),
    ]


def test_waiting_running_preempted_and_free_are_what_they_were(shared: Path) -> None:
    runs = read(shared, "sacct-duplicates.psv").runs

    waiting = runs.filter(pl.col("started_at").is_null())
    assert waiting.select("workload_id", "gpus", "ended_at").rows() == [
        ("42", 24, None),
        ("43", 24, None),
        ("46", 24, None),
    ]
    running = runs.filter(pl.col("started_at").is_not_null() & pl.col("ended_at").is_null())
    assert running.select("workload_id", "gpus", "gpu_type", "is_charged").rows() == [
        ("39", 16, "h100", True),
        ("41", 1, "h100", False),
    ]
    assert runs.filter(pl.col("workload_id") == "32")["state"].to_list() == ["PREEMPTED", "PREEMPTED", "COMPLETED"]
    assert runs.filter(pl.col("minimum_runtime_s") == 900).select("workload_id", "is_resumable").rows() == [("4", True)]


def test_a_dump_without_times_is_refused_with_what_to_ask_for(shared: Path) -> None:
    with pytest.raises(UnreadableLog, match=r"missing_column: Submit, Start, End.*ask sacct with -a -X -D -P"):
        read(shared, "sacct-default-window.psv")
