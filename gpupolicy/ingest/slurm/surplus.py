"""A record with more delimiters than columns: which fields are proven wherever the surplus belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fields:
    """What the columns of a file can hold: those of free text may hold delimiters and line breaks, the others
    are a single piece. Where a form is known, the piece, or the first one, has it.
    """

    columns: tuple[str, ...]
    free: frozenset[str]
    forms: Mapping[str, re.Pattern[str]]

    def may_break(self, column: str, piece: str) -> bool:
        return "\n" not in piece or column in self.free

    def fits(self, column: str, piece: str) -> bool:
        form = self.forms.get(column)
        return self.may_break(column, piece) and (form is None or form.fullmatch(piece) is not None)


@dataclass(frozen=True, slots=True)
class Proven:
    """The fields that are the same in every reading; `unproven` is the text that may be one column's or another's."""

    fields: dict[str, str]
    unproven: str


def prove(pieces: Sequence[str], delimiter: str, fields: Fields) -> Proven | None:
    """Give the pieces of a record to its columns, in order, the surplus to columns of free text.

    Every reading in which all pieces fit is looked at: a field that is the same in all of them is proven. None
    if there is no reading.
    """
    borders = _borders(pieces, fields)
    if not all(borders):
        return None
    proven: dict[str, str] = {}
    open_pieces: set[int] = set()
    for at, column in enumerate(fields.columns):
        starts, ends = borders[at], borders[at + 1]
        if len(starts) == len(ends) == 1:
            proven[column] = delimiter.join(pieces[min(starts) : min(ends)])
        else:
            open_pieces |= set(range(min(starts), max(ends)))
    return Proven(proven, delimiter.join(pieces[at] for at in sorted(open_pieces)))


def _borders(pieces: Sequence[str], fields: Fields) -> list[set[int]]:
    """For each column the pieces at which it may begin, and at the end where the last one may end.

    Forward from the first piece, then back from the last: what both reach lies on a reading of the whole.
    """
    forward: list[set[int]] = [{0}]
    for at, column in enumerate(fields.columns):
        left = len(fields.columns) - at - 1  # columns that still need a piece
        forward.append(
            {
                end
                for start in forward[at]
                for end in range(start + 1, (len(pieces) - left if column in fields.free else start + 1) + 1)
                if end <= len(pieces) - left and fields.fits(column, pieces[start])
            }
        )
    backward: list[set[int]] = [{len(pieces)} & forward[-1]]
    for at in range(len(fields.columns) - 1, -1, -1):
        column, ends = fields.columns[at], backward[0]
        backward.insert(
            0,
            {
                start
                for start in forward[at]
                for end in ends
                if (end == start + 1 or (column in fields.free and end > start)) and fields.fits(column, pieces[start])
            },
        )
    return backward
