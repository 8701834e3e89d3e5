"""Files that are refused whole: the message names the file, the reason, and what to do."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, load_mapping, read_slurm, read_table

Sacct = Callable[..., Reading]

GOOD = "JobID|Submit|Start|End|AllocTRES\n1|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00|gres/gpu=2\n"


@pytest.mark.parametrize(
    ("content", "reason", "advice"),
    [
        (b"", "empty_file", "was the export cut off?"),
        (b" \n\n  \n", "empty_file", "was the export cut off?"),
        (bytes(range(256)) * 40, "binary_file", "give a log as text"),
        (b"PK\x03\x04....", "binary_file", "save it as CSV"),
        (b"PAR1....", "parquet_file", "export it as CSV"),
        (b"\xff\xfeJ\0o\0b\0", "unsupported_encoding", "save it as UTF-8"),
        (b"<!DOCTYPE html>\n<html><body>502</body></html>\n", "html_page", "fetch the log itself"),
        (b'{"jobs": []}\n', "json_document", "one record a line"),
        (b"sacct: error: Problem talking to the database\n", "tool_error", "fetch it again"),
        (b"bash: sacct: command not found\n", "tool_error", "fetch it again"),
        (GOOD.encode() + b"sacct: error: slurmdbd: Getting response\n", "tool_error", "line 3"),
        (b"job_id,account,gpus,start,end\n1,a,2,2026-01-01,2026-01-02\n", "other_format", "ingest table"),
        (b"JobID  Account  State\n------ ------- -----\n", "not_parsable_output", "ask sacct with"),
        (b"JobID,Submit,Start,End,AllocTRES\n", "not_parsable_output", "TRES fields hold commas"),
        (b"JobID|User|Account|State\n1|a|b|FAILED\n", "missing_column", "Submit, Start, End, AllocTRES"),
        (GOOD.encode()[:-30], "truncated", "fetch the whole file again"),
        (gzip.compress(GOOD.encode() * 500)[:-20], "truncated", "fetch the whole file again"),
        (gzip.compress(GOOD.encode())[:10] + b"nonsense", "damaged_file", "fetch it again"),
    ],
)
def test_what_is_no_output_of_sacct_is_refused_with_the_reason(
    sacct: Sacct, content: bytes, reason: str, advice: str
) -> None:
    with pytest.raises(UnreadableLog) as refused:
        sacct(content)

    message = str(refused.value)
    assert f"sacct.psv: {reason}: " in message
    assert advice in message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableLog, match=r"none\.psv: not_readable: No such file"):
        read_slurm(tmp_path / "none.psv", cluster="c")


def test_a_last_line_that_is_whole_needs_no_line_end(sacct: Sacct) -> None:
    assert sacct(GOOD.rstrip("\n")).accepted == 1


def test_a_file_without_records_is_read_as_such(sacct: Sacct) -> None:
    reading = sacct(GOOD.splitlines()[0])

    assert (reading.rows_read, reading.accepted, reading.observed_until) == (0, 0, None)


def test_without_a_cluster_in_file_or_call_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(GOOD)

    with pytest.raises(UnreadableLog, match="missing_column: Cluster"):
        read_slurm(tmp_path / "log", cluster=None)


def test_a_row_that_names_no_cluster_is_rejected_where_the_call_names_none(tmp_path: Path) -> None:
    head, row, _ = GOOD.split("\n")
    (tmp_path / "log").write_text(f"{head}|Cluster\n{row}|moon\n{row}|\n")

    reading = read_slurm(tmp_path / "log", cluster=None)

    assert reading.runs["cluster"].to_list() == ["moon"]
    assert reading.rejected.select("line", "reason").rows() == [(3, "missing_value")]


def test_several_clusters_are_not_read_as_one(tmp_path: Path) -> None:
    head, row, _ = GOOD.split("\n")
    (tmp_path / "log").write_text(f"{head}|Cluster\n{row}|a\n{row}|b\n")

    with pytest.raises(UnreadableLog, match=r"several clusters are in it \(a, b\)"):
        read_slurm(tmp_path / "log", cluster="c")
    assert read_slurm(tmp_path / "log", cluster=None).runs["cluster"].to_list() == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("job_id,gpus,start,end\n1,2,2026-01-01T00:00:00Z,2026-01-02T00:00:00Z\n2,4,2026-0", "truncated"),
        ('job_id,gpus,start,account\n1,2,2026-01-01T00:00:00Z,"half a na', "truncated"),
        ("job_id,gpus,gpus,start\n", "duplicate_column: gpus"),
        (
            "job,gpu,start\n",
            "missing_column: .*'job_id'; did you mean 'job'.*'gpus'; did you mean 'gpu'",
        ),
        (GOOD, "missing_column"),
        ('{"a": 1}', "missing_column"),
        ("psql: connection refused\nx,y", "tool_error"),
    ],
)
def test_a_table_is_refused_with_everything_that_is_missing(
    repository: Path, tmp_path: Path, content: str, reason: str
) -> None:
    (tmp_path / "jobs.csv").write_text(content)

    with pytest.raises(UnreadableLog, match=rf"jobs\.csv: {reason}"):
        read_table(tmp_path / "jobs.csv", load_mapping(repository / "data/mappings/generic.yaml"), cluster="c")
