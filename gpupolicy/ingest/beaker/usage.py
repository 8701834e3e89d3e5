"""Beaker's ListClusterUsage into levels: GPU time by bucket, budget and whether it was allocated."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import polars as pl

from gpupolicy.ingest.beaker.replies import Replies, read_replies, stamps
from gpupolicy.ingest.canonical import IGNORED, Reading
from gpupolicy.ingest.levels import LEVELS, reading_of_levels
from gpupolicy.ingest.table.cells import read_numbers
from gpupolicy.ingest.table.frames import Found

_SPAN = ("from", "to")
_FIELDS = {
    "from": ("bucket_start", "bucketStart"),
    "to": ("bucket_end", "bucketEnd"),
    "cluster": ("cluster_id", "clusterId"),
    "budget": ("budget_id", "budgetId"),
    "workspace": ("workspace_id", "workspaceId"),
    "allocated": ("allocated",),
    "gpu_s": ("gpu_seconds", "gpuSeconds"),
}


def read_beaker_usage(
    path: Path,
    *,
    cluster: str | None,
    account_from: Literal["budget", "workspace"] = "budget",
    observed_until: datetime | None = None,
) -> Reading:
    """Read usage from a saved reply of ListClusterUsage or of fetch_beaker, as levels: no workloads, no waits.

    `cluster` names the cluster, the id in each bucket if it is None. The account is the id of budget or workspace.
    Allocated time is charged, the rest free. Raises UnreadableLog for a file that is refused whole.
    """
    replies = read_replies(path, ("cluster_usage_buckets", "clusterUsageBuckets", "buckets"), _FIELDS)
    buckets = _buckets(replies, cluster, account_from)
    is_good = buckets["fault"].is_null()
    rejected = buckets.with_columns(text=replies.written).filter(~is_good)
    levels = _levels(buckets.filter(is_good))
    found = Found(
        levels,
        rejected.select("line", pl.col("fault").alias("reason"), "detail", "text"),
        IGNORED.to_frame(),
    )
    reading = reading_of_levels(path, "beaker", found, observed_until=observed_until or replies.taken_at)
    return replace(reading, rows_read=buckets.height, merged=int(is_good.sum()) - reading.runs.height)


def _buckets(replies: Replies, cluster: str | None, account_from: str) -> pl.DataFrame:
    """A row for each bucket, with `fault` and `detail`, null in a good one; Beaker leaves out what is 0 or false."""
    begins, ends = stamps(replies, _SPAN).values()
    gpu_s = read_numbers(pl.col("gpu_s"))
    buckets = replies.texts.with_columns(
        cluster="cluster" if cluster is None else pl.lit(cluster),
        account=account_from,
        from_at=begins.at,
        covers_s=(ends.at - begins.at).dt.total_seconds(),
        is_charged=(pl.col("allocated") == "true").fill_null(value=False),
        gpu_s=gpu_s.value.fill_null(0),
        bad_cell=gpu_s.fault,
        bad_stamp=begins.fault.fill_null(ends.fault),
    )
    lacks = pl.any_horizontal(pl.col(name).is_null() for name in ("cluster", "from_at", "covers_s"))
    return buckets.with_columns(
        fault=pl.coalesce(
            "bad_stamp",
            "bad_cell",
            pl.when(lacks).then(pl.lit("missing_value")),
            pl.when(pl.col("covers_s") <= 0).then(pl.lit("end_before_start")),
        ),
        detail=pl.when(lacks).then(pl.lit("cluster_id, bucket_start or bucket_end is empty")),
    )


def _levels(buckets: pl.DataFrame) -> pl.DataFrame:
    """One level for what the buckets tell apart and we do not, as interruptible or not."""
    summed = buckets.group_by("cluster", "account", "is_charged", "from_at", "covers_s", maintain_order=True).agg(
        pl.col("gpu_s").sum(), pl.col("line").min()
    )
    levels = summed.with_columns(held_gpus=pl.col("gpu_s") / pl.col("covers_s"))
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in LEVELS.items() if name not in levels.columns]
    return levels.with_columns(absent).select(LEVELS.names())
