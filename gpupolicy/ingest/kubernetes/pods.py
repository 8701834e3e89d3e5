"""Lists of pods, and of nodes, into runs and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gpupolicy.ingest.canonical import Reading
from gpupolicy.ingest.kubernetes.claimants import ACCOUNT_FROM, USER_FROM, check_places
from gpupolicy.ingest.kubernetes.gpus import GPU_RESOURCES, Gpus, pod_gpus
from gpupolicy.ingest.kubernetes.nodes import GPU_TYPE_LABELS, ListedNode, plain_product, read_node, with_hosts
from gpupolicy.ingest.kubernetes.objects import (
    Condition,
    Fields,
    KubeObject,
    entries,
    inner,
    is_objects,
    told_by_objects,
)
from gpupolicy.ingest.kubernetes.pod_tables import read_pod_table
from gpupolicy.ingest.kubernetes.runs import (
    FREE_NAMES,
    Claims,
    ObjectRun,
    check_run,
    claimed,
    named_cluster,
    reading_of_object_runs,
)

QUEUE_LABELS = ("kueue.x-k8s.io/queue-name", "kai.scheduler/queue", "runai/queue", "volcano.sh/queue-name")

_OVER = frozenset({"Succeeded", "Failed"})
_REFUSED_BY_HOST = ("OutOf", "UnexpectedAdmissionError")


@dataclass(frozen=True, slots=True)
class _Pod:
    """A run whose GPUs are known once all nodes are."""

    run: ObjectRun
    held: Gpus


def read_pods(
    path: Path,
    *,
    cluster: str | None,
    observed_until: datetime | None = None,
    account_from: Sequence[str] = ACCOUNT_FROM,
    user_from: Sequence[str] = USER_FROM,
    free: frozenset[str] = FREE_NAMES,
    gpu_resources: frozenset[str] = GPU_RESOURCES,
    pods_per_gpu: int | None = None,
) -> Reading:
    """Read `kubectl get pods,nodes -A -o json` (or yaml, or --watch); or a table of pods or nodes (pod_tables).

    A run is a pod from the moment it was placed: its GPUs are bound while it still fetches its image (case k8-02).
    Nodes become hosts, and tell the GPU type and among how many pods a GPU is divided; `pods_per_gpu` says it
    where no node does. Names in `free` are queues and priority classes whose work is charged to nobody. The pods
    of a gang are runs of their own here; Kueue's workloads keep it whole. Raises UnreadableLog for a file that is
    refused whole.
    """
    name = named_cluster(path, cluster)
    if not is_objects(path):
        return read_pod_table(path, cluster=name, observed_until=observed_until)
    claims = Claims(check_places(account_from), check_places(user_from), free)
    told = told_by_objects(
        path,
        {
            "Pod": lambda each: _read_pod(each, claims, gpu_resources),
            "Node": lambda each: read_node(each, gpu_resources),
        },
    )
    listed = [node for node in told.values if isinstance(node, ListedNode)]
    nodes = {node.host: node for node in listed}
    runs = [_on_host(pod, nodes, pods_per_gpu) for pod in told.values if isinstance(pod, _Pod)]
    reading = reading_of_object_runs(path, "pods", runs, told, cluster=name, observed_until=observed_until)
    return with_hosts(reading, listed, name)


def _read_pod(each: KubeObject, claims: Claims, resources: frozenset[str]) -> _Pod:
    conditions = each.conditions()
    submitted_at = each.moment(each.metadata.get("creationTimestamp"), "creationTimestamp")
    started_at = _started_at(each, conditions)
    ended_at = _ended_at(each, conditions, started_at)
    run = ObjectRun(
        line=each.line,
        workload_id=each.id,
        submitted_at=submitted_at,
        eligible_at=None if _is_gated(each, started_at) else submitted_at,
        started_at=started_at,
        ended_at=ended_at,
        gpu_type=_asked_type(each),
        state=_state(each, conditions, ended_at),
        walltime_s=each.whole_number(each.spec.get("activeDeadlineSeconds"), "activeDeadlineSeconds"),
        priority=each.whole_number(each.spec.get("priority"), "priority"),
        hosts=each.spec.get("nodeName"),
        claim=claimed(each, claims, queue=_queue(each), qos=each.spec.get("priorityClassName")),
    )
    check_run(each, run)
    return _Pod(run, pod_gpus(each, each.fields, resources))


def _started_at(each: KubeObject, conditions: Mapping[str, Condition]) -> datetime | None:
    """When the pod was placed: from then on nobody else can have its GPUs, whether it runs or not (case k8-02)."""
    placed = conditions.get("PodScheduled")
    if placed is not None:
        return placed.since if placed.holds else None
    taken_up_at = each.moment(each.status.get("startTime"), "startTime")
    if taken_up_at is None and (each.status.get("phase") in {"Running", "Succeeded"}):
        each.refuse("unknown_start", f"phase {each.status['phase']}, but nothing says since when it is placed")
    return taken_up_at


def _ended_at(each: KubeObject, conditions: Mapping[str, Condition], started_at: datetime | None) -> datetime | None:
    """When the last container ended; else when the pod was no longer ready, or was disturbed."""
    states = [inner(one, "state", "terminated") for one in _container_statuses(each)]
    is_gone = bool(states) and all(states) and "deletionTimestamp" in each.metadata
    if each.status.get("phase") not in _OVER and not is_gone:
        return None
    stamps = [each.moment(state.get("finishedAt"), "finishedAt") for state in states]
    told = [conditions.get("Ready"), conditions.get("DisruptionTarget")]
    candidates = [
        max(filter(None, stamps), default=None),
        *(one.since for one in told if one is not None and one.holds == (one is told[1])),
        started_at if str(each.status.get("reason", "")).startswith(_REFUSED_BY_HOST) else None,
    ]
    ended_at = next((moment for moment in candidates if moment is not None), None)
    if ended_at is None and started_at is not None:
        each.refuse("bad_time", f"phase {each.status.get('phase')}, but nothing says when it ended")
    return ended_at


def _container_statuses(each: KubeObject) -> list[Fields]:
    return [*entries(each.status, "initContainerStatuses"), *entries(each.status, "containerStatuses")]


def _is_gated(each: KubeObject, started_at: datetime | None) -> bool:
    """Held back by a gate: neither waiting nor demand until somebody opens it."""
    return started_at is None and bool(entries(each.spec, "schedulingGates"))


def _state(each: KubeObject, conditions: Mapping[str, Condition], ended_at: datetime | None) -> str:
    disturbed = conditions.get("DisruptionTarget")
    if ended_at and disturbed and disturbed.holds and disturbed.reason.startswith("Preemption"):
        return "PREEMPTED"
    return str(each.status.get("phase") or "").upper()


def _queue(each: KubeObject) -> str | None:
    said = {**inner(each.metadata, "annotations"), **inner(each.metadata, "labels")}
    return next((str(said[name]) for name in QUEUE_LABELS if name in said), None)


def _asked_type(each: KubeObject) -> str | None:
    selector = inner(each.spec, "nodeSelector")
    return plain_product(next((str(selector[name]) for name in GPU_TYPE_LABELS if name in selector), None))


def _on_host(pod: _Pod, nodes: Mapping[str, ListedNode], pods_per_gpu: int | None) -> ObjectRun:
    node = nodes.get(pod.run.hosts or "")
    part = node.part_of_device if node else 1 / (pods_per_gpu or 1)
    flags = {
        "gpu_count_unknown": pod.run.started_at is not None and not pod.held.is_known,
        "shared_gpu": pod.held.is_shared and part == 1,
    }
    return replace(
        pod.run,
        gpus=pod.held.count(part),
        gpu_type=(node.gpu_type if node else None) or pod.run.gpu_type,
        flags=frozenset(flag for flag, is_raised in flags.items() if is_raised),
    )
