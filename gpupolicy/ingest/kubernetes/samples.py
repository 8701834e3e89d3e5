"""Samples of gauges: each truth once, what stretch each stands for, and the pieces of runs they make.

A frame of samples has the columns `series` and `teller`, numbers, `at`, `value` and `line`. The tellers of one series
are replicas of one Prometheus, or exporters that tell the same.
"""

from __future__ import annotations

import polars as pl

from gpupolicy.errors import InvalidInput

PIECE = "1h"
_BRIDGED = 1.5  # intervals: a sample a little late is not a gap


def without_replicas(samples: pl.DataFrame, *, interval_ms: int) -> pl.DataFrame:
    """Each sample of the teller who tells most; of the others those that fill its gaps (case k8-05).

    What lies within half an interval of a sample that is kept repeats it.
    """
    ranks = _ranks(samples)
    most = ranks["rank"].max()
    if not isinstance(most, int) or most == 1:
        return samples
    ranked = samples.join(ranks, on=["series", "teller"], how="left")
    kept = ranked.filter(pl.col("rank") == 1)
    for rank in range(2, most + 1):
        others = ranked.filter(pl.col("rank") == rank).sort("at")
        told = kept.select("series", pl.col("at").alias("told_at")).sort("told_at")
        nearest = others.join_asof(
            told, left_on="at", right_on="told_at", by="series", strategy="nearest", check_sortedness=False
        )
        apart_ms = (pl.col("told_at") - pl.col("at")).dt.total_milliseconds().abs()
        fills = nearest.filter((apart_ms > interval_ms // 2).fill_null(value=True))
        kept = pl.concat([kept, fills.select(kept.columns)])
    return kept.drop("rank").sort("line")


def interval_between(samples: pl.DataFrame) -> int:
    """The smallest distance in ms between two samples that one teller tells of one series.

    Raises InvalidInput if there are samples but no two of one.
    """
    apart_ms = pl.col("at").diff().dt.total_milliseconds()
    is_same = (pl.col("series").diff() == 0) & (pl.col("teller").diff() == 0)
    apart = samples.sort("series", "teller", "at").select(apart_ms.filter(is_same & (apart_ms > 0)))
    smallest = apart["at"].min()
    if smallest is None and not samples.is_empty():
        raise InvalidInput("one sample a series does not tell how far apart samples are; say it with --step SECONDS")
    return smallest if isinstance(smallest, int) else 1


def covered(samples: pl.DataFrame, *, interval_ms: int) -> pl.DataFrame:
    """Samples by series and time with `covers_ms`: up to the next one, for an interval at most (case k8-06).

    A sample stands for what follows it, so that a window's end is not counted twice; beyond an interval nothing
    is known, and neither zero nor a straight line is made of it.
    """
    apart_ms = (pl.col("at").shift(-1) - pl.col("at")).dt.total_milliseconds()
    is_followed = (pl.col("series").shift(-1) == pl.col("series")) & (apart_ms <= _BRIDGED * interval_ms)
    covers_ms = pl.when(is_followed.fill_null(value=False)).then(apart_ms).otherwise(interval_ms)
    return samples.sort("series", "at").with_columns(covers_ms=covers_ms.cast(pl.Int64))


def pieces(samples: pl.DataFrame) -> pl.DataFrame:
    """Runs of covered samples without a gap and with one value, cut at the full hour.

    Cut, because a window's first sample says nothing of when the run began: so a piece begins in the same moment
    in all windows that hold its hour whole, and windows may overlap.
    """
    ends_at = pl.col("at") + pl.col("covers_ms").cast(pl.Duration("ms"))
    goes_on = pl.all_horizontal(
        pl.col("series") == pl.col("series").shift(1),
        pl.col("value") == pl.col("value").shift(1),
        ends_at.shift(1) >= pl.col("at"),
        pl.col("at").dt.truncate(PIECE) == pl.col("at").dt.truncate(PIECE).shift(1),
    )
    begun = samples.select(
        "series", "value", "at", "line", ends_at=ends_at, piece=(~goes_on.fill_null(value=False)).cum_sum()
    )
    return (
        begun.group_by("piece", maintain_order=True)
        .agg(
            pl.col("series", "value").first(),
            pl.col("line").min(),
            started_at=pl.col("at").first(),
            ended_at=pl.col("ends_at").last(),
        )
        .drop("piece")
    )


def gaps_ms(runs: pl.DataFrame) -> int:
    """How long nothing is known of a series between two of its pieces."""
    gap = pl.col("started_at") - pl.col("ended_at").shift(1).over("series")
    found = runs.sort("series", "started_at").select(gap=gap.dt.total_milliseconds().clip(0))
    return int(found["gap"].sum())


def _ranks(samples: pl.DataFrame) -> pl.DataFrame:
    """Of each series and teller a rank: 1 for the teller who tells most, of equals the first."""
    return (
        samples.group_by("series", "teller")
        .agg(count=pl.len())
        .sort("series", "count", "teller", descending=[False, True, False])
        .select("series", "teller", rank=pl.int_range(1, pl.len() + 1).over("series"))
    )
