"""Beaker: jobs are attempts, buckets are levels, zero times are none; and a server that is really asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ingest_cases import check, check_runs, expectations, moment

from gpupolicy.errors import EnvironmentTrouble, InvalidInput, UnreadableLog
from gpupolicy.ingest import Reading, fetch_beaker, read_beaker_allocations, read_beaker_jobs, read_beaker_usage

NINE, NOON, ONE = datetime(2026, 11, 2, 9), datetime(2026, 11, 2, 12), datetime(2026, 11, 2, 13)
SPAN = {"starts_at": datetime(2026, 11, 2, 8), "ends_at": datetime(2026, 11, 2, 11), "asked_at": datetime(2026, 11, 3)}


@pytest.fixture
def saved(shared: Path) -> Path:
    return shared / "cases" / "targets" / "ingest" / "beaker.json"


@pytest.fixture
def jobs(tmp_path: Path) -> Callable[..., Reading]:
    """Read jobs that are given as changes to one that ran from nine to twelve on eight GPUs."""

    def read(*changes: dict[str, Any], **options: object) -> Reading:
        times = {"created": "2026-11-02T08:00:00Z", "scheduled": "2026-11-02T09:00:00Z"}
        listed = [
            {
                "id": f"job{number}",
                "budget_id": "bg",
                "container_spec": {"resource_request": {"gpu_count": 8}},
                "assignment_details": {"resource_assignment": {"gpus": [f"g{gpu}" for gpu in range(8)]}},
            }
            | change
            | {"status": times | {"exited": "2026-11-02T12:00:00Z"} | change.get("status", {})}
            for number, change in enumerate(changes, start=1)
        ]
        (tmp_path / "jobs.json").write_text(json.dumps({"jobs": listed}))
        return read_beaker_jobs(tmp_path / "jobs.json", cluster="c", **options)  # type: ignore[arg-type]

    return read


def test_the_year_one_means_not_yet(shared: Path) -> None:
    for path, expected in expectations(shared / "cases" / "k8s" / "k8-08-beaker-zero-times"):
        params = expected["params"]
        reading = read_beaker_jobs(
            path, cluster="c", account_from=params["account_from"], observed_until=moment(params["cutoff"])
        )

        check(reading, expected)
        check_runs(reading, expected)


def test_a_job_holds_its_gpus_from_being_scheduled_and_is_free_without_a_minimum_runtime(saved: Path) -> None:
    runs = read_beaker_jobs(saved, cluster="c").runs

    columns = "workload_id", "started_at", "ended_at", "gpus", "state", "minimum_runtime_s", "is_charged", "priority"
    assert runs.select(columns).rows() == [
        ("job1", NINE, None, 8, "RUNNING", 14400, True, 3),
        ("job2", datetime(2026, 11, 2, 10), datetime(2026, 11, 2, 13, 30), 8, "COMPLETED", 0, False, 3),
        ("job3", ONE, datetime(2026, 11, 2, 17), 4, "PREEMPTED", 7200, True, 3),
        ("job4", None, None, 8, "PENDING", 14400, True, 4),
    ]
    assert runs.select("account", "user_name", "hosts", "is_resumable").row(0) == ("bg-a1", "ann", "nd1", True)


def test_attempts_of_one_workload_have_the_id_of_the_first(jobs) -> None:
    def at(hour: int) -> dict[str, str]:
        times = ("created", hour), ("scheduled", hour + 1), ("exited", hour + 2)
        return {name: f"2026-11-02T{at:02}:00:00Z" for name, at in times}

    attempts = [{"status": at(6 + 2 * number), "retry_ancestor_id": f"job{number}"} for number in range(5)]
    runs = jobs(attempts[0] | {"retry_ancestor_id": None}, *attempts[1:], {"retry_ancestor_id": "old"}).runs

    assert runs["workload_id"].to_list() == ["job1"] * 5 + ["old"]
    assert runs.select("eligible_at", "started_at").row(3) == (NOON, ONE)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "COMPLETED"),
        ({"exit_code": 1}, "FAILED"),
        ({"failed": "2026-11-02T12:00:00Z"}, "FAILED"),
        ({"exited": None}, "RUNNING"),
        ({"exited": None, "canceled": "2026-11-02T11:00:00Z"}, "RUNNING"),
        ({"exited": None, "scheduled": None}, "PENDING"),
        ({"exited": None, "scheduled": None, "canceled": "2026-11-02T11:00:00Z"}, "CANCELLED"),
        ({"canceled": "2026-11-02T11:00:00Z"}, "CANCELLED"),
        *(
            ({"canceled": "2026-11-02T11:00:00Z", "canceled_code": f"CANCELATION_CODE_{code}"}, state)
            for code, state in [
                ("USER_PREEMPTION", "PREEMPTED"), ("SIBLING_TASK_PREEMPTION", "PREEMPTED"), ("TIMEOUT", "TIMEOUT"),
                ("NODE_UNHEALTHY", "NODE_FAIL"), ("IDLE", "CANCELLED"), ("UNSPECIFIED", "CANCELLED"),
            ]
        ),
    ],
)  # fmt: skip
def test_times_and_code_tell_the_state_in_slurms_words(jobs, status: dict[str, Any], state: str) -> None:
    assert jobs({"status": status}).runs["state"].item() == state


def test_gpus_are_those_assigned_and_those_asked_for_only_without_an_assignment(jobs) -> None:
    reading = jobs(
        {"assignment_details": {"resource_assignment": {"gpus": ["g0", "g1"]}}},
        {"assignment_details": None},
        {"assignment_details": None, "container_spec": None},
    )

    assert reading.runs["gpus"].to_list() == [2, 8, 0]
    assert reading.flagged.select("flag", "workload_id").rows() == [("allocation_from_request", "job2")]


def test_a_session_is_interactive(jobs) -> None:
    assert jobs({"environment_id": "env"}, {"task_id": "task"}).runs["partition"].to_list() == ["interactive", None]


def test_jobs_that_cannot_be_trusted_are_rejected_with_the_record(jobs) -> None:
    reading = jobs(
        {},
        {"status": {"created": "soon"}},
        {"status": {"exited": "2026-11-02T08:30:00Z"}},
        {"status": {"created": None}},
    )

    assert reading.rows_read == 4
    assert reading.rejected.select("line", "reason", "detail").rows() == [
        (2, "bad_time", "status.created 'soon'"),
        (3, "end_before_start", None),
        (4, "missing_value", "status.created is empty"),
    ]
    assert '"job":"job2"' in reading.rejected["text"][0]


def test_buckets_are_levels_charged_where_they_were_allocated(saved: Path) -> None:
    reading = read_beaker_usage(saved, cluster="c")

    held = reading.runs.group_by("account", "is_charged").agg(pl.col("gpus").sum()).sort("account", "is_charged")
    assert held.rows() == [("bg-a1", True, 48), ("bg-b1", False, 12), ("bg-b1", True, 24)]
    assert reading.runs["state"].unique().to_list() == ["LEVEL"]
    assert (reading.rows_read, reading.accepted, reading.observed_until) == (9, 9, datetime(2026, 11, 2, 11))
    assert "count their time twice" in reading.notices[0]


def test_buckets_that_differ_only_in_what_we_do_not_tell_apart_are_one_level(tmp_path: Path) -> None:
    bucket = {"bucket_start": "2026-11-02T09:00:00Z", "bucket_end": "2026-11-02T12:00:00Z", "cluster_id": "cl"}
    buckets = [bucket | {"gpu_seconds": "10800"}, bucket | {"gpu_seconds": "21600", "interruptible": True}, bucket]
    (tmp_path / "usage.json").write_text(json.dumps({"buckets": [*buckets, bucket | {"bucket_end": None}]}))

    reading = read_beaker_usage(tmp_path / "usage.json", cluster=None)

    assert reading.runs.select("cluster", "gpus", "is_charged", "ended_at").rows() == [("cl", 3, False, NOON)]
    assert (reading.rows_read, reading.accepted) == (4, 3)
    assert reading.rejected.select("line", "reason").rows() == [(4, "missing_value")]


def test_allocations_are_shares_and_entitlements(saved: Path) -> None:
    told = read_beaker_allocations(saved).select("cluster", "level", "entity", "share_ratio", "entitlement_ratio")

    assert told.rows() == [
        ("org/h100", "budget", "org/a1", 0.35, 0.21),
        ("org/h100", "budget", "org/a2", 0.65, 0.39),
        ("org/h100", "budget", "org/prog-a", 0.6, 0.6),
        ("org/h100", "budget", "org/prog-b", 0.4, 0.4),
    ]


def test_another_document_is_refused_with_what_was_looked_for(tmp_path: Path, saved: Path) -> None:
    (tmp_path / "other.json").write_text('{"items": []}')

    with pytest.raises(UnreadableLog, match="no list of jobs or data"):
        read_beaker_jobs(tmp_path / "other.json", cluster="c")
    with pytest.raises(UnreadableLog, match="name it with --cluster"):
        read_beaker_jobs(saved, cluster=None)


@pytest.fixture
def server(saved: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[object]:
    """A server made from the package's own servicer, on loopback, that gives two things a page."""
    grpc = pytest.importorskip("grpc", reason="the extra `beaker` is not installed")
    messages = pytest.importorskip("beaker.beaker_pb2")
    service = pytest.importorskip("beaker.beaker_pb2_grpc")
    parse = pytest.importorskip("google.protobuf.json_format").ParseDict
    known = json.loads(saved.read_text())

    class Server(service.BeakerServicer):  # type: ignore[misc]
        def __init__(self) -> None:
            self.asked: list[Any] = []

        def _page(self, request, context, *, reply, found, kind) -> object:
            if ("authorization", "bearer s3cret") not in context.invocation_metadata():
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token s3cret-too is not known")
            self.asked.append(request)
            at = int(request.next_page_token or 0)
            (field,) = (one.name for one in reply.DESCRIPTOR.fields if one.name != "next_page_token")
            page = {field: [parse(one, kind()) for one in found[at : at + 2]]}
            return reply(**page, next_page_token=str(at + 2) if at + 2 < len(found) else None)

        def ResolveClusterName(self, request, _) -> object:  # noqa: N802 - as the package calls it
            return messages.ResolveClusterNameResponse(cluster_id=f"{request.owner_name}-{request.cluster_name}")

        def GetCluster(self, request, _) -> object:  # noqa: N802 - as the package calls it
            cluster = messages.Cluster(id=request.cluster_id, organization_id="org1")
            return messages.GetClusterResponse(cluster=cluster)

        def ListJobs(self, request, context) -> object:  # noqa: N802
            if request.HasField("options"):
                self.waiting = request.options.HasField("scheduled")
            found = [job for job in known["jobs"] if ("scheduled" not in job["status"]) == self.waiting]
            return self._page(request, context, reply=messages.ListJobsResponse, found=found, kind=messages.Job)

        def ListClusterUsage(self, request, context) -> object:  # noqa: N802
            reply, kind = messages.ListClusterUsageResponse, messages.ClusterUsageBucket
            return self._page(request, context, reply=reply, found=known["cluster_usage_buckets"], kind=kind)

        def ListEffectiveAllocations(self, request, context) -> object:  # noqa: N802
            reply, kind = messages.ListEffectiveAllocationsResponse, messages.EffectiveAllocation
            return self._page(request, context, reply=reply, found=known["effective_allocations"], kind=kind)

    monkeypatch.setenv("BEAKER_TOKEN", "s3cret")
    monkeypatch.setenv("BEAKER_CONFIG", str(tmp_path / "none.yml"))
    running, servicer = grpc.server(ThreadPoolExecutor(2)), Server()
    service.add_BeakerServicer_to_server(servicer, running)
    servicer.address = f"127.0.0.1:{running.add_insecure_port('127.0.0.1:0')}"
    running.start()
    yield servicer
    running.stop(None).wait()


