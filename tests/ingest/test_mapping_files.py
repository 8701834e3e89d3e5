"""Mapping files: YAML or TOML, all faults at once, with line and key."""

from pathlib import Path

import pytest

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest import load_mapping


def test_all_faults_of_a_mapping_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "timezone: Mars/Base\n"
        "delimeter: ';'\n"
        "columns:\n"
        "  workload_id: {colum: job, line_number: true}\n"
        "  started_at: {column: start, form: iso}\n"
        "  ended_at: {after: started, column: run}\n"
    )

    with pytest.raises(InvalidInput) as refused:
        load_mapping(path)

    known = ("auto", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns")
    assert str(refused.value).replace(str(path), "FILE").splitlines() == [
        "FILE:1: timezone: 'Mars/Base' is no time zone; write one of the IANA names, e.g. UTC or Europe/Berlin",
        "FILE:2: delimeter: unknown key; did you mean 'delimiter'?",
        "FILE:3: columns.gpus: is missing",
        "FILE:4: columns.workload_id.colum: unknown key; did you mean 'column'?",
        f"FILE:5: columns.started_at: 'iso' is none of {', '.join(known)}, nor a format such as '%d.%m.%Y %H:%M'",
        "FILE:6: columns.ended_at.after: Input should be 'submitted_at', 'eligible_at' or 'started_at'",
    ]


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ("workload_id: job\n  gpus: n\n", "a run needs submitted_at or started_at"),
        ("workload_id: job\n  gpus: n\n  started_at: {after: submitted_at, column: wait}\n", "not given before it"),
        ("workload_id: {column: job, line_number: true}\n  gpus: n\n  started_at: s\n", "either column or line_number"),
        ("workload_id: job\n  gpus: {column: n, value: 1}\n  started_at: s\n", "either column or value"),
    ],
)
def test_a_mapping_that_cannot_give_runs_is_refused(tmp_path: Path, columns: str, fault: str) -> None:
    (tmp_path / "bad.yaml").write_text(f"columns:\n  {columns}")

    with pytest.raises(InvalidInput, match=fault):
        load_mapping(tmp_path / "bad.yaml")


def test_toml_says_the_same_as_yaml(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("columns: {workload_id: job, gpus: {value: 1}, started_at: {column: s}}\n")
    (tmp_path / "a.toml").write_text("[columns]\nworkload_id = 'job'\ngpus.value = 1\nstarted_at.column = 's'\n")

    assert load_mapping(tmp_path / "a.toml") == load_mapping(tmp_path / "a.yaml")


@pytest.mark.parametrize(("name", "text"), [("a.yaml", "a: [1\n"), ("a.toml", "= 1"), ("b.yaml", "")])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(InvalidInput, match=name):
        load_mapping(tmp_path / name)
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_mapping(tmp_path / "none.yaml")
