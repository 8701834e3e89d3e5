"""One block of Slurm's records, whatever form they came in, into a part of a reading."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest.canonical import RUNS
from gpupolicy.ingest.parts import OVERDUE, Part, flagged, rejected_rows
from gpupolicy.ingest.records import Batch, Layout, ignored_rows
from gpupolicy.ingest.slurm.runs import STAMP_FIELDS, field, newest_moment, sacct_runs, texts
from gpupolicy.ingest.slurm.settings import Settings

WHOLE_RECORD = Layout(("text",), "")  # of forms whose records are kept as they stood, in a column `text`


def slurm_part(batch: Batch, layout: Layout, settings: Settings) -> Part:
    """Steps are ignored, what cannot be trusted is rejected; `batch` holds texts under sacct's names, and `line`."""
    is_step = texts(batch.frame, "JobID", "JobIDRaw").str.contains(".", literal=True).fill_null(value=False)
    jobs = batch.frame.filter(~is_step)
    runs = sacct_runs(jobs, settings)
    is_good = runs["fault"].is_null()
    good = runs.filter(is_good)
    return Part(
        runs=good.select(RUNS.names()),
        rejected=pl.concat([batch.rejected, _rejected(jobs, runs["fault"], layout)]),
        ignored=pl.concat([batch.ignored, ignored_rows(batch.frame.filter(is_step), "step_row")]),
        flagged=flagged(good),
        newest=newest_moment(jobs.filter(is_good), good),
        clusters=frozenset(texts(jobs, "Cluster").unique().drop_nulls()),
        overdue=good.drop_nulls("overdue_at").select(OVERDUE.names()),
    )


def cluster_notices(path: Path, parts: Sequence[Part], cluster: str | None) -> list[str]:
    """What to say if the file names its cluster otherwise; raises UnreadableLog if it holds several as one."""
    names = frozenset().union(*(part.clusters for part in parts))
    listed = ", ".join(sorted(names))
    if cluster is not None and len(names) > 1:
        raise UnreadableLog(
            f"{path}: several clusters are in it ({listed}), whose job numbers are not one another's; "
            "read it without --cluster, so that each keeps its name"
        )
    if cluster is not None and names - {cluster}:
        return [f"the file calls its cluster {listed}; it was loaded as {cluster}"]
    return []


def _rejected(jobs: pl.DataFrame, fault: pl.Series, layout: Layout) -> pl.DataFrame:
    faulty = jobs.with_columns(fault=fault).filter(fault.is_not_null())
    shown = [*STAMP_FIELDS.values(), "State", "AllocTRES", "ReqTRES"]
    detail = [pl.format("{} '{}'", pl.lit(name), field(jobs, name).fill_null("")) for name in shown]
    return rejected_rows(faulty.with_columns(detail=pl.concat_str(detail, separator=", ")), layout)
