"""What objects tell of runs, into the canonical frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from gpupolicy.ingest.canonical import RUNS, Reading
from gpupolicy.ingest.kubernetes.claimants import first_named
from gpupolicy.ingest.kubernetes.objects import KubeObject, Told, inner
from gpupolicy.ingest.parts import Part, flagged, reading_of_runs
from gpupolicy.ingest.run_moments import early_start_flags
from gpupolicy.ingest.text import refusal

FREE_NAMES = frozenset({"free"})
_MINIMUM_RUNTIME, _RESUMABLE = "gpupolicy/minimum-runtime-s", "gpupolicy/resumable"
_TRUTHS = {"yes": True, "true": True, "no": False, "false": False}
_NO_MOMENT = "the list does not say when it was taken: open runs count up to its newest stamp; say when with --at"


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose a run is, and its contract; named as in RUNS."""

    account: str | None = None
    user_name: str | None = None
    partition: str | None = None
    qos: str | None = None
    minimum_runtime_s: int | None = None
    is_resumable: bool | None = None
    is_charged: bool = True


@dataclass(frozen=True, slots=True)
class ObjectRun:
    """One run, or one wait for a run, as an object tells it; named as in RUNS."""

    line: int
    workload_id: str
    submitted_at: datetime | None
    eligible_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    gpus: float = 0.0
    gpu_type: str | None = None
    state: str | None = None
    walltime_s: int | None = None
    priority: int | None = None
    hosts: str | None = None
    utilization_ratio: float | None = None
    claim: Claim = field(default_factory=Claim)
    flags: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Claims:
    """What the caller says about whose the work is, and what of it is free."""

    account_from: tuple[str, ...]
    user_from: tuple[str, ...]
    free: frozenset[str] = FREE_NAMES  # queues and priority classes whose work is charged to nobody


def named_cluster(path: Path, cluster: str | None) -> str:
    """The name that was given; objects name none themselves."""
    if cluster is None:
        raise refusal(path, "missing_value", "nothing in it names the cluster; name it with --cluster")
    return cluster


def claimed(each: KubeObject, claims: Claims, *, queue: str | None, qos: str | None) -> Claim:
    labels, annotations = inner(each.metadata, "labels"), inner(each.metadata, "annotations")
    account, user = (
        first_named(
            places,
            namespace=each.metadata.get("namespace"),
            queue=queue,
            labels=labels,
            annotations=annotations,
        )
        for places in (claims.account_from, claims.user_from)
    )
    said = {**labels, **annotations}
    minimum_runtime_s = each.whole_number(said.get(_MINIMUM_RUNTIME), _MINIMUM_RUNTIME)
    is_free = bool(claims.free & {queue, qos}) or minimum_runtime_s == 0
    is_resumable = _TRUTHS.get(str(said.get(_RESUMABLE)).casefold())
    return Claim(account, user, queue, qos, minimum_runtime_s, is_resumable, not is_free)


def check_run(each: KubeObject, run: ObjectRun) -> None:
    """What makes a run untrustworthy is a fault of its object."""
    if not each.metadata.get("name") or run.submitted_at is None:
        each.refuse("missing_value", f"{'creationTimestamp' if each.metadata.get('name') else 'name'} is empty")
    if run.started_at and run.ended_at and run.ended_at < run.started_at:
        each.refuse("end_before_start", f"started {run.started_at}, ended {run.ended_at}")


def reading_of_object_runs(
    path: Path,
    source: str,
    runs: Sequence[ObjectRun],
    told: Told[Any],
    *,
    cluster: str,
    observed_until: datetime | None,
    notices: Sequence[str] = (),
) -> Reading:
    """The reading of a file of objects; `told` has what became of those that gave no run."""
    frame = _frame(runs, cluster)
    part = Part(frame.select(RUNS.names()), told.rejected, told.ignored, flagged(frame), told.newest)
    is_open = frame["started_at"].is_not_null() & frame["ended_at"].is_null()
    if is_open.any() and observed_until is None:
        notices = [*notices, _NO_MOMENT]
    return reading_of_runs(path, source, [part], observed_until=observed_until, notices=notices)


def with_merged(reading: Reading, merged: int) -> Reading:
    """The reading with so many more accepted records, which went on in the row of another one."""
    return replace(reading, merged=reading.merged + merged, rows_read=reading.rows_read + merged)


def _frame(runs: Sequence[ObjectRun], cluster: str) -> pl.DataFrame:
    """RUNS, with a column of truth for each flag."""
    columns: dict[str, list[Any]] = {}
    for one in fields(ObjectRun):
        columns[one.name] = [getattr(run, one.name) for run in runs]
    for one in fields(Claim):
        columns[one.name] = [getattr(claim, one.name) for claim in columns["claim"]]
    raised = {flag: [flag in flags for flags in columns["flags"]] for flag in frozenset().union(*columns["flags"])}
    told = {name: columns[name] for name in RUNS.names() if name in columns}
    frame = pl.DataFrame(told, schema={name: RUNS[name] for name in told})
    return frame.with_columns(
        cluster=pl.lit(cluster),
        **early_start_flags(),
        **{flag: pl.Series(raised[flag], dtype=pl.Boolean) for flag in sorted(raised)},
    )
