"""Stretches of whole UTC hours, the grain in which delivery is counted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gpupolicy.errors import InvalidInput

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Span:
    """[starts_at, ends_at), both on the full hour."""

    starts_at: datetime
    ends_at: datetime

    def __post_init__(self) -> None:
        if self.ends_at <= self.starts_at:
            raise InvalidInput(f"the span {self.starts_at:%Y-%m-%dT%H:%MZ} to {self.ends_at:%Y-%m-%dT%H:%MZ} is empty")
        if self.starts_at != full_hour(self.starts_at) or self.ends_at != full_hour(self.ends_at):
            raise InvalidInput("a span begins and ends on the full hour")

    @property
    def hours(self) -> int:
        return (self.ends_at - self.starts_at) // HOUR


def full_hour(moment: datetime) -> datetime:
    """The last full hour at or before the moment."""
    return moment.replace(minute=0, second=0, microsecond=0)


def lookback_span(at: datetime, lookback_h: int) -> Span:
    """[at - lookback, at), with `at` taken back to the full hour: exactly `lookback_h` buckets."""
    until = full_hour(at)
    return Span(until - lookback_h * HOUR, until)
