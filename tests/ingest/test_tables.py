"""Tables by a mapping: ids stay text, numbers are numbers, moments may follow one another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from gpupolicy.ingest import Reading, TableMapping, load_mapping, read_table

Table = Callable[..., Reading]

PLAIN = {
    "workload_id": "job_id", "gpus": "gpus", "started_at": "start", "ended_at": {"column": "end", "optional": True},
    "account": {"column": "account", "optional": True},
}  # fmt: skip
SPAN = "2026-03-01T08:00:00Z,2026-03-01T09:00:00Z"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Read a text as a table, its columns named in plain words unless a mapping is given."""

    def read(text: str, *, columns: dict[str, object] | None = None, **options: object) -> Reading:
        (tmp_path / "jobs.csv").write_bytes(text.encode())
        form = {name: options.pop(name) for name in ("decimal", "thousands", "delimiter") if name in options}
        mapping = TableMapping.model_validate({"columns": PLAIN | (columns or {}), **form})
        return read_table(tmp_path / "jobs.csv", mapping, cluster="c", **options)  # type: ignore[arg-type]

    return read


def test_ids_and_names_stay_text(table: Table) -> None:
    rows = "".join(f"{job},{name},1,{SPAN}\n" for job, name in [("9007199254740993", "6214e9"), ("007", "103959")])
    reading = table(f"job_id,account,gpus,start,end\n{rows}")

    assert reading.runs.select("workload_id", "account").rows() == [("9007199254740993", "6214e9"), ("007", "103959")]


def test_an_id_that_was_written_as_a_float_is_whole_again_if_the_mapping_says_so(table: Table) -> None:
    text = f"job_id,account,gpus,start,end\n5,24166353244411.0,1,{SPAN}\n6,0.0,1,{SPAN}\n"

    assert table(text).runs["account"].to_list() == ["24166353244411.0", "0.0"]
    whole = table(text, columns={"account": {"column": "account", "form": "whole_float"}})
    assert whole.runs["account"].to_list() == ["24166353244411", "0"]


def test_an_id_that_a_spreadsheet_mangled_is_rejected(table: Table) -> None:
    reading = table(f"job_id,gpus,start,end\n1.23457E+11,1,{SPAN}\n")

    assert reading.rejected.select("line", "reason", "detail").rows() == [(2, "mangled_id", "job_id '1.23457E+11'")]


def test_start_and_end_may_be_so_much_later(table: Table) -> None:
    columns = {
        "submitted_at": {"column": "submit", "form": "epoch_s"},
        "started_at": {"after": "submitted_at", "column": "wait", "unit": "min"},
        "ended_at": {"after": "started_at", "column": "run"},
    }
    reading = table("job_id,gpus,submit,wait,run\n1,2,1772352000.0,1.5,2305.5404\n2,2,1772352000,1,\n", columns=columns)

    run = reading.runs.row(0, named=True)
    assert run["started_at"] == datetime(2026, 3, 1, 8, 1, 30)
    assert run["ended_at"] == datetime(2026, 3, 1, 8, 39, 55, 540_000)
    assert reading.rejected["reason"].to_list() == ["missing_runtime"]


def test_a_table_without_submission_knows_no_waits(table: Table) -> None:
    run = table(f"job_id,gpus,start,end\n1,2,{SPAN}\n").runs.row(0, named=True)

    assert run["submitted_at"] == run["eligible_at"] == run["started_at"]


def test_an_open_end_runs_until_the_log_was_taken(table: Table) -> None:
    reading = table(f"job_id,gpus,start,end\n1,2,2026-03-01T07:00:00Z,\n2,1,{SPAN}\n")

    assert reading.runs["ended_at"].to_list() == [None, datetime(2026, 3, 1, 9)]
    assert reading.observed_until == datetime(2026, 3, 1, 9)


def test_decimal_commas_are_read_where_the_mapping_says_so(table: Table) -> None:
    text = "job_id;gpus;start;end\n1;1.000,5;2026-03-01T08:00:00Z;\n"

    assert table(text, decimal=",", thousands=".").runs["gpus"].to_list() == [1000.5]
    assert table(text).rejected["reason"].to_list() == ["bad_number"]


