"""JSON and NDJSON as frames: a list of objects in a document, or an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import polars as pl

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest.canonical import REJECTED
from gpupolicy.ingest.records import rejected_lines
from gpupolicy.ingest.table.mapping import OURS
from gpupolicy.ingest.table.typed import numbered
from gpupolicy.ingest.text import json_chunks, refusal

_NO_TABLE = (pl.exceptions.ComputeError, pl.exceptions.SchemaError)


def document_rows(path: Path, rows: str | None) -> pl.DataFrame:
    """The objects of a document, with `line`, their number; of the list at `rows` (`a.b`) if one is named.

    Raises UnreadableLog for a document that breaks off, or that has no such list.
    """
    found = read_document(path)
    return rows_at(path, found, rows) if rows else numbered(found, first=1)


def read_document(path: Path) -> pl.DataFrame:
    """A JSON document as a frame: a row for each object of a list, one row for an object."""
    text = "".join(json_chunks(path)).encode()
    try:
        return pl.read_json(BytesIO(text), infer_schema_length=None)
    except _NO_TABLE as trouble:
        raise _no_table(path, trouble) from None


def rows_at(path: Path, document: pl.DataFrame, rows: str) -> pl.DataFrame:
    """The objects of the list at `rows` in a document, with `line`; of every such list if there are several."""
    for step in rows.split("."):
        if step not in document.columns:
            raise refusal(path, "missing_column", f"there is no list '{rows}'; it has {', '.join(document.columns)}")
        found = document.select(step)
        if isinstance(found.schema[step], pl.List):
            found = found.explode(step)
        if found.schema[step] == pl.Null:  # an empty list
            return pl.DataFrame(schema={"line": pl.Int64})
        if not isinstance(found.schema[step], pl.Struct):
            raise refusal(path, "unknown_form", f"'{rows}' is no list of objects")
        document = found.drop_nulls(step).unnest(step)
    return numbered(document, first=1)


def line_rows(path: Path) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """The objects of a file with one a line, block by block with `line`, and the lines that are none, rejected."""
    line, kept = 1, ""
    for chunk in json_chunks(path):
        whole, has_end, rest = (kept + chunk).rpartition("\n")
        kept = rest
        if has_end:
            yield _objects(path, whole, line)
            line += whole.count("\n") + 1
    if kept.strip():
        yield _objects(path, kept, line)


def _objects(path: Path, text: str, first: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The objects of a block, read at once; line by line only to find the lines that are none."""
    lines = numbered(pl.DataFrame({"text": text.split("\n")}), first=first)
    lines = lines.filter(pl.col("text").str.strip_chars() != "")
    try:
        return _together(lines), REJECTED.to_frame()
    except _NO_TABLE as trouble:
        bad = [(line, told) for line, told in lines.select("line", "text").iter_rows() if not _is_object(told)]
        if not bad:
            raise _no_table(path, trouble) from None
    if len(bad) == lines.height and first == 1:
        raise refusal(path, "unknown_form", "this is a JSON document; say in the mapping where its `rows` stand")
    good = lines.filter(~pl.col("line").is_in([line for line, _ in bad]))
    return _together(good), rejected_lines(bad, "not_json", "each line has to be an object of its own")


def _together(lines: pl.DataFrame) -> pl.DataFrame:
    if lines.is_empty():
        return lines.select("line")
    block = "\n".join(lines["text"]).encode()
    read = pl.read_ndjson(BytesIO(block), infer_schema_length=None)
    return read.rename(OURS, strict=False).with_columns(lines["line"])


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except json.JSONDecodeError:
        return False


def _no_table(path: Path, trouble: Exception) -> UnreadableLog:
    told = str(trouble).splitlines()[0]
    return refusal(path, "not_parsable_json", f"cannot be read as rows of one kind ({told}); was it cut off?")
