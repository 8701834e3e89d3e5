"""Delivered against owed, hour by hour.

All amounts of one call are whole numbers in one unit of GPU time; which one does not matter (the
warehouse's is the GPU-nanosecond: one GPU for 1 ns). Nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

WELL_SERVED = Fraction(95, 100)  # the mark at which a team counts as served, in headlines and alerts


@dataclass(frozen=True, slots=True)
class Hour:
    """What a node could claim, wanted, and held in one hour."""

    entitled: Fraction
    demand: int
    charged: int
    free: int = 0

    @property
    def owed(self) -> Fraction:
        """The entitlement, capped at what the node actually wanted in that hour (case fs-13)."""
        return min(self.entitled, Fraction(self.demand))

    @property
    def delivered_of_owed(self) -> Fraction:
        return min(Fraction(self.charged), self.owed)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Sums over hours. `free` stands beside delivered, never inside."""

    entitled: Fraction
    demand: int
    owed: Fraction
    delivered: int
    delivered_of_owed: Fraction
    free: int

    @property
    def strict_ratio(self) -> Fraction | None:
        """The headline: what was delivered within each hour's owed, over owed. Nothing owed: no value."""
        return self.delivered_of_owed / self.owed if self.owed else None

    @property
    def net_ratio(self) -> Fraction | None:
        """Hours above may make up for hours below: delivered, clipped at the span's entitlement, over owed."""
        return min(Fraction(self.delivered), self.entitled) / self.owed if self.owed else None

    @property
    def raw_ratio(self) -> Fraction | None:
        """All that was delivered over owed; may exceed 1."""
        return self.delivered / self.owed if self.owed else None


def hours(
    entitlement: Fraction,
    *,
    available: Sequence[int],
    demand: Sequence[int],
    charged: Sequence[int],
    free: Sequence[int],
) -> tuple[Hour, ...]:
    """The hours of one node; the four series are equally long, one value an hour."""
    return tuple(
        Hour(entitlement * can_run, wanted, held, beside)
        for can_run, wanted, held, beside in zip(available, demand, charged, free, strict=True)
    )


def delivery(span: Iterable[Hour]) -> Delivery:
    """Add up the hours of a span."""
    listed = tuple(span)
    return Delivery(
        entitled=sum((hour.entitled for hour in listed), Fraction(0)),
        demand=sum(hour.demand for hour in listed),
        owed=sum((hour.owed for hour in listed), Fraction(0)),
        delivered=sum(hour.charged for hour in listed),
        delivered_of_owed=sum((hour.delivered_of_owed for hour in listed), Fraction(0)),
        free=sum(hour.free for hour in listed),
    )
