"""Whole numbers out of exact ones, so that sums still hold."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction


def largest_remainder(weights: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Divide `total` into whole numbers in proportion to the weights.

    Each gets the floor of its part; what is left goes to the largest remainders, among equal ones to
    the larger weight, then by name. The numbers sum to `total`; weight 0 gets 0 (cases bu-01, ex-02).
    """
    all_weights = sum(weights.values(), Fraction(0))
    if all_weights == 0:
        return dict.fromkeys(weights, 0)
    exact = {name: Fraction(weight) * total / all_weights for name, weight in weights.items()}
    whole = {name: int(part) for name, part in exact.items()}
    left = total - sum(whole.values())
    by_claim = sorted(
        (name for name in weights if weights[name] > 0),
        key=lambda name: (whole[name] - exact[name], -weights[name], name),
    )
    for name in by_claim[:left]:
        whole[name] += 1
    return whole
