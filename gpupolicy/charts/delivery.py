"""Was what was owed delivered? Over time for one node, and from team to team."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import altair as alt
import polars as pl

from gpupolicy.charts import theme

LEVELS = {
    "delivered": theme.DELIVERED,
    "owed, not delivered": theme.SHORTFALL,
    "owed": theme.OWED,
    "entitlement": theme.ENTITLED,
    "free": theme.FREE,
}
STEPS = {
    "1h": ("hour", timedelta(hours=1)),
    "1d": ("day", timedelta(days=1)),
    "1w": ("week", timedelta(weeks=1)),
}
POINTED_AT = {
    "owed_gpus": "owed GPUs",
    "delivered_gpus": "delivered GPUs",
    "missing_gpus": "owed, not delivered",
    "free_gpus": "free GPUs",
    "entitled_gpus": "entitlement",
    "demand_gpus": "demand",
}


def delivery_over_time(hourly: pl.DataFrame) -> theme.Picture:
    """Delivered GPUs as an area against the line of what was owed; what was missing is shaded.

    `hourly` has hour, entitled_gpus, demand_gpus, owed_gpus, delivered_gpus, free_gpus: mean GPUs in each
    hour. Free time hangs below zero, because it is shown beside what was delivered and never inside it.
    Longer spans are averaged by day, then by week. The shade is the mean of each hour's shortfall, so its
    area is what the strict ratio misses, even on a day that made up for it in other hours.
    """
    if hourly.is_empty():
        return theme.empty("No GPU time was measured in this span: widen it, or load the usage of these days.")
    step = _step_of(hourly.height)
    means = _by_step(hourly, step)
    base, y = alt.Chart(_with_last_edge(means, step)).encode(x=_time_axis()), _gpus_axis(STEPS[step][0])
    layers = alt.layer(
        _area(base, "free", y=y("free_below_gpus:Q"), y2="zero:Q"),
        _area(base, "delivered", y=y("delivered_gpus:Q"), y2="zero:Q"),
        _area(base, "owed, not delivered", y=y("owed_gpus:Q"), y2="delivered_of_owed_gpus:Q"),
        _line(base, "entitlement", y=y("entitled_gpus:Q"), width=1.25, dash=(5, 4)),
        _line(base, "owed", y=y("owed_gpus:Q"), width=1.75),
        _pointer(means, step),
        height=theme.HEIGHT,
    )
    return theme.look(layers, f"Delivered against owed GPUs, mean over each {STEPS[step][0]}.")


def team_ranking(ranked: pl.DataFrame, *, hues: Mapping[str, str]) -> theme.Picture:
    """Teams by the part of their owed GPU time that was delivered, each with its distance from the 95% mark.

    `ranked` has path, owed_gpu_h, delivered_gpu_h, strict_ratio; teams that were owed nothing are left out.
    """
    owed = ranked.drop_nulls("strict_ratio").sort("strict_ratio", "path", descending=[True, False])
    if owed.is_empty():
        return theme.empty("No team was owed GPU time in this span.")
    x, y = _ratio_axis(owed), alt.Y("label:N", sort=None, title=None, axis=theme.names_axis())
    base = alt.Chart(_labelled(owed, hues)).encode(y=y, tooltip=_team_tooltip())
    goal = alt.Chart(pl.DataFrame({"mark": [theme.WELL_SERVED_RATIO]})).mark_rule(strokeDash=[2, 3])
    layers = alt.layer(
        goal.encode(x=x("mark:Q")),
        base.mark_rule(strokeWidth=3).encode(x=x("mark:Q"), x2="strict_ratio:Q", color=_as_given("stem")),
        base.mark_point(filled=True, size=110, opacity=1).encode(x=x("strict_ratio:Q"), color=_as_given("hue")),
        base.mark_text(align="left", dx=14).encode(x=x("all:Q"), text="figure:N", color=_as_given("word")),
        height=theme.ROW_HEIGHT * owed.height,
    )
    return theme.look(layers, "Teams by the part of their owed GPU time that was delivered, best first.")


def _step_of(hours: int) -> str:
    if hours <= theme.MAX_STEPS:
        return "1h"
    return "1d" if hours <= 24 * theme.MAX_STEPS else "1w"


def _by_step(hourly: pl.DataFrame, step: str) -> pl.DataFrame:
    missing = (pl.col("owed_gpus") - pl.col("delivered_gpus")).clip(0)
    means = (
        hourly.sort("hour")
        .with_columns(missing_gpus=missing)
        .group_by_dynamic("hour", every=step, start_by="datapoint" if step == "1w" else "window")
        .agg(pl.exclude("hour").mean())
    )
    return means.with_columns(
        free_below_gpus=-pl.col("free_gpus"),
        delivered_of_owed_gpus=pl.col("owed_gpus") - pl.col("missing_gpus"),
        zero=pl.lit(0.0),
        words=pl.col("hour").dt.strftime("%a %-d %b %Y, %H:%M UTC" if step == "1h" else "%a %-d %b %Y"),
    )


def _with_last_edge(means: pl.DataFrame, step: str) -> pl.DataFrame:
    # A stepped area ends at its last point; without a closing one the last day would have no width.
    edge = means.tail(1).with_columns(pl.col("hour") + STEPS[step][1])
    return _in_utc(pl.concat([means, edge]))


def _in_utc(frame: pl.DataFrame, *more: str) -> pl.DataFrame:
    # A moment without a zone is read as the browser's local time, and shifts.
    return frame.with_columns(pl.col("hour", *more).dt.replace_time_zone("UTC"))


def _time_axis() -> alt.X:
    axis = alt.Axis(format="%-d %b", grid=False, tickCount=10, labelOverlap=True)
    return alt.X("hour:T", title=None, scale=alt.Scale(type="utc"), axis=axis)


def _gpus_axis(step_name: str) -> Callable[[str], alt.Y]:
    axis = alt.Axis(labelExpr="format(abs(datum.value), ',')")  # free time hangs below zero, yet is no debt
    return lambda field: alt.Y(field, title=f"GPUs (mean over the {step_name})", axis=axis)


def _area(base: alt.Chart, level: str, *, y: alt.Y, y2: str) -> alt.Chart:
    area = base.transform_calculate(level=f"'{level}'").mark_area(interpolate="step-after")
    encoded: alt.Chart = area.encode(y=y, y2=y2, color=_level())
    return encoded


def _line(base: alt.Chart, level: str, *, y: alt.Y, width: float, dash: Sequence[int] = (1, 0)) -> alt.Chart:
    line = base.transform_calculate(level=f"'{level}'").mark_line(
        interpolate="step-after", strokeWidth=width, strokeDash=list(dash)
    )
    encoded: alt.Chart = line.encode(y=y, color=_level())
    return encoded


def _level() -> alt.Color:
    return alt.Color("level:N", scale=alt.Scale(domain=list(LEVELS), range=list(LEVELS.values())))


def _pointer(means: pl.DataFrame, step: str) -> alt.Chart:
    # Unseen columns that only carry the figures of their step: a selection would send every move of the
    # pointer to the server of a dashboard.
    name, length = STEPS[step]
    figures = [alt.Tooltip(f"{column}:Q", title=title, format=",.1f") for column, title in POINTED_AT.items()]
    columns = alt.Chart(_in_utc(means.with_columns(until=pl.col("hour") + length), "until"))
    unseen = columns.mark_rect(opacity=0).encode(x=_time_axis(), x2="until:T")
    pointed_at: alt.Chart = unseen.encode(tooltip=[alt.Tooltip("words:N", title=name), *figures])
    return pointed_at


def _ratio_axis(owed: pl.DataFrame) -> Callable[[str], alt.X]:
    # Dots, not bars: their axis may begin near the lowest team, where the differences are. All layers
    # take the same scale, or Vega widens it to zero for those that do not.
    lowest = min(theme.WELL_SERVED_RATIO - 0.05, *owed["strict_ratio"])
    scale = alt.Scale(domain=[math.floor(lowest * 20 + 1e-9) / 20, 1], nice=False, zero=False)
    axis = alt.Axis(format=theme.PERCENT_FORMAT, orient="top", tickCount=6)
    return lambda field: alt.X(field, title="owed GPU time that was delivered", scale=scale, axis=axis)


def _as_given(column: str) -> alt.Color:
    return alt.Color(f"{column}:N", scale=None)


def _labelled(owed: pl.DataFrame, hues: Mapping[str, str]) -> pl.DataFrame:
    is_well_served = pl.col("strict_ratio") >= theme.WELL_SERVED_RATIO
    return owed.with_columns(
        label=pl.Series([theme.path_words(path) for path in owed["path"]]),
        hue=pl.col("path").replace_strict(hues, default=theme.MUTED),
        mark=pl.lit(theme.WELL_SERVED_RATIO),
        all=pl.lit(1.0),
        stem=pl.when(is_well_served).then(pl.lit(theme.FAINT)).otherwise(pl.lit(theme.SHORTFALL)),
        word=pl.when(is_well_served).then(pl.lit(theme.INK)).otherwise(pl.lit(theme.SHORTFALL)),
        figure=pl.Series([theme.percent(ratio, digits=1) for ratio in owed["strict_ratio"]]),
    )


def _team_tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("path:N", title="team"),
        alt.Tooltip("figure:N", title="delivered of owed"),
        alt.Tooltip("owed_gpu_h:Q", title="owed GPU-hours", format=",.0f"),
        alt.Tooltip("delivered_gpu_h:Q", title="charged GPU-hours", format=",.0f"),
    ]
