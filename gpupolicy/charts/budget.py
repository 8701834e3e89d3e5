"""Who holds which share of whom, and who goes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import altair as alt
import polars as pl

from gpupolicy.charts import theme

TREE_HEIGHT = 480
TREE_READING = "Share of the parent → entitlement, of all capacity. White is unassigned or not divided further."
LEAST_LABELLED = 15 / TREE_HEIGHT  # a lower box has no room for its name
ALWAYS_SHOWN_DEPTH = 2  # programs and their teams


def budget_tree(nodes: pl.DataFrame, *, under: str | None = None) -> theme.Picture:
    """The tree as nested boxes from left to right: a box is as tall as its node's entitlement.

    `nodes` are the rows of the whole tree in tree order with path, name, owner, depth, parent, share,
    entitlement and entitled_gpus; `under` shows a node and what is below it. What nobody was given is white.
    """
    if nodes.is_empty():
        return theme.empty("The budget tree is empty: give a policy file that divides the capacity.")
    boxes = _boxes(nodes, under or nodes["path"][0])
    x = alt.X("depth:Q", axis=None, scale=alt.Scale(domain=[0, boxes["depth"].n_unique()], nice=False))
    y = alt.Y("top:Q", axis=None, scale=alt.Scale(reverse=True, nice=False, zero=False))
    base = alt.Chart(boxes, height=TREE_HEIGHT, title=alt.Title([], subtitle=TREE_READING)).encode(x=x, y=y)
    rects = base.mark_rect(stroke="white", strokeWidth=1).encode(
        x2="right:Q",
        y2="bottom:Q",
        color=alt.Color("hue:N", scale=None),
        opacity=alt.Opacity("fade:Q", scale=None),
        tooltip=_tooltip(),
    )
    words = base.transform_filter("datum.has_room").mark_text(align="left", baseline="middle", dx=8)
    names = words.encode(y="middle:Q", text="label:N")
    return theme.look(alt.layer(rects, names), f"The budget tree. {TREE_READING}")


def queue_balances(nodes: pl.DataFrame, *, hues: Mapping[str, str]) -> theme.Picture:
    """Siblings by their balance, the metric that sorts the queue: low goes first.

    `nodes` are the children of one node with path, name, balance; one without an entitlement comes last.
    """
    if nodes.is_empty():
        return theme.empty("Nothing below this node waits to be put in order.")
    y = alt.Y("name:N", sort=None, title=None, axis=theme.names_axis())
    title = "balance = charged / entitled (low goes first)"
    x = alt.X("balance:Q", title=title, axis=alt.Axis(orient="top", tickCount=6, format=".1f"))
    base = alt.Chart(_by_balance(nodes, hues), height=theme.ROW_HEIGHT * nodes.height).encode(y=y)
    bars = base.mark_bar(height={"band": 0.62}).encode(x=x, color=alt.Color("hue:N", scale=None))
    figures = base.mark_text(align="left", dx=6).encode(x="balance:Q", text="figure:N")
    even = alt.Chart(pl.DataFrame({"even": [1.0]})).mark_rule(strokeDash=[2, 3]).encode(x="even:Q")
    return theme.look(alt.layer(bars, even, figures), "Balances, lowest first: the order of the queue.")


def branches(nodes: pl.DataFrame, chosen: str) -> pl.DataFrame:
    """The rows of the tree worth showing while a node is chosen: programs, teams, the way to it and below."""
    way = [path for path in nodes["path"] if path == chosen or chosen.startswith(f"{path}/")]
    return nodes.filter((pl.col("depth") <= ALWAYS_SHOWN_DEPTH) | pl.col("parent").is_in(way))


def _boxes(nodes: pl.DataFrame, under: str) -> pl.DataFrame:
    hues = theme.program_hues(nodes["path"].to_list())
    shown = nodes.with_columns(top=_tops(nodes), hue=pl.col("path").replace_strict(hues)).filter(
        (pl.col("path") == under) | pl.col("path").str.starts_with(f"{under}/")
    )
    first, whole = shown.select("depth", "entitlement").row(0)
    return shown.with_columns(
        pl.col("depth") - first,
        right=pl.col("depth") - first + 1,
        bottom=pl.col("top") + pl.col("entitlement"),
        middle=pl.col("top") + pl.col("entitlement") / 2,
        fade=(0.55 - 0.15 * (pl.col("depth") - first)).clip(0.15),
        has_room=pl.col("entitlement") >= LEAST_LABELLED * whole,
        label=pl.Series(list(_labels(shown)), dtype=pl.String),
    )


def _labels(nodes: pl.DataFrame) -> Iterator[str]:
    for name, share, entitlement in nodes.select("name", "share", "entitlement").iter_rows():
        yield f"{name}\u2002{theme.share(share)} → {theme.share(entitlement)}"


def _tops(nodes: pl.DataFrame) -> pl.Series:
    """Where each node's box begins: below its elder siblings, inside its parent."""
    free_from: dict[str | None, float] = {None: 0.0}
    tops = []
    for path, parent, entitlement in nodes.select("path", "parent", "entitlement").iter_rows():
        top = free_from[parent]
        free_from[path], free_from[parent] = top, top + entitlement
        tops.append(top)
    return pl.Series(tops, dtype=pl.Float64)


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("path:N", title="node"),
        alt.Tooltip("owner:N", title="owner"),
        alt.Tooltip("share:Q", title="share of its parent", format=".1%"),
        alt.Tooltip("entitlement:Q", title="entitlement, of all capacity", format=".2%"),
        alt.Tooltip("entitled_gpus:Q", title="GPUs", format=",.1f"),
    ]


def _by_balance(nodes: pl.DataFrame, hues: Mapping[str, str]) -> pl.DataFrame:
    ordered = nodes.sort("balance", "path", nulls_last=True)
    figures = ["nothing entitled: last" if value is None else f"{value:.2f}" for value in ordered["balance"]]
    return ordered.with_columns(
        pl.col("balance").fill_null(0.0),
        hue=pl.col("path").replace_strict(hues, default=theme.MUTED),
        figure=pl.Series(figures),
    )
