"""Samples of how busy GPUs were, from a table of any format, and how long each of them stands for."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Self

import polars as pl
from pydantic import model_validator

from gpupolicy.ingest.canonical import UTILIZATION, Reading
from gpupolicy.ingest.moments import utc_without_zone
from gpupolicy.ingest.table.frames import Shape, read_frame
from gpupolicy.ingest.table.mapping import AnyDuration, AnyMapping, AnyMoment, AnyRatio, AnyText, Columns
from gpupolicy.ingest.table.mapping_files import load_mapping_as
from gpupolicy.ingest.text import digest_of

SERIES = ("cluster", "workload_id", "host", "gpu")
GAP = 1.5  # so many usual steps without a sample, and nothing is known of the time after one

_SAMPLES = Shape(
    UTILIZATION,
    key=(*SERIES, "sampled_at"),
    needed=(("cluster",), ("sampled_at",), ("utilization_ratio",), ("workload_id", "host")),
)


class UtilizationColumns(Columns):
    """The columns of a sample, as in canonical.UTILIZATION; without covers_s it is found from the steps."""

    workload_id: AnyText | None = None
    host: AnyText | None = None
    gpu: AnyText | None = None
    sampled_at: AnyMoment
    covers_s: AnyDuration | None = None
    utilization_ratio: AnyRatio

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if self.workload_id is None and self.host is None:
            raise ValueError("a sample needs workload_id or host")
        return self


class UtilizationMapping(AnyMapping):
    """How to read a table of samples."""

    columns: UtilizationColumns


def load_utilization_mapping(path: Path) -> UtilizationMapping:
    """Read the mapping of a table of samples; raises InvalidInput with every fault and its line."""
    return load_mapping_as(UtilizationMapping, path)


def read_utilization(
    path: Path,
    mapping: UtilizationMapping,
    *,
    cluster: str | None,
    timezone: str | None = None,
    observed_until: datetime | None = None,
) -> Reading:
    """Read samples from CSV, Parquet, JSON or NDJSON.

    A sample stands for the time to the next of its series (workload, host and GPU), but over a gap only for the
    usual step of the file. Arguments and refusals are those of read_table.
    """
    found = read_frame(path, mapping, shape=_SAMPLES, cluster=cluster, timezone=timezone)
    samples = _covering(found.accepted)
    return Reading(
        source="utilization",
        path=str(path),
        digest=digest_of(path),
        observed_until=utc_without_zone(observed_until) or _newest(samples),
        rows_read=found.rows_read,
        utilization=samples,
        rejected=found.rejected,
        ignored=found.ignored,
    )


def _covering(samples: pl.DataFrame) -> pl.DataFrame:
    """The samples with the time that each stands for where the file does not say it."""
    if not samples["covers_s"].has_nulls():
        return samples
    in_order = samples.sort(*SERIES, "sampled_at", "line", nulls_last=True)
    step_s = (pl.col("sampled_at").shift(-1).over(SERIES) - pl.col("sampled_at")).dt.total_milliseconds() / 1000
    stepped = in_order.with_columns(step_s=step_s)
    usual_s = stepped["step_s"].median()
    if not isinstance(usual_s, int | float):
        return samples
    within = pl.when(pl.col("step_s") <= GAP * usual_s).then("step_s").otherwise(usual_s)
    covered = stepped.with_columns(covers_s=pl.coalesce("covers_s", within.round().cast(pl.Int64)))
    return covered.sort("line").select(UTILIZATION.names())


def _newest(samples: pl.DataFrame) -> datetime | None:
    newest = samples.select(
        (pl.col("sampled_at") + pl.duration(seconds=pl.col("covers_s").fill_null(0), time_unit="ms")).max()
    ).item()
    return newest if isinstance(newest, datetime) else None
