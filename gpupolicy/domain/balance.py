"""The metric that sorts the queue, and the order it gives. Low goes first."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from gpupolicy.domain.tree import BudgetTree, Place


def balance(charged: int, entitlement: Fraction, available: int) -> Fraction | None:
    """Charged over entitled GPU time in the lookback; low goes first (cases fs-07, fs-11).

    None if nothing is entitled: such a node sorts last. Both times are in one unit.
    """
    if entitlement == 0 or available == 0:
        return None
    return Fraction(charged) / (entitlement * available)


def balances(tree: BudgetTree, charged: Mapping[str, int], available: int) -> dict[str, Fraction | None]:
    """The balance of every node, by path. `charged` holds what each path was charged itself or below."""
    return {place.path: balance(charged.get(place.path, 0), place.entitlement, available) for place in tree.places}


def level_fair_share(share: Fraction, usage: int, *, siblings_share: Fraction, siblings_usage: int) -> Fraction | None:
    """Slurm's S/U at one level; HIGH goes first, so it is shown only towards Slurm.

    S is the node's part of its siblings' shares, U its part of their usage, all siblings counted with it.
    None stands for infinity: shares, but no usage. (Slurm's Fair Tree page; case fs-07.)
    """
    if share == 0:
        return Fraction(0)
    if usage == 0:
        return None
    return (share / siblings_share) / Fraction(usage, siblings_usage)


def queue_order(tree: BudgetTree, by_path: Mapping[str, Fraction | None]) -> tuple[Place, ...]:
    """The leaves in the order in which their workloads are considered.

    From the root down, at each level the child with the lowest balance first; a child without a balance
    last; ties by path, so that the order is total. Inside a leaf: priority, then submission.
    """
    return tuple(_ordered(tree, tree[tree.root.name], by_path))


def _ordered(tree: BudgetTree, place: Place, by_path: Mapping[str, Fraction | None]) -> list[Place]:
    if place.is_leaf:
        return [place]
    children = sorted(tree.children(place.path), key=lambda child: _rank(by_path[child.path], child.path))
    return [leaf for child in children for leaf in _ordered(tree, child, by_path)]


def _rank(value: Fraction | None, path: str) -> tuple[bool, Fraction, str]:
    return (value is None, value or Fraction(0), path)
