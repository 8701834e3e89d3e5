"""Budgets to the settings of one scheduler, with what is lost on the way."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gpupolicy.domain import (
    BudgetTree,
    Policy,
    half_life_of_equal_mean_age_h,
    half_life_of_equal_weight_h,
    unassigned,
    whole_shares,
)
from gpupolicy.schedulers import slurm

DEFAULT_SCALE = 10_000


@dataclass(frozen=True, slots=True)
class SlurmWeights:
    """What a Slurm cluster has to be told so that it delivers the budgets of a policy."""

    associations: tuple[slurm.Association, ...]
    rounding_errors: dict[str, Fraction]  # by path: share as told less share as decided, among siblings
    half_life_of_equal_mean_age_h: float
    half_life_of_equal_weight_h: float
    slurm_conf: dict[str, str]
    cannot_express: tuple[str, ...]


def recommend_slurm(policy: Policy, *, scale: int = DEFAULT_SCALE) -> SlurmWeights:
    """Whole-number shares at every level and the half-life that remembers as far back as the lookback.

    Raises UnsafeExport if a name cannot be told to Slurm.
    """
    shares = whole_shares(policy.tree, scale)
    mean_age_h = half_life_of_equal_mean_age_h(policy.lookback_h)
    return SlurmWeights(
        associations=slurm.associations(policy.tree, shares),
        rounding_errors=_rounding_errors(policy.tree, shares),
        half_life_of_equal_mean_age_h=mean_age_h,
        half_life_of_equal_weight_h=half_life_of_equal_weight_h(policy.lookback_h),
        slurm_conf=_slurm_conf(mean_age_h),
        cannot_express=_cannot_express(policy, shares),
    )


def _slurm_conf(half_life_h: float) -> dict[str, str]:
    """The lines to check in slurm.conf; they are never written there by us."""
    return {
        "PriorityType": "priority/multifactor",
        "PriorityDecayHalfLife": slurm.render_duration(half_life_h),
        "PriorityUsageResetPeriod": "NONE",
        # without it a running job keeps the priority it started with, and preemption compares stale figures
        "PriorityFlags": "CALCULATE_RUNNING",
    }


def _rounding_errors(tree: BudgetTree, shares: dict[str, int]) -> dict[str, Fraction]:
    errors = {tree.root.name: Fraction(0)}
    for place in tree.places:
        children = tree.children(place.path)
        told = sum(shares[child.path] for child in children)
        decided = sum((child.node.share for child in children), Fraction(0))
        for child in children:
            part = Fraction(shares[child.path], told) if told else Fraction(0)
            errors[child.path] = part - (child.node.share / decided if decided else 0)
    return errors


def _cannot_express(policy: Policy, shares: dict[str, int]) -> tuple[str, ...]:
    days = policy.lookback_h / 24
    sentences = [
        f"Slurm has no sliding window: usage fades and never quite ends; the policy forgets it after {days:g} days.",
        "Shares are relative among siblings: Slurm does not know owed GPU-hours, it only orders the queue.",
        "Minimum runtimes are not part of shares: they need a ladder of partitions with PreemptExemptTime.",
    ]
    keeping = [place.path for place in policy.tree.places if unassigned(place.node) > 0]
    if keeping:
        sentences.append(
            f"What {', '.join(keeping)} keep unassigned cannot be held back: their children share all of it."
        )
    starved = [path for path, number in shares.items() if number == 0]
    if starved:
        sentences.append(f"A share of 0 starves in Slurm: {', '.join(starved)} run only when nobody else waits.")
    lost = [path for path in starved if policy.tree[path].node.share > 0]
    if lost:
        sentences.append(f"Of these {', '.join(lost)} were given a share that rounds to 0; a larger --scale keeps it.")
    return tuple(sentences)
