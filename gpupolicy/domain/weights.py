"""Budgets in the numbers a scheduler takes, and a sliding window in the form of a half-life."""

from __future__ import annotations

import math

from gpupolicy.domain.rounding import largest_remainder
from gpupolicy.domain.tree import BudgetTree, Place


def half_life_of_equal_mean_age_h(lookback_h: float) -> float:
    """The half-life whose remembered usage is on average as old as the window's: W x ln 2 / 2 (7 d: 2.43 d)."""
    return lookback_h * math.log(2) / 2


def half_life_of_equal_weight_h(lookback_h: float) -> float:
    """The half-life that remembers as much usage in all as the window: W x ln 2 (7 d: 4.85 d)."""
    return lookback_h * math.log(2)


def whole_shares(tree: BudgetTree, scale: int) -> dict[str, int]:
    """Each node's share among its siblings as a whole number out of `scale`, by path.

    Largest remainder at every level, so that siblings which divide all of their parent sum to `scale`;
    the root itself gets `scale`. What a parent keeps unassigned stays out of the siblings' sum.
    """
    numbers = {tree.root.name: scale}
    for place in tree.places:
        numbers |= _divide(tree.children(place.path), scale)
    return numbers


def _divide(siblings: tuple[Place, ...], scale: int) -> dict[str, int]:
    shares = {place.path: place.node.share for place in siblings}
    total = round(sum(shares.values()) * scale)
    return largest_remainder(shares, total)
