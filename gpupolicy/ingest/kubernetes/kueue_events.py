"""The events of Kueue's workloads as a table, a row each, as a watcher writes them down.

    workload,namespace,gpus,event,time[,queue][,user][,gpu_type]

Events: created, quota_reserved, admitted, evicted or evicted_REASON, requeued, held, released, finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl

from gpupolicy.ingest.canonical import IGNORED, REJECTED, Reading
from gpupolicy.ingest.kubernetes.kueue_history import EVENTS, Event, stretches
from gpupolicy.ingest.kubernetes.objects import Told
from gpupolicy.ingest.kubernetes.runs import FREE_NAMES, Claim, ObjectRun, reading_of_object_runs, with_merged
from gpupolicy.ingest.moments import read_moments
from gpupolicy.ingest.parts import rejected_rows, summed
from gpupolicy.ingest.records import Batch, Layout
from gpupolicy.ingest.table.cells import read_numbers
from gpupolicy.ingest.table.lines import csv_batches
from gpupolicy.ingest.text import refusal

_NEEDED = ("workload", "namespace", "gpus", "event", "time")
_SHOWN = ("event", "time", "gpus")
_OPTIONAL = ("queue", "user", "gpu_type")


def read_kueue_events(
    path: Path, *, cluster: str, observed_until: datetime | None, free: frozenset[str] = FREE_NAMES
) -> Reading:
    """Read a CSV file of events; each run takes in the events that tell of it. Raises UnreadableLog."""
    layout, batches = csv_batches(path)
    missing = [name for name in _NEEDED if name not in layout.columns]
    if missing:
        raise refusal(path, "missing_column", f"{', '.join(missing)}; the file has {', '.join(layout.columns)}")
    read = [(batch, _judged(batch, layout)) for batch in batches]
    rows = pl.concat(judged for _, judged in read)
    good = rows.filter(pl.col("fault").is_null())
    runs = [run for history in _histories(good) for run in _runs(history, free)]
    told = Told(
        values=runs,
        rejected=pl.concat(
            [
                REJECTED.to_frame(),
                *(batch.rejected for batch, _ in read),
                rejected_rows(rows.filter(pl.col("fault").is_not_null()), layout),
            ]
        ),
        ignored=summed([IGNORED.to_frame(), *(batch.ignored for batch, _ in read)]),
        newest=good["at"].max(),  # type: ignore[arg-type]  # a column of moments
    )
    reading = reading_of_object_runs(path, "kueue", runs, told, cluster=cluster, observed_until=observed_until)
    return with_merged(reading, good.height - len(runs))


def _judged(batch: Batch, layout: Layout) -> pl.DataFrame:
    """The rows with their moment, GPUs, event and its reason; `fault` and `detail` where one cannot be read."""
    at = read_moments(batch.frame.select("time"), timezone=None)["time"]
    gpus = read_numbers(pl.col("gpus"))
    word = pl.col("event").str.strip_chars().str.to_lowercase()
    absent = [pl.lit(None, pl.String).alias(name) for name in _OPTIONAL if name not in layout.columns]
    rows = batch.frame.with_columns(
        *absent, at=at.at, bad_time=at.fault, held=gpus.value, what=word.str.extract(r"^(evicted|\w+)"),
        reason=word.str.extract(r"^evicted_(\w+)"),
    ).with_columns(what=pl.col("what").str.replace("^evicted.*", "evicted"))  # fmt: skip
    lacks = pl.any_horizontal(pl.col(name).is_null() for name in _NEEDED)
    return rows.with_columns(
        fault=pl.when(lacks)
        .then(pl.lit("missing_value"))
        .when(pl.col("bad_time").is_not_null())
        .then("bad_time")
        .when(gpus.fault.is_not_null())
        .then(pl.lit("bad_number"))
        .when(~pl.col("what").is_in(EVENTS))
        .then(pl.lit("bad_value")),
        detail=pl.format("event '{}', time '{}', gpus '{}'", *(pl.col(one).fill_null("") for one in _SHOWN)),
    )


def _histories(rows: pl.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """The rows of one workload in order; a name that is created again is another workload."""
    ordered = rows.sort("namespace", "workload", "at", "line").with_columns(
        life=(pl.col("what") == "created").cast(pl.Int64).cum_sum().over("namespace", "workload")
    )
    one = itemgetter("namespace", "workload", "life")
    for _, history in groupby(ordered.iter_rows(named=True), key=one):
        yield list(history)


def _runs(history: list[dict[str, Any]], free: frozenset[str]) -> Iterator[ObjectRun]:
    first, last = history[0], history[-1]
    events = [Event(row["at"], row["what"], row["reason"] or "") for row in history]
    for at, stretch in enumerate(stretches(events)):
        yield ObjectRun(
            line=history[min(at, len(history) - 1)]["line"],
            workload_id=f"{first['namespace']}/{first['workload']}",
            submitted_at=stretch.queued_at,
            eligible_at=stretch.eligible_at,
            started_at=stretch.started_at,
            ended_at=stretch.ended_at,
            gpus=last["held"],
            gpu_type=last["gpu_type"],
            state=stretch.state,
            claim=Claim(first["namespace"], last["user"], last["queue"], is_charged=last["queue"] not in free),
        )
