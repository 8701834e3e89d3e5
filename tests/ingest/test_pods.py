"""Lists of pods and nodes: when a pod holds how many GPUs, whose they are, and what is not trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from ingest.kube import case, gpu_hours, rows, spans, utc

from gpupolicy.errors import InvalidInput, UnreadableLog
from gpupolicy.ingest import Reading, read_pods

Read = Callable[..., Reading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read objects, or a text, as a file on cluster c, looked at on 2 March."""

    def read(*objects: dict[str, Any], text: str | None = None, **options: Any) -> Reading:  # noqa: ANN401
        path = tmp_path / "pods.json"
        path.write_text(text if text is not None else json.dumps({"kind": "List", "items": objects}))
        return read_pods(path, cluster="c", observed_until=utc("2026-03-02T00:00:00Z"), **options)

    return read


def pod(name: str = "p", *, gpus: dict[str, str] | None = None, metadata: Any = (), spec: Any = (), status: Any = ()):  # noqa: ANN201, ANN401
    """A pod that ran from 10 to 12 on one GPU of host n1, unless something else is said."""
    container = {"name": "m", "resources": {"limits": {"nvidia.com/gpu": "1"} if gpus is None else gpus}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "nlp", "creationTimestamp": "2026-03-01T09:00:00Z"} | dict(metadata),
        "spec": {"nodeName": "n1", "containers": [container]} | dict(spec),
        "status": {
            "phase": "Succeeded",
            "conditions": [condition("PodScheduled", "True", "10")],
            "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-03-01T12:00:00Z"}}}],
        }
        | dict(status),
    }


def condition(kind: str, status: str, hour: str, reason: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": f"2026-03-01T{hour}:00:00Z", "reason": reason}


def node(name: str, capacity: dict[str, str], labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"kind": "Node", "metadata": metadata, "status": {"capacity": capacity}}


@pytest.mark.parametrize("name", ["k8-02", "k8-03", "k8-04"])
def test_the_field_cases_of_pods_come_out_as_expected(shared: Path, name: str) -> None:
    one = case(shared, name)

    reading = read_pods(one.path, cluster="c", observed_until=one.cutoff)

    assert rows(reading) == one.expected["rows"]
    assert gpu_hours(reading, one.params) == pytest.approx(one.expected["gpu_hours_by_account"], abs=1e-6)
    gpus = {job.rpartition("/")[2]: held for job, held in reading.runs.select("workload_id", "gpus").iter_rows()}
    assert {job: gpus[job] for job in one.expected.get("gpus_by_job", {})} == one.expected.get("gpus_by_job", {})
    waiting = reading.runs.filter(pl.col("started_at").is_null()).group_by("account").agg(pl.col("gpus").sum())
    assert dict(waiting.iter_rows()) == one.expected.get("pending_gpus", {})


def test_openb_gives_its_reference_figures(shared: Path) -> None:
    trace = shared / "traces" / "openb-2023"
    reference = json.loads((trace / "reference.json").read_text())

    reading = read_pods(trace / "openb_pod_list_default.csv.gz", cluster="openb")

    valid = reading.runs.filter((pl.col("gpus") > 0) & (pl.col("ended_at") > pl.col("started_at")))
    ran_s = (pl.col("ended_at") - pl.col("started_at")).dt.total_seconds()
    wait_s = (pl.col("started_at") - pl.col("eligible_at")).dt.total_seconds()
    gpu_h = valid.group_by("account").agg((ran_s * pl.col("gpus")).sum() / 3600)
    debug = valid.filter((pl.col("gpus") <= 8) & (ran_s <= 900))
    figures = {"rows": reading.rows_read, "valid_rows": valid.height, "debug_jobs": debug.height}
    assert figures == {name: reference[name] for name in figures}
    assert dict(gpu_h.iter_rows()) == pytest.approx(
        {top["vc"]: top["gpu_hours"] for top in reference["gpu_hours_by_vc_top10"]}, rel=1e-6
    )
    for jobs, prefix in ((valid, "wait"), (debug, "debug_wait")):
        for percent in (50, 90, 99):
            found = jobs.select(wait_s.quantile(percent / 100, "linear")).item()
            assert found == pytest.approx(reference[f"{prefix}_p{percent}_s"], rel=1e-6)


def test_the_nodes_of_openb_are_hosts_of_seven_types(shared: Path) -> None:
    reading = read_pods(shared / "traces/openb-2023/openb_node_list_gpu_node.csv.gz", cluster="openb")

    assert reading.hosts.height == 1213
    assert reading.hosts["gpus"].sum() == 6212
    assert reading.hosts["gpu_type"].n_unique() == 7


def test_init_containers_count_beside_the_side_cars_that_stand_before_them(read: Read) -> None:
    ask = {"resources": {"requests": {"nvidia.com/gpu": 2}}}
    side_car = ask | {"restartPolicy": "Always"}

    before = read(pod(gpus={}, spec={"initContainers": [side_car, ask]}))
    after = read(pod(gpus={}, spec={"initContainers": [ask, side_car]}))

    assert before.runs["gpus"].to_list() == [4]
    assert after.runs["gpus"].to_list() == [2]


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        ({"amd.com/gpu": "4"}, 4),
        ({"nvidia.com/mig-1g.10gb": "2", "cpu": "12"}, 2 / 7),
        ({"nvidia.com/mig-3g.40gb": "1"}, 3 / 7),
        ({"nvidia.com/gpu": "2", "nvidia.com/gpucores": "25"}, 0.5),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50", "nvidia.com/gpumem": "20000"}, 0.5),
        ({"cpu": "96"}, 0),
    ],
)
def test_slices_and_shares_are_parts_of_a_gpu(read: Read, asked: dict[str, str], gpus: float) -> None:
    reading = read(pod(gpus=asked))

    assert reading.runs["gpus"].to_list() == [pytest.approx(gpus)]
    assert reading.flagged.is_empty()