@pytest.mark.parametrize(
    ("gpus", "outcome"),
    [("0", 0), ("0.5", 0.5), ("1e1", 10), ("", "missing_value"), ("NaN", "missing_value"), ("n/a", "missing_value"),
     ("-2", "bad_number"), ("eight", "bad_number"), ("inf", "bad_number"), ("1,5", "wrong_field_count")],
)  # fmt: skip
def test_a_count_is_a_number_or_a_reason(table: Table, gpus: str, outcome: object) -> None:
    reading = table(f"job_id,gpus,start,end\n1,{gpus},{SPAN}\n")

    assert [*reading.runs["gpus"], *reading.rejected["reason"]] == [outcome]


def test_quotes_may_hold_delimiters_line_breaks_and_quotes(table: Table) -> None:
    reading = table(
        f'job_id,"account",gpus,start,end\n"1","a, ""b""\nc",2,{SPAN}\n2,plain,4,{SPAN}\n"3","x"y",1,{SPAN}\n'
    )

    assert reading.runs.select("workload_id", "account", "gpus", "line").rows() == [
        ("1", 'a, "b"\nc', 2, 2),
        ("2", "plain", 4, 4),
    ]
    assert reading.rejected.select("line", "reason").rows() == [(5, "wrong_field_count")]


def test_an_open_quote_does_not_swallow_the_rest_of_the_file(table: Table) -> None:
    rows = "".join(f'"{job}","ok",1,{SPAN}\n' for job in range(2, 200))
    reading = table(f'job_id,account,gpus,start,end\n"1","open,1,{SPAN}\n{rows}')

    assert reading.accepted == 198
    assert reading.rejected["line"].to_list() == [2]


def test_epochs_of_two_units_in_one_row_are_not_believed(table: Table) -> None:
    reading = table("job_id,gpus,start,end\n1,1,1767225600,1767232800000\n2,1,1767225600000,1767232800000\n")

    assert reading.runs["workload_id"].to_list() == ["2"]
    assert reading.rejected.select("line", "reason").rows() == [(2, "bad_time")]


def test_rows_of_nothing_but_delimiters_are_no_records(table: Table) -> None:
    assert table(f"job_id,gpus,start,end\n1,2,{SPAN}\n,,,\n\n").rows_read == 1


def test_a_stamp_without_a_zone_needs_one_from_call_or_mapping(table: Table) -> None:
    text = "job_id,gpus,start,end\n1,2,2026-03-01 09:00,2026-03-01 10:00\n"

    assert table(text).rejected["reason"].to_list() == ["naive_without_timezone"]
    assert table(text, timezone="Europe/Berlin").runs["started_at"].to_list() == [datetime(2026, 3, 1, 8)]


def test_line_numbers_can_stand_for_ids(table: Table) -> None:
    reading = table(f"gpus,start,end\n1,{SPAN}\n2,{SPAN}\n", columns={"workload_id": {"line_number": True}})

    assert reading.runs["workload_id"].to_list() == ["2", "3"]
    assert "another cut of this log" in reading.notices[0]


def test_a_column_called_line_is_a_column_like_any_other(table: Table) -> None:
    reading = table(f"job_id,line,gpus,start,end\n1,x,2,{SPAN}\n2,y,2,{SPAN}\n")

    assert reading.runs["line"].to_list() == [2, 3]


def test_what_the_table_says_of_contract_and_utilization_is_read(table: Table) -> None:
    columns = {
        "minimum_runtime_s": {"column": "min_h", "unit": "h"},
        "is_resumable": "resumable",
        "utilization_ratio": {"column": "util", "form": "percent"},
        "state": {"value": "ended well"},
    }
    reading = table(
        f"job_id,gpus,start,end,min_h,resumable,util\n1,1,{SPAN},0.5,Yes,87.5\n2,1,{SPAN},0,no,\n3,1,{SPAN},,maybe,1\n",
        columns=columns,
    )

    assert reading.runs.select(
        "minimum_runtime_s", "is_resumable", "is_charged", "utilization_ratio", "state"
    ).rows() == [(1800, True, True, 0.875, "ENDED"), (0, False, False, None, "ENDED")]
    assert reading.rejected.select("reason", "detail").rows() == [("bad_value", "resumable 'maybe'")]


@pytest.mark.parametrize("name", ["generic", "thetagpu", "philly-by-vc"])
def test_the_mappings_we_ship_are_good(repository: Path, name: str) -> None:
    assert load_mapping(repository / "data/mappings" / f"{name}.yaml").columns.gpus.column