def test_what_a_server_says_is_saved_page_by_page_and_read_like_any_other(server, saved: Path, tmp_path: Path) -> None:
    path = fetch_beaker(tmp_path / "beaker.json", cluster="org/h100", address=server.address, is_insecure=True, **SPAN)

    for read in (read_beaker_jobs, read_beaker_usage):
        asked, known = read(path, cluster="c").runs.drop("line"), read(saved, cluster="c").runs.drop("line")
        assert asked.sort("workload_id", "started_at").equals(known.sort("workload_id", "started_at"))
    assert read_beaker_allocations(path).equals(read_beaker_allocations(saved))
    assert read_beaker_jobs(path, cluster="c").observed_until == datetime(2026, 11, 3)
    assert [one.next_page_token for one in server.asked] == ["", "", "2", "", "2", "4", "6", "8", "", "2"]
    assert [each.name for each in tmp_path.iterdir()] == ["beaker.json"]


def test_a_server_is_asked_for_cluster_span_and_changes(server, tmp_path: Path) -> None:
    fetch_beaker(
        tmp_path / "beaker.json", cluster="cl9", address=server.address, is_insecure=True, bucket_hours=4, **SPAN,
        changed_since=NINE,
    )  # fmt: skip

    waiting, ran, usage, allocations = (one.options for one in server.asked if one.HasField("options"))
    assert (waiting.eligible_for_cluster_id, waiting.scheduled, waiting.organization_id) == ("cl9", False, "org1")
    assert ran.scheduled_on_cluster_id == "cl9"
    assert ran.status_changed_at_or_after.ToDatetime() == NINE
    assert (usage.cluster_id, usage.bucket_hours) == ("cl9", 4)
    assert allocations.org_id == "org1"
    assert (usage.window.start.ToDatetime(), usage.window.finish.ToDatetime()) == (SPAN["starts_at"], SPAN["ends_at"])


