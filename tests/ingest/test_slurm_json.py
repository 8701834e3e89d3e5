"""Answers of `sacct --json`: every schema gives the same runs, large ones in pieces, broken ones are refused whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingest_cases import check, check_runs, expectations, moment

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, read_slurm, read_slurm_json
from gpupolicy.ingest.slurm.json_jobs import job_fields
from gpupolicy.ingest.slurm.json_text import JsonText

CASES = [
    "sj-01-three-schema-generations", "sj-02-state-plus-flags", "sj-03-set-infinite-zero",
    "sj-04-zero-times-and-steps", "sj-05-tres-list-doubles",
]  # fmt: skip
JOB: dict[str, Any] = {
    "job_id": 7, "account": "vision", "cluster": "c1", "user": "ada", "qos": "funded",
    "state": {"current": ["COMPLETED"]},
    "time": {"submission": 1767225600, "eligible": 1767225600, "start": 1767225600, "end": 1767229200},
    "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 2}], "requested": []},
}  # fmt: skip


def answer(*jobs: object, **beside: object) -> str:
    return json.dumps({"meta": {}, "jobs": jobs, "errors": [], "warnings": []} | beside)


def read(folder: Path, content: str | bytes, **options: object) -> Reading:
    path = folder / "sacct.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_slurm_json(path, **{"cluster": None} | options)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES)
def test_a_case_comes_out_as_expected(shared: Path, case: str) -> None:
    for path, expected in expectations(shared / "cases/sacct-json" / case):
        reading = read_slurm_json(path, cluster=None, observed_until=moment(expected["params"].get("cutoff")))

        check(reading, expected)
        check_runs(reading, expected)


def test_tasks_and_components_are_called_as_sacct_calls_them(shared: Path) -> None:
    folder = shared / "cases/sacct-json/sj-03-set-infinite-zero"
    jobs = json.loads((folder / "input.json").read_text())["jobs"]
    names = {str(job["job_id"]): job_fields(job)["JobID"] for job in jobs}

    expected = json.loads((folder / "expected.json").read_text())["job_key"]
    assert {job: names[job] for job in expected} == expected


def test_the_answer_of_a_live_slurm_says_what_its_text_says(shared: Path) -> None:
    captures = shared / "slurm/captures"
    told = read_slurm_json(captures / "sacct.json", cluster=None)
    text = read_slurm(captures / "sacct-duplicates.psv", cluster=None)

    order = ["workload_id", "submitted_at"]
    assert (told.rows_read, told.accepted) == (45, 45)
    assert told.runs.drop("line").sort(order).equals(text.runs.drop("line").sort(order))


def test_packed_on_one_line_or_several_in_one_file_it_is_the_same(shared: Path, tmp_path: Path) -> None:
    path = shared / "slurm/captures/sacct.json"
    jobs = json.loads(path.read_text())["jobs"]
    known = read_slurm_json(path, cluster=None).runs.drop("line")

    packed = read(tmp_path, gzip.compress(answer(*jobs).encode()))
    parted = read(tmp_path, answer(*jobs[:10]) + "\n" + answer(*jobs[10:]))
    assert packed.runs.drop("line").equals(known)
    assert packed.runs["line"].to_list() == list(range(1, 46))
    assert parted.runs.drop("line").equals(known)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=4,
    ),
    indent=st.sampled_from([None, 1]),
    block_bytes=st.integers(1, 40),
)
def test_read_in_pieces_of_any_size_a_list_is_what_json_reads_at_once(
    tmp_path: Path, values: list[Any], indent: int | None, block_bytes: int
) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps(values, indent=indent))

    text = JsonText(path, block_bytes=block_bytes)
    elements = list(text.elements())
    assert [element.value for element in elements] == values
    assert [json.loads(element.text) for element in elements] == values
    assert text.peek() == ""


@pytest.mark.parametrize("left", [0.02, 0.3, 0.5, 0.9, 0.9999])
def test_an_answer_that_breaks_off_anywhere_is_refused_whole(shared: Path, tmp_path: Path, left: float) -> None:
    content = (shared / "slurm/captures/sacct.json").read_text().rstrip()

    with pytest.raises(UnreadableLog, match=r"sacct\.json: truncated: the JSON breaks off in line \d+; fetch"):
        read(tmp_path, content[: int(len(content) * left)])


@pytest.mark.parametrize(
    ("content", "reason", "advice"),
    [
        (b"", "empty_file", "cut off"),
        (b"  \n", "empty_file", "cut off"),
        (b"JobID|State\n1|FAILED\n", "other_format", "ask sacct with -a -D -S FROM -E TO --json"),
        (b"[1, 2]", "other_format", "ask sacct with"),
        (b"sacct: error: slurm_persist_conn_open failed\n", "tool_error", "fetch it again"),
        (b'{"jobs": [\nsacct: error: Getting response\n', "tool_error", "line 2 is an error message"),
        (b'{"jobs": [{"job_id": 1},\n{"job_id" 2}]}' + b" " * 99, "damaged_file", "line 2 is no JSON"),
        (b'{"nodes": []}', "other_format", "no list of jobs in it, but nodes"),
        (b'{"jobs": [{"job_id": 1, "job_state": ["RUNNING"]}]}', "other_format", "the queue, not the accounting"),
        (answer(JOB, errors=[{"description": "no connection", "error_number": 7}]).encode(), "error_answer", "no conn"),
        (answer(errors=["no such cluster"]).encode(), "error_answer", "no such cluster"),
        (gzip.compress(answer(JOB).encode())[:-6], "truncated", "fetch the whole file again"),
        (b"PK\x03\x04..", "binary_file", "unpack it"),
    ],
)
def test_what_is_no_whole_answer_is_refused_with_the_reason(
    tmp_path: Path, content: bytes, reason: str, advice: str
) -> None:
    with pytest.raises(UnreadableLog) as refused:
        read(tmp_path, content)

    assert f"sacct.json: {reason}: " in str(refused.value)
    assert advice in str(refused.value)


def test_the_queue_of_a_live_slurm_is_not_taken_for_its_accounting(shared: Path) -> None:
    with pytest.raises(UnreadableLog, match=r"squeue\.json: other_format"):
        read_slurm_json(shared / "slurm/captures/squeue.json", cluster=None)


def test_an_answer_without_jobs_is_read_as_such_and_its_warnings_are_told(tmp_path: Path) -> None:
    reading = read(tmp_path, answer(warnings=[{"description": "field x is deprecated"}]))

    assert (reading.rows_read, reading.accepted) == (0, 0)
    assert reading.notices == ("Slurm itself warns, first of 1: field x is deprecated",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"job_id": None}, "missing_value"),
        ({"time": {"submission": 0}}, "missing_value"),
        ({"time": JOB["time"] | {"end": 0}}, "bad_time"),
        ({"time": JOB["time"] | {"start": "noon"}}, "bad_time"),
        ({"time": JOB["time"] | {"end": 1767220000}}, "end_before_start"),
        ({"tres": {"allocated": [{"type": "gres", "name": "gpu", "count": -2}]}}, "bad_number"),
    ],
)
def test_a_job_that_cannot_be_trusted_is_kept_whole_with_its_reason(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    reading = read(tmp_path, answer(JOB | {"job_id": 6}, JOB | change))

    assert reading.runs["workload_id"].to_list() == ["6"]
    assert reading.rejected.select("line", "reason").rows() == [(2, reason)]
    assert json.loads(reading.rejected["text"][0]) == JOB | change


def test_something_else_than_an_object_among_the_jobs_is_rejected(tmp_path: Path) -> None:
    reading = read(tmp_path, answer(JOB, "job 8", None))

    assert reading.accepted == 1
    assert reading.rejected.select("line", "reason", "text").rows() == [
        (2, "missing_value", '"job 8"'),
        (3, "missing_value", "null"),
    ]


@pytest.mark.parametrize(("task", "tasks"), [("3-6%2", 4), ("1,3,5-7", 5), ("0x1E%2", 4), ("0x8000000000000001", 2)])
def test_the_waiting_tasks_of_an_array_are_counted_listed_or_as_a_mask(tmp_path: Path, task: str, tasks: int) -> None:
    waiting = JOB | {
        "array": {"job_id": 600, "task_id": {"set": False, "infinite": False, "number": 0}, "task": task},
        "state": ["PENDING"],
        "time": {"submission": 1767225600, "eligible": 1767225600, "start": 0, "end": 0},
        "tres": {"allocated": [], "requested": [{"type": "gres", "name": "gpu", "count": 2}]},
    }

    assert read(tmp_path, answer(waiting)).runs.select("gpus", "started_at").rows() == [(2 * tasks, None)]


def test_what_is_missing_at_the_job_is_taken_from_its_association_and_its_contract_from_the_comment(
    tmp_path: Path,
) -> None:
    job = {key: value for key, value in JOB.items() if key not in {"account", "user", "cluster"}}
    told = {"association": {"account": "nlp", "user": "ben", "cluster": "moon"}}
    comment = {"comment": {"job": "minrt=900 resumable=yes", "administrator": "gpu_util=50"}}

    run = read(tmp_path, answer(job | told | comment)).runs.row(0, named=True)
    assert (run["account"], run["user_name"], run["cluster"]) == ("nlp", "ben", "moon")
    assert (run["minimum_runtime_s"], run["is_resumable"], run["utilization_ratio"]) == (900, True, 0.5)


def test_the_settings_of_the_text_hold_for_json_too(tmp_path: Path) -> None:
    bare = JOB | {"job_id": 8, "partition": "gpu", "tres": {"allocated": [{"type": "cpu", "count": 4}]}}
    lost = JOB | {"job_id": 9, "state": ["RUNNING"], "time": JOB["time"] | {"end": 0, "limit": 60}}
    reading = read(
        tmp_path,
        answer(JOB, bare, lost),
        cluster="c",
        observed_until=moment("2026-02-01T00:00:00Z"),
        free_qos=frozenset({"funded"}),
        gpu_only_partitions=frozenset({"gpu"}),
    )

    assert reading.flagged.rows() == [("gpu_count_unknown", "8", 2), ("suspected_runaway", "9", 3)]
    assert reading.set_aside["workload_id"].to_list() == ["9"]
    assert reading.runs.select(pl.col("is_charged").any()).item() is False
    assert reading.notices[0] == "the file calls its cluster c1; it was loaded as c"
