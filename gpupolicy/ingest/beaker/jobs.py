"""Beaker's jobs into runs: a job is one attempt of a workload, and holds its GPUs from being scheduled on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

import polars as pl

from gpupolicy.ingest.beaker.replies import Replies, read_replies, stamps
from gpupolicy.ingest.canonical import IGNORED, RUNS, Reading
from gpupolicy.ingest.moments import Moments
from gpupolicy.ingest.parts import Part, flagged, reading_of_runs
from gpupolicy.ingest.run_moments import early_start_flags, newest_of
from gpupolicy.ingest.table.cells import read_numbers
from gpupolicy.ingest.text import refusal

AccountFrom = Literal["budget", "workspace", "author"]

PRIORITIES = {
    "LOW": 1,
    "NORMAL": 2,
    "HIGH": 3,
    "URGENT": 4,
    "IMMEDIATE": 5,
    **{str(number): number for number in range(1, 6)},
}
STATES = {  # of a job that was cancelled, by the code's name and by its number
    "SYSTEM_PREEMPTION": "PREEMPTED", "1": "PREEMPTED", "USER_PREEMPTION": "PREEMPTED", "2": "PREEMPTED",
    "SIBLING_TASK_PREEMPTION": "PREEMPTED", "9": "PREEMPTED", "TIMEOUT": "TIMEOUT", "5": "TIMEOUT",
    "NODE_UNAVAILABLE": "NODE_FAIL", "6": "NODE_FAIL", "HEALTHCHECK_FAILED": "NODE_FAIL", "10": "NODE_FAIL",
    "NODE_UNHEALTHY": "NODE_FAIL", "12": "NODE_FAIL",
}  # fmt: skip
DOUBLINGS = 20  # of the steps along a chain of attempts: for more attempts than a workload can have

_TIMES = ("created", "scheduled", "started", "exited", "failed", "finalized", "canceled")
_FIELDS = {
    **{name: (f"status.{name}",) for name in _TIMES},
    "job": ("id",),
    "ancestor": ("retry_ancestor_id", "retryAncestorId"),
    "budget": ("budget_id", "budgetId"),
    "workspace": ("workspace_reference", "workspaceReference", "execution.workspace", "workspace_id", "workspaceId"),
    "author": ("author_reference", "authorReference", "author.name", "author_id", "authorId"),
    "assigned": (
        "count of assignment_details.resource_assignment.gpus",
        "count of assignmentDetails.resourceAssignment.gpus",
        "count of limits.gpus",
    ),
    "requested": (
        "container_spec.resource_request.gpu_count",
        "containerSpec.resourceRequest.gpuCount",
        "requests.gpuCount",
    ),
    "host": ("assignment_details.node_id", "assignmentDetails.nodeId", "node"),
    "priority": ("system_details.priority", "systemDetails.priority", "priority"),
    "minimum": ("system_details.min_runtime", "systemDetails.minRuntime"),
    "resumes": ("system_details.auto_resume", "systemDetails.autoResume"),
    "timeout": ("system_details.timeout", "systemDetails.timeout"),
    "exit_code": ("status.exit_code", "status.exitCode"),
    "canceled_code": ("status.canceled_code", "status.canceledCode"),
    "environment": ("environment_id", "environmentId"),
    "kind": ("kind",),
}


def read_beaker_jobs(
    path: Path,
    *,
    cluster: str | None,
    account_from: AccountFrom = "budget",
    observed_until: datetime | None = None,
) -> Reading:
    """Read jobs from a saved reply of ListJobs, of fetch_beaker, or of Beaker's older REST interface.

    The account is the id of the budget, or the name of the workspace or of the author. Attempts of one workload
    have one id. GPUs are those assigned, those asked for only where nothing was; they are held until the work
    exited, not until its results were stored. A minimum runtime of 0 is free. Sessions are in the partition
    `interactive`. Raises UnreadableLog for a file that is refused whole.
    """
    replies = read_replies(path, ("jobs", "data"), _FIELDS)
    if cluster is None:
        raise refusal(path, "missing_column", "a job does not name its cluster; name it with --cluster")
    runs = _runs(replies, cluster, account_from)
    is_good = runs["fault"].is_null()
    good = runs.filter(is_good)
    rejected = runs.with_columns(text=replies.written).filter(~is_good)
    part = Part(
        runs=good.select(RUNS.names()),
        rejected=rejected.select("line", pl.col("fault").alias("reason"), "detail", "text"),
        ignored=IGNORED.to_frame(),
        flagged=flagged(good),
        newest=newest_of(good),
    )
    return reading_of_runs(path, "beaker", [part], observed_until=observed_until or replies.taken_at)


def _runs(replies: Replies, cluster: str | None, account_from: AccountFrom) -> pl.DataFrame:
    """RUNS, with `fault` and `detail`, null in a good row, and a column for each flag."""
    moments = stamps(replies, _TIMES)
    jobs = replies.texts.with_columns(
        *(moment.at.alias(name) for name, moment in moments.items()),
        *_bad_stamps(replies.texts, moments),
        workload_id=_first_attempts(replies.texts),
    )
    runs = jobs.with_columns(
        cluster=pl.lit(cluster, pl.String),
        submitted_at="created",
        eligible_at="created",
        started_at=pl.coalesce("scheduled", "started"),
        account=account_from,
        user_name="author",
        hosts="host",
        partition=pl.when(_is_session()).then(pl.lit("interactive")),
        priority=_name("priority", "JOB_PRIORITY_").replace_strict(PRIORITIES, default=None, return_dtype=pl.Int64),
        **_contract(),
    )
    runs = runs.with_columns(ended_at=_ended_at(), **_gpus()).with_columns(state=_state(), **early_start_flags())
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in RUNS.items() if name not in runs.columns]
    return runs.with_columns(absent).with_columns(_faults())


def _bad_stamps(jobs: pl.DataFrame, moments: Mapping[str, Moments]) -> list[pl.Series]:
    """The fault of the first time that is none, and what stands in its place."""
    faults = pl.DataFrame({name: moment.fault for name, moment in moments.items()})
    texts = [
        pl.when(pl.col(name).is_not_null()).then(pl.format("status.{} '{}'", pl.lit(name), jobs[name]))
        for name in moments
    ]
    told = faults.select(bad_stamp=pl.coalesce(pl.all()), bad_text=pl.coalesce(texts))
    return [told["bad_stamp"], told["bad_text"]]


def _first_attempts(jobs: pl.DataFrame) -> pl.Series:
    """The first job that a job is an attempt of, by way of those in between; itself if it is the first."""
    first = jobs.select("job", first=pl.coalesce("ancestor", "job")).drop_nulls().unique("job", keep="last")
    for _ in range(DOUBLINGS):
        further = first["first"].replace(dict(first.iter_rows()))
        if further.equals(first["first"]):
            break
        first = first.with_columns(first=further)
    return jobs["job"].replace(dict(first.iter_rows()))


def _is_session() -> pl.Expr:
    return pl.col("environment").is_not_null() | (pl.col("kind") == "session").fill_null(value=False)


def _contract() -> dict[str, pl.Expr]:
    """Beaker leaves a truth out where it is false, so auto_resume is no where a minimum runtime is told."""
    minimum_s = _seconds("minimum")
    is_told = pl.col("minimum").is_not_null()
    return {
        "walltime_s": _seconds("timeout"),
        "minimum_runtime_s": minimum_s,
        "is_charged": (minimum_s != 0).fill_null(value=True),
        "is_resumable": pl.coalesce(pl.col("resumes") == "true", pl.when(is_told).then(pl.lit(value=False))),
    }


def _seconds(name: str) -> pl.Expr:
    return read_numbers(pl.col(name).str.strip_suffix("s")).value.round().cast(pl.Int64)


def _ended_at() -> pl.Expr:
    """A job that never ran ended when it was given up; one that is being stopped still holds its GPUs."""
    has_run = pl.col("started_at").is_not_null()
    given_up = pl.coalesce("finalized", "canceled", "failed")
    return pl.when(has_run).then(pl.coalesce("exited", "finalized")).otherwise(given_up)


def _gpus() -> dict[str, pl.Expr]:
    has_run = pl.col("started_at").is_not_null()
    assigned = pl.when(has_run).then(read_numbers(pl.col("assigned")).value)
    requested = read_numbers(pl.col("requested")).value.fill_null(0)
    return {
        "gpus": pl.coalesce(assigned, requested),
        "allocation_from_request": has_run & assigned.is_null() & (requested > 0),
    }


def _state() -> pl.Expr:
    """In Slurm's words: the times tell more than the status, which may lag behind them."""
    has_run, has_ended = pl.col("started_at").is_not_null(), pl.col("ended_at").is_not_null()
    cancelled = _name("canceled_code", "CANCELATION_CODE_").replace_strict(STATES, default="CANCELLED")
    has_failed = pl.col("failed").is_not_null() | (pl.col("exit_code") != "0").fill_null(value=False)
    return (
        pl.when(~has_ended)
        .then(pl.when(has_run).then(pl.lit("RUNNING")).otherwise(pl.lit("PENDING")))
        .when(pl.col("canceled").is_not_null())
        .then(cancelled)
        .when(has_failed)
        .then(pl.lit("FAILED"))
        .when(has_run)
        .then(pl.lit("COMPLETED"))
        .otherwise(pl.lit("CANCELLED"))
    )


def _name(name: str, prefix: str) -> pl.Expr:
    return pl.col(name).str.to_uppercase().str.strip_prefix(prefix)


def _faults() -> list[pl.Expr]:
    needed = {"job": "id", "submitted_at": "status.created"}
    lacking = pl.coalesce(pl.when(pl.col(name).is_null()).then(pl.lit(theirs)) for name, theirs in needed.items())
    is_backward = pl.col("ended_at") < pl.col("started_at")
    bad_number = read_numbers(pl.col("requested")).fault
    return [
        pl.coalesce(
            "bad_stamp",
            bad_number,
            pl.when(lacking.is_not_null()).then(pl.lit("missing_value")),
            pl.when(is_backward).then(pl.lit("end_before_start")),
        ).alias("fault"),
        pl.coalesce("bad_text", pl.format("{} is empty", lacking)).alias("detail"),
    ]