def test_an_annotated_fraction_counts_as_it_says(read: Read) -> None:
    half = pod("half", gpus={}, metadata={"annotations": {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}})
    wrong = pod("wrong", gpus={}, metadata={"annotations": {"gpu-fraction": "much"}})

    reading = read(half, wrong)

    assert reading.runs["gpus"].to_list() == [1.0]
    assert reading.rejected.select("reason", "detail").rows() == [("bad_number", "nlp/wrong: gpu-fraction 'much'")]


@pytest.mark.parametrize(
    ("asked", "metadata"), [({"vendor.example/gpu": "1"}, {}), ({}, {"annotations": {"gpu-memory": "4000"}})]
)
def test_a_gpu_that_nobody_can_count_is_flagged_and_never_zero_in_silence(
    read: Read, asked: dict[str, str], metadata: dict[str, Any]
) -> None:
    reading = read(pod(gpus=asked, metadata=metadata))

    assert reading.flagged.rows() == [("gpu_count_unknown", "nlp/p", 1)]
    named = read(pod(gpus=asked), gpu_resources=frozenset({"vendor.example/gpu"}))
    assert named.runs["gpus"].to_list() == [1.0 if asked else 0.0]


def test_pods_on_a_time_sliced_host_hold_the_part_that_its_node_tells(read: Read) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-SHARED", "nvidia.com/gpu.replicas": "4"}

    reading = read(pod(), node("n1", {"nvidia.com/gpu": "32"}, labels), node("login", {"cpu": "8"}, {}))

    assert reading.runs.select("gpus", "gpu_type").rows() == [(0.25, "NVIDIA-H100")]
    assert reading.hosts.select("host", "gpus", "gpu_type", "valid_from").rows() == [
        ("n1", 8.0, "NVIDIA-H100", utc("2026-01-01T00:00:00Z"))
    ]
    assert rows(reading)["ignored_by_reason"] == {"no_gpus": 1}


