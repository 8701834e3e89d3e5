"""What a notebook is about: a line under its title, and what a report takes its name from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any, Final, Protocol

from gpupolicy.charts import theme

COVER_TYPE: Final = "application/vnd.gpupolicy.cover+json"


class Covered(Protocol):
    """What the cover reads of a review."""

    @property
    def quarter(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def starts_at(self) -> datetime: ...
    @property
    def ends_at(self) -> datetime: ...


@dataclass(frozen=True)
class Cover:
    """Quarter, node and span in words; in a notebook's output also as data."""

    quarter: str
    words: str
    ends_on: str

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        shown = f'<p class="gp-cover">{escape(self.words)}</p>'
        data = {"quarter": self.quarter, "ends_on": self.ends_on}
        return {"text/html": shown, "text/plain": self.words, COVER_TYPE: data}


def cover(review: Covered) -> Cover:
    """Which quarter, node and span a review is about."""
    words = f"{review.quarter} · {theme.path_words(review.node)} · {span_words(review)}"
    return Cover(review.quarter, words, f"{review.ends_at:%Y-%m-%d}")


def span_words(review: Covered) -> str:
    """The span of a review for people: half open, in UTC."""
    return f"{_moment(review.starts_at)} to {_moment(review.ends_at)} (UTC)"


def _moment(moment: datetime) -> str:
    return f"{moment.day} {moment:%b %Y, %H:%M}"
