import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_store import at, load

from gpupolicy.errors import EnvironmentTrouble, StoreBusy, StoreMissing, StoreTooNew
from gpupolicy.warehouse import reading, writing

WRITER = """
import pathlib, sys, time
from gpupolicy.warehouse import writing

with writing(pathlib.Path(sys.argv[1])) as connection:
    connection.execute("delete from core_run")
    print("deleted", flush=True)
    time.sleep(60)
"""
RUN = {"workload_id": "1", "account": "a", "gpus": 8, "started_at": at(1), "ended_at": at(1, 2)}


def run_count(store: Path) -> int:
    with reading(store) as reader:
        ((count,),) = reader._connection.execute("select count(*) from core_run").fetchall()
    return int(count)


def test_a_missing_store_is_told_with_the_way_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match=r"no store at .*gpupolicy ingest"), reading(tmp_path / "none"):
        pass


def test_a_second_writer_is_refused_while_the_first_writes(tmp_path: Path) -> None:
    with writing(tmp_path), pytest.raises(StoreBusy, match=f"pid {os.getpid()}"), writing(tmp_path):
        pass


def test_a_reader_meets_no_lock_and_sees_no_half_batch(tmp_path: Path) -> None:
    load(tmp_path, [RUN], observed_until=at(2))

    with writing(tmp_path) as connection:
        connection.execute("delete from core_run")
        assert run_count(tmp_path) == 1

    assert run_count(tmp_path) == 0


def test_a_store_of_a_later_version_is_refused_for_reading_and_writing(tmp_path: Path) -> None:
    with writing(tmp_path) as connection:
        connection.execute("insert into schema_version values (999)")

    with pytest.raises(StoreTooNew, match="store version 999"), reading(tmp_path):
        pass
    with pytest.raises(StoreTooNew, match="update gpupolicy"), writing(tmp_path):
        pass


def test_a_file_that_is_no_store_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "published.duckdb").write_text("not a database")

    with pytest.raises(EnvironmentTrouble, match="cannot be opened as a store"), reading(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(EnvironmentTrouble, match="cannot be written"), writing(tmp_path / "file" / "store"):
        pass


def test_an_error_in_the_middle_rolls_everything_back(tmp_path: Path) -> None:
    load(tmp_path, [RUN], observed_until=at(2))

    with contextlib.suppress(ZeroDivisionError), writing(tmp_path) as connection:
        connection.execute("delete from core_run")
        raise ZeroDivisionError

    assert run_count(tmp_path) == 1


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    load(tmp_path, [RUN], observed_until=at(2))
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer.stdout:
        assert writer.stdout.readline() == b"deleted\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    time.sleep(0.1)

    assert run_count(tmp_path) == 1
    assert load(tmp_path, [RUN], observed_until=at(2)).unchanged == 1
