"""From the parts of a file to its reading: what was accepted, ignored, rejected and flagged, added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import FLAGGED, IGNORED, MOMENT, REJECTED, RUNS, Reading
from gpupolicy.ingest.moments import utc_without_zone
from gpupolicy.ingest.records import Layout, ignored_rows
from gpupolicy.ingest.text import digest_of

SUBMISSION_KEY = ("cluster", "workload_id", "submitted_at")
RUN_KEY = (*SUBMISSION_KEY, "started_at")
OVERDUE = pl.Schema({"line": pl.Int64(), "overdue_at": MOMENT})
FLAGS = {
    "unknown_state": "a state that Slurm's list does not have; the time counts all the same",
    "ambiguous_local_time": "a local time in the hour that comes twice, and nothing tells which; the first was taken",
    "clock_skew": "started some seconds before it could; taken as no wait",
    "implausible_wait": "started long before it was submitted; the time counts, the wait means nothing",
    "wait_from_submit": "ran without a moment of eligibility; its wait counts from submission",
    "allocation_from_request": "ran without a recorded allocation; what was asked for was taken",
    "gpu_count_unknown": "ran, but how many GPUs it held is not on record; counted as 0",
    "inconsistent_conditions": "evicted, yet still admitted: a workload without pods; counted up to the eviction",
    "history_lost": "ran before in ways that the object no longer tells; that time is in no run",
    "shared_gpu": "of a GPU that several pods share, and this source counts it whole for each of them",
    "suspected_runaway": "still open long after its time limit, so its end was lost; set aside and in no total",
}


@dataclass(frozen=True, slots=True)
class Part:
    """What one block of a file came to; `newest` is the last moment that anything in it proves."""

    runs: pl.DataFrame
    rejected: pl.DataFrame
    ignored: pl.DataFrame
    flagged: pl.DataFrame = field(default_factory=FLAGGED.to_frame)
    newest: datetime | None = None
    clusters: frozenset[str] = frozenset()  # as the file names them
    overdue: pl.DataFrame = field(default_factory=OVERDUE.to_frame)  # when open runs should have ended, at the latest


def reading_of_runs(
    path: Path,
    source: str,
    parts: Iterable[Part],
    *,
    observed_until: datetime | None,
    notices: Sequence[str] = (),
) -> Reading:
    """Add up the parts; a record that stands twice is one, and of several records of a run the best one stays."""
    listed = list(parts)
    runs, repeated = _without_repeats(pl.concat([RUNS.to_frame(), *(part.runs for part in listed)]))
    rejected = pl.concat([REJECTED.to_frame(), *(part.rejected for part in listed)]).sort("line")
    ignored = summed([*(part.ignored for part in listed), *repeated])
    newest = max((part.newest for part in listed if part.newest), default=None)
    observed = utc_without_zone(observed_until) or newest
    runaways = _runaways(runs, listed, observed)
    odd = pl.concat([FLAGGED.to_frame(), *(part.flagged for part in listed), _named(runaways, "suspected_runaway")])
    return Reading(
        source=source,
        path=str(path),
        digest=digest_of(path),
        observed_until=observed,
        rows_read=runs.height + rejected.height + int(ignored["rows"].sum()),
        runs=runs if runaways.is_empty() else runs.join(runaways, on="line", how="anti", maintain_order="left"),
        set_aside=runaways,
        rejected=rejected,
        ignored=ignored,
        flagged=odd,
        notices=(*notices, *_flag_notices(odd)),
    )


def rejected_rows(frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Rows with a `fault` and its `detail`, with the text they were read from."""
    text = pl.concat_str((pl.col(column).fill_null("") for column in layout.columns), separator=layout.delimiter)
    return frame.select("line", pl.col("fault").alias("reason"), "detail", text.alias("text"))


def flagged(runs: pl.DataFrame) -> pl.DataFrame:
    """The flags that stand as columns of truth in a frame of runs, one row a flag and run."""
    raised = [_named(runs.filter(pl.col(flag)), flag) for flag in FLAGS if flag in runs.columns and runs[flag].any()]
    return pl.concat([FLAGGED.to_frame(), *raised])


def _named(runs: pl.DataFrame, flag: str) -> pl.DataFrame:
    return runs.select(pl.lit(flag).alias("flag"), "workload_id", "line")


def _runaways(runs: pl.DataFrame, parts: Sequence[Part], observed: datetime | None) -> pl.DataFrame:
    """Runs that were open when the log was taken although they were long overdue (case sa-16)."""
    overdue = pl.concat([OVERDUE.to_frame(), *(part.overdue for part in parts)])
    return runs.join(overdue.filter(pl.col("overdue_at") < pl.lit(observed, MOMENT)), on="line", how="semi")


def _without_repeats(runs: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """One record a run: a finished one before an open one, then the later in the file.

    One that waits gives way to one of the same submission that has started.
    """
    again = _again(runs)
    overtaken = _overtaken(runs).join(again, on="line", how="anti")
    if again.is_empty() and overtaken.is_empty():
        return runs, []
    same = again.filter("is_same")
    superseded = pl.concat([again.filter(~pl.col("is_same")).select("line"), overtaken.select("line")])
    lost = [ignored_rows(same, "duplicate_record"), ignored_rows(superseded, "superseded_record")]
    return runs.join(again, on="line", how="anti").join(overtaken, on="line", how="anti"), lost


def _again(runs: pl.DataFrame) -> pl.DataFrame:
    """Lines that tell of a run of which a better record stands in the file; `is_same`: it says the same."""
    suspect = runs.select(pl.struct(RUN_KEY).hash()).to_series().is_duplicated()  # only finds whom to look at
    records = (
        runs.filter(suspect)
        .with_columns(content=pl.struct(pl.exclude("line")))
        .sort(pl.col("ended_at").is_not_null(), "line")
    )
    best = records.unique(RUN_KEY, keep="last")
    worse = records.join(best, on="line", how="anti")
    compared = worse.join(best, on=RUN_KEY, how="left", nulls_equal=True, suffix="_of_best")
    return compared.select("line", is_same=pl.col("content") == pl.col("content_of_best"))


def _overtaken(runs: pl.DataFrame) -> pl.DataFrame:
    waiting = runs.filter(pl.col("started_at").is_null() & pl.col("ended_at").is_null())
    if waiting.is_empty():
        return waiting
    submission = pl.struct(SUBMISSION_KEY).hash()
    suspect = runs.select(submission.is_in(waiting.select(submission).to_series().implode())).to_series()
    started = runs.filter(suspect & runs["started_at"].is_not_null())
    return waiting.join(started, on=SUBMISSION_KEY, how="semi")


def summed(ignored: Sequence[pl.DataFrame]) -> pl.DataFrame:
    counted = pl.concat([IGNORED.to_frame(), *ignored]).group_by("reason")
    return counted.agg(pl.col("rows").sum(), pl.col("example_line").min()).sort("reason")


def _flag_notices(flagged: pl.DataFrame) -> list[str]:
    counts = flagged.group_by("flag").agg(pl.len(), pl.col("line").min()).sort("flag")
    return [
        f"{flag}: {rows:,} {'row' if rows == 1 else 'rows'}, the first in line {line}: {FLAGS[flag]}"
        for flag, rows, line in counts.iter_rows()
    ]
