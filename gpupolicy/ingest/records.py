"""Lines into records: whole columns at once where every line is regular, line by line only where one is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import IGNORED, REJECTED
from gpupolicy.ingest.text import refusal, tool_error

LOOK_BACK_LINES = 10_000
_STAND_INS = (b"\x1f", b"\x1e", b"\x1d", b"\x1c", b"\x01")

Line = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """How records stand in lines: their columns in order and what parts them.

    The column of a delimiter at the end of every line is called "". `header` holds the names as the file spells
    them, None if it names none; where they stand again it is no record. `quote` is None where a quote is a
    character like any other, as in `sacct -P`.
    """

    columns: tuple[str, ...]
    delimiter: str
    header: tuple[str, ...] | None = None
    quote: str | None = None

    @property
    def delimiters(self) -> int:
        return len(self.columns) - 1


@dataclass(frozen=True, slots=True)
class Mended:
    """Irregular lines put in order: records with the line each starts in, and the lines that are none."""

    records: list[tuple[int, list[str | None]]]
    refused: list[Line]


Mend = Callable[[Sequence[Line], Layout], Mended]


@dataclass(frozen=True, slots=True)
class Batch:
    """The records of one block: text columns and `line`; what was rejected; headers that stood again."""

    frame: pl.DataFrame
    rejected: pl.DataFrame
    ignored: pl.DataFrame


def split_head(block: bytes) -> tuple[Line, bytes]:
    """The first line with something in it, with its number, and what comes after it."""
    rest, number = block, 0
    while rest:
        first, _, rest = rest.partition(b"\n")
        number += 1
        if first.strip():
            return (number, first.decode()), rest
    return (number, ""), b""


def read_batches(
    path: Path, blocks: Iterable[bytes], *, layout: Layout, first_line: int, mend: Mend
) -> Iterator[Batch]:
    """The records of all blocks in the order of the file; `first_line` is the number of the first one's first.

    Raises UnreadableLog if the last line is a tool's error or is cut short.
    """
    line, kept = first_line, b""
    for block in blocks:
        cut = _last_whole_line(block, layout)
        if cut is None:
            kept += block
            continue
        whole, kept = b"".join((kept, memoryview(block)[:cut])), block[cut:]
        if whole:
            yield _batch(whole, layout=layout, line=line, mend=mend)
            line += whole.count(b"\n")
    if kept:
        _refuse_complaint(path, kept, layout, line)
        last = _batch(kept, layout=layout, line=line, mend=mend)
        _refuse_cut_short(path, kept, last, layout)
        yield last


def rejected_lines(lines: Sequence[Line], reason: str, detail: str) -> pl.DataFrame:
    rows = [(number, reason, detail, text) for number, text in lines]
    return pl.DataFrame(rows, schema=REJECTED, orient="row")


def ignored_rows(frame: pl.DataFrame, reason: str) -> pl.DataFrame:
    """What is counted of rows that were understood but are no records of their own."""
    if frame.is_empty():
        return IGNORED.to_frame()
    return pl.DataFrame([(reason, frame.height, frame["line"].min())], schema=IGNORED, orient="row")


def _last_whole_line(block: bytes, layout: Layout) -> int | None:
    """Where the last line begins that can be a whole record: the next block may go on with it."""
    delimiter = layout.delimiter.encode()
    start = end = len(block)
    for _ in range(LOOK_BACK_LINES):
        start = block.rfind(b"\n", 0, end - 1) + 1
        if block.count(delimiter, start, end) >= layout.delimiters:
            return start
        if start == 0:
            return None
        end = start
    return start


def _batch(block: bytes, *, layout: Layout, line: int, mend: Mend) -> Batch:
    frame, rejected = _regular(block, layout, line), REJECTED.to_frame()
    if frame is None:
        frame, rejected = _mended(block, layout=layout, line=line, mend=mend)
    repeats = _repeated_headers(frame, layout)
    if repeats is None:
        return Batch(frame, rejected, IGNORED.to_frame())
    ignored = ignored_rows(frame.filter(repeats), "repeated_header")
    return Batch(frame.filter(~repeats), rejected, ignored)


def _regular(block: bytes, layout: Layout, line: int) -> pl.DataFrame | None:
    """The records of a block whose lines all have the right number of fields; None if one has not.

    A line that is too long stops the parser. One that is too short leaves the last column empty; if it is empty
    somewhere, the delimiters are counted, and without a line too long only the right number can come out.
    """
    if layout.quote is not None and layout.quote.encode() in block:
        return None
    try:
        frame = _parse(block, layout)
    except (pl.exceptions.ComputeError, pl.exceptions.SchemaError):
        return None
    has_empty_ends = frame[layout.columns[-1]].has_nulls()
    if has_empty_ends and block.count(layout.delimiter.encode()) != frame.height * layout.delimiters:
        return None
    return frame.with_columns(line=pl.int_range(line, line + frame.height, dtype=pl.Int64))


def _parse(block: bytes, layout: Layout) -> pl.DataFrame:
    separator = layout.delimiter.encode()
    if len(separator) > 1:  # the parser takes one byte
        stand_in = next(byte for byte in _STAND_INS if byte not in block)
        block, separator = block.replace(separator, stand_in), stand_in
    return pl.read_csv(
        block,
        separator=separator.decode(),
        has_header=False,
        schema=dict.fromkeys(layout.columns, pl.String),
        quote_char=None,
        extra_columns="raise",
    )


def _mended(block: bytes, *, layout: Layout, line: int, mend: Mend) -> tuple[pl.DataFrame, pl.DataFrame]:
    lines = _irregular_marked(block, layout, line)
    regular = lines.filter(~pl.col("is_irregular"))
    records: list[tuple[int, list[str | None]]] = []
    refused: list[Line] = []
    for group in _groups(lines):
        mended = mend(group, layout)
        records += mended.records
        refused += mended.refused
    frame = pl.concat([_parse_lines(regular, layout), _frame(records, layout)]).sort("line")
    return frame, rejected_lines(refused, "wrong_field_count", f"{len(layout.columns)} fields expected")


def _irregular_marked(block: bytes, layout: Layout, line: int) -> pl.DataFrame:
    """Lines that are not blank, with their number; irregular is also one before an irregular one.

    That one may be the start of a record whose last field goes on in the next line.
    """
    count = pl.col("text").str.count_matches(layout.delimiter, literal=True)
    odd = count != layout.delimiters
    if layout.quote is not None:
        odd |= pl.col("text").str.contains(layout.quote, literal=True)
    return (
        pl.read_lines(BytesIO(block), name="text")
        .with_columns(line=pl.int_range(line, line + pl.len(), dtype=pl.Int64))
        .filter(pl.col("text").str.strip_chars() != "")
        .with_columns(is_odd=odd)
        .with_columns(is_irregular=pl.col("is_odd") | pl.col("is_odd").shift(-1, fill_value=False))
    )


def _groups(lines: pl.DataFrame) -> Iterator[list[Line]]:
    """The irregular lines, those that follow one another together."""
    odd = lines.with_row_index("at").filter("is_irregular").select("at", "line", "text")
    for _, run in groupby(enumerate(odd.iter_rows()), key=lambda pair: pair[1][0] - pair[0]):
        yield [(number, text) for _, (_, number, text) in run]


def _parse_lines(lines: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    if lines.is_empty():
        return _frame([], layout)
    text = "\n".join(lines["text"])
    return _parse(text.encode(), layout).with_columns(lines["line"])


def _frame(records: list[tuple[int, list[str | None]]], layout: Layout) -> pl.DataFrame:
    rows = [[*(field or None for field in fields), number] for number, fields in records]
    schema = {**dict.fromkeys(layout.columns, pl.String()), "line": pl.Int64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _repeated_headers(frame: pl.DataFrame, layout: Layout) -> pl.Series | None:
    if layout.header is None or not (frame[layout.columns[0]] == layout.header[0]).any():
        return None
    named = zip(layout.columns, layout.header, strict=True)
    return frame.select(pl.all_horizontal(pl.col(column).fill_null("") == name for column, name in named)).to_series()


def _refuse_complaint(path: Path, kept: bytes, layout: Layout, line: int) -> None:
    """A tool that failed while it wrote says so last; elsewhere the same words may be part of a job's name."""
    written = kept.rstrip()
    text = written.rpartition(b"\n")[2].decode()
    complaint = tool_error(path, line + written.count(b"\n"), text)
    if complaint and text.count(layout.delimiter) < layout.delimiters:
        raise complaint


def _refuse_cut_short(path: Path, kept: bytes, last: Batch, layout: Layout) -> None:
    """A last line without an end, that is no record because something is missing from it, was cut off."""
    text = kept.rpartition(b"\n")[2].decode()
    is_short = text.count(layout.delimiter) < layout.delimiters or (layout.quote or "\n") in text
    if text and is_short and not last.rejected.is_empty() and last.rejected["text"][-1] == text:
        raise refusal(
            path,
            "truncated",
            f"the last line breaks off ('{text[-60:]}'), {len(layout.columns)} fields were expected; "
            "fetch the whole file again",
        )
