"""Workloads of Kueue: admissions, evictions and returns to the queue become runs and waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ingest.kube import case, gpu_hours, rows, spans, utc, waits_s

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, read_kueue

Read = Callable[..., Reading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read workloads as one list on cluster c, taken at 18 h on 1 March."""

    def read(*workloads: dict[str, Any], **options: Any) -> Reading:  # noqa: ANN401
        path = tmp_path / "workloads.json"
        path.write_text(json.dumps({"kind": "WorkloadList", "items": workloads}))
        return read_kueue(path, cluster="c", observed_until=utc("2026-03-01T18:00:00Z"), **options)

    return read


def workload(*conditions: tuple[str, str, str, str], spec: Any = (), **status: Any) -> dict[str, Any]:  # noqa: ANN401
    """Four pods of two GPUs, created at 8; conditions as (type, status, hour, reason)."""
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "2"}}}
    told = [
        {"type": kind, "status": holds, "lastTransitionTime": f"2026-03-01T{hour}:00Z", "reason": reason}
        for kind, holds, hour, reason in conditions
    ]
    return {
        "metadata": {"name": "w", "namespace": "nlp", "creationTimestamp": "2026-03-01T08:00:00Z"},
        "spec": {"queueName": "lq", "podSets": [{"count": 4, "template": {"spec": {"containers": [container]}}}]}
        | dict(spec),
        "status": {"conditions": told} | status,
    }


PREEMPTED = [
    ("QuotaReserved", "False", "12:00", "Pending"),
    ("Admitted", "False", "12:00", "NoReservation"),
    ("Evicted", "True", "11:59", "Preempted"),
    ("Requeued", "True", "12:00", "Preempted"),
]
ONCE = {"schedulingStats": {"evictions": [{"reason": "Preempted", "count": 1}]}}
TWICE = {"schedulingStats": {"evictions": [{"reason": "Preempted", "count": 2}]}}


def test_an_evicted_workload_holds_nothing_although_it_is_still_reserved(shared: Path) -> None:
    one = case(shared, "k8-01")

    reading = read_kueue(one.path, cluster="c", observed_until=one.cutoff)

    assert rows(reading) == one.expected["rows"]
    assert gpu_hours(reading, one.params) == one.expected["gpu_hours_by_account"]
    assert waits_s(reading) == list(one.expected["wait_seconds_by_job"].values())


def test_a_preempted_workload_waits_anew_from_its_return_to_the_queue(shared: Path) -> None:
    one = case(shared, "k8-07")

    reading = read_kueue(one.path, cluster="c", observed_until=one.cutoff)

    assert waits_s(reading) == one.expected["wait_seconds_by_run"]["w1"]
    assert reading.runs["state"].to_list() == ["PREEMPTED", "FINISHED"]
    assert gpu_hours(reading, one.params) == pytest.approx(one.expected["gpu_hours_by_account"])
    assert rows(reading)["accepted"] == 8


def test_workloads_as_the_api_server_lists_them(shared: Path) -> None:
    reading = read_kueue(shared / "cases/targets/ingest/kueue_workloads.json", cluster="c")

    told = ("workload_id", "account", "partition", "gpus", "gpu_type", "state")
    assert reading.runs.select(told).rows() == [
        ("ns-a1/job-done", "ns-a1", "lq-a1", 8.0, "h100", "SUCCEEDED"),
        ("ns-a1/job-pretrain", "ns-a1", "lq-a1", 32.0, "h100", "RUNNING"),
        ("ns-b1/job-preempted", "ns-b1", "lq-b1", 16.0, None, "PENDING"),
        ("ns-b1/job-waiting", "ns-b1", "lq-b1", 128.0, None, "PENDING"),
    ]
    assert waits_s(reading) == [3600, 7200]
    assert reading.flagged["flag"].to_list() == ["history_lost"]
    assert "history_lost: 64.0 GPU-hours of earlier runs are in no run" in reading.notices


