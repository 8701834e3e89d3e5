"""The rows of a table in any format, told by its first bytes, as texts under the names that a mapping uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import IGNORED, REJECTED
from gpupolicy.ingest.records import Batch
from gpupolicy.ingest.table.documents import document_rows, line_rows
from gpupolicy.ingest.table.lines import csv_batches
from gpupolicy.ingest.table.mapping import AnyMapping
from gpupolicy.ingest.table.parquet import MAGIC, parquet_rows, parquet_schema
from gpupolicy.ingest.table.typed import columns_of
from gpupolicy.ingest.text import head_of


@dataclass(frozen=True, slots=True)
class Rows:
    """A table's rows: the names a mapping may refer to, the texts of those it does, and a row as it is written."""

    columns: tuple[str, ...]
    batches: Iterator[Batch]
    as_written: pl.Expr

    def rejected(self, faulty: pl.DataFrame) -> pl.DataFrame:
        """Rows with `fault` and `detail`, as canonical.REJECTED has them."""
        return faulty.select("line", pl.col("fault").alias("reason"), "detail", self.as_written.alias("text"))


def open_rows(path: Path, mapping: AnyMapping, *, needs: Sequence[str], attempts: str | None = None) -> Rows:
    """Open a CSV, Parquet, JSON or NDJSON file; text may be compressed with gzip.

    Of formats with types only the columns in `needs` are read. With `attempts` each thing in the list of that name
    is a row of its own; rows are counted after that. Raises UnreadableLog for a file that is refused whole.
    """
    head = head_of(path)
    if head.startswith(MAGIC):
        return _parquet(path, needs, attempts)
    if head.startswith(b"[") or (head.startswith(b"{") and mapping.rows):
        return _json([(document_rows(path, mapping.rows), REJECTED.to_frame())], needs, attempts)
    if head.startswith(b"{"):
        return _json(line_rows(path), needs, attempts)
    layout, batches = csv_batches(path, mapping.delimiter)
    written = pl.concat_str((pl.col(name).fill_null("") for name in layout.columns), separator=layout.delimiter)
    return Rows(layout.columns, batches, written)


def _parquet(path: Path, needs: Sequence[str], attempts: str | None) -> Rows:
    names = columns_of(_apart(parquet_schema(path).to_frame(), attempts).schema)
    roots = {root for name in needs if name in names for root in names[name].meta.root_names()}
    frames = ((rows, REJECTED.to_frame()) for rows in parquet_rows(path, sorted(roots)))
    return Rows(tuple(names), _batches(frames, needs, attempts), _as_json(needs, names))


def _json(frames: Iterable[tuple[pl.DataFrame, pl.DataFrame]], needs: Sequence[str], attempts: str | None) -> Rows:
    """All blocks are read first: a key may come up in the last of them."""
    names: dict[str, None] = {}

    def noted() -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        for rows, rejected in frames:
            names.update(dict.fromkeys(columns_of(_apart(rows.drop("line"), attempts).schema)))
            yield rows, rejected

    batches = list(_batches(noted(), needs, attempts))
    return Rows(tuple(names), iter(batches), _as_json(needs, names))


def _batches(
    frames: Iterable[tuple[pl.DataFrame, pl.DataFrame]], needs: Sequence[str], attempts: str | None
) -> Iterator[Batch]:
    rows_before = 0
    for rows, rejected in frames:
        apart = _apart(rows, attempts)
        if attempts:
            apart = apart.with_columns(line=pl.int_range(1, pl.len() + 1, dtype=pl.Int64) + rows_before)
            rows_before += apart.height
        names = columns_of(apart.drop("line").schema)
        texts = {name: names.get(name, pl.lit(None, pl.String)) for name in needs}
        yield Batch(apart.select("line", **texts), rejected, IGNORED.to_frame())


def _apart(rows: pl.DataFrame, attempts: str | None) -> pl.DataFrame:
    """A row for each attempt; one without any stays one row, of something that never ran."""
    return rows.explode(attempts, empty_as_null=True, keep_nulls=True) if attempts in rows.columns else rows


def _as_json(needs: Sequence[str], known: Iterable[str]) -> pl.Expr:
    there = set(known)
    texts = [pl.lit(None, pl.String).alias(name) if name not in there else pl.col(name) for name in needs]
    return pl.struct(texts).struct.json_encode()
