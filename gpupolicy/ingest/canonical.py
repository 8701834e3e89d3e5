"""What every source gives: canonical frames, and what did not make it with its reason.

All moments are UTC without a zone, to the millisecond. Frames carry the line they came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

MOMENT = pl.Datetime("ms")

RUNS = pl.Schema(
    {
        "cluster": pl.String(),
        "workload_id": pl.String(),  # what was submitted: one id, any number of runs
        "submitted_at": MOMENT,
        "eligible_at": MOMENT,  # after dependencies and holds; null: never eligible, so no demand
        "started_at": MOMENT,  # null: never started
        "ended_at": MOMENT,  # null: still running or waiting when the log was taken
        "gpus": pl.Float64(),  # held or, while waiting, asked for; fractions to a millionth
        "gpu_type": pl.String(),
        "account": pl.String(),
        "user_name": pl.String(),
        "partition": pl.String(),
        "qos": pl.String(),
        "state": pl.String(),  # as the source says, upper case, first word
        "walltime_s": pl.Int64(),
        "minimum_runtime_s": pl.Int64(),  # null: the log does not say
        "is_resumable": pl.Boolean(),
        "is_charged": pl.Boolean(),
        "priority": pl.Int64(),
        "utilization_ratio": pl.Float64(),  # mean over the run, 0 to 1; null: not measured
        "hosts": pl.String(),
        "line": pl.Int64(),
    }
)

HOSTS = pl.Schema(
    {
        "cluster": pl.String(),
        "host": pl.String(),  # "*" stands for a cluster known only by its size
        "gpu_type": pl.String(),
        "gpus": pl.Float64(),
        "valid_from": MOMENT,
        "valid_to": MOMENT,  # null: open
        "line": pl.Int64(),
    }
)

OUTAGES = pl.Schema(
    {
        "cluster": pl.String(),
        "host": pl.String(),
        "state": pl.String(),  # down, drained or maintenance; draining is kept but takes nothing away
        "started_at": MOMENT,
        "ended_at": MOMENT,  # null: open
        "reason": pl.String(),
        "line": pl.Int64(),
    }
)

UTILIZATION = pl.Schema(
    {
        "cluster": pl.String(),
        "workload_id": pl.String(),  # null: only the host is known, or nobody held the GPU
        "host": pl.String(),  # null: only the workload is known
        "gpu": pl.String(),  # index or UUID, as the source says; null: a mean over all GPUs of the workload or host
        "sampled_at": MOMENT,
        "covers_s": pl.Int64(),  # the sample stands for [sampled_at, sampled_at + covers_s); gaps are not covered
        "utilization_ratio": pl.Float64(),  # 0 to 1
        "line": pl.Int64(),
    }
)

REJECTED = pl.Schema({"line": pl.Int64(), "reason": pl.String(), "detail": pl.String(), "text": pl.String()})
FLAGGED = pl.Schema({"flag": pl.String(), "workload_id": pl.String(), "line": pl.Int64()})
IGNORED = pl.Schema({"reason": pl.String(), "rows": pl.Int64(), "example_line": pl.Int64()})


@dataclass(frozen=True)
class Reading:
    """One file as read: accepted + ignored + rejected = rows_read."""

    source: str
    path: str
    digest: str  # SHA-256 of the bytes
    observed_until: datetime | None  # the moment the log was taken; open runs count up to here
    rows_read: int
    runs: pl.DataFrame = field(default_factory=RUNS.to_frame)
    set_aside: pl.DataFrame = field(default_factory=RUNS.to_frame)  # accepted and shown, in no total: flagged says why
    hosts: pl.DataFrame = field(default_factory=HOSTS.to_frame)
    outages: pl.DataFrame = field(default_factory=OUTAGES.to_frame)
    utilization: pl.DataFrame = field(default_factory=UTILIZATION.to_frame)
    rejected: pl.DataFrame = field(default_factory=REJECTED.to_frame)
    ignored: pl.DataFrame = field(default_factory=IGNORED.to_frame)
    flagged: pl.DataFrame = field(default_factory=FLAGGED.to_frame)  # accepted, with something odd
    merged: int = 0  # accepted records that went on in the row of another one: samples of one run, events of one run
    notices: tuple[str, ...] = ()

    @property
    def accepted(self) -> int:
        frames = (self.runs, self.set_aside, self.hosts, self.outages, self.utilization)
        return sum(frame.height for frame in frames) + self.merged
