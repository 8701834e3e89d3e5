"""Saved replies of Beaker, of any age: the fields of a list's objects as texts, under one name each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy.ingest.moments import Moments, read_moments
from gpupolicy.ingest.table.cells import told
from gpupolicy.ingest.table.documents import read_document, rows_at
from gpupolicy.ingest.table.typed import columns_of, numbered
from gpupolicy.ingest.text import refusal

TAKEN_AT = "taken_at"  # when a saved document was asked for

_NOT_YET = "0001-01-01T00:00:00Z"  # how Beaker wrote a time that has not come (case k8-08)
_NO_TEXT = ("", "null")


@dataclass(frozen=True, slots=True)
class Replies:
    """A list of objects: `line`, their number in it, and each field as text, null if an object has none."""

    texts: pl.DataFrame
    taken_at: datetime | None
    written: pl.Series  # the objects as JSON


def read_replies(path: Path, lists: Sequence[str], fields: Mapping[str, Sequence[str]]) -> Replies:
    """The list of a saved document that has one of the names, or the document itself if it is a list.

    `fields` says for each of our names where it may stand, the first that has something first; a list without a
    name is known by the first two of them. Raises UnreadableLog for another document.
    """
    document = read_document(path)
    name = next((name for name in lists if name in document.columns), None)
    if name is None and not columns_of(document.schema).keys() >= {theirs[0] for theirs in list(fields.values())[:2]}:
        raise refusal(path, "missing_column", f"there is no list of {' or '.join(lists)}; is it a reply of Beaker?")
    rows = rows_at(path, document, name) if name else numbered(document, first=1)
    known = columns_of(rows.drop("line").schema)
    texts = rows.select("line", **{ours: _first(known, theirs) for ours, theirs in fields.items()})
    return Replies(texts, _taken_at(document), _as_json(texts))


def stamps(replies: Replies, names: Sequence[str]) -> dict[str, Moments]:
    """Fields as moments; Beaker writes UTC."""
    return read_moments(replies.texts.select(names), timezone="UTC", no_moment=_NO_TEXT)


def _first(known: Mapping[str, pl.Expr], names: Sequence[str]) -> pl.Expr:
    found = [told(known[name], (*_NO_TEXT, _NOT_YET)) for name in names if name in known]
    return pl.coalesce(*found) if found else pl.lit(None, pl.String)


def _taken_at(document: pl.DataFrame) -> datetime | None:
    if TAKEN_AT not in document.columns:
        return None
    taken = read_moments(document.select(pl.col(TAKEN_AT).cast(pl.String)), timezone="UTC")[TAKEN_AT].at.max()
    return taken if isinstance(taken, datetime) else None


def _as_json(texts: pl.DataFrame) -> pl.Series:
    return texts.select(pl.struct(pl.exclude("line")).struct.json_encode()).to_series()
