"""Tables that know no workloads, only how many GPUs somebody held and wanted in each minute or hour, as runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import MOMENT, RUNS, Reading
from gpupolicy.ingest.moments import utc_without_zone
from gpupolicy.ingest.table.frames import Found, Shape, read_frame
from gpupolicy.ingest.table.mapping import (
    AnyDuration,
    AnyMapping,
    AnyMoment,
    AnyNumber,
    AnyText,
    AnyTruth,
    Columns,
)
from gpupolicy.ingest.table.mapping_files import load_mapping_as
from gpupolicy.ingest.text import digest_of

STATE = "LEVEL"  # tells a sum from a workload: it counts as occupancy and demand, and says nothing of waits
NOTICE = "these are sums without workloads: no waits, and loading the workloads too would count their time twice"
WHOSE = ("cluster", "account", "user_name", "gpu_type", "is_charged")
LEVELS = pl.Schema(
    {name: RUNS[name] for name in WHOSE}
    | {
        "from_at": MOMENT,
        "covers_s": pl.Int64(),
        "held_gpus": pl.Float64(),
        "wanted_gpus": pl.Float64(),
        "line": pl.Int64(),
    }
)

_LEVELS = Shape(LEVELS, key=(*WHOSE, "from_at"), needed=(("cluster",), ("from_at",), ("covers_s",), ("held_gpus",)))


class LevelColumns(Columns):
    """The columns of a level, as in LEVELS: `wanted_gpus` are those asked for and not held."""

    account: AnyText | None = None
    user_name: AnyText | None = None
    gpu_type: AnyText | None = None
    is_charged: AnyTruth | None = None
    from_at: AnyMoment
    covers_s: AnyDuration
    held_gpus: AnyNumber
    wanted_gpus: AnyNumber | None = None


class LevelMapping(AnyMapping):
    """How to read a table of levels."""

    columns: LevelColumns


def load_level_mapping(path: Path) -> LevelMapping:
    """Read the mapping of a table of levels; raises InvalidInput with every fault and its line."""
    return load_mapping_as(LevelMapping, path)


def read_levels(
    path: Path,
    mapping: LevelMapping,
    *,
    cluster: str | None,
    timezone: str | None = None,
    observed_until: datetime | None = None,
) -> Reading:
    """Read levels from CSV, Parquet, JSON or NDJSON; arguments and refusals are those of read_table."""
    found = read_frame(path, mapping, shape=_LEVELS, cluster=cluster, timezone=timezone)
    return reading_of_levels(path, "levels", found, observed_until=observed_until)


def reading_of_levels(path: Path, source: str, found: Found, *, observed_until: datetime | None) -> Reading:
    """The runs that levels stand for; one level is one row, whatever became of it."""
    runs = level_runs(found.accepted)
    newest = runs["ended_at"].max()
    return Reading(
        source=source,
        path=str(path),
        digest=digest_of(path),
        observed_until=utc_without_zone(observed_until) or (newest if isinstance(newest, datetime) else None),
        rows_read=found.rows_read,
        runs=runs,
        merged=found.accepted.height - runs.height,
        rejected=found.rejected,
        ignored=found.ignored,
        notices=(NOTICE,),
    )


def level_runs(levels: pl.DataFrame) -> pl.DataFrame:
    """Of each level a run of what was held and, where it is known, a waiting one of what was wanted, as in RUNS.

    Each is as long as its level, and one of 0 GPUs is kept: files that overlap or correct each other meet in the
    same runs. Without `is_charged` all of it is charged.
    """
    levels = levels.with_columns(pl.col("is_charged").fill_null(pl.lit(value=True)))
    whose = pl.concat_str((pl.col(name).cast(pl.String).fill_null("") for name in WHOSE[1:]), separator="/")
    common = levels.with_columns(
        whose=whose,
        state=pl.lit(STATE),
        submitted_at="from_at",
        eligible_at="from_at",
        ended_at=pl.col("from_at") + (pl.col("covers_s") * 1000).cast(pl.Duration("ms")),
    )
    held = common.with_columns(started_at="from_at", gpus="held_gpus", workload_id=pl.lit("held/") + pl.col("whose"))
    wanted = common.drop_nulls("wanted_gpus").with_columns(
        started_at=pl.lit(None, MOMENT), gpus="wanted_gpus", workload_id=pl.lit("wanted/") + pl.col("whose")
    )
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in RUNS.items() if name not in held.columns]
    return pl.concat([held, wanted]).with_columns(absent).select(RUNS.names())
