"""Budgeting periods: a quarter of the calendar, in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from gpupolicy.errors import InvalidInput

_FORM = re.compile(r"(\d{4})-?Q([1-4])", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class Quarter:
    """[first day 00:00Z, first day of the next quarter 00:00Z)."""

    year: int
    number: int

    @property
    def starts_at(self) -> datetime:
        return datetime(self.year, 3 * self.number - 2, 1, tzinfo=UTC)

    @property
    def ends_at(self) -> datetime:
        return self.following().starts_at

    @property
    def hours(self) -> int:
        return int((self.ends_at - self.starts_at).total_seconds()) // 3600

    def following(self) -> Quarter:
        return Quarter(self.year + self.number // 4, self.number % 4 + 1)

    def __str__(self) -> str:
        return f"{self.year}Q{self.number}"


def parse_quarter(text: str) -> Quarter:
    """The quarter written as 2026Q4 (or 2026-Q4, 2026q4)."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"'{text}' is no quarter; write it like 2026Q4")
    return Quarter(int(match[1]), int(match[2]))


def quarter_of(moment: datetime) -> Quarter:
    return Quarter(moment.year, (moment.month + 2) // 3)
