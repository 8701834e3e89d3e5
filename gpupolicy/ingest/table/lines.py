"""The lines of a CSV file: its header, and records with quotes."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from gpupolicy.ingest.records import Batch, Layout, Line, Mend, Mended, read_batches, split_head
from gpupolicy.ingest.table.mapping import OURS
from gpupolicy.ingest.text import refusal, text_blocks, tool_error

DELIMITERS = ",;\t|"
MOST_LINES = 50  # of one record: an open quote must not swallow the rest of the file


def csv_batches(
    path: Path, delimiter: str | None = None, *, free_text: str | None = None
) -> tuple[Layout, Iterator[Batch]]:
    """The layout of a CSV file and its records, text columns under the names in its header.

    Without `delimiter` it is the one that parts the header into most names. Where that is the bar of Slurm's tools,
    which put nothing in quotes, the column `free_text` may hold bars of its own. Raises UnreadableLog.
    """
    blocks = text_blocks(path)
    (number, header), rest = split_head(next(blocks))
    if complaint := tool_error(path, number, header):
        raise complaint
    layout = _layout(path, header, delimiter)
    mend: Mend = mend_csv
    free = [at for at, name in enumerate(layout.columns) if name == free_text and layout.delimiter == "|"]
    if free:
        layout, mend = replace(layout, quote=None), partial(_give_surplus_to, free[0])
    blocks = chain([rest] if rest else [], blocks)
    return layout, read_batches(path, blocks, layout=layout, first_line=number + 1, mend=mend)


def mend_csv(lines: Sequence[Line], layout: Layout) -> Mended:
    """Take the quotes off, and join lines while a quote is open."""
    mended = Mended([], [])
    at = 0
    while at < len(lines):
        held, fields = _record(lines[at : at + MOST_LINES], layout)
        if len(fields) == len(layout.columns):
            mended.records.append((held[0][0], [*fields]))
        else:
            mended.refused.extend(held)
        at += len(held)
    return mended


def _give_surplus_to(at: int, lines: Sequence[Line], layout: Layout) -> Mended:
    """Bars too many belong to the one column that holds free text."""
    mended = Mended([], [])
    for number, text in lines:
        pieces = text.split(layout.delimiter)
        surplus = len(pieces) - len(layout.columns)
        if surplus < 0:
            mended.refused.append((number, text))
            continue
        free = layout.delimiter.join(pieces[at : at + surplus + 1])
        mended.records.append((number, [*pieces[:at], free, *pieces[at + surplus + 1 :]]))
    return mended


def _record(lines: Sequence[Line], layout: Layout) -> tuple[Sequence[Line], list[str]]:
    """The lines of the first record and its fields; none if its quotes are wrong or never closed."""
    for count in range(1, len(lines) + 1):
        text = "\n".join(line for _, line in lines[:count])
        try:
            return lines[:count], _fields(text, layout.delimiter)
        except csv.Error as trouble:
            if "end of data" not in str(trouble):
                break
    return lines[:1], []


def _layout(path: Path, header: str, delimiter: str | None) -> Layout:
    try:
        named = {each: _fields(header, each) for each in (delimiter or DELIMITERS)}
    except csv.Error as trouble:
        raise refusal(path, "not_parsable_output", f"the header's quotes are wrong ({trouble})") from None
    used = max(named, key=lambda each: len(named[each]))
    columns = tuple(name.strip() for name in named[used])
    twice = [name for name, count in Counter(filter(None, columns)).items() if count > 1]
    if twice:
        raise refusal(path, "duplicate_column", f"{', '.join(twice)} stands more than once in the header")
    ours = tuple(OURS.get(name, name) or f"column {at}" for at, name in enumerate(columns, start=1))
    return Layout(ours, used, header=tuple(named[used]), quote='"')


def _fields(text: str, delimiter: str) -> list[str]:
    return next(csv.reader([text], delimiter=delimiter, strict=True), [])