@pytest.mark.parametrize("name", ["accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds"])
def test_the_run_before_a_single_eviction_is_known_to_the_second(read: Read, name: str) -> None:
    reading = read(workload(*PREEMPTED, **ONCE, **{name: 3 * 3600}))

    assert spans(reading) == [("nlp/w", "01.09:00", "01.11:59", 8.0), ("nlp/w", None, None, 8.0)]
    assert reading.runs["eligible_at"].dt.hour().to_list() == [8, 12]
    assert reading.flagged.is_empty()


def test_lists_taken_one_after_another_tell_of_the_same_runs(read: Read) -> None:
    """The key of a run is the same in all of them, so each closes what the one before left open."""
    past = {"accumulatedPastExecutionTimeSeconds": 3 * 3600}
    again = [("Admitted", "True", "14:00", "Admitted"), ("Evicted", "False", "14:00", "QuotaReserved"), PREEMPTED[3]]

    first = read(workload(("Admitted", "True", "09:00", "Admitted")))
    second = read(workload(*PREEMPTED, **ONCE, **past))
    third = read(workload(*again, **ONCE, **past))

    key = ["workload_id", "submitted_at", "started_at"]
    assert first.runs.select(key).rows() == second.runs.select(key).rows()[:1]
    assert third.runs.select(key).rows()[:1] == first.runs.select(key).rows()
    assert second.runs.row(1, named=True)["submitted_at"] == third.runs.row(1, named=True)["submitted_at"]
    assert spans(third) == [("nlp/w", "01.09:00", "01.12:00", 8.0), ("nlp/w", "01.14:00", None, 8.0)]


def test_after_two_evictions_neither_the_earlier_runs_nor_the_wait_are_made_up(read: Read) -> None:
    again = ("Admitted", "True", "14:00", "Admitted")

    reading = read(workload(again, PREEMPTED[3], **TWICE, accumulatedPastExecutionTimeSeconds=5400))

    assert spans(reading) == [("nlp/w", "01.14:00", None, 8.0)]
    assert waits_s(reading) == [None]
    assert reading.flagged.rows() == [("history_lost", "nlp/w", 1)]
    assert reading.notices[0] == "history_lost: 12.0 GPU-hours of earlier runs are in no run"


def test_a_watched_workload_has_all_its_runs_and_nothing_is_lost(tmp_path: Path) -> None:
    admitted = workload(("Admitted", "True", "09:00", "Admitted"))
    evicted = workload(*PREEMPTED, **ONCE, accumulatedPastExecutionTimeSeconds=3 * 3600)
    again = workload(("Admitted", "True", "14:00", "Admitted"), **ONCE, accumulatedPastExecutionTimeSeconds=3 * 3600)
    done = [("Admitted", "True", "14:00", "Admitted"), ("Finished", "True", "15:00", "Succeeded")]
    states = [admitted, evicted, again, workload(*done, **ONCE, accumulatedPastExecutionTimeSeconds=3 * 3600)]
    path = tmp_path / "watch.json"
    path.write_text("\n".join(json.dumps({"type": "MODIFIED", "object": {"kind": "Workload"} | one}) for one in states))

    reading = read_kueue(path, cluster="c")

    assert spans(reading) == [("nlp/w", "01.09:00", "01.11:59", 8.0), ("nlp/w", "01.14:00", "01.15:00", 8.0)]
    assert waits_s(reading) == [3600, 7200]
    assert rows(reading)["accepted"] == 4
    assert reading.flagged.is_empty()


def test_reserved_quota_is_no_run_until_all_checks_are_through(read: Read) -> None:
    reading = read(workload(("QuotaReserved", "True", "09:00", "QuotaReserved")))

    assert reading.runs.select("started_at", "eligible_at", "gpus").rows() == [(None, utc("2026-03-01T08:00:00Z"), 8.0)]


def test_what_is_switched_off_or_held_back_is_no_demand(read: Read) -> None:
    evicted = ("Evicted", "True", "12:00", "PodsReadyTimeout")

    off = read(workload(evicted, spec={"active": False}))
    backing_off = read(workload(evicted, ("Requeued", "False", "12:00", "PodsReadyTimeout")))

    assert [one.runs["eligible_at"].to_list() for one in (off, backing_off)] == [[None], [None]]


