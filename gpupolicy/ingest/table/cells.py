"""Cells of a table into values: ids stay text, numbers are proven to be numbers, nothing is guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import polars as pl

from gpupolicy.ingest.table.mapping import AnyMapping, Duration, Number, Ratio, Source, Text, Truth, WorkloadId

UNIT_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
OWN_UNIT = " s"  # ends a duration that is one already in the file, whatever unit the mapping names

_TIMES, _PLUS = " x ", " + "
_MANGLED_ID = r"^\d+(?:\.\d+)?E\+\d+$"  # what a spreadsheet makes of a long number (case cs-03); 6214e9 is a name
_WHOLE_FLOAT = r"^(-?\d+)\.0*$"
_FIRST_WORD = r"^([^\s+]+)"


@dataclass(frozen=True, slots=True)
class Cells:
    """A column as read: the values, and why a text is none, null where it is one or empty."""

    value: pl.Expr
    fault: pl.Expr


def told(text: pl.Expr, null_words: Sequence[str]) -> pl.Expr:
    """Texts without the blanks around them; null where a word says that there is nothing."""
    text = text.str.strip_chars()
    nothing = sorted({word.lower() for word in null_words})
    return pl.when(~text.str.to_lowercase().is_in(nothing)).then(text)


def text_of(source: Source, mapping: AnyMapping) -> pl.Expr:
    """The text from which a column of ours is read; of several columns all of them, null if one is."""
    cells = [told(pl.col(name), mapping.null_words) for name in source.needs]
    if not cells:
        return pl.lit(source.value, pl.String)
    between = _TIMES if isinstance(source, Number) and source.product else _PLUS
    return cells[0] if len(cells) == 1 else pl.concat_str(cells, separator=between)


def read_cells(name: str, text: pl.Expr, source: Source, mapping: AnyMapping) -> Cells:
    """The values of a column of ours as the source says; not for moments."""
    match source:
        case WorkloadId(line_number=True):
            return Cells(pl.col("line").cast(pl.String), _fault(pl.lit(value=False), ""))
        case Text():
            return _words(name, text, source)
        case Truth():
            return _truths(text, source)
        case Ratio():
            return _ratios(text, source, mapping)
        case Duration():
            ms = duration_ms(text, source.unit, mapping)
            return Cells((ms.value / 1000).round().cast(pl.Int64), ms.fault)
        case _:
            return _numbers(text, source, mapping)


def read_numbers(text: pl.Expr, *, decimal: str = ".", thousands: str | None = None) -> Cells:
    """Numbers from 0 on; a word, an infinity or something negative is a bad_number (cases cs-02, cs-06)."""
    plain = text
    if thousands:
        plain = plain.str.replace_all(thousands, "", literal=True)
    if decimal != ".":
        plain = plain.str.replace(decimal, ".", literal=True)
    number = plain.cast(pl.Float64, strict=False)
    is_good = (number.is_finite() & (number >= 0)).fill_null(value=False)
    return Cells(pl.when(is_good).then(number), _fault(text.is_not_null() & ~is_good, "bad_number"))


def duration_ms(text: pl.Expr, unit: str, mapping: AnyMapping) -> Cells:
    """Whole milliseconds."""
    numbers = read_numbers(text.str.strip_suffix(OWN_UNIT), decimal=mapping.decimal, thousands=mapping.thousands)
    unit_ms = pl.when(text.str.ends_with(OWN_UNIT)).then(UNIT_MS["s"]).otherwise(UNIT_MS[unit])
    return Cells((numbers.value * unit_ms).round().cast(pl.Int64), numbers.fault)


def _numbers(text: pl.Expr, source: Source, mapping: AnyMapping) -> Cells:
    if len(source.needs) <= 1:
        return read_numbers(text, decimal=mapping.decimal, thousands=mapping.thousands)
    is_product = isinstance(source, Number) and source.product is not None
    pieces = text.str.split(_TIMES if is_product else _PLUS)
    numbers = [
        read_numbers(pieces.list.get(at), decimal=mapping.decimal, thousands=mapping.thousands)
        for at in range(len(source.needs))
    ]
    value = reduce(pl.Expr.mul if is_product else pl.Expr.add, (one.value for one in numbers))
    return Cells(value, pl.coalesce(one.fault for one in numbers))


def _words(name: str, text: pl.Expr, source: Text) -> Cells:
    is_mangled = text.str.contains(_MANGLED_ID) if name == "workload_id" else pl.lit(value=False)
    if source.form == "whole_float":
        text = text.str.replace(_WHOLE_FLOAT, "${1}")
    if name == "state":
        text = text.str.extract(_FIRST_WORD).str.to_uppercase()
    return Cells(text, _fault(is_mangled, "mangled_id"))


def _truths(text: pl.Expr, source: Truth) -> Cells:
    word = text.str.to_lowercase()
    is_yes, is_no = (word.is_in([each.lower() for each in words]) for words in (source.yes, source.no))
    return Cells(pl.when(is_yes | is_no).then(is_yes), _fault(~(is_yes | is_no), "bad_value"))


def _ratios(text: pl.Expr, source: Ratio, mapping: AnyMapping) -> Cells:
    numbers = read_numbers(text, decimal=mapping.decimal, thousands=mapping.thousands)
    ratio = numbers.value / 100 if source.form == "percent" else numbers.value
    return Cells(ratio, pl.coalesce(numbers.fault, _fault(ratio > 1, "bad_number")))


def _fault(where: pl.Expr, reason: str) -> pl.Expr:
    return pl.when(where).then(pl.lit(reason))
