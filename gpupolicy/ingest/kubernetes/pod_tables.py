"""Pods and nodes as tables: the columns of the openb trace, or those of an exporter that knows of shared GPUs.

name,num_gpu,gpu_milli,qos,pod_phase,creation_time,deletion_time,scheduled_time   pods of openb, seconds
sn,gpu,model                                                                      its nodes
pod,namespace,gpus_requested[,replicas_per_gpu][,gpu_cores_percent],start,end     pods, ISO stamps or epochs
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import HOSTS, REJECTED, RUNS, Reading
from gpupolicy.ingest.capacity import ALWAYS
from gpupolicy.ingest.parts import Part, flagged, reading_of_runs, rejected_rows, summed
from gpupolicy.ingest.records import Batch, Layout
from gpupolicy.ingest.run_moments import newest_of
from gpupolicy.ingest.table.cells import read_numbers
from gpupolicy.ingest.table.lines import csv_batches
from gpupolicy.ingest.table.mapping import TableMapping, Text
from gpupolicy.ingest.table.runs import table_runs
from gpupolicy.ingest.text import digest_of, refusal

_NODES = frozenset({"sn", "gpu", "model"})


@dataclass(frozen=True, slots=True)
class _Form:
    """A header that is known: its columns, and those that divide or multiply what was asked for."""

    mapping: TableMapping
    asked: str
    needs: frozenset[str]
    times: tuple[tuple[str, float], ...] = ()  # a column, and what of it makes a whole
    divided_by: str | None = None


_OPENB = _Form(
    mapping=TableMapping.model_validate(
        {
            "columns": {
                "workload_id": "name",
                "account": {"column": "qos", "optional": True},  # the only thing that groups its pods
                "qos": {"column": "qos", "optional": True},
                "state": {"column": "pod_phase", "optional": True},
                "submitted_at": {"column": "creation_time", "form": "epoch_s"},
                "started_at": {"column": "scheduled_time", "form": "epoch_s"},
                "ended_at": {"column": "deletion_time", "form": "epoch_s"},
                "gpus": "gpus",
            }
        }
    ),
    asked="num_gpu",
    needs=frozenset({"name", "num_gpu", "gpu_milli", "creation_time", "scheduled_time", "deletion_time"}),
    times=(("gpu_milli", 1000),),
)
_EXPORTED = _Form(
    mapping=TableMapping.model_validate(
        {
            "columns": {
                "workload_id": "id",
                "account": "namespace",
                "submitted_at": {"column": "created", "optional": True},
                "started_at": "start",
                "ended_at": {"column": "end", "optional": True},
                "hosts": {"column": "node", "optional": True},
                "state": {"column": "phase", "optional": True},
                "gpu_type": {"column": "gpu_type", "optional": True},
                "gpus": "gpus",
            }
        }
    ),
    asked="gpus_requested",
    needs=frozenset({"pod", "namespace", "gpus_requested", "start"}),
    times=(("gpu_cores_percent", 100),),
    divided_by="replicas_per_gpu",
)


def read_pod_table(path: Path, *, cluster: str, observed_until: datetime | None) -> Reading:
    """Read a CSV file of pods, or of nodes, in one of the forms above; raises UnreadableLog for any other."""
    layout, batches = csv_batches(path)
    if set(layout.columns) >= _NODES:
        return _reading_of_nodes(path, layout, batches, cluster)
    form = next((form for form in (_OPENB, _EXPORTED) if form.needs <= set(layout.columns)), None)
    if form is None:
        raise refusal(path, "missing_column", f"its header is {', '.join(layout.columns)}; known are\n{__doc__}")
    parts = [_part(batch, layout, form, cluster) for batch in batches]
    return reading_of_runs(path, "pods", parts, observed_until=observed_until)


def _part(batch: Batch, layout: Layout, form: _Form, cluster: str) -> Part:
    sources = {
        name: source
        for name, source in form.mapping.columns.sources()
        if not source.optional or set(source.needs) <= set(layout.columns)
    } | {"cluster": Text(value=cluster)}
    texts = batch.frame.with_columns(id=_id(layout), gpus=_gpus(form, layout))
    runs = table_runs(texts, sources, mapping=form.mapping, timezone=None)
    is_good = runs["fault"].is_null()
    good = runs.filter(is_good)
    faulty = batch.frame.filter(~is_good).with_columns(runs.filter(~is_good).select("fault", "detail"))
    return Part(
        runs=good.select(RUNS.names()),
        rejected=pl.concat([batch.rejected, rejected_rows(faulty, layout)]),
        ignored=batch.ignored,
        flagged=flagged(good),
        newest=newest_of(good),
    )


def _id(layout: Layout) -> pl.Expr:
    return pl.format("{}/{}", "namespace", "pod") if "pod" in layout.columns else pl.col("name")


def _gpus(form: _Form, layout: Layout) -> pl.Expr:
    """What was asked for, times the share of each card; a cell that is no number stands as it is, to be rejected."""
    asked = read_numbers(pl.col(form.asked))
    factors = [
        (column, whole, read_numbers(pl.col(column))) for column, whole in form.times if column in layout.columns
    ]
    value = asked.value
    for _, whole, cells in factors:
        value *= (cells.value / whole).fill_null(1.0)
    faulty = [pl.when(cells.fault.is_not_null()).then(pl.col(column)) for column, _, cells in factors]
    if form.divided_by in layout.columns:
        pods = read_numbers(pl.col(str(form.divided_by)))
        value /= pods.value.fill_null(1.0)
        faulty.append(pl.when(pods.fault.is_not_null()).then(pl.col(str(form.divided_by))))
    return pl.coalesce(*faulty, value.cast(pl.String), form.asked)


def _reading_of_nodes(path: Path, layout: Layout, batches: Iterator[Batch], cluster: str) -> Reading:
    """HOSTS of a list without dates: they have always been there."""
    read = list(batches)
    rows = pl.concat(batch.frame for batch in read)
    gpus = read_numbers(pl.col("gpu"))
    lacks = pl.when(pl.any_horizontal(pl.col("sn").is_null(), pl.col("gpu").is_null())).then(pl.lit("missing_value"))
    judged = rows.with_columns(
        cluster=pl.lit(cluster), host="sn", gpu_type="model", gpus=gpus.value, fault=pl.coalesce(gpus.fault, lacks),
        valid_from=pl.lit(ALWAYS), valid_to=pl.lit(None), detail=pl.format("gpu '{}'", pl.col("gpu").fill_null("")),
    )  # fmt: skip
    hosts = judged.filter(pl.col("fault").is_null()).select(HOSTS.names()).cast(HOSTS)
    refused = [rejected_rows(judged.filter(pl.col("fault").is_not_null()), layout)]
    rejected = pl.concat([REJECTED.to_frame(), *(batch.rejected for batch in read), *refused])
    ignored = summed([batch.ignored for batch in read])
    return Reading(
        source="pods",
        path=str(path),
        digest=digest_of(path),
        observed_until=None,
        rows_read=hosts.height + rejected.height + int(ignored["rows"].sum()),
        hosts=hosts,
        rejected=rejected,
        ignored=ignored,
    )
