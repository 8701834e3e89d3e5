"""Samples of Prometheus: GPUs held, from kube-state-metrics and schedulers; utilization of GPUs, from DCGM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import polars as pl

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest.canonical import REJECTED, RUNS, UTILIZATION, Reading
from gpupolicy.ingest.kubernetes.claimants import ACCOUNT_FROM, USER_FROM, check_places
from gpupolicy.ingest.kubernetes.prometheus_labels import SERIES, read_labels
from gpupolicy.ingest.kubernetes.prometheus_replies import Reply, read_reply
from gpupolicy.ingest.kubernetes.samples import (
    covered,
    gaps_ms,
    interval_between,
    pieces,
    without_replicas,
)
from gpupolicy.ingest.moments import utc_without_zone
from gpupolicy.ingest.parts import summed
from gpupolicy.ingest.records import ignored_rows
from gpupolicy.ingest.text import digest_of, refusal

Measured = Literal["gpus", "utilization"]
Unit = Literal["percent", "fraction"]

# One answer a pod and host: pods that are placed and not yet over hold their GPUs, whether they run or not (k8-02).
GPUS_HELD = (
    "sum by (namespace, pod, node) (max by (namespace, pod, node, container, resource) "
    '(kube_pod_container_resource_requests{resource=~"nvidia_com_gpu|amd_com_gpu", node!=""})) '
    "* on (namespace, pod) group_left () "
    'max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Running"} == 1)'
)
GPU_UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"

UTILIZATION_UNITS: dict[str, Unit] = {
    "DCGM_FI_DEV_GPU_UTIL": "percent",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "fraction",
    "DCGM_FI_PROF_SM_ACTIVE": "fraction",
}
HELD_METRICS = (
    "kube_pod_container_resource_requests", "kube_pod_container_resource_limits", "kai_queue_allocated_gpus",
    "kueue_cluster_queue_resource_usage", "kueue_local_queue_resource_usage",
)  # fmt: skip

_COUNTER = r"(?:_total|_count|_sum|_bucket)$"
_OF_PODS = "kube_pod_container_resource_"
_RUN = ("cluster_label", "namespace", "pod", "queue", "host", "gpu_type", "account", "user_name")
_NO_RUNS, _NO_USAGE, _NONE_REJECTED = RUNS.to_frame(), UTILIZATION.to_frame(), REJECTED.to_frame()
_SERIES = tuple(SERIES.names())
_FINISHED_COUNT = "finished pods keep their requests in this metric until they are deleted; ask the query GPUS_HELD"


@dataclass(frozen=True, slots=True)
class _Sorted:
    """The samples that count, each truth once, and how many do not for which reason."""

    kept: pl.DataFrame
    ignored: list[pl.DataFrame]
    interval_ms: int
    rows: int  # of all samples


def read_prometheus(
    path: Path,
    *,
    cluster: str | None,
    measured: Measured | None = None,
    unit: Unit | None = None,
    step_s: float | None = None,
    observed_until: datetime | None = None,
    account_from: Sequence[str] = ACCOUNT_FROM,
    user_from: Sequence[str] = USER_FROM,
) -> Reading:
    """Read a saved reply of query_range, or a CSV file of samples: column time, gpus or utilization, and labels.

    What it measures is known from the metric's name or the saved query, else `measured` says it; `unit` is that
    of utilization. Samples of GPUs held become runs of at most an hour, which know of no wait: a sample stands
    for the `step_s` after it (by default the smallest distance between two), gaps stand for nothing (case k8-06),
    and what a second replica or exporter repeats is ignored (case k8-05). Samples of utilization stay samples.
    Raises UnreadableLog for an error answer, for counters, and for what is cut short.
    """
    reply = read_reply(path)
    labels = read_labels(reply.labels, account_from=check_places(account_from), user_from=check_places(user_from))
    _refuse_counters(path, labels)
    what = measured or _measured(path, reply, labels)
    labels = _numbered(labels.with_columns(cluster=_cluster(path, labels, cluster)))
    told = _sorted(reply, labels, what, step_s)
    if what == "gpus":
        runs = _runs(told, labels)
        merged, notices = told.kept.height - runs.height, _notices_of_runs(runs, labels)
        canonical = runs.select(RUNS.names()).cast(RUNS).sort("line")
        return _reading(path, reply, told, runs=canonical, merged=merged, notices=notices, until=observed_until)
    usage, excess = _utilization(told, labels, unit or _unit(reply, labels))
    return _reading(path, reply, told, utilization=usage, excess=excess, until=observed_until)


def _numbered(labels: pl.DataFrame) -> pl.DataFrame:
    """With a number for the series in the reply, the truth it tells, who tells it, and the run it is part of."""
    return labels.with_row_index("told").with_columns(
        series=pl.struct("cluster", *_SERIES).rank("dense"),
        teller=pl.col("teller").rank("dense"),
        run=pl.struct("cluster", *_RUN).rank("dense"),
    )


def _refuse_counters(path: Path, labels: pl.DataFrame) -> None:
    counters = labels.filter(pl.col("metric").str.contains(_COUNTER))["metric"].unique().sort().to_list()
    if counters:
        raise refusal(path, "counter", f"{', '.join(counters)} only ever grows; ask for a gauge, or rate() of it")


def _measured(path: Path, reply: Reply, labels: pl.DataFrame) -> Measured:
    said = " ".join([reply.query or "", *labels["metric"].drop_nulls().unique().sort()])
    is_utilization = any(name in said for name in UTILIZATION_UNITS) or reply.measured == "utilization"
    is_held = any(name in said for name in HELD_METRICS) or reply.measured == "gpus"
    if is_utilization == is_held and labels.height:
        raise refusal(path, "unknown_measure", "nothing in it says what it measures; say gpus or utilization")
    return "utilization" if is_utilization else "gpus"


def _unit(reply: Reply, labels: pl.DataFrame) -> Unit:
    said = " ".join([reply.query or "", *labels["metric"].drop_nulls().unique().sort()])
    units = {unit for name, unit in UTILIZATION_UNITS.items() if name in said}
    if len(units) != 1 and labels.height:
        raise InvalidInput("nothing says in which unit utilization is; say percent or fraction")
    return units.pop() if units else "percent"


def _cluster(path: Path, labels: pl.DataFrame, cluster: str | None) -> pl.Expr:
    """The name that was given, or that of the label; the samples of several clusters are never put under one."""
    named = labels["cluster_label"]
    if cluster is None and named.has_nulls():
        raise refusal(path, "missing_value", "no label names the cluster of all series; name it with --cluster")
    if cluster is not None and named.n_unique() > 1:
        listed = ", ".join(str(name) for name in named.unique().sort())
        raise refusal(path, "several_clusters", f"{listed}; read it without --cluster, or ask for one of them")
    return pl.col("cluster_label") if cluster is None else pl.lit(cluster)


def _sorted(reply: Reply, labels: pl.DataFrame, what: Measured, step_s: float | None) -> _Sorted:
    is_waiting = pl.col("metric").str.starts_with(_OF_PODS).fill_null(value=False) & pl.col("host").is_null()
    known = labels.select(
        "told", "series", "teller", "run", "part", is_other=pl.col("part").is_null() & (what == "gpus"),
        is_waiting=is_waiting,
    )  # fmt: skip
    samples = reply.samples.rename({"series": "told"}).join(known, on="told", how="left", maintain_order="left")
    step = step_s or reply.step_s
    held = samples.filter(~pl.col("is_other") & ~pl.col("is_waiting"))
    interval_ms = round(step * 1000) if step else interval_between(held)
    kept = without_replicas(held, interval_ms=interval_ms)
    ignored = [
        ignored_rows(samples.filter("is_other"), "other_resource"),
        ignored_rows(samples.filter(~pl.col("is_other") & pl.col("is_waiting")), "not_placed"),
        ignored_rows(held.join(kept, on="line", how="anti") if kept is not held else kept.clear(), "replica_duplicate"),
    ]
    return _Sorted(kept, ignored, interval_ms, samples.height + int(reply.ignored["rows"].sum()))


def _runs(told: _Sorted, labels: pl.DataFrame) -> pl.DataFrame:
    """The columns of RUNS, and `series`: what all containers of a pod hold together, piece by piece."""
    held = told.kept.group_by(pl.col("run").alias("series"), "at").agg(
        value=(pl.col("value") * pl.col("part")).sum(), line=pl.col("line").min()
    )
    known = labels.unique("run", keep="first").select(pl.exclude("series"), series="run")
    cut = pieces(covered(held, interval_ms=told.interval_ms)).join(known, on="series", how="left")
    runs = cut.with_columns(
        workload_id=pl.coalesce(_workload_id(), pl.lit("*")),
        submitted_at="started_at",
        gpus="value",
        partition="queue",
        hosts="host",
        state=pl.lit("SAMPLED"),
        is_charged=pl.lit(value=True),
    )
    return runs.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in RUNS.items() if name not in runs.columns
    )


def _utilization(told: _Sorted, labels: pl.DataFrame, unit: Unit) -> tuple[pl.DataFrame, pl.DataFrame]:
    """UTILIZATION, and as rejected what is more than all of a GPU."""
    known = labels.select("told", "cluster", "host", "gpu", workload_id=_workload_id())
    usage = (
        covered(told.kept, interval_ms=told.interval_ms)
        .join(known, on="told", how="left")
        .with_columns(
            sampled_at="at",
            covers_s=(pl.col("covers_ms") / 1000).round().cast(pl.Int64),
            utilization_ratio=pl.col("value") / (100 if unit == "percent" else 1),
        )
    )
    excess = usage.filter(pl.col("utilization_ratio") > 1).select(
        "line",
        reason=pl.lit("bad_number"),
        detail=pl.format("{} is more than a whole GPU, if in {}", "value", pl.lit(unit)),
        text=pl.format("{} {}", "at", "value"),
    )
    kept = usage.filter(pl.col("utilization_ratio") <= 1).select(UTILIZATION.names()).cast(UTILIZATION)
    return kept.sort("line"), excess


def _workload_id() -> pl.Expr:
    return pl.coalesce(pl.format("{}/{}", "namespace", "pod"), "namespace", "queue")


def _reading(
    path: Path,
    reply: Reply,
    told: _Sorted,
    *,
    until: datetime | None,
    runs: pl.DataFrame = _NO_RUNS,
    utilization: pl.DataFrame = _NO_USAGE,
    excess: pl.DataFrame = _NONE_REJECTED,
    merged: int = 0,
    notices: Sequence[str] = (),
) -> Reading:
    ends = [runs["ended_at"].max(), _last_covered(utilization)]
    newest = max((end for end in ends if isinstance(end, datetime)), default=None)
    warnings = [f"Prometheus itself warns: {warning}" for warning in reply.warnings]
    nothing = [] if reply.labels else ["the query found no series"]
    return Reading(
        source="prometheus",
        path=str(path),
        digest=digest_of(path),
        observed_until=utc_without_zone(until) or newest,
        rows_read=told.rows + reply.rejected.height,
        runs=runs,
        utilization=utilization,
        merged=merged,
        rejected=pl.concat([reply.rejected, excess]).sort("line"),
        ignored=summed([reply.ignored, *told.ignored]),
        notices=(*warnings, *nothing, *notices),
    )


def _last_covered(utilization: pl.DataFrame) -> object:
    return utilization.select((pl.col("sampled_at") + pl.duration(seconds="covers_s")).max()).item()


def _notices_of_runs(runs: pl.DataFrame, labels: pl.DataFrame) -> list[str]:
    notices = []
    if gap_s := gaps_ms(runs) // 1000:
        notices.append(f"{gap_s / 60:,.0f} minutes between samples of one series are unknown and count as nothing")
    if labels["metric"].str.starts_with(_OF_PODS).any():
        notices.append(_FINISHED_COUNT)
    return notices
