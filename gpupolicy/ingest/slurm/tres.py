"""GPUs and CPUs in Slurm's resource strings: `billing=8,cpu=1,gres/gpu:h100=8,gres/gpu=8`.

The generic entry is the count; typed entries are the count only where it is missing, and are never added to it.
Memory, utilization and billing entries are no GPUs (case sa-07). Slices of a card (MIG) and shards are fractions
of one (case sa-15).
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from gpupolicy.ingest.distinct import each_once
from gpupolicy.ingest.slurm.settings import MigRule

HELD = pl.Schema({"held": pl.Float64(), "gpu_type": pl.String(), "is_bad": pl.Boolean(), "has_uncounted": pl.Boolean()})
SLICES_PER_GPU = 7

_TRES_ENTRY = r"gres/(?:gpu|shard)(?::[^=,]+)?=[^,]*"
_TRES_PARTS = r"^gres/(?<kind>gpu|shard)(?::(?<type>[^=]+))?=(?<count>.*)$"
_GRES_ENTRY = r"\bgpu(?::[A-Za-z][^:,(]*)?:\d+"  # the number is the last part before any bracket (case sa-08)
_GRES_PARTS = r"^(?<kind>gpu)(?::(?<type>[A-Za-z].*))?:(?<count>\d+)$"
_CPUS = r"(?:^|,)cpu=([^,]*)"
_SLICE = r"^(?:(.*?)[_.:-])?(\d+)g\.\d+gb"  # a100_3g.20gb: three compute slices


def tres_gpus(
    texts: pl.Series, *, mig_rule: MigRule = "compute_slices_over_7", shards_per_gpu: int | None = None
) -> pl.DataFrame:
    """The GPUs of AllocTRES or ReqTRES, a row for each text (HELD).

    0 if no entry names GPUs, null for an empty text; the type only if all are of one; `is_bad` if a count is
    no number; `has_uncounted` if there are shards and nobody said how many make a GPU.
    """

    def read(known: pl.DataFrame) -> pl.DataFrame:
        return _add_up(_entries(known, _TRES_ENTRY, _TRES_PARTS), mig_rule, shards_per_gpu)

    return _held(texts, read)


def gres_gpus(texts: pl.Series) -> pl.DataFrame:
    """The same for AllocGRES of older releases: `gpu:v100:4(S:0-1),mps:50`."""
    return _held(texts, lambda known: _add_up(_entries(known, _GRES_ENTRY, _GRES_PARTS), "devices", None))


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
        has_uncounted=pl.lit(value=False),
    )


def _held(texts: pl.Series, read: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    is_told = pl.col("text").is_not_null()
    return each_once(texts, read).select(
        held=pl.when(is_told).then(pl.col("held").fill_null(0)),
        gpu_type="gpu_type",
        is_bad=pl.col("is_bad").fill_null(value=False),
        has_uncounted=pl.col("has_uncounted").fill_null(value=False),
    )


def _entries(known: pl.DataFrame, entry: str, parts: str) -> pl.DataFrame:
    """A row for each entry of a text: kind, type and count."""
    return (
        known.with_columns(entry=pl.col("text").str.extract_all(entry))
        .explode("entry")
        .with_columns(pl.col("entry").str.extract_groups(parts).struct.unnest())
        .with_columns(number=pl.col("count").cast(pl.Float64, strict=False))
    )


def _add_up(entries: pl.DataFrame, mig_rule: MigRule, shards_per_gpu: int | None) -> pl.DataFrame:
    number, kind = pl.col("number"), pl.col("kind")
    types = pl.col("gpu_type").filter(pl.col("type").is_not_null() & (number > 0)).unique()
    devices = _generic_or_typed(kind == "gpu")
    shards = _generic_or_typed(kind == "shard") / (shards_per_gpu or 1)
    return (
        _with_slices(entries, mig_rule)
        .group_by("text")
        .agg(
            held=(devices * SLICES_PER_GPU - pl.col("slices_short").sum()).clip(0) / SLICES_PER_GPU
            + (shards if shards_per_gpu else 0),
            gpu_type=pl.when(types.len() == 1).then(types.first()),
            is_bad=(pl.col("count").is_not_null() & _is_no_count(number)).any(),
            has_uncounted=(shards > 0) & (shards_per_gpu is None),
        )
    )


def _generic_or_typed(which: pl.Expr) -> pl.Expr:
    is_typed = pl.col("type").is_not_null()
    generic = pl.col("number").filter(which & ~is_typed).first()
    return pl.coalesce(generic, pl.col("number").filter(which).sum())


def _with_slices(entries: pl.DataFrame, mig_rule: MigRule) -> pl.DataFrame:
    """`slices_short`: by how many slices the entry is less than so many whole cards; and the type of the card."""
    if mig_rule == "devices":
        return entries.with_columns(gpu_type="type", slices_short=0.0)
    slices = pl.col("type").str.extract(_SLICE, 2).cast(pl.Float64)
    short = pl.col("number") * (SLICES_PER_GPU - slices).clip(0)
    card = pl.col("type").str.extract(_SLICE, 1)
    return entries.with_columns(
        gpu_type=pl.when(slices.is_null()).then("type").otherwise(card), slices_short=short.fill_null(0)
    )


def _is_no_count(number: pl.Expr) -> pl.Expr:
    return ~(number.is_finite() & (number >= 0)).fill_null(value=False)
