"""GPUs and CPUs in Slurm's resource strings: `billing=8,cpu=1,gres/gpu:h100=8,gres/gpu=8`.

The generic entry is the count; typed entries are the count only where it is missing, and are never added to it.
Memory, utilization and billing entries are no GPUs (case sa-07).
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from gpupolicy.ingest.distinct import each_once

HELD = pl.Schema({"held": pl.Float64(), "gpu_type": pl.String(), "is_bad": pl.Boolean()})

_TRES_ENTRY = r"gres/gpu(?::[^=,]+)?=[^,]*"
_TRES_PARTS = r"^gres/gpu(?::(?<type>[^=]+))?=(?<count>.*)$"
_GRES_ENTRY = r"\bgpu(?::[A-Za-z][^:,(]*)?:\d+"  # the number is the last part before any bracket (case sa-08)
_GRES_PARTS = r"^gpu(?::(?<type>[A-Za-z].*))?:(?<count>\d+)$"
_CPUS = r"(?:^|,)cpu=([^,]*)"


def tres_gpus(texts: pl.Series) -> pl.DataFrame:
    """The GPUs of AllocTRES or ReqTRES, a row for each text (HELD).

    0 if no entry names GPUs, null for an empty text; the type only if all are of one; `is_bad` if a count is
    no number.
    """
    return _held(texts, lambda known: _add_up(known, _TRES_ENTRY, _TRES_PARTS))


def gres_gpus(texts: pl.Series) -> pl.DataFrame:
    """The same for AllocGRES of older releases: `gpu:v100:4(S:0-1),mps:50`."""
    return _held(texts, lambda known: _add_up(known, _GRES_ENTRY, _GRES_PARTS))


def tres_cpus(texts: pl.Series) -> pl.DataFrame:
    """The same for the CPUs of AllocTRES or ReqTRES, which have no type."""
    return counts(each_once(texts, lambda known: known.with_columns(n=pl.col("text").str.extract(_CPUS)))["n"])


def counts(texts: pl.Series) -> pl.DataFrame:
    """The same for texts that are a count themselves, such as AllocCPUS."""
    number = pl.col("n").cast(pl.Float64, strict=False)
    return pl.DataFrame({"n": texts}).select(
        held=number,
        gpu_type=pl.lit(None, pl.String),
        is_bad=pl.col("n").is_not_null() & _is_no_count(number),
    )


def _held(texts: pl.Series, read: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    is_told = pl.col("text").is_not_null()
    return each_once(texts, read).select(
        held=pl.when(is_told).then(pl.col("held").fill_null(0)),
        gpu_type="gpu_type",
        is_bad=pl.col("is_bad").fill_null(value=False),
    )


def _add_up(known: pl.DataFrame, entry: str, parts: str) -> pl.DataFrame:
    number = pl.col("count").cast(pl.Float64, strict=False)
    is_typed = pl.col("type").is_not_null()
    types = pl.col("type").filter(is_typed & (number > 0)).unique()
    return (
        known.with_columns(entry=pl.col("text").str.extract_all(entry))
        .explode("entry")
        .with_columns(pl.col("entry").str.extract_groups(parts).struct.unnest())
        .group_by("text")
        .agg(
            held=pl.coalesce(number.filter(~is_typed).first(), number.sum()),
            gpu_type=pl.when(types.len() == 1).then(types.first()),
            is_bad=(pl.col("count").is_not_null() & _is_no_count(number)).any(),
        )
    )


def _is_no_count(number: pl.Expr) -> pl.Expr:
    return ~(number.is_finite() & (number >= 0)).fill_null(value=False)
