"""The store's files: one writer under a lock, and a published copy that everybody reads."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from gpupolicy.errors import EnvironmentTrouble, StoreBusy, StoreMissing, StoreTooNew

USAGE = "usage.duckdb"
PUBLISHED = "published.duckdb"
LOCK = "usage.lock"

_MIGRATION = re.compile(r"(\d{3})_\w+\.sql")
_FILES = resources.files("gpupolicy.warehouse")


class Reader:
    """A short-lived, read-only look at the published copy; polars frames can be joined in by name."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def rows(
        self, question: str, parameters: Mapping[str, Any] | None = None, **frames: pl.DataFrame
    ) -> list[tuple[Any, ...]]:
        """The answer of sql/queries/QUESTION.sql as Python values; whole numbers stay exact."""
        self._register(frames)
        with _told_as_ours(question):
            return self._connection.execute(sql(f"queries/{question}"), dict(parameters or {})).fetchall()

    def frame(self, question: str, parameters: Mapping[str, Any] | None = None, **frames: pl.DataFrame) -> pl.DataFrame:
        """The answer of sql/queries/QUESTION.sql as a frame."""
        self._register(frames)
        with _told_as_ours(question):
            return self._connection.sql(sql(f"queries/{question}"), params=dict(parameters or {})).pl()

    def _register(self, frames: Mapping[str, pl.DataFrame]) -> None:
        for name, frame in frames.items():
            self._connection.register(name, frame.to_arrow())


@contextmanager
def reading(store: Path) -> Iterator[Reader]:
    """Open the published copy. Readers never meet a lock and never see half a batch.

    Raises StoreMissing or StoreTooNew.
    """
    published = store / PUBLISHED
    if not published.is_file():
        raise StoreMissing(f"no store at {store}: load usage into it with `gpupolicy ingest`, or try `gpupolicy demo`")
    with _connected(published, read_only=True) as connection:
        _refuse_newer(store, _version(connection))
        yield Reader(connection)


@contextmanager
def writing(store: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """One transaction on the usage file, under the writer's lock; published when it has been committed.

    The store is made or brought up to date first. Raises StoreBusy if another process is writing.
    """
    with _locked(store):
        with _connected(store / USAGE, read_only=False) as connection:
            _migrate(store, connection)
            connection.execute("begin")
            with _told_as_ours(f"{store} was left as it was"):
                try:
                    yield connection
                except BaseException:
                    connection.execute("rollback")
                    raise
                connection.execute("commit")
                connection.execute("checkpoint")
        _publish(store)


@contextmanager
def _told_as_ours(what: str) -> Iterator[None]:
    """DuckDB's complaints end a command as trouble of the store, not as a traceback."""
    try:
        yield
    except duckdb.Error as trouble:
        raise EnvironmentTrouble(f"the store cannot do this: {_first_line(trouble)} ({what})") from trouble


def sql(name: str) -> str:
    """The text of sql/NAME.sql."""
    return (_FILES / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def newest_version() -> int:
    return max(_migrations())


@contextmanager
def _connected(path: Path, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    try:
        connection = duckdb.connect(str(path), read_only=read_only)
    except duckdb.Error as trouble:
        raise EnvironmentTrouble(f"{path} cannot be opened as a store: {_first_line(trouble)}") from None
    try:
        connection.execute("set TimeZone = 'UTC'")
        # a bar would be printed into the answers; a notebook without ipywidgets has none and refuses to say so
        with suppress(duckdb.InvalidInputException):
            connection.execute("set enable_progress_bar = false")
        yield connection
    finally:
        connection.close()


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    try:
        store.mkdir(parents=True, exist_ok=True)
        lock = os.open(store / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as trouble:
        raise EnvironmentTrouble(f"{store} cannot be written: {trouble.strerror}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
            raise StoreBusy(
                f"{store} is being written by another process ({holder}); try again when it is done"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"pid {os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)


def _publish(store: Path) -> None:
    """Copy aside, flush, swap: whoever has the old copy open keeps it, whoever opens next gets the new one."""
    aside = store / f"{PUBLISHED}.{os.getpid()}.tmp"
    try:
        shutil.copyfile(store / USAGE, aside)
        with aside.open("rb") as copied:
            os.fsync(copied.fileno())
        aside.replace(store / PUBLISHED)
    except OSError as trouble:
        aside.unlink(missing_ok=True)
        raise EnvironmentTrouble(f"{store}: the new state could not be published: {trouble.strerror}") from None


def _migrations() -> dict[int, str]:
    found = (entry.name for entry in (_FILES / "migrations").iterdir())
    return {int(match[1]): match[0] for match in map(_MIGRATION.fullmatch, found) if match}


def _version(connection: duckdb.DuckDBPyConnection) -> int:
    known = connection.execute("select count(*) from duckdb_tables() where table_name = 'schema_version'").fetchone()
    if not known or not known[0]:
        return 0
    newest = connection.execute("select max(version) from schema_version").fetchall()
    return int(newest[0][0])


def _refuse_newer(store: Path, version: int) -> None:
    if version > newest_version():
        raise StoreTooNew(
            f"{store} was written by a later gpupolicy (store version {version}, this one knows {newest_version()}); "
            "update gpupolicy or name another --store"
        )


def _migrate(store: Path, connection: duckdb.DuckDBPyConnection) -> None:
    version = _version(connection)
    _refuse_newer(store, version)
    for number, name in sorted(_migrations().items()):
        if number > version:
            connection.execute("begin")
            connection.execute((_FILES / "migrations" / name).read_text(encoding="utf-8"))
            connection.execute("create table if not exists schema_version (version integer not null)")
            connection.execute("insert into schema_version values ($number)", {"number": number})
            connection.execute("commit")


def _first_line(trouble: duckdb.Error) -> str:
    return str(trouble).splitlines()[0]
