"""Workloads of Kueue, as kubectl lists or watches them, or as a table of their events, into runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gpupolicy.ingest.canonical import Reading
from gpupolicy.ingest.kubernetes.claimants import ACCOUNT_FROM, USER_FROM, check_places
from gpupolicy.ingest.kubernetes.gpus import GPU_RESOURCES, Gpus, gpu_part, pod_gpus, quantity
from gpupolicy.ingest.kubernetes.kueue_events import read_kueue_events
from gpupolicy.ingest.kubernetes.kueue_history import Event, Stretch, earlier_run, in_order, stretches
from gpupolicy.ingest.kubernetes.objects import (
    Condition,
    KubeObject,
    entries,
    inner,
    is_objects,
    told_by_objects,
)
from gpupolicy.ingest.kubernetes.runs import (
    FREE_NAMES,
    Claim,
    Claims,
    ObjectRun,
    claimed,
    named_cluster,
    reading_of_object_runs,
    with_merged,
)

RELEASE_S = 60  # an evicted workload's pods are given so long, more or less, before its quota is released
_PAST = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")  # v1beta2; v1beta1, misspelt


@dataclass(frozen=True, slots=True)
class _Seen:
    """A workload as one object shows it: what it is, and the last of each kind of event."""

    line: int
    workload_id: str
    created_at: datetime
    events: tuple[Event, ...]
    past_s: int  # admitted in earlier runs
    evictions: int | None
    is_evicted_yet_admitted: bool
    is_active: bool
    gpus: Gpus
    gpu_type: str | None
    claim: Claim
    priority: int | None
    walltime_s: int | None


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of one workload, and the GPU time that is known to be missing."""

    runs: list[ObjectRun]
    lost_gpu_h: float


def read_kueue(
    path: Path,
    *,
    cluster: str | None,
    observed_until: datetime | None = None,
    account_from: Sequence[str] = ACCOUNT_FROM,
    user_from: Sequence[str] = USER_FROM,
    free: frozenset[str] = FREE_NAMES,
    gpu_resources: frozenset[str] = GPU_RESOURCES,
) -> Reading:
    """Read `kubectl get workloads -A -o json` (or yaml, or --watch), v1beta1 or v1beta2; or a table of events.

    A run begins with the admission and ends with the eviction or the end, also where an evicted workload still
    keeps its reservation (case k8-01). It counts the GPUs that were assigned, all of them until it ends: pods
    that finished before the others are not taken off. An object tells only the last of each kind of event, so of
    a workload that was evicted more than once the earlier runs are lost and flagged, with how much time: list
    often, or watch. Names in `free` are queues and priority classes whose work is charged to nobody. Raises
    UnreadableLog for a file that is refused whole.
    """
    name = named_cluster(path, cluster)
    if not is_objects(path):
        return read_kueue_events(path, cluster=name, observed_until=observed_until, free=free)
    claims = Claims(check_places(account_from), check_places(user_from), free)
    told = told_by_objects(path, {"Workload": lambda each: _see(each, claims, gpu_resources)})
    by_workload: defaultdict[tuple[str, datetime], list[_Seen]] = defaultdict(list)
    for seen in told.values:
        by_workload[seen.workload_id, seen.created_at].append(seen)
    known = [_known(seen) for seen in by_workload.values()]
    runs = [run for one in known for run in one.runs]
    lost_gpu_h = sum(one.lost_gpu_h for one in known)
    reading = reading_of_object_runs(
        path,
        "kueue",
        runs,
        told,
        cluster=name,
        observed_until=observed_until,
        notices=[f"history_lost: {lost_gpu_h:,.1f} GPU-hours of earlier runs are in no run"] if lost_gpu_h else [],
    )
    return with_merged(reading, max(len(told.values) - len(runs), 0))


def _see(each: KubeObject, claims: Claims, resources: frozenset[str]) -> _Seen | None:
    created_at = each.moment(each.metadata.get("creationTimestamp"), "creationTimestamp")
    conditions = each.conditions()
    past_s = next((told for name in _PAST if (told := each.whole_number(each.status.get(name), name))), 0)
    gpus, gpu_type = _assigned(each, resources) or _requested(each, resources)
    if created_at is None or not each.metadata.get("name"):
        each.refuse("missing_value", "name or creationTimestamp is empty")
        return None
    events = [Event(created_at, "created"), *_events(each, conditions, past_s)]
    evicted, admitted = conditions.get("Evicted"), conditions.get("Admitted")
    return _Seen(
        line=each.line,
        workload_id=each.id,
        created_at=created_at,
        events=tuple(events),
        past_s=past_s,
        evictions=_evictions(each),
        is_evicted_yet_admitted=bool(evicted and admitted and evicted.holds and admitted.holds),
        is_active=each.spec.get("active") is not False,
        gpus=gpus,
        gpu_type=gpu_type,
        claim=claimed(each, claims, queue=each.spec.get("queueName"), qos=_priority_class(each)),
        priority=each.whole_number(each.spec.get("priority"), "priority"),
        walltime_s=each.whole_number(each.spec.get("maximumExecutionTimeSeconds"), "maximumExecutionTimeSeconds"),
    )


