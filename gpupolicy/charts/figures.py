"""The few numbers that matter, large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

import polars as pl

from gpupolicy.charts import theme
from gpupolicy.charts.html import STYLE, Html, short_class


class Reviewed(Protocol):
    """What the headline figures read of a review."""

    @property
    def node(self) -> str: ...
    @property
    def nodes(self) -> pl.DataFrame: ...
    @property
    def teams_ratio(self) -> float | None: ...
    @property
    def teams_at_95(self) -> int: ...
    @property
    def team_count(self) -> int: ...
    @property
    def worst_team(self) -> str | None: ...
    @property
    def worst_ratio(self) -> float | None: ...


@dataclass(frozen=True)
class Figure:
    """A number for people, what it counts, and a line that narrows it down.

    `delivered_ratio` is given where the number is one, so that it stands out below the mark.
    """

    value: str
    label: str
    detail: str = ""
    delivered_ratio: float | None = None


def headlines(review: Reviewed) -> tuple[Figure, ...]:
    """Was what was owed delivered, to how many teams, to whom least, and how much ran for free."""
    node = review.nodes.row(by_predicate=pl.col("path") == review.node, named=True)
    return (_delivered(review, node), _teams(review), _worst(review), _free(node))


def figures(shown: Sequence[Figure]) -> Html:
    """Headline figures in a row, which folds on a narrow page."""
    boxes = "".join(
        f'<div class="gp-figure"><b{short_class(figure.delivered_ratio)}>{escape(figure.value)}</b>'
        f"<span>{escape(figure.label)}</span><span>{escape(figure.detail)}</span></div>"
        for figure in shown
    )
    return Html(f'{STYLE}<div class="gp-figures">{boxes}</div>')


def _delivered(review: Reviewed, node: dict[str, Any]) -> Figure:
    """Summed over the teams of the node; of a researcher, who has none, their own."""
    name, own = theme.path_words(node["path"]), node["strict_ratio"]
    ratio, whose = review.teams_ratio, f"all teams of {name}; as one node {theme.percent(own, digits=1)}"
    if ratio is None or ratio == own:
        ratio, whose = own, name
    if ratio is None:
        return Figure("-", "nothing was owed: no entitlement, or no demand", name)
    return Figure(theme.percent(ratio), "of owed GPU time delivered", whose, ratio)


def _teams(review: Reviewed) -> Figure:
    label = f"teams got {theme.percent(theme.WELL_SERVED_RATIO)} or more of what they were owed"
    return Figure(f"{review.teams_at_95} of {review.team_count}", label, "all teams")


def _worst(review: Reviewed) -> Figure:
    if review.worst_team is None:
        return Figure("-", "no team was owed anything", "all teams")
    ratio, name = review.worst_ratio, theme.path_words(review.worst_team)
    return Figure(theme.percent(ratio), "delivered to the worst served team", name, ratio)


def _free(node: dict[str, Any]) -> Figure:
    held = node["free_gpu_h"] + node["delivered_gpu_h"]
    ratio, name = node["free_gpu_h"] / held if held else None, theme.path_words(node["path"])
    return Figure(theme.percent(ratio), "of its GPU time was free (charged to nobody)", name)
