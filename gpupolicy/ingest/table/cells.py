"""Cells of a table into values: ids stay text, numbers are proven to be numbers, nothing is guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from gpupolicy.ingest.canonical import RUNS
from gpupolicy.ingest.table.mapping import Duration, Ratio, Source, TableMapping, Text, Truth, WorkloadId

UNIT_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}

_MANGLED_ID = r"^\d(?:\.\d+)?E\+\d+$"  # what a spreadsheet makes of a long number (case cs-03); 6214e9 is a name
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


def read_cells(name: str, text: pl.Expr, source: Source, mapping: TableMapping) -> Cells:
    """The values of a column of a run, as canonical.RUNS has it under that name; not for moments."""
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
            numbers = read_numbers(text, decimal=mapping.decimal, thousands=mapping.thousands)
            return Cells(numbers.value.cast(RUNS[name]), numbers.fault)


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


def duration_ms(text: pl.Expr, unit: str, mapping: TableMapping) -> Cells:
    """Whole milliseconds."""
    numbers = read_numbers(text, decimal=mapping.decimal, thousands=mapping.thousands)
    return Cells((numbers.value * UNIT_MS[unit]).round().cast(pl.Int64), numbers.fault)


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


def _ratios(text: pl.Expr, source: Ratio, mapping: TableMapping) -> Cells:
    numbers = read_numbers(text, decimal=mapping.decimal, thousands=mapping.thousands)
    ratio = numbers.value / 100 if source.form == "percent" else numbers.value
    return Cells(ratio, pl.coalesce(numbers.fault, _fault(ratio > 1, "bad_number")))


def _fault(where: pl.Expr, reason: str) -> pl.Expr:
    return pl.when(where).then(pl.lit(reason))
