"""Answers as a table for people, or one JSON or CSV document for programs. Messages go to stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from gpupolicy.cli.options import Format

_NOTHING = "-"


def _wait(seconds: float) -> str:
    """A wait in the unit that a person would say it in."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


_FORMS: Mapping[str, Callable[[Any], str]] = {
    "text": str,
    "tree": str,
    "percent": "{:.1%}".format,
    "ratio": "{:.3f}".format,
    "gpus": "{:,.1f}".format,
    "gpu_h": "{:,.0f}".format,
    "whole": "{:,.0f}".format,
    "hour": "{:%Y-%m-%d %H:%M}".format,
    "wait": _wait,
}


@dataclass(frozen=True, slots=True)
class Column:
    """How one column of a frame is shown: its heading with the unit, and its form."""

    name: str
    heading: str
    form: str = "text"


def tell(message: str) -> None:
    """A message beside the answer."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, markup=False)


def show(
    form: Format,
    frame: pl.DataFrame,
    columns: Sequence[Column],
    *,
    document: Mapping[str, Any] | None = None,
    title: str | None = None,
    note: str | None = None,
) -> None:
    """Print an answer. `document` is what JSON says; without one it is the rows of the frame."""
    if form is Format.json:
        print_json({"rows": frame.to_dicts()} if document is None else document)
    elif form is Format.csv:
        sys.stdout.write(frame.write_csv())
    else:
        _print_table(frame, columns, title=title, note=note)


def print_json(document: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(_plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _plain(value: object) -> object:
    """JSON has no infinity and no moments: "inf", and UTC with Z."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, pl.DataFrame):
        return [_plain(row) for row in value.to_dicts()]
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else None
    return value


def _print_table(frame: pl.DataFrame, columns: Sequence[Column], *, title: str | None, note: str | None) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        is_words = column.form in {"text", "tree", "hour"}
        table.add_column(column.heading, justify="left" if is_words else "right", overflow="fold")
    for row in frame.iter_rows(named=True):
        table.add_row(*(_cell(row, column) for column in columns))
    console.print(table)
    if note:
        console.print(f"\n{note}", style="dim", markup=False)


def _cell(row: Mapping[str, Any], column: Column) -> str:
    value = row[column.name]
    if value is None:
        return _NOTHING
    indent = "  " * int(row["depth"]) if column.form == "tree" else ""
    return indent + _FORMS[column.form](value)
