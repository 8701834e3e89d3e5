"""How the commands refuse: one clear message on stderr, nothing on stdout, the right exit code, no traceback."""

import fcntl
import gzip
from pathlib import Path

import pytest

from gpupolicy.warehouse import writing

SACCT = (
    "JobID|Account|State|Submit|Eligible|Start|End|AllocTRES\n"
    "1|a1|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00|gres/gpu=2\n"
)


def test_a_missing_store_is_one_line_and_exit_code_3(gpupolicy, files: Path) -> None:
    told = gpupolicy("fairshare", "--store", files / "none", "--policy", files / "policy.yaml")

    assert (told.code, told.out) == (3, "")
    assert len(told.err.strip().splitlines()) == 1
    assert "no store at" in told.err


def test_a_second_writer_is_one_line_and_exit_code_3(gpupolicy, files: Path, store: Path) -> None:
    with (store / "usage.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = gpupolicy("ingest", "table", files / "jobs.csv", "--cluster", "c", "--store", store)

    assert (told.code, told.out) == (3, "")
    assert "being written by another process" in told.err


def test_a_store_of_a_later_version_is_one_line_and_exit_code_3(gpupolicy, files: Path, store: Path) -> None:
    with writing(store) as connection:
        connection.execute("insert into schema_version values (999)")

    told = gpupolicy("fairshare", "--store", store, "--policy", files / "policy.yaml")

    assert (told.code, told.out) == (3, "")
    assert "written by a later gpupolicy" in told.err


def test_every_fault_of_a_policy_file_is_told_at_once(gpupolicy, files: Path) -> None:
    (files / "bad.yaml").write_text(
        "quarter: 2026Q7\nlookback: -1d\ntree: {name: org, children: [{name: a, share: 70}]}"
    )

    told = gpupolicy("budget", "check", files / "bad.yaml")

    assert (told.code, told.out) == (2, "")
    assert [line.split(": ")[0].rsplit("/", 1)[-1] for line in told.err.strip().splitlines()] == [
        "gpupolicy",
        "bad.yaml:2",
        "bad.yaml:3",
    ]


def test_an_unknown_node_is_answered_with_the_nearest(gpupolicy, files: Path, store: Path) -> None:
    told = gpupolicy("measure", "delivery", "--node", "A1", "--store", store, "--policy", files / "policy.yaml")

    assert told.code == 2
    assert "did you mean org/a/a1?" in told.err


def test_an_unknown_cluster_is_answered_with_those_known(gpupolicy, files: Path, store: Path) -> None:
    told = gpupolicy("measure", "delivery", "--cluster", "moon", "--store", store, "--policy", files / "policy.yaml")

    assert told.code == 2
    assert "cluster 'moon' (known: c)" in told.err


def test_a_span_without_any_gpus_says_how_to_load_them(gpupolicy, files: Path, store: Path) -> None:
    span = ("--from", "2020-01-01", "--to", "2020-01-02")
    told = gpupolicy("measure", "delivery", *span, "--store", store, "--policy", files / "policy.yaml")

    assert told.code == 2
    assert "gpupolicy ingest capacity" in told.err


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.psv", b"", "empty"),
        ("binary.psv", bytes(range(256)) * 40, "binary"),
        ("page.psv", b"<!DOCTYPE html>\n<html><body>502 Bad Gateway</body></html>\n", "HTML"),
        ("cut.psv", SACCT.encode()[:-40], "truncated"),
        ("cut.psv.gz", gzip.compress(SACCT.encode() * 50)[:-20], "truncated"),
        ("jobs.json", b'{"jobs": [{"job_id": 1}]}\n', "JSON"),
        ("jobs.csv", b"job_id,account,gpus,start,end\n1,a,2,2026-01-01,2026-01-02\n", "sacct"),
    ],
)
def test_a_file_of_another_kind_is_refused_whole(
    gpupolicy, tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)

    told = gpupolicy("ingest", "slurm", tmp_path / name, "--cluster", "c", "--store", tmp_path / "store")

    assert (told.code, told.out) == (2, "")
    assert name in told.err
    assert reason in told.err
    assert "Traceback" not in told.err
    assert not (tmp_path / "store" / "usage.duckdb").exists()


