"""Allocations of OpenCost, GPU-hours by pod or by whatever they were added up by, into runs of a window each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from gpupolicy.ingest.canonical import IGNORED, Reading
from gpupolicy.ingest.kubernetes.claimants import ACCOUNT_FROM, USER_FROM, check_places, first_named
from gpupolicy.ingest.kubernetes.objects import Fields, KubeObject, inner, told_by
from gpupolicy.ingest.kubernetes.runs import Claim, ObjectRun, named_cluster, reading_of_object_runs
from gpupolicy.ingest.slurm.json_text import JsonText
from gpupolicy.ingest.text import refusal

OK = 200
_NO_WORKLOAD = frozenset({"__idle__", "__unallocated__", "__unmounted__"})


def read_opencost(
    path: Path,
    *,
    cluster: str | None,
    observed_until: datetime | None = None,
    account_from: Sequence[str] = ACCOUNT_FROM,
    user_from: Sequence[str] = USER_FROM,
) -> Reading:
    """Read a reply of OpenCost's /allocation (or Kubecost's /model/allocation).

    An allocation is what one pod, or all that were added up with it, held in one window. It tells GPU-hours and no
    runs, so it becomes one run from its start to its end, both clipped to the window, with the mean of the GPUs
    held, so that run times GPUs is its GPU-hours. Such a run knows of no submission and no wait, and a pod that
    goes on is a run in every window: ask for windows that do not overlap, and by pod, whose start and end are
    real. Idle capacity is no run. `cluster` names the cluster, the allocation's own property if it is None.
    Raises UnreadableLog for an error answer and for what is cut short.
    """
    places = check_places(account_from), check_places(user_from)
    found = [KubeObject(line, fields) for fields, line in _allocations(path)]
    idle = [each for each in found if each.metadata["name"] in _NO_WORKLOAD]
    held = [each for each in found if each.metadata["name"] not in _NO_WORKLOAD]
    told = told_by(held, lambda each: _run(each, *places))
    ignored = [("idle_capacity", len(idle), idle[0].line)] if idle else []
    return reading_of_object_runs(
        path,
        "opencost",
        told.values,
        replace(told, ignored=pl.DataFrame(ignored, schema=IGNORED, orient="row")),
        cluster=_cluster(path, found, cluster),
        observed_until=observed_until,
    )


def _allocations(path: Path) -> Iterator[tuple[Fields, int]]:
    """The allocations of all windows, with the line each begins in and its name where objects have theirs."""
    text, said, line = JsonText(path), dict[str, Any](), 0
    for key in text.members() if text.peek() == "{" else ():
        if key != "data" or text.peek() != "[":
            said[key] = text.value().value
            continue
        said[key] = []
        for window in text.elements():
            for name, fields in (window.value or {}).items():
                line = max(line + 1, window.line)
                yield _named(name, fields), line
    if said.get("code") != OK or "data" not in said:
        complaint = said.get("message") or f"it has {', '.join(said) or 'nothing'}, no code {OK} and no data"
        raise refusal(path, "error_answer", f"this is no reply of /allocation: {complaint}")


def _named(name: str, fields: Fields) -> Fields:
    said = inner(fields, "properties")
    return {
        **fields,
        "metadata": {"name": said.get("pod") or name, "namespace": said.get("namespace") if said.get("pod") else None},
    }


def _run(each: KubeObject, account_from: tuple[str, ...], user_from: tuple[str, ...]) -> ObjectRun:
    said, allocated = inner(each.fields, "properties"), inner(each.fields, "gpuAllocation")
    started_at, ended_at = (each.moment(each.fields.get(name), name) for name in ("start", "end"))
    account, user = (
        first_named(
            places,
            namespace=said.get("namespace"),
            labels={**inner(said, "namespaceLabels"), **inner(said, "labels")},
            annotations=inner(said, "annotations"),
        )
        for places in (account_from, user_from)
    )
    usage = each.fields.get("gpuUsageAverage", allocated.get("gpuUsageAverage"))
    return ObjectRun(
        line=each.line,
        workload_id=each.id,
        submitted_at=started_at,
        started_at=started_at,
        ended_at=ended_at,
        gpus=_gpus(each, started_at, ended_at),
        gpu_type=allocated.get("gpuType") or None,
        state="SUMMED",
        hosts=said.get("node"),
        utilization_ratio=float(usage) if isinstance(usage, int | float) and 0 <= usage <= 1 else None,
        claim=Claim(account, user),
        flags=frozenset({"shared_gpu"}) if allocated.get("isGPUShared") else frozenset(),
    )


def _gpus(each: KubeObject, started_at: datetime | None, ended_at: datetime | None) -> float:
    """The mean of the GPUs held: GPU-hours over hours, whatever gpuCount says."""
    gpu_h = each.fields.get("gpuHours")
    if started_at is None or ended_at is None or gpu_h is None:
        each.refuse("missing_value", "start, end or gpuHours is empty")
        return 0.0
    hours = (ended_at - started_at).total_seconds() / 3600
    if hours < 0:
        each.refuse("end_before_start", f"start {started_at}, end {ended_at}")
    elif not isinstance(gpu_h, int | float) or gpu_h < 0 or (hours == 0 and gpu_h > 0):
        each.refuse("bad_number", f"gpuHours '{gpu_h}' in {hours:g} hours")
    return float(gpu_h) / hours if not each.faults and hours else 0.0


def _cluster(path: Path, found: Sequence[KubeObject], cluster: str | None) -> str:
    """The name that was given, or the one that all allocations bear."""
    names = {str(name) for each in found if (name := inner(each.fields, "properties").get("cluster"))}
    if len(names) > 1:
        listed = ", ".join(sorted(names))
        raise refusal(path, "several_clusters", f'{listed}; ask for one of them with the filter cluster:"NAME"')
    return named_cluster(path, cluster or next(iter(names), None))
