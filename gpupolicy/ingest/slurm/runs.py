"""The columns of sacct into runs, whole columns at a time, with what is wrong or odd about each row."""

from __future__ import annotations

import re
from datetime import datetime

import polars as pl

from gpupolicy.ingest.canonical import MOMENT
from gpupolicy.ingest.distinct import each_once
from gpupolicy.ingest.moments import read_moments
from gpupolicy.ingest.run_moments import STAMPS, early_start_flags, newest_of, run_moments
from gpupolicy.ingest.slurm.durations import durations_s
from gpupolicy.ingest.slurm.settings import Settings
from gpupolicy.ingest.slurm.states import ENDED, KNOWN_STATES, RAN
from gpupolicy.ingest.slurm.tres import counts, gres_gpus, tres_cpus, tres_gpus

STAMP_FIELDS = dict(zip(STAMPS, ("Submit", "Eligible", "Start", "End"), strict=True))

_NO_HOSTS = ("None assigned", "None", "(null)")


def sacct_runs(jobs: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Runs as in RUNS; with `fault`, null in a good row, `overdue_at`, and a column for each flag.

    `jobs` holds sacct's texts under sacct's names, and `line`; a field that was not asked for is missing.
    """
    parts = [
        _names(jobs, settings.cluster),
        _moments(jobs, settings.timezone),
        _resources(jobs, settings),
        _contract(jobs, settings.free_qos),
    ]
    runs = pl.concat(parts, how="horizontal")
    runs = runs.with_columns(started_at=pl.when(~_never_started()).then("started_at"))
    runs = runs.with_columns(*_gpus(), *_eligible(jobs))
    return runs.with_columns(**_flags(settings), fault=_fault(), overdue_at=_overdue_at(settings))


def newest_moment(jobs: pl.DataFrame, runs: pl.DataFrame) -> datetime | None:
    """The last moment that the records prove, and be it by how long an open run had run."""
    is_open = runs["started_at"].is_not_null() & runs["ended_at"].is_null()
    ran_until = runs.filter(is_open)["started_at"] + _elapsed_ms(jobs.filter(is_open)).cast(pl.Duration("ms"))
    newest = [newest_of(runs), ran_until.max()]
    return max((moment for moment in newest if isinstance(moment, datetime)), default=None)


# Fields


def field(jobs: pl.DataFrame, *names: str) -> pl.Expr:
    """The first of the fields that a row has; null if the file has none of them."""
    there = [pl.col(name) for name in names if name in jobs.columns]
    return pl.coalesce(*there) if there else pl.lit(None, pl.String)


def texts(jobs: pl.DataFrame, *names: str) -> pl.Series:
    return jobs.select(field(jobs, *names).alias("text"), "line").to_series()


def _names(jobs: pl.DataFrame, cluster: str | None) -> pl.DataFrame:
    hosts = field(jobs, "NodeList")
    return jobs.select(
        "line",
        cluster=field(jobs, "Cluster") if cluster is None else pl.lit(cluster),
        workload_id=field(jobs, "JobIDRaw", "JobID"),
        account=field(jobs, "Account"),
        user_name=field(jobs, "User"),
        partition=field(jobs, "Partition"),
        qos=field(jobs, "QOS"),
        state=field(jobs, "State").str.extract(r"^\s*([^\s+]+)").str.to_uppercase(),  # CANCELLED by 992
        priority=field(jobs, "Priority").cast(pl.Int64, strict=False),
        hosts=pl.when(~hosts.is_in(_NO_HOSTS)).then(hosts),
        walltime_s=_walltime_s(jobs),
    )


def _walltime_s(jobs: pl.DataFrame) -> pl.Series:
    """A word instead of a limit is a missing number (case sa-02)."""
    told = each_once(texts(jobs, "Timelimit"), lambda known: known.with_columns(limit_s=durations_s(pl.col("text"))))
    minutes = texts(jobs, "TimelimitRaw").cast(pl.Int64, strict=False)
    return (minutes * 60).fill_null(told["limit_s"])


def _moments(jobs: pl.DataFrame, timezone: str) -> pl.DataFrame:
    stamps = jobs.select("line", **{name: field(jobs, asked) for name, asked in STAMP_FIELDS.items()})
    moments = read_moments(stamps.drop("line"), timezone=timezone)
    return run_moments(moments, lambda mask: _elapsed_ms(jobs.filter(mask)))


def _elapsed_ms(jobs: pl.DataFrame) -> pl.Series:
    """From start to end: sacct's elapsed time leaves out suspension."""
    told = jobs.select(
        "line",
        elapsed_s=field(jobs, "ElapsedRaw").cast(pl.Int64, strict=False).fill_null(durations_s(field(jobs, "Elapsed"))),
        suspended_s=_suspended_s(jobs),
    )
    return (told["elapsed_s"] + told["suspended_s"]) * 1000


def _suspended_s(jobs: pl.DataFrame) -> pl.Expr:
    return durations_s(field(jobs, "Suspended")).fill_null(0)


def _resources(jobs: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """What was allocated and what was asked for; null where the record does not say."""
    if settings.count == "gpus":
        held, asked = (
            tres_gpus(texts(jobs, name), mig_rule=settings.mig_rule, shards_per_gpu=settings.shards_per_gpu)
            for name in ("AllocTRES", "ReqTRES")
        )
        if "AllocGRES" in jobs.columns:
            held = _filled(held, gres_gpus(texts(jobs, "AllocGRES")))
    else:
        held, asked = counts(texts(jobs, "AllocCPUS", "NCPUS")), counts(texts(jobs, "ReqCPUS", "NCPUS"))
        held = _filled(held, tres_cpus(texts(jobs, "AllocTRES")))
        asked = _filled(asked, tres_cpus(texts(jobs, "ReqTRES")))
    asked = asked.select(asked="held", asked_type="gpu_type", asked_is_bad="is_bad")
    more = jobs.select("line", has_allocation=_has_allocation(jobs), tasks=_tasks(jobs), suspended_s=_suspended_s(jobs))
    return pl.concat([held, asked, more.drop("line")], how="horizontal")


def _filled(held: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    is_told = held["held"].is_not_null() | held["is_bad"]
    return held.select(pl.when(is_told).then(held[name]).otherwise(other[name]).alias(name) for name in held.columns)


def _has_allocation(jobs: pl.DataFrame) -> pl.Expr:
    if "AllocTRES" in jobs.columns:
        return pl.col("AllocTRES").is_not_null()
    return ~field(jobs, "NodeList").is_in(_NO_HOSTS).fill_null(value=True)


def _tasks(jobs: pl.DataFrame) -> pl.Series:
    """How many workloads a record stands for: more than one in that of an array's waiting tasks (case sa-06)."""
    if "PendingTasks" in jobs.columns:  # our own name for what Slurm's database and JSON say in numbers
        return jobs["PendingTasks"].cast(pl.Int64).fill_null(1)
    ids = texts(jobs, "JobID")
    waiting = ids.str.contains("_[", literal=True).fill_null(value=False).arg_true()
    tasks = pl.repeat(1, len(ids), dtype=pl.Int64, eager=True)
    return tasks.scatter(waiting, [array_tasks(text) for text in ids.gather(waiting)])


def array_tasks(job_id: str) -> int:
    """The tasks in `600_[1,3,5-7]` or `602_[0-10:5%2]`; what stands after % is a throttle."""
    listed = job_id.partition("[")[2].rstrip("]").partition("%")[0]
    spans = re.findall(r"(\d+)(?:-(\d+)(?::(\d+))?)?", listed)
    return sum(len(range(int(first), int(last or first) + 1, int(step or 1))) for first, last, step in spans)


def _contract(jobs: pl.DataFrame, free_qos: frozenset[str]) -> pl.DataFrame:
    """What our own words in the comments say: `minrt=900 resumable=yes`, and `gpu_util=87.5` by an epilog."""
    said = each_once(
        texts(jobs, "Comment"),
        lambda known: known.with_columns(
            minimum_runtime_s=pl.col("text").str.extract(r"\bminrt=(\d+)\b").cast(pl.Int64, strict=False),
            is_resumable=pl.col("text").str.extract(r"\bresumable=(yes|no)\b") == "yes",
        ),
    )
    noted = each_once(
        texts(jobs, "AdminComment"),
        lambda known: known.with_columns(
            percent=pl.col("text").str.extract(r"\bgpu_util=(\d+(?:\.\d+)?)").cast(pl.Float64)
        ),
    )
    is_free = texts(jobs, "QOS").is_in(list(free_qos)) | (said["minimum_runtime_s"] == 0)
    return said.drop("text").with_columns(
        is_charged=~is_free.fill_null(value=False), utilization_ratio=noted["percent"] / 100
    )


# What they come to


def _never_started() -> pl.Expr:
    """A waiting job holds nothing, nor one cancelled in the moment of its start without an allocation (sa-11)."""
    at_once = (pl.col("state") == "CANCELLED") & (pl.col("started_at") == pl.col("ended_at"))
    waits = pl.col("state") == "PENDING"
    return (waits | (at_once & ~pl.col("has_allocation"))).fill_null(value=False)


def _gpus() -> list[pl.Expr]:
    """What was held, of a run that started; what was asked for, of one that did not (case sa-09)."""
    has_started = pl.col("started_at").is_not_null()
    asked = pl.col("asked") * pl.col("tasks")
    return [
        pl.when(has_started)
        .then(pl.coalesce("held", "asked"))
        .otherwise(pl.coalesce(asked, "held"))
        .fill_null(0)
        .alias("gpus"),
        pl.when(has_started).then(pl.coalesce("gpu_type", "asked_type")).otherwise("asked_type").alias("gpu_type"),
        pl.when(has_started).then("is_bad").otherwise("asked_is_bad").alias("has_bad_count"),
    ]


def _eligible(jobs: pl.DataFrame) -> list[pl.Expr]:
    """What has started was eligible; without the field everything was, from its submission."""
    has_field = "Eligible" in jobs.columns
    has_started = pl.col("started_at").is_not_null()
    from_submit = (has_started | (not has_field)) & pl.col("eligible_at").is_null()
    return [
        pl.when(from_submit).then("submitted_at").otherwise("eligible_at").alias("eligible_at"),
        (from_submit & has_field).alias("wait_from_submit"),
    ]


def _flags(settings: Settings) -> dict[str, pl.Expr]:
    has_started = pl.col("started_at").is_not_null()
    is_silent = has_started & pl.col("held").is_null() & ~pl.col("is_bad")
    is_untracked = has_started & (_is_untracked(settings) | pl.col("has_uncounted"))
    return {
        "unknown_state": ~pl.col("state").is_in(list(KNOWN_STATES)).fill_null(value=True),
        "ambiguous_local_time": pl.col("is_ambiguous"),
        **early_start_flags(),
        "allocation_from_request": is_silent & pl.col("asked").is_not_null() & ~is_untracked,
        "gpu_count_unknown": (is_silent & pl.col("asked").is_null()) | is_untracked,
    }


def _is_untracked(settings: Settings) -> pl.Expr:
    """A run in a partition that has nothing but GPUs holds some, whether Slurm tracks them or not (case sa-09)."""
    if settings.count != "gpus":
        return pl.lit(value=False)
    return (pl.col("gpus") == 0) & pl.col("partition").is_in(list(settings.gpu_only_partitions)).fill_null(value=False)


def _overdue_at(settings: Settings) -> pl.Expr:
    """When an open run should have ended; null if nothing says (case sa-16).

    Its limit stands still while it is suspended.
    """
    if settings.overrun_grace_h is None:
        return pl.lit(None, MOMENT)
    grace_s = round(settings.overrun_grace_h * 3600)
    is_open = pl.col("ended_at").is_null() & (pl.col("state") != "SUSPENDED").fill_null(value=True)
    allowed_ms = (pl.col("walltime_s") + pl.col("suspended_s") + grace_s) * 1000
    return pl.when(is_open).then(pl.col("started_at") + allowed_ms.cast(pl.Duration("ms")))


def _fault() -> pl.Expr:
    """Why a row is not trusted: the first that holds."""
    has_no = {name: pl.col(name).is_null() for name in ("cluster", "workload_id", *STAMPS)}
    is_over = pl.col("state").is_in(list(ENDED)) & has_no["ended_at"]
    has_run = pl.col("state").is_in(list(RAN)) & has_no["started_at"]
    return (
        pl.when(pl.col("fault").is_not_null())
        .then("fault")
        .when(has_no["cluster"] | has_no["workload_id"] | has_no["submitted_at"])
        .then(pl.lit("missing_value"))
        .when("has_bad_count")
        .then(pl.lit("bad_number"))
        .when(pl.col("ended_at") < pl.col("started_at"))
        .then(pl.lit("end_before_start"))
        .when(is_over | has_run)  # says that it ran or is over, but not when (case sa-11)
        .then(pl.lit("bad_time"))
    )