def _events(each: KubeObject, conditions: Mapping[str, Condition], past_s: int) -> list[Event]:
    """What the conditions say has happened; that a workload is not admitted says so only if it once was."""
    named = {
        ("Evicted", True): "evicted",
        ("Admitted", True): "admitted",
        ("Requeued", True): "requeued",
        ("Requeued", False): "held",
        ("Finished", True): "finished",
    }
    if past_s:
        named["Admitted", False] = "released"
    events = [
        Event(told.since, named[kind, told.holds], told.reason)
        for kind, told in conditions.items()
        if (kind, told.holds) in named
    ]
    finished, admitted = (conditions.get(kind) for kind in ("Finished", "Admitted"))
    if finished and admitted and finished.holds and admitted.holds and finished.since < admitted.since:
        each.refuse("end_before_start", f"admitted {admitted.since}, finished {finished.since}")
    return events


def _assigned(each: KubeObject, resources: frozenset[str]) -> tuple[Gpus, str | None] | None:
    """The GPUs that were assigned and their flavor, of several that of the most; None if there is no admission."""
    by_flavor: defaultdict[str | None, float] = defaultdict(float)
    assignments = entries(inner(each.status, "admission"), "podSetAssignments")
    for assignment in assignments:
        for resource, text in inner(assignment, "resourceUsage").items():
            part, number = gpu_part(resource, resources), quantity(text)
            if part is not None and number is None:
                each.refuse("bad_number", f"{resource} '{text}'")
            elif part is not None:
                by_flavor[inner(assignment, "flavors").get(resource)] += (number or 0) * part
    if not by_flavor:
        return None
    return Gpus(sum(by_flavor.values())), max(by_flavor, key=lambda flavor: by_flavor[flavor])


def _requested(each: KubeObject, resources: frozenset[str]) -> tuple[Gpus, str | None]:
    """The GPUs of all pods of all sets: the gang whole."""
    own, is_known = 0.0, True
    for pods in entries(each.spec, "podSets"):
        held = pod_gpus(each, inner(pods, "template"), resources)
        own += held.count(1) * (each.whole_number(pods.get("count", 1), "count") or 0)
        is_known &= held.is_known
    return Gpus(own, is_known=is_known), None


def _evictions(each: KubeObject) -> int | None:
    """How often it was evicted, for whatever reason; None where Kueue does not count."""
    counted = entries(inner(each.status, "schedulingStats"), "evictions")
    told = [each.whole_number(one.get("count"), "evictions") or 0 for one in counted]
    return sum(told) if told else None


def _priority_class(each: KubeObject) -> str | None:
    """v1beta2 has a reference, v1beta1 a name."""
    named = inner(each.spec, "priorityClassRef").get("name") or each.spec.get("priorityClassName")
    return None if named is None else str(named)


def _known(seen: Sequence[_Seen]) -> _Known:
    """The runs of one workload from all that was seen of it, its wait, and what is lost."""
    last = seen[-1]
    events = in_order(event for one in seen for event in one.events)
    told = list(stretches(events))
    lost_s = _lost_s(told, events, last)
    if lost_s and (earlier := earlier_run(events, past_s=last.past_s, evictions=last.evictions)):
        told, lost_s = list(stretches(in_order([*events, *earlier]))), 0.0
    if last.is_evicted_yet_admitted and told[-1].started_at is None:
        told = told[:-1]  # it keeps its place, so it does not wait
    if lost_s:
        told[-1] = _without_wait(told[-1], last)
    runs = [_run(last, stretch, is_last=stretch is told[-1], is_lost=bool(lost_s)) for stretch in told]
    return _Known(runs, lost_s * last.gpus.count(1) / 3600)


def _lost_s(told: Sequence[Stretch], events: Sequence[Event], last: _Seen) -> float:
    """For how long it ran in runs that nothing tells of.

    A run that is told ends with its eviction; Kueue adds it up until the release a little later.
    """
    finished_at = next((event.at for event in events if event.what == "finished"), None)
    evicted = [one for one in told if one.started_at and one.ended_at and one.ended_at != finished_at]
    if last.evictions is not None and len(evicted) >= last.evictions:
        return 0.0
    lost_s = last.past_s - sum(stretch.ran_s for stretch in evicted)
    return lost_s if lost_s > RELEASE_S * len(evicted) else 0.0


def _without_wait(stretch: Stretch, last: _Seen) -> Stretch:
    """After a second eviction the stamp of the return to the queue may be that of the first: no wait is told."""
    if stretch.started_at is None or last.evictions == 1:
        return stretch
    return replace(stretch, queued_at=stretch.started_at, eligible_at=None)


def _run(last: _Seen, stretch: Stretch, *, is_last: bool, is_lost: bool) -> ObjectRun:
    flags = {
        "inconsistent_conditions": is_last and last.is_evicted_yet_admitted,
        "history_lost": is_last and is_lost,
        "gpu_count_unknown": stretch.started_at is not None and not last.gpus.is_known,
    }
    return ObjectRun(
        line=last.line,
        workload_id=last.workload_id,
        submitted_at=stretch.queued_at,
        eligible_at=stretch.eligible_at if last.is_active or stretch.started_at else None,
        started_at=stretch.started_at,
        ended_at=stretch.ended_at,
        gpus=last.gpus.count(1),
        gpu_type=last.gpu_type,
        state=stretch.state,
        walltime_s=last.walltime_s,
        priority=last.priority,
        claim=last.claim,
        flags=frozenset(flag for flag, is_raised in flags.items() if is_raised),
    )