def test_without_its_node_a_shared_gpu_counts_whole_and_says_so_unless_the_caller_tells(read: Read) -> None:
    shared = pod(gpus={"nvidia.com/gpu.shared": "1"})

    assert read(shared).runs["gpus"].to_list() == [1.0]
    assert read(shared).flagged.rows() == [("shared_gpu", "nlp/p", 1)]
    told = read(shared, pods_per_gpu=5)
    assert told.runs["gpus"].to_list() == [0.2]
    assert told.flagged.is_empty()


def test_a_host_whose_cards_are_all_cut_alike_has_slices_under_the_name_of_gpus(read: Read) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}

    reading = read(pod(), node("n1", {"nvidia.com/gpu": "14"}, labels))

    assert reading.runs.select("gpus", "gpu_type").rows() == [(pytest.approx(1 / 7), "NVIDIA-A100-SXM4-40GB")]
    assert reading.hosts["gpus"].to_list() == [pytest.approx(2)]


def test_a_gated_pod_is_no_demand_until_it_is_let_through(read: Read) -> None:
    gated = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}], "nodeName": None}
    waiting = {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "09", "SchedulingGated")]}

    reading = read(pod("held", spec=gated, status=waiting), pod("free", spec={"nodeName": None}, status=waiting))

    assert reading.runs.select("workload_id", "eligible_at", "started_at").rows() == [
        ("nlp/held", None, None),
        ("nlp/free", utc("2026-03-01T09:00:00Z"), None),
    ]


def test_the_end_is_told_by_containers_or_else_by_conditions(read: Read) -> None:
    placed = condition("PodScheduled", "True", "10")
    evicted = {"phase": "Failed", "reason": "Evicted", "containerStatuses": []}
    unready = evicted | {"conditions": [placed, condition("Ready", "False", "11", "PodFailed")]}
    preempted = evicted | {"conditions": [placed, condition("DisruptionTarget", "True", "13", "PreemptionByScheduler")]}
    refused = {
        "phase": "Failed",
        "reason": "OutOfnvidia.com/gpu",
        "startTime": "2026-03-01T10:00:00Z",
        "conditions": [],
    }

    reading = read(
        pod("unready", status=unready),
        pod("preempted", status=preempted),
        pod("refused", status=refused | {"containerStatuses": []}),
        pod("silent", status=evicted | {"conditions": [placed]}),
    )

    assert spans(reading) == [
        ("nlp/unready", "01.10:00", "01.11:00", 1.0),
        ("nlp/preempted", "01.10:00", "01.13:00", 1.0),
        ("nlp/refused", "01.10:00", "01.10:00", 1.0),
    ]
    assert reading.runs["state"].to_list() == ["FAILED", "PREEMPTED", "FAILED"]
    assert reading.rejected.select("reason", "detail").rows() == [
        ("bad_time", "nlp/silent: phase Failed, but nothing says when it ended")
    ]


def test_account_user_queue_and_contract_come_from_labels_and_annotations(read: Read) -> None:
    labels = {"gpupolicy/node": "a1", "team": "video", "owner": "ada", "kueue.x-k8s.io/queue-name": "lq"}
    contract = {"gpupolicy/minimum-runtime-s": "900", "gpupolicy/resumable": "yes"}
    one = pod(metadata={"labels": labels, "annotations": contract}, spec={"priority": -10, "priorityClassName": "low"})

    default = read(one).runs.row(0, named=True)
    chosen = read(one, account_from=["label:team", "namespace"], user_from=["label:owner"]).runs.row(0, named=True)

    told = ("account", "partition", "qos", "priority", "minimum_runtime_s", "is_resumable", "is_charged")
    assert [default[name] for name in told] == ["a1", "lq", "low", -10, 900, True, True]
    assert (chosen["account"], chosen["user_name"]) == ("video", "ada")
    assert read(one, free=frozenset({"low"})).runs["is_charged"].to_list() == [False]
    with pytest.raises(InvalidInput, match="'tag:team' is no place where a name stands; write namespace, queue, label"):
        read(one, account_from=["tag:team"])


def test_one_name_in_two_namespaces_is_two_workloads(read: Read) -> None:
    reading = read(pod(), pod(metadata={"namespace": "vision"}))

    assert gpu_hours(reading) == {"nlp": 2.0, "vision": 2.0}


