"""sacct's fields as `JobID=7,State=FAILED,"AllocTRES=cpu=1,gres/gpu=2"`: in any order, only those that are set.

So write monitors that collect sacct's output for others to read (trace uio-sacct-kv).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import IGNORED
from gpupolicy.ingest.records import Batch, rejected_lines
from gpupolicy.ingest.text import refusal, tool_error

_FIRST_LINE = re.compile(r'(?:^|.*,)"?JobID(?:Raw)?=\d')
_CELL = r'"(?:[^"]|"")*"|[^,]+'  # a cell in quotes may hold commas; a quote in it is doubled
_KEY_CELL = r'(?:"\w+=(?:[^"]|"")*"|\w+=[^,]*)?'
_RECORD = rf"^{_KEY_CELL}(?:,{_KEY_CELL})*$"
_KEY_AND_VALUE = r"^(?<key>\w+)=(?<value>.*)$"


def is_key_value(first_line: str) -> bool:
    return _FIRST_LINE.match(first_line) is not None


def key_value_batches(path: Path, blocks: Iterable[bytes], *, fields: frozenset[str]) -> Iterator[Batch]:
    """The records of all blocks, one a line: `fields` as text columns under sacct's names, `text` and `line`.

    Raises UnreadableLog if the last line is a tool's error, or has no end: nothing else proves that it is whole.
    """
    line = 1
    for block in blocks:
        lines = _lines(block, line)
        is_record = lines.select(pl.col("text").str.contains(_RECORD)).to_series()
        refused = lines.filter(~is_record).select("line", "text").rows()
        if not block.endswith(b"\n") or (refused and refused[-1][0] == lines["line"][-1]):
            _refuse_end(path, block, line)
        line += block.count(b"\n")
        rejected = rejected_lines(refused, "wrong_field_count", "a cell is no key=value, or its quote is never closed")
        yield Batch(_records(lines.filter(is_record), fields), rejected, IGNORED.to_frame())


def _lines(block: bytes, first: int) -> pl.DataFrame:
    return (
        pl.read_lines(BytesIO(block), name="text")
        .with_columns(line=pl.int_range(first, first + pl.len(), dtype=pl.Int64))
        .filter(pl.col("text").str.strip_chars() != "")
    )


def _records(lines: pl.DataFrame, fields: frozenset[str]) -> pl.DataFrame:
    bare = pl.col("cell").str.strip_prefix('"').str.strip_suffix('"').str.replace_all('""', '"', literal=True)
    cell = pl.when(pl.col("cell").str.starts_with('"')).then(bare).otherwise("cell")
    cells = (
        lines.select("line", cell=pl.col("text").str.extract_all(_CELL))
        .explode("cell")
        .select("line", cell.str.extract_groups(_KEY_AND_VALUE).struct.unnest())
        .filter(pl.col("key").is_in(list(fields)) & (pl.col("value") != ""))
        .unique(["line", "key"], keep="first")
    )
    told = cells.pivot("key", index="line", values="value")
    return lines.join(told, on="line", how="left", maintain_order="left")


def _refuse_end(path: Path, block: bytes, line: int) -> None:
    written = block.rstrip()
    last = written.rpartition(b"\n")[2].decode()
    if complaint := tool_error(path, line + written.count(b"\n"), last):
        raise complaint
    if not block.endswith(b"\n"):
        raise refusal(path, "truncated", f"the last line has no end ('{last[-60:]}'); fetch the whole file again")