def test_a_workload_that_finished_in_the_queue_ran_never_and_waited_in_vain(read: Read) -> None:
    reading = read(workload(("Finished", "True", "10:30", "Failed")))

    assert reading.runs.select("started_at", "ended_at", "state").rows() == [
        (None, utc("2026-03-01T10:30:00Z"), "FAILED")
    ]


def test_gpus_are_those_assigned_and_their_flavor_that_of_the_most(read: Read) -> None:
    sets = [
        {"flavors": {"nvidia.com/gpu": "a100", "cpu": "any"}, "resourceUsage": {"nvidia.com/gpu": "2", "cpu": "64"}},
        {"flavors": {"nvidia.com/gpu": "h100"}, "resourceUsage": {"nvidia.com/gpu": "5"}},
        {"flavors": {"nvidia.com/mig-1g.10gb": "mig"}, "resourceUsage": {"nvidia.com/mig-1g.10gb": "7"}},
    ]

    reading = read(workload(("Admitted", "True", "09:00", "Admitted"), admission={"podSetAssignments": sets}))

    assert reading.runs.select("gpus", "gpu_type").rows() == [(8.0, "h100")]


@pytest.mark.parametrize("spec", [{"priorityClassRef": {"name": "free"}}, {"priorityClassName": "free"}])
def test_a_priority_class_of_either_version_may_say_that_work_is_free(read: Read, spec: dict[str, Any]) -> None:
    reading = read(workload(spec=spec | {"priority": -5}))

    assert reading.runs.select("is_charged", "qos", "priority").rows() == [(False, "free", -5)]
    assert read(workload(), free=frozenset({"lq"})).runs["is_charged"].to_list() == [False]


def test_stamps_that_run_backwards_or_are_none_reject_the_workload(read: Read) -> None:
    backwards = workload(("Admitted", "True", "09:00", "Admitted"), ("Finished", "True", "08:30", "Succeeded"))
    unreadable = workload(("Admitted", "True", "nine", "Admitted"), accumulatedPastExecutionTimeSeconds="long")

    reading = read(backwards, unreadable)

    assert reading.runs.is_empty()
    assert reading.rejected["reason"].to_list() == ["end_before_start", "bad_time"]
    assert "accumulatedPastExecutionTimeSeconds 'long'" in reading.rejected["detail"][1]


def test_a_table_of_events_keeps_lives_of_one_name_apart_and_rejects_what_is_no_event(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(
        "workload,namespace,gpus,event,time,queue,user\n"
        "w,nlp,8,created,2026-03-01T08:00:00Z,lq,ada\n"
        "w,nlp,8,finished,2026-03-01T09:00:00Z,lq,ada\n"
        "w,nlp,2,created,2026-03-01T10:00:00Z,free,ben\n"
        "w,nlp,2,admitted,2026-03-01T10:30:00Z,free,ben\n"
        "w,nlp,2,paused,2026-03-01T11:00:00Z,free,ben\n"
        "w,nlp,2,finished,noon,free,ben\n"
    )

    reading = read_kueue(path, cluster="c", observed_until=utc("2026-03-01T12:00:00Z"))

    assert spans(reading) == [("nlp/w", None, "01.09:00", 8.0), ("nlp/w", "01.10:30", None, 2.0)]
    assert reading.runs.select("user_name", "is_charged").rows() == [("ada", True), ("ben", False)]
    assert rows(reading)["rejected_by_reason"] == {"bad_value": 1, "bad_time": 1}


def test_a_list_of_other_things_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "PodList", "items": [{"metadata": {"name": "p"}}]}))

    with pytest.raises(UnreadableLog, match="other_kind: there is no Workload in it, but 1 Pod"):
        read_kueue(path, cluster="c")


def test_an_empty_list_is_no_fault(read: Read) -> None:
    reading = read()

    assert (reading.rows_read, reading.runs.height) == (0, 0)
    assert reading.runs.schema == read(workload()).runs.schema
    assert reading.runs.filter(pl.col("gpus") > 0).is_empty()
