"""Speed as ratios within one run: `python tests/benchmarks/run.py [--rows N] [--repeat N]`.

Each entry times our work and a yardstick on the same data, in turn, and prints the ratio of the medians;
seconds are for orientation only. The goals are those of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

from gpupolicy import cycle
from gpupolicy.ingest import read_slurm
from gpupolicy.warehouse.store import sql

FIELDS = "JobIDRaw|Cluster|Account|User|Partition|QOS|State|Submit|Eligible|Start|End|TimelimitRaw|AllocTRES|ReqTRES"
DAYS = 365
PROJECTS = 200


@dataclass(frozen=True)
class Entry:
    what: str
    yardstick: str
    ratio: float
    seconds: float
    yardstick_seconds: float
    goal: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--repeat", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = write_sacct(Path(folder) / "sacct.psv", given.rows)
        entries = [
            compare_ingest(path, Path(folder), given.repeat),
            compare_sweep(path, given.repeat),
        ]
    print(f"{given.rows:,} rows, {given.repeat} times in turn, median; Python and DuckDB {duckdb.__version__}\n")
    print(f"{'what':<46} {'against':<34} {'ratio':>6} {'goal':>6} {'s':>7} {'s':>7}")
    for one in entries:
        print(
            f"{one.what:<46} {one.yardstick:<34} {one.ratio:>6.2f} {one.goal:>6.1f} "
            f"{one.seconds:>7.2f} {one.yardstick_seconds:>7.2f}"
        )
    print(f"\npeak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


def compare_ingest(path: Path, folder: Path, repeat: int) -> Entry:
    """The whole way from the file to a published store, roll-ups included, against reading the file."""
    stores = iter(folder / f"store{number}" for number in range(repeat))

    def ingest() -> None:
        cycle.ingest(next(stores), read_slurm(path, cluster=None), loaded_at=datetime.now(UTC))

    def read_csv() -> None:
        with duckdb.connect() as connection:
            connection.execute(f"create table jobs as select * from read_csv('{path}', delim = '|')")

    return _compare("ingest slurm", "DuckDB's bare read_csv", ingest, read_csv, repeat, goal=2.5)


def compare_sweep(path: Path, repeat: int) -> Entry:
    """Hourly usage and demand of all runs by sweep, against one scan of the same runs."""
    runs = read_slurm(path, cluster=None)
    with duckdb.connect() as connection:
        connection.register("incoming", runs.runs.to_arrow())
        parameters = {"observed_until": runs.observed_until, "batch_id": 1}
        connection.execute(f"create table run_arriving as {sql('staging/stg_runs')}", parameters)
        connection.execute("create table run_leaving as select * from run_arriving limit 0")

        def sweep() -> None:
            connection.execute(f"create or replace table hourly as {sql('marts/hourly_delta')}")

        def scan() -> None:
            connection.execute(
                "create or replace table summed as select account, sum(gpus * epoch(ended_at - started_at)) as gpu_s "
                "from run_arriving group by account"
            )

        return _compare(
            "hourly usage and demand by sweep", "one scan that sums GPU-seconds", sweep, scan, repeat, goal=10
        )


def _compare(
    what: str, yardstick: str, ours: Callable[[], None], theirs: Callable[[], None], repeat: int, *, goal: float
) -> Entry:
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(repeat)]
    mine, other = (statistics.median(times) for times in zip(*pairs, strict=True))
    return Entry(what, yardstick, mine / other, mine, other, goal)


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def write_sacct(path: Path, rows: int) -> Path:
    """A year of `sacct -P` rows: 200 projects, log-normal runtimes of some hours, 1 to 64 GPUs."""
    random = np.random.default_rng(7)
    submit = np.sort(random.integers(0, DAYS * 86400, rows))
    start = submit + random.exponential(1800, rows).astype("int64")
    end = start + np.exp(random.normal(8.5, 1.2, rows)).astype("int64")
    gpus = random.choice([1, 2, 4, 8, 16, 64], rows, p=[0.45, 0.15, 0.15, 0.18, 0.05, 0.02])
    project = random.integers(0, PROJECTS, rows)
    base = np.datetime64("2026-01-01T00:00:00", "s")
    tres = pl.format("billing={},cpu=8,gres/gpu:h100={},gres/gpu={},mem=64G,node=1", "gpus", "gpus", "gpus")
    moments = {"submit": submit, "start": start, "end": end}
    stamp = "%Y-%m-%dT%H:%M:%S"
    frame = pl.DataFrame(
        {"id": np.arange(rows), "gpus": gpus, "project": project}
        | {name: (base + at).astype("datetime64[ms]") for name, at in moments.items()}
    ).select(
        pl.col("id"),
        pl.lit("jupiter"),
        pl.format("project{}", "project").alias("account"),
        pl.format("user{}", pl.col("project") * 3 + pl.col("id") % 3).alias("user"),
        pl.lit("batch").alias("partition"),
        pl.when(pl.col("id") % 5 == 0).then(pl.lit("free")).otherwise(pl.lit("funded")).alias("qos"),
        pl.lit("COMPLETED").alias("state"),
        pl.col("submit").dt.strftime(stamp),
        pl.col("submit").dt.strftime(stamp).alias("eligible"),
        pl.col("start").dt.strftime(stamp),
        pl.col("end").dt.strftime(stamp),
        pl.lit(1440).alias("limit"),
        tres.alias("alloc"),
        tres.alias("req"),
    )
    with path.open("wb") as file:
        file.write(FIELDS.encode() + b"\n")
        frame.write_csv(file, include_header=False, separator="|", quote_style="never")
    return path


if __name__ == "__main__":
    main()
