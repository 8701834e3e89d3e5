"""Parquet files as frames, so many rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from gpupolicy.ingest.table.mapping import OURS
from gpupolicy.ingest.table.typed import numbered
from gpupolicy.ingest.text import refusal

MAGIC = b"PAR1"
ROWS_AT_ONCE = 2**20


def parquet_schema(path: Path) -> pl.Schema:
    """Its columns; raises UnreadableLog for a file that is damaged or cut off."""
    try:
        return pl.Schema({OURS.get(name, name): dtype for name, dtype in pl.read_parquet_schema(path).items()})
    except (pl.exceptions.ComputeError, OSError) as trouble:
        told = str(trouble).splitlines()[0]
        raise refusal(path, "damaged_file", f"the Parquet file cannot be read ({told}); fetch it again") from None


def parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The rows of some of its columns, with `line`, their number."""
    scan = pl.scan_parquet(path).rename(OURS, strict=False)
    height = scan.select(pl.len()).collect().item()
    for start in range(0, height, ROWS_AT_ONCE):
        yield numbered(scan.select(columns).slice(start, ROWS_AT_ONCE).collect(), first=start + 1)
