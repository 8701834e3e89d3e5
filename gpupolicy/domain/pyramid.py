"""Availability, occupancy, impact, utilization: four ratios, each of the one before it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Pyramid:
    """GPU time of one span in one unit; `used` is None where nobody measured utilization.

    `served` is the sum over leaves of min(delivered, owed), hour by hour. `measured` is the occupied
    time for which a utilization is known, `used` the part of it that kept GPUs busy.
    """

    installed: int
    available: int
    occupied: int
    served: Fraction
    demand: int
    measured: int = 0
    used: Fraction = Fraction(0)

    @property
    def availability(self) -> Fraction | None:
        return _ratio(self.available, self.installed)

    @property
    def occupancy(self) -> Fraction | None:
        return _ratio(self.occupied, self.available)

    @property
    def impact(self) -> Fraction | None:
        return _ratio(self.served, self.occupied)

    @property
    def utilization(self) -> Fraction | None:
        return _ratio(self.used, self.measured)

    @property
    def oversubscription(self) -> Fraction | None:
        return _ratio(self.demand, self.available)


def _ratio(part: int | Fraction, whole: int | Fraction) -> Fraction | None:
    return Fraction(part) / whole if whole else None
