"""Beaker's effective allocations: what each part of its tree may claim of a cluster."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gpupolicy.ingest.beaker.replies import read_replies, stamps
from gpupolicy.ingest.canonical import MOMENT
from gpupolicy.ingest.table.cells import read_numbers

LEVELS_OF_TREE = ("organization", "budget", "workspace_group", "workspace")
ALLOCATIONS = pl.Schema(
    {
        "cluster_id": pl.String(),
        "cluster": pl.String(),
        "level": pl.String(),  # organization, budget, workspace_group or workspace
        "entity_id": pl.String(),
        "entity": pl.String(),
        "share_ratio": pl.Float64(),  # of its parent
        "entitlement_ratio": pl.Float64(),  # of the cluster
        "slots": pl.Int64(),  # null: no limit
        "gpu_h_per_day": pl.Float64(),
        "created_at": MOMENT,
        "deleted_at": MOMENT,  # null: in force
    }
)

DIGITS = 7  # as many as Beaker's floats have

_TIMES = ("created_at", "deleted_at")


def read_beaker_allocations(path: Path) -> pl.DataFrame:
    """ALLOCATIONS from a saved reply of ListEffectiveAllocations or of fetch_beaker; sorted by cluster and entity.

    Raises UnreadableLog for another document.
    """
    replies = read_replies(path, ("effective_allocations", "effectiveAllocations"), _fields())
    moments = stamps(replies, _TIMES)
    percents = {"share_ratio": "share_percent", "entitlement_ratio": "entitlement_percent"}
    levels = [
        pl.when(pl.col(f"{level}_id").is_not_null()).then(pl.struct(
            level=pl.lit(level), entity_id=pl.col(f"{level}_id"), entity=pl.col(level)
        ))
        for level in LEVELS_OF_TREE
    ]  # fmt: skip
    return (
        replies.texts.with_columns(*(moment.at.alias(name) for name, moment in moments.items()))
        .with_columns(whose=pl.coalesce(levels))
        .unnest("whose")
        .with_columns(
            **{name: (read_numbers(pl.col(theirs)).value / 100).round(DIGITS) for name, theirs in percents.items()},
            slots=read_numbers(pl.col("slots")).value.cast(pl.Int64),
            gpu_h_per_day=read_numbers(pl.col("gpu_h_per_day")).value,
        )
        .select(ALLOCATIONS.names())
        .sort("cluster_id", "level", "entity_id", "created_at", nulls_last=True)
    )


def _fields() -> dict[str, tuple[str, ...]]:
    within = {
        "created_at": "created", "deleted_at": "deleted", "cluster_id": "cluster.id", "cluster": "cluster.full_name",
        "share_percent": "runtime_quota_percent",
    } | {f"{level}_id": f"{level}.id" for level in LEVELS_OF_TREE} | {
        level: f"{level}.full_name" for level in LEVELS_OF_TREE
    }  # fmt: skip
    outer = {
        "entitlement_percent": "effective_runtime_quota_percent",
        "slots": "effective_slot_limit",
        "gpu_h_per_day": "effective_runtime_gpu_hours_per_day",
    }
    fields = {ours: f"allocation.{theirs}" for ours, theirs in within.items()} | outer
    return {ours: (theirs, _camel(theirs)) for ours, theirs in fields.items()}


def _camel(path: str) -> str:
    """The name as Beaker's JSON has it without preserved names."""
    first, *others = path.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)
