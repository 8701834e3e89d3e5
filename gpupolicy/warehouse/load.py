"""A file as read, into the store: whole or not at all, and twice the same as once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from gpupolicy.warehouse.store import sql, writing


@dataclass(frozen=True, slots=True)
class Batch:
    """Where rows come from and how many of them did what; accepted + ignored + rejected = rows_read."""

    source: str
    path: str
    digest: str
    observed_until: datetime | None
    rows_read: int
    accepted: int
    ignored: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load changed in the store: rows that are new, rows with a better record now, and the rest."""

    new: int
    changed: int
    unchanged: int

    @property
    def is_without_effect(self) -> bool:
        return self.new == 0 and self.changed == 0


def load(
    store: Path,
    batch: Batch,
    *,
    runs: pl.DataFrame,
    hosts: pl.DataFrame,
    outages: pl.DataFrame,
    rejected: pl.DataFrame,
    loaded_at: datetime,
) -> Loaded:
    """Load one file's canonical frames in one transaction, roll-ups included.

    Loading a file again changes nothing; a later log replaces the runs that were still open.
    """
    with writing(store) as connection:
        batch_id = _next_batch_id(connection)
        loaded = [
            _load_runs(connection, batch, batch_id, runs),
            _load_capacity(connection, batch_id, "hosts", hosts),
            _load_capacity(connection, batch_id, "outages", outages),
        ]
        kept = _keep_rejected(connection, batch, batch_id, rejected)
        total = Loaded(
            *(sum(counts) for counts in zip(*((one.new, one.changed, one.unchanged) for one in loaded), strict=True))
        )
        if kept or not total.is_without_effect:
            _record(connection, batch, batch_id, loaded_at)
    return total


def _next_batch_id(connection: duckdb.DuckDBPyConnection) -> int:
    ((newest,),) = connection.execute("select coalesce(max(batch_id), 0) from batch").fetchall()
    return int(newest) + 1


def _load_runs(connection: duckdb.DuckDBPyConnection, batch: Batch, batch_id: int, runs: pl.DataFrame) -> Loaded:
    if runs.is_empty():
        return Loaded(0, 0, 0)
    connection.register("incoming", runs.to_arrow())
    parameters = {"observed_until": batch.observed_until, "batch_id": batch_id}
    _stage(connection, "stg_runs", "staging/stg_runs", parameters)
    for name in ("run_arriving", "run_leaving", "hourly_delta"):
        _stage(connection, name, f"marts/{name}")
    ((new, changed, arriving, staged),) = connection.execute(sql("queries/load_counts")).fetchall()
    if arriving:
        for name in ("core_run_left", "core_run", "core_claimant", "out_hourly"):
            connection.execute(sql(f"marts/{name}")).fetchall()
    return Loaded(new, changed, staged - new - changed)


def _load_capacity(connection: duckdb.DuckDBPyConnection, batch_id: int, what: str, frame: pl.DataFrame) -> Loaded:
    if frame.is_empty():
        return Loaded(0, 0, 0)
    core = f"core_{what.removesuffix('s')}"
    before = _row_count(connection, core)
    connection.register(f"incoming_{what}", frame.to_arrow())
    _stage(connection, f"stg_{what}", f"staging/stg_{what}")
    ((touched,),) = connection.execute(sql(f"marts/{core}"), {"batch_id": batch_id}).fetchall()
    new = _row_count(connection, core) - before
    return Loaded(new, touched - new, frame.height - touched)


def _keep_rejected(connection: duckdb.DuckDBPyConnection, batch: Batch, batch_id: int, rejected: pl.DataFrame) -> int:
    if rejected.is_empty():
        return 0
    connection.register("incoming_rejected", rejected.to_arrow())
    parameters = {"batch_id": batch_id, "path": batch.path, "digest": batch.digest}
    ((kept,),) = connection.execute(sql("marts/raw_rejected"), parameters).fetchall()
    return int(kept)


def _record(connection: duckdb.DuckDBPyConnection, batch: Batch, batch_id: int, loaded_at: datetime) -> None:
    values = [
        batch_id, batch.source, batch.path, batch.digest, batch.observed_until, batch.rows_read, batch.accepted,
        batch.ignored, batch.rejected, loaded_at,
    ]  # fmt: skip
    connection.execute(sql("marts/batch"), values)


def _stage(
    connection: duckdb.DuckDBPyConnection, name: str, query: str, parameters: dict[str, Any] | None = None
) -> None:
    connection.execute(f"create or replace temp table {name} as\n{sql(query)}", parameters)


def _row_count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    ((rows,),) = connection.execute(f"select count(*) from {table}").fetchall()  # noqa: S608 - our own table names
    return int(rows)
