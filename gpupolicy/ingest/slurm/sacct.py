"""Slurm's accounting, `sacct -P` in any field order and with any delimiter, into runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest.canonical import RUNS, Reading
from gpupolicy.ingest.moments import check_timezone
from gpupolicy.ingest.parts import Part, flagged, reading_of_runs, rejected_rows
from gpupolicy.ingest.records import Batch, Layout, ignored_rows
from gpupolicy.ingest.slurm.lines import ASK_SACCT, sacct_batches
from gpupolicy.ingest.slurm.runs import STAMP_FIELDS, Count, field, newest_moment, sacct_runs, texts
from gpupolicy.ingest.text import refusal

FREE_QOS = frozenset({"free"})

_COUNTED = {
    "gpus": ("AllocTRES", "ReqTRES", "AllocGRES"),
    "cpus": ("AllocCPUS", "NCPUS", "AllocTRES", "ReqTRES"),
}
_NEEDED = (("JobIDRaw", "JobID"), ("Submit",), ("Start",), ("End",))


@dataclass(frozen=True, slots=True)
class _Reader:
    """What the caller says about a file."""

    path: Path
    cluster: str | None
    timezone: str
    count: Count
    free_qos: frozenset[str]


def read_slurm(
    path: Path,
    *,
    cluster: str | None,
    timezone: str = "UTC",
    observed_until: datetime | None = None,
    fields: Sequence[str] | None = None,
    count: Count = "gpus",
    free_qos: frozenset[str] = FREE_QOS,
) -> Reading:
    """Read the output of `sacct -P`, plain or gzip.

    `cluster` names the cluster, the file's own Cluster field if it is None. Stamps without a zone are in
    `timezone`. `fields` names the columns of a dump without a header (XDMoD's 26 are known). `count` says what
    a run holds. Without `observed_until` the log was taken at the newest moment that the file proves. Raises
    UnreadableLog for a file that is refused whole.
    """
    check_timezone(timezone)
    reader = _Reader(path, cluster, timezone, count, free_qos)
    layout, batches = sacct_batches(path, fields)
    _refuse_missing(reader, layout)
    parts = [_part(batch, layout, reader) for batch in batches]
    return reading_of_runs(path, "slurm", parts, observed_until=observed_until, notices=_notices(reader, layout, parts))


def _refuse_missing(reader: _Reader, layout: Layout) -> None:
    missing = [
        " or ".join(names) for names in (*_NEEDED, _COUNTED[reader.count]) if not set(names) & set(layout.columns)
    ]
    if reader.cluster is None and "Cluster" not in layout.columns:
        missing.append("Cluster (or name the cluster with --cluster)")
    if missing:
        raise refusal(
            reader.path,
            "missing_column",
            f"{', '.join(missing)}; the file has {', '.join(filter(None, layout.columns))}; {ASK_SACCT}",
        )


def _part(batch: Batch, layout: Layout, reader: _Reader) -> Part:
    is_step = texts(batch.frame, "JobID", "JobIDRaw").str.contains(".", literal=True).fill_null(value=False)
    jobs = batch.frame.filter(~is_step)
    runs = sacct_runs(
        jobs, cluster=reader.cluster, timezone=reader.timezone, count=reader.count, free_qos=reader.free_qos
    )
    is_good = runs["fault"].is_null()
    good = runs.filter(is_good)
    return Part(
        runs=good.select(RUNS.names()),
        rejected=pl.concat([batch.rejected, _rejected(jobs, runs["fault"], layout)]),
        ignored=pl.concat([batch.ignored, ignored_rows(batch.frame.filter(is_step), "step_row")]),
        flagged=flagged(good),
        newest=newest_moment(jobs.filter(is_good), good),
        clusters=frozenset(texts(jobs, "Cluster").unique().drop_nulls()),
    )


def _rejected(jobs: pl.DataFrame, fault: pl.Series, layout: Layout) -> pl.DataFrame:
    faulty = jobs.with_columns(fault=fault).filter(fault.is_not_null())
    shown = [*STAMP_FIELDS.values(), "State", "AllocTRES", "ReqTRES"]
    detail = [pl.format("{} '{}'", pl.lit(name), field(jobs, name).fill_null("")) for name in shown]
    return rejected_rows(faulty.with_columns(detail=pl.concat_str(detail, separator=", ")), layout)


def _notices(reader: _Reader, layout: Layout, parts: Sequence[Part]) -> list[str]:
    names = frozenset().union(*(part.clusters for part in parts))
    listed = ", ".join(sorted(names))
    notices = []
    if reader.cluster is not None and len(names) > 1:
        raise UnreadableLog(
            f"{reader.path}: several clusters are in it ({listed}), whose job numbers are not one another's; "
            "read it without --cluster, so that each keeps its name"
        )
    if reader.cluster is not None and names - {reader.cluster}:
        notices.append(f"the file calls its cluster {listed}; it was loaded as {reader.cluster}")
    if "Eligible" not in layout.columns:
        notices.append("there is no field Eligible: waits and demand count from submission")
    return notices