def test_one_bad_file_among_several_leaves_the_store_as_it_was(gpupolicy, tmp_path: Path) -> None:
    (tmp_path / "good.psv").write_text(SACCT)
    (tmp_path / "bad.psv").write_text("")

    told = gpupolicy(
        "ingest", "slurm", tmp_path / "good.psv", tmp_path / "bad.psv", "--cluster", "c", "--store", tmp_path / "store"
    )

    assert told.code == 2
    assert not (tmp_path / "store" / "usage.duckdb").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "delivery", "--from", "yesterday"),
        ("fairshare", "--at", "noon"),
        ("ingest", "slurm"),
        ("ingest", "slurm", "x.psv", "--count", "socks"),
        ("plan", "slurm"),
        ("budget", "show", "--gpus", "0"),
        ("nonsense",),
    ],
)
def test_misuse_of_the_command_line_ends_with_2(gpupolicy, words: tuple[str, ...]) -> None:
    told = gpupolicy(*words)

    assert told.code == 2
    assert "Traceback" not in told.err


def test_a_plan_without_a_known_cluster_asks_for_one(gpupolicy, files: Path) -> None:
    told = gpupolicy(
        "plan", "slurm", "--out", files / "plan", "--store", files / "none", "--policy", files / "policy.yaml"
    )

    assert told.code == 2
    assert "--cluster NAME" in told.err
    assert not (files / "plan").exists()


def test_a_name_that_slurm_cannot_take_leaves_no_plan_behind(gpupolicy, files: Path) -> None:
    (files / "odd.yaml").write_text(
        "quarter: 2026Q1\ntree: {name: org, children: [{name: 'a b', share: 1}, {name: 'x;y', share: 0}]}"
    )

    told = gpupolicy("plan", "slurm", "--out", files / "plan", "--cluster", "c", "--policy", files / "odd.yaml")

    assert told.code == 2
    assert "org/a b" in told.err
    assert "org/x;y" in told.err
    assert not (files / "plan").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("fairshare", "--at", "2026-03-05"),
        ("measure", "delivery", "--to", "2026-03-05"),
        ("measure", "waits", "--at", "2026-03-05"),
    ],
)
def test_a_moment_that_nobody_has_observed_yet_is_refused(
    gpupolicy, files: Path, store: Path, words: tuple[str, ...]
) -> None:
    told = gpupolicy(*words, "--store", store, "--policy", files / "policy.yaml")

    assert (told.code, told.out) == (2, "")
    assert "c was observed until 2026-03-02 00:00Z" in told.err


def test_without_a_policy_file_nobody_elses_is_used(gpupolicy, files: Path, store: Path, monkeypatch) -> None:
    monkeypatch.chdir(files)

    told = gpupolicy("fairshare", "--store", store)

    assert told.code == 2
    assert "--policy FILE" in told.err


def test_a_span_over_two_quarters_asks_by_which_policy_to_judge(
    gpupolicy, files: Path, store: Path, monkeypatch
) -> None:
    monkeypatch.chdir(files)
    (files / "data/policies/in_force").mkdir(parents=True)
    (files / "policy.yaml").rename(files / "data/policies/in_force/2026Q1.yaml")

    told = gpupolicy("measure", "delivery", "--store", store, "--from", "2025-12-01", "--to", "2026-03-02")

    assert told.code == 2
    assert "--policy" in told.err


def test_faults_of_several_policy_files_come_at_once(gpupolicy, files: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (files / name).write_text("quarter: never\ntree: {name: org}")

    told = gpupolicy("budget", "check", files / "one.yaml", files / "two.yaml")

    assert told.code == 2
    assert "one.yaml:1: quarter" in told.err
    assert "two.yaml:1: quarter" in told.err
