"""Tables for people: rounded, with units in the headings and thousands separators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from gpupolicy.charts import theme
from gpupolicy.charts.budget import branches
from gpupolicy.charts.html import STYLE, Html, short_class

INDENT = "\u2003"


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading with the unit, and the words of a row's cell."""

    heading: str
    words: Callable[[dict[str, Any]], str]
    is_text: bool = False


def team_table(ranked: pl.DataFrame) -> Html:
    """Teams with what they were owed and got, in the order given; those below 95% stand out."""
    columns = (
        Column("team", lambda row: theme.path_words(row["path"])),
        Column("owed, GPU-hours", lambda row: theme.whole(row["owed_gpu_h"])),
        Column("charged, GPU-hours", lambda row: theme.whole(row["delivered_gpu_h"])),
        Column("owed and not delivered, GPU-hours", _missing),
        Column("delivered of owed", lambda row: theme.percent(row["strict_ratio"], digits=1)),
    )
    return _table(columns, ranked)


def queue_table(nodes: pl.DataFrame, *, first: int = 10) -> Html:
    """The leaves whose workloads are considered next, with the balance that put them there."""
    leaves = nodes.filter(pl.col("is_leaf")).drop_nulls("queue_rank").sort("queue_rank").head(first)
    columns = (
        Column("next", lambda row: f"{row['queue_rank']}"),
        Column("node", lambda row: theme.path_words(row["path"]), is_text=True),
        Column("balance (low goes first)", _balance),
        Column("entitlement, GPUs", lambda row: theme.whole(row["entitled_gpus"])),
    )
    return _table(columns, leaves.drop("strict_ratio", strict=False))


def tree_rows(nodes: pl.DataFrame, chosen: str) -> pl.DataFrame:
    """The tree as words for a table of a page: path, then node, share, entitlement, ... as they are shown.

    The way to the chosen node and its children are unfolded. `delivered` is HTML, made of figures only.
    """
    rows = [
        {
            "path": row["path"],
            "node": INDENT * row["depth"] + row["name"],
            "owner": row["owner"] or "",
            "share": theme.share(row["share"]),
            "entitlement": theme.share(row["entitlement"]),
            "gpus": theme.whole(row["entitled_gpus"]),
            "gpu_hours": theme.whole(row["entitled_gpu_h"]),
            "delivered": _bar(row["strict_ratio"]),
        }
        for row in branches(nodes, chosen).iter_rows(named=True)
    ]
    return pl.DataFrame(rows)


def unmapped_note(gpu_h: float) -> Html:
    """A sentence on usage that no node answers for, or that there is none."""
    if gpu_h == 0:
        words = "Every GPU-hour of this span belongs to a node of the budget tree."
    else:
        words = (
            f"<strong>{theme.whole(gpu_h)} GPU-hours</strong> of this span were used under accounts that are not "
            "in the budget tree. They are in no figure of a node: add the accounts to the policy file."
        )
    return Html(f'{STYLE}<p class="gp-note">{words}</p>')


def _bar(ratio: float | None) -> str:
    if ratio is None:
        return f'<span style="color: {theme.MUTED}">nothing owed</span>'
    ink = theme.SHORTFALL if theme.is_short(ratio) else theme.INK
    filled = f"linear-gradient(to right, {theme.DELIVERED}66 {ratio:.1%}, {theme.FAINT} {ratio:.1%})"
    style = f"background: {filled}; color: {ink}; padding: 1px 6px; border-radius: 3px"
    return f'<div style="{style}">{theme.percent(ratio, digits=1)}</div>'


def _balance(row: dict[str, Any]) -> str:
    return "-" if row["balance"] is None else f"{row['balance']:.2f}"


def _missing(row: dict[str, Any]) -> str:
    ratio = row["strict_ratio"]
    return "-" if ratio is None else theme.whole(row["owed_gpu_h"] * (1 - ratio))


def _table(columns: Sequence[Column], rows: pl.DataFrame) -> Html:
    head = "".join(f"<th{_text_class(column)}>{escape(column.heading)}</th>" for column in columns)
    body = "".join(_row(columns, row) for row in rows.iter_rows(named=True))
    if not body:
        body = f'<tr><td colspan="{len(columns)}">nothing to show</td></tr>'
    return Html(f'{STYLE}<table class="gp-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')


def _row(columns: Sequence[Column], row: dict[str, Any]) -> str:
    cells = "".join(f"<td{_text_class(column)}>{escape(column.words(row))}</td>" for column in columns)
    return f"<tr{short_class(row.get('strict_ratio'))}>{cells}</tr>"


def _text_class(column: Column) -> str:
    return ' class="gp-words"' if column.is_text else ""
