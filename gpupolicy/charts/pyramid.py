"""Is the hardware healthy, busy, given to the right work, and used? One row a cluster."""

from __future__ import annotations

import altair as alt
import polars as pl

from gpupolicy.charts import theme

LEVELS = {
    "availability": "healthy of installed",
    "occupancy": "occupied of healthy",
    "impact": "owed of occupied",
    "utilization": "used of occupied",
}
CELL_WIDTH = 132
ONE_AND_ALL = 2  # rows: the cluster, and the sum of the one


def pyramid_by_cluster(clusters: pl.DataFrame) -> theme.Picture:
    """The four levels of the pyramid side by side, each a bar from 0 to 100% for every cluster.

    `clusters` has cluster, availability, occupancy, impact, utilization, oversubscription, one row a cluster
    in the order to show and all of them in the last row, which is left out where there is only one. A level
    that nobody measured says so instead of showing a bar.
    """
    if clusters.is_empty():
        return theme.empty("No cluster is known: tell the store its capacity with `gpupolicy ingest capacity`.")
    cells = _cells(clusters.head(1) if clusters.height == ONE_AND_ALL else clusters)
    y = alt.Y("label:N", sort=None, title=None, axis=theme.names_axis())
    scale = alt.Scale(domain=[0, 1], clamp=True)
    bars = alt.Chart().encode(y=y).mark_bar(height={"band": 0.62})
    words = alt.Chart().encode(y=y).mark_text(align="left", dx=6, fontWeight=600)
    layers = alt.layer(
        bars.encode(x=alt.X("all:Q", title=None, axis=None, scale=scale), color=alt.value(theme.FAINT)),
        bars.encode(x=alt.X("ratio:Q", title=None, axis=None, scale=scale), color=alt.value(theme.DELIVERED)),
        words.encode(x=alt.value(0), text="figure:N"),
        width=CELL_WIDTH,
        height=alt.Step(theme.ROW_HEIGHT + 4),
        data=cells,
    )
    header = alt.Header(labelExpr="split(datum.label, ': ')", labelAlign="left", labelAnchor="start")
    column = alt.Column("title:N", sort=cells["title"].unique(maintain_order=True).to_list(), header=header)
    return theme.look(layers.facet(column=column, spacing=18), "The pyramid of every cluster, level by level.")


def _cells(clusters: pl.DataFrame) -> pl.DataFrame:
    labels = [f"{name} ({_times(over)})" for name, over in clusters.select("cluster", "oversubscription").iter_rows()]
    levels = clusters.with_columns(pl.col(level).cast(pl.Float64) for level in LEVELS).unpivot(
        on=list(LEVELS), index="cluster", variable_name="level", value_name="ratio"
    )
    return levels.with_columns(
        label=pl.col("cluster").replace_strict(dict(zip(clusters["cluster"], labels, strict=True))),
        title=pl.format("{}: {}", "level", pl.col("level").replace_strict(LEVELS)),
        all=pl.lit(1.0),
        figure=pl.Series([_figure(ratio) for ratio in levels["ratio"]]),
    )


def _figure(ratio: float | None) -> str:
    return "not measured" if ratio is None else theme.percent(ratio, digits=1)


def _times(oversubscription: float | None) -> str:
    return "demand unknown" if oversubscription is None else f"demand {oversubscription:.1f} x"