def test_a_refusal_says_what_to_do_and_never_shows_the_token(
    server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEAKER_TOKEN", "s3cret-too")

    with pytest.raises(EnvironmentTrouble) as refused:
        fetch_beaker(tmp_path / "b.json", cluster="cl9", address=server.address, is_insecure=True, **SPAN)

    assert str(refused.value) == (
        f"Beaker at {server.address} answers UNAUTHENTICATED: the token *** is not known; "
        "is the token in BEAKER_TOKEN or in Beaker's configuration file still good?"
    )
    assert list(tmp_path.iterdir()) == []


def test_tls_is_used_and_only_loopback_may_do_without(server, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentTrouble, match="UNAVAILABLE"):
        fetch_beaker(tmp_path / "b.json", cluster="cl9", address=server.address, **SPAN)
    with pytest.raises(InvalidInput, match="only a server on loopback may do without"):
        fetch_beaker(tmp_path / "b.json", cluster="cl9", address="beaker.example:443", is_insecure=True, **SPAN)


@pytest.mark.parametrize("configuration", [None, "", "user_token: [", "agent_address: x\n"])
def test_without_a_usable_token_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configuration: str | None
) -> None:
    pytest.importorskip("beaker", reason="the extra `beaker` is not installed")
    monkeypatch.delenv("BEAKER_TOKEN", raising=False)
    monkeypatch.setenv("BEAKER_CONFIG", str(tmp_path / "config.yml"))
    if configuration is not None:
        (tmp_path / "config.yml").write_text(configuration)

    with pytest.raises(EnvironmentTrouble, match="no usable token for Beaker: set the environment variable"):
        fetch_beaker(tmp_path / "b.json", cluster="cl9", **SPAN)