def test_a_stream_of_one_pod_tells_of_one_run(tmp_path: Path) -> None:
    waiting = {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "09")], "containerStatuses": []}
    running = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
    states = [pod(status=waiting), pod(status=running), {"type": "MODIFIED", "object": pod(status=running)}, pod()]
    path = tmp_path / "watch.json"
    path.write_text("\n".join(json.dumps(one, indent=1) for one in states))

    reading = read_pods(path, cluster="c")

    assert spans(reading) == [("nlp/p", "01.10:00", "01.12:00", 1.0)]
    assert rows(reading)["ignored_by_reason"] == {"superseded_record": 3}


def test_yaml_is_read_like_json(read: Read) -> None:
    quoted = yaml.safe_dump_all([{"kind": "PodList", "items": [pod("a")]}, pod("b")])
    text = re.sub(r"'(2026-[^']*)'", r"\1", quoted)

    assert spans(read(text=text)) == [("nlp/a", "01.10:00", "01.12:00", 1.0), ("nlp/b", "01.10:00", "01.12:00", 1.0)]


def test_faults_of_an_object_are_told_together_and_the_object_is_kept_whole(read: Read) -> None:
    wrong = pod(gpus={"nvidia.com/gpu": "two"}, metadata={"creationTimestamp": "yesterday"})

    reading = read(wrong, pod("good"))

    ((line, reason, detail, text),) = reading.rejected.rows()
    assert (line, reason) == (1, "bad_time")
    assert "creationTimestamp 'yesterday'" in detail
    assert "nvidia.com/gpu 'two'" in detail
    assert json.loads(text) == wrong
    assert rows(reading)["accepted"] == 1


def test_open_runs_of_a_list_without_a_moment_count_to_the_newest_stamp_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "pods.json"
    path.write_text(json.dumps([pod(status={"phase": "Running", "containerStatuses": []})]))

    reading = read_pods(path, cluster="c")

    assert reading.observed_until == utc("2026-03-01T10:00:00Z")
    assert reading.notices == (
        "the list does not say when it was taken: open runs count up to its newest stamp; say when with --at",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "PodList", "items": [{"metadata": {"name": ', "truncated: the JSON breaks off in line 1"),
        ('{"kind": "PodList", "metadata": {"continue": "x"}, "items": []}', "truncated: this is one page"),
        (
            '{"kind": "Status", "status": "Failure", "message": "pods is forbidden"}',
            "error_answer: .*pods is forbidden",
        ),
        ("Error from server (Forbidden): pods is forbidden\n", "tool_error: .*Error from server"),
        ('{"kind": "List", "items": [{"kind": "Job"}]}', "other_kind: there is no Pod or Node in it, but 1 Job"),
        ("NAMESPACE NAME READY\nnlp p 1/1\n", "missing_column: its header is NAMESPACE NAME READY"),
        ("kind: [", "not_parsable_output: this is neither JSON nor YAML"),
        ("", "empty_file"),
        ("<html>log in</html>", "html_page"),
    ],
)
def test_what_is_no_list_of_pods_is_refused_whole(read: Read, text: str, message: str) -> None:
    with pytest.raises(UnreadableLog, match=message):
        read(text=text)


def test_the_cluster_has_to_be_named(shared: Path) -> None:
    with pytest.raises(UnreadableLog, match="nothing in it names the cluster; name it with --cluster"):
        read_pods(case(shared, "k8-02").path, cluster=None)


def test_a_table_with_a_count_that_is_no_number_loses_that_row_only(read: Read) -> None:
    header = "pod,namespace,gpus_requested,replicas_per_gpu,start,end"
    span = "2026-03-01T10:00:00Z,2026-03-01T11:00:00Z"

    reading = read(text=f"{header}\na,nlp,1,0,{span}\nb,nlp,x,2,{span}\nc,nlp,1,4,{span}\n")

    assert spans(reading) == [("nlp/c", "01.10:00", "01.11:00", 0.25)]
    assert rows(reading)["rejected_by_reason"] == {"bad_number": 2}
