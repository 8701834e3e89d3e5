"""The four moments of a run: when it was submitted, eligible, started and ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import product

import polars as pl

from gpupolicy.ingest.moments import Moments

SKEW_TOLERANCE_MS = 300_000
STAMPS = ("submitted_at", "eligible_at", "started_at", "ended_at")


def run_moments(moments: Mapping[str, Moments], elapsed_ms: Callable[[pl.Series], pl.Series]) -> pl.DataFrame:
    """STAMPS as columns, `fault` where one of them is no moment, and `is_ambiguous`.

    Of two moments that a local stamp may mean, start and end take those that lie the elapsed time apart. If
    nothing tells, the first is taken and the run is marked (case ti-01). `elapsed_ms` gives the elapsed times,
    or null, of the runs it is asked for by a mask.
    """
    faults = pl.DataFrame({name: moments[name].fault for name in STAMPS})
    frame = pl.DataFrame({name: moments[name].at for name in STAMPS}).with_columns(
        fault=faults.select(pl.coalesce(pl.all())).to_series(), is_ambiguous=pl.lit(value=False)
    )
    unsure = _unsure(moments)
    if not unsure.any():
        return frame
    second = {f"{name}_2": moments[name].second for name in STAMPS}
    settled = _settled(frame.with_columns(**second).filter(unsure).with_columns(elapsed_ms=elapsed_ms(unsure)))
    return frame.with_columns(frame[name].scatter(unsure.arg_true(), settled[name]) for name in settled.columns)


def early_start_flags() -> dict[str, pl.Expr]:
    """Runs that started before they could: by a clock's error, or by more (case ti-05)."""
    early_ms = (pl.coalesce("eligible_at", "submitted_at") - pl.col("started_at")).dt.total_milliseconds()
    return {
        "clock_skew": early_ms.is_between(1, SKEW_TOLERANCE_MS).fill_null(value=False),
        "implausible_wait": (early_ms > SKEW_TOLERANCE_MS).fill_null(value=False),
    }


def newest_of(runs: pl.DataFrame) -> datetime | None:
    """The last submission, start or end. Eligibility proves nothing: it may lie ahead."""
    newest = [runs[name].max() for name in ("submitted_at", "started_at", "ended_at")]
    return max((moment for moment in newest if isinstance(moment, datetime)), default=None)


def _unsure(moments: Mapping[str, Moments]) -> pl.Series:
    differ = pl.DataFrame({name: moments[name].at != moments[name].second for name in STAMPS})
    return differ.select(pl.any_horizontal(pl.all().fill_null(value=False))).to_series()


def _settled(asked: pl.DataFrame) -> pl.DataFrame:
    pairs = list(product(("started_at", "started_at_2"), ("ended_at", "ended_at_2")))
    fits = [_fits(start, end) for start, end in pairs]
    goes_forward = [pl.col(end) >= pl.col(start) for start, end in pairs]
    chosen = {
        name: pl.coalesce(
            *(pl.when(right).then(pair[which]) for right, pair in zip(fits, pairs, strict=True)),
            *(pl.when(right).then(pair[which]) for right, pair in zip(goes_forward, pairs, strict=True)),
            name,
        )
        for which, name in enumerate(("started_at", "ended_at"))
    }
    has_choice = _has_choice("started_at") | _has_choice("ended_at")
    is_untold = has_choice & (pl.sum_horizontal(fits) != 1)
    settled = asked.with_columns(**chosen, is_untold=is_untold)
    before = [_has_choice(name) & _may_be_later(name) for name in ("submitted_at", "eligible_at")]
    return settled.select(*chosen, is_ambiguous=pl.any_horizontal("is_untold", *before))


def _fits(start: str, end: str) -> pl.Expr:
    """Whether the two lie the elapsed time apart, and are no pair that was looked at before."""
    is_new = [_has_choice(name.removesuffix("_2")) for name in (start, end) if name.endswith("_2")]
    apart_ms = (pl.col(end) - pl.col(start)).dt.total_milliseconds()
    return pl.all_horizontal(apart_ms == pl.col("elapsed_ms"), *is_new).fill_null(value=False)


def _has_choice(name: str) -> pl.Expr:
    return (pl.col(name) != pl.col(f"{name}_2")).fill_null(value=False)


def _may_be_later(name: str) -> pl.Expr:
    """Nobody is submitted after the start, so a stamp whose second moment lies there means the first."""
    return (pl.col(f"{name}_2") <= pl.col("started_at")).fill_null(value=True)
