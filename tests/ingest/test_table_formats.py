"""One mapping reads CSV, Parquet, JSON and NDJSON alike: types are kept, nested fields are named by their path."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from ingest_cases import check, expectations, moment

from gpupolicy.errors import InvalidInput, UnreadableLog
from gpupolicy.ingest import Reading, TableMapping, load_mapping, read_table
from gpupolicy.ingest.table import documents
from gpupolicy.ingest.table.cells import read_numbers
from gpupolicy.ingest.text import json_chunks

Table = Callable[..., Reading]

PLAIN = {"workload_id": "job", "account": "team", "gpus": "gpus", "started_at": "start", "ended_at": "end"}
EIGHT, NINE = datetime(2026, 3, 1, 8, tzinfo=UTC), datetime(2026, 3, 1, 9, tzinfo=UTC)
JOBS = pl.DataFrame(
    {
        "job": [9007199254740993, 2, 3, None],
        "team": ["6214e9", "nlp", None, "vision"],
        "gpus": [8, 1, None, 4],
        "start": ["2026-03-01T08:00:00Z", "2026-03-01T08:00:00Z", "2026-03-01T08:00:00Z", "2026-03-01T08:00:00Z"],
        "end": ["2026-03-01T09:00:00.250Z", None, "2026-03-01T09:00:00Z", "2026-03-01T09:00:00Z"],
    }
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Read a frame as Parquet, a text as it is, or other objects as JSON, by a mapping of plain names."""

    def read(content: object, columns: dict[str, object] | None = None, **options: object) -> Reading:
        path = tmp_path / str(options.pop("name", "jobs"))
        if isinstance(content, pl.DataFrame):
            content.write_parquet(path)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        form = {name: options.pop(name) for name in ("rows", "attempts") if name in options}
        mapping = TableMapping.model_validate({"columns": PLAIN | (columns or {}), **form})
        return read_table(path, mapping, cluster="c", **options)  # type: ignore[arg-type]

    return read


def test_zoned_and_naive_times_decimals_and_open_ends_of_parquet(shared: Path, repository: Path) -> None:
    generic = load_mapping(repository / "data/mappings/generic.yaml")
    for path, expected in expectations(shared / "cases/generic-csv/cs-07-parquet-zones-and-decimals"):
        params = expected["params"]
        reading = read_table(
            path, generic, cluster="c", timezone=params["timezone"], observed_until=moment(params["cutoff"])
        )

        check(reading, expected)


def test_decimal_commas_and_thousands_of_any_column(shared: Path) -> None:
    path = shared / "cases/generic-csv/cs-02-decimal-comma"
    expected = json.loads((path / "expected.json").read_text())
    texts = pl.read_csv(path / "input.csv", separator=";", infer_schema=False)

    for name, values in expected["column_values"].items():
        read = read_numbers(pl.col(name), decimal=expected["params"]["decimal"], thousands=".")
        assert texts.select(read.value).to_series().to_list() == values


@pytest.mark.parametrize("form", ["csv", "parquet", "json", "ndjson"])
@pytest.mark.parametrize("is_compressed", [False, True])
def test_the_outcome_of_a_row_does_not_depend_on_the_format(tmp_path: Path, form: str, is_compressed: bool) -> None:
    path = tmp_path / "jobs"
    getattr(JOBS, f"write_{form}")(path)
    if is_compressed and form != "parquet":
        path.write_bytes(gzip.compress(path.read_bytes()))

    reading = read_table(path, TableMapping.model_validate({"columns": PLAIN}), cluster="c")

    assert reading.runs.select("workload_id", "account", "gpus", "started_at", "ended_at").rows() == [
        ("9007199254740993", "6214e9", 8, datetime(2026, 3, 1, 8), datetime(2026, 3, 1, 9, 0, 0, 250_000)),
        ("2", "nlp", 1, datetime(2026, 3, 1, 8), None),
    ]
    first = 2 if form == "csv" else 1
    assert reading.rejected.select("line", "reason", "detail").rows() == [
        (first + 2, "missing_value", "gpus is empty"),
        (first + 3, "missing_value", "workload_id is empty"),
    ]


def test_rejected_rows_of_types_are_told_as_json_that_can_be_mended_and_loaded(table: Table) -> None:
    told = table(JOBS).rejected["text"].to_list()

    mended = table("\n".join(told).replace('"gpus":null', '"gpus":16'))
    assert mended.runs.select("workload_id", "gpus", "started_at").rows() == [("3", 16, datetime(2026, 3, 1, 8))]


def test_types_are_kept(table: Table) -> None:
    frame = pl.DataFrame(
        {
            "job": [24166353244411.0, 2.0**60],
            "gpus": [Decimal("0.50"), Decimal(1)],
            "start": [EIGHT, EIGHT],
            "run": [timedelta(minutes=90), None],
            "team": pl.Series(["a", "b"], dtype=pl.Categorical),
            "free": [True, False],
        }
    )
    columns = {
        "workload_id": {"column": "job", "form": "whole_float"},
        "ended_at": {"after": "started_at", "column": "run", "unit": "h", "optional": True},
        "is_charged": {"column": "free", "yes": ["false"], "no": ["true"]},
    }
    reading = table(frame, columns)

    assert reading.runs.select("workload_id", "account", "gpus", "ended_at", "is_charged").rows() == [
        ("24166353244411", "a", 0.5, datetime(2026, 3, 1, 9, 30), False)
    ]
    assert reading.rejected["reason"].to_list() == ["mangled_id"]  # more than a float can tell apart


def test_naive_times_need_a_zone_and_dates_are_midnight(table: Table) -> None:
    frame = pl.DataFrame({"job": [1], "team": ["a"], "gpus": [1], "start": [date(2026, 3, 1)], "end": [None]})

    assert table(frame).rejected["reason"].to_list() == ["naive_without_timezone"]
    assert table(frame, timezone="Europe/Berlin").runs["started_at"].item() == datetime(2026, 2, 28, 23)


def job(**more: object) -> dict[str, object]:
    return {"job": "1", "gpus": 2, "team": "a", "start": "2026-03-01T08:00:00Z", "end": "2026-03-01T09:00:00Z"} | more


def test_a_field_of_a_field_is_named_by_its_path(table: Table) -> None:
    columns = {"account": "labels.team", "hosts": "labels.team.x"}
    nested = [job(labels={"team": "nlp"}, **{"labels.team.x": "n1"}), job(job="2", labels=None)]

    assert table(nested, columns).runs.select("account", "hosts").rows() == [("nlp", "n1"), (None, None)]


def test_what_stands_in_lists_is_counted_and_laid_end_to_end(table: Table) -> None:
    columns = {"gpus": {"count": "on.gpus"}, "hosts": "on.ip", "partition": {"column": "queues", "optional": True}}
    placed = [{"ip": "m1", "gpus": ["g0", "g1"]}, {"ip": "m2", "gpus": ["g5"]}]
    reading = table([job(on=placed, queues=["x", "y"]), job(job="2", on=[], queues=[]), job(job="3", on=None)], columns)

    assert reading.runs.select("gpus", "hosts", "partition").rows() == [(3, "m1,m2", "x,y"), (0, None, None)]
    assert reading.rejected.select("line", "detail").rows() == [(3, "gpus is empty")]


def test_each_attempt_is_a_run_and_waits_from_the_end_of_the_one_before(table: Table) -> None:
    columns = {
        "submitted_at": "submit", "started_at": "tries.start", "ended_at": "tries.end", "gpus": {"count": "tries.on"},
    }  # fmt: skip
    tries = [
        {"start": f"2026-03-01T0{hour}:10:00Z", "end": f"2026-03-01T0{hour + 1}:00:00Z", "on": ["g0", "g1"]}
        for hour in (4, 5, 7)
    ]
    rows = [job(submit="2026-03-01T04:00:00Z", tries=tries), job(job="2", submit="2026-03-01T04:00:00Z", tries=[])]
    reading = table(rows, columns, attempts="tries")

    wait = pl.col("started_at") - pl.col("eligible_at")
    waits = reading.runs.select("workload_id", "line", wait.dt.total_minutes())
    assert waits.rows() == [("1", 1, 10), ("1", 2, 10), ("1", 3, 70)]
    assert (reading.rows_read, reading.rejected["detail"].to_list()) == (4, ["gpus is empty"])


def test_rows_may_stand_anywhere_in_a_document(table: Table) -> None:
    pages = [{"reply": {"jobs": [job(), job(job="2")]}}, {"reply": {"jobs": [job(job="3")]}}]

    assert table(pages, rows="reply.jobs").runs["workload_id"].to_list() == ["1", "2", "3"]
    assert table(pages[0], rows="reply.jobs").runs["line"].to_list() == [1, 2]


def test_lines_that_are_no_objects_are_the_only_ones_lost(table: Table) -> None:
    lines = [json.dumps(job()), '{"job": "2", "gpus"', "", "[1]", json.dumps(job(job="5"))]
    reading = table("\n".join(lines))

    assert reading.runs.select("workload_id", "line").rows() == [("1", 1), ("5", 5)]
    assert reading.rejected.select("line", "reason", "text").rows() == [
        (2, "not_json", '{"job": "2", "gpus"'),
        (4, "not_json", "[1]"),
    ]


def test_a_key_that_comes_up_late_is_not_missed(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "json_chunks", partial(json_chunks, block_bytes=64))
    lines = [json.dumps(job(job=str(number))) for number in range(5)] + [json.dumps(job(job="5", kind="h100"))]
    reading = table("\n".join(lines), {"gpu_type": {"column": "kind", "optional": True}})

    assert reading.runs["gpu_type"].to_list() == [None] * 5 + ["h100"]
    assert reading.runs["line"].to_list() == [1, 2, 3, 4, 5, 6]


def test_a_column_called_line_can_be_referred_to_in_every_format(table: Table) -> None:
    columns = {"partition": "line"}
    csv = "job,team,gpus,start,end,line\n1,a,2,2026-03-01T08:00:00Z,,x\n"

    for content in (csv, [job(line="x")], json.dumps(job(line="x")), pl.DataFrame([job(line="x")])):
        assert table(content, columns).runs.select("partition").rows() == [("x",)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"job": "1",\n "gpus": 2}', "unknown_form: .* `rows`"),
        ('[{"job": "1"}, {"job"', "not_parsable_json: .* was it cut off?"),
        ('{"job": "1", "gpus": 2}\n{"job": "2", "gpus": {"n": 2}}\n', "not_parsable_json: cannot be read as rows of"),
        ("PAR1 and then nothing", "damaged_file: the Parquet file cannot be read"),
        ('[{"job": "1", "team": "a", "gpu": 2, "start": "2026-03-01T08:00:00Z", "end": null}]', "did you mean 'gpu'?"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_the_reason(table: Table, content: str, reason: str) -> None:
    with pytest.raises(UnreadableLog, match=reason):
        table(content)


def test_a_list_of_rows_that_is_not_there_is_named(table: Table) -> None:
    with pytest.raises(UnreadableLog, match="there is no list 'items'; it has jobs"):
        table({"jobs": [job()]}, rows="items")
    with pytest.raises(UnreadableLog, match="'jobs' is no list of objects"):
        table({"jobs": 5}, rows="jobs")


@pytest.mark.parametrize(
    ("cells", "outcome"),
    [("8,4", 32), ("0.5,4", 2), ("8,", "missing_value"), ("8,four", "bad_number"), ("-8,4", "bad_number")],
)
def test_gpus_may_be_a_product_of_columns(table: Table, cells: str, outcome: object) -> None:
    csv = f"job,team,start,end,each,workers\n1,a,2026-03-01T08:00:00Z,,{cells}\n"
    reading = table(csv, {"gpus": {"product": ["each", "workers"]}})

    assert [*reading.runs["gpus"], *reading.rejected["reason"]] == [outcome]


def test_gpus_may_be_a_sum_of_columns_and_a_bad_one_shows_them_all(table: Table) -> None:
    csv = "job,team,start,end,a100,h100\n1,a,2026-03-01T08:00:00Z,,4,8\n2,a,2026-03-01T08:00:00Z,,4,x\n"
    reading = table(csv, {"gpus": {"sum": ["a100", "h100"]}})

    assert reading.runs["gpus"].to_list() == [12]
    assert reading.rejected["detail"].to_list() == ["gpus '4 + x'"]


def test_the_name_of_the_file_may_tell_the_account(table: Table) -> None:
    columns = {"account": {"file_name": r"(vc\w+)\.json"}}

    assert table([job()], columns, name="2026-vc7.json").runs["account"].item() == "vc7"
    with pytest.raises(UnreadableLog, match="the file's name has nothing that fits"):
        table([job()], columns, name="other.json")


def test_times_may_be_so_much_after_a_day(table: Table) -> None:
    columns = {
        "started_at": {"column": "start", "since": "2026-03-01", "unit": "h"},
        "ended_at": {"after": "started_at"},
    }
    csv = "job,team,gpus,start\n1,a,1,1.5\n2,a,1,soon\n"
    reading = table(csv, columns)

    assert reading.runs["started_at"].to_list() == [datetime(2026, 3, 1, 1, 30)]
    assert reading.rejected.select("reason", "detail").rows() == [("bad_number", "start 'soon'")]


def test_yes_and_no_may_stand_as_they_are_in_yaml(tmp_path: Path) -> None:
    text = "columns: {workload_id: j, gpus: g, started_at: s, is_charged: {column: kind, yes: [HP], no: [Spot]}}\n"
    (tmp_path / "a.yaml").write_text(text)

    charged = load_mapping(tmp_path / "a.yaml").columns.is_charged

    assert charged is not None
    assert (charged.yes, charged.no) == (("HP",), ("Spot",))


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ("gpus: {product: [a]}", "gpus.product: .* at least 2"),
        ("gpus: {count: a, column: b}", "give either column or count"),
        ("gpus: {optional: true}", "give one of column, count, product, sum, value"),
        ("gpus: g\n  account: {file_name: '('}", "is no regular expression"),
        ("gpus: g\n  submitted_at: {column: t, since: 2026-01-01, form: epoch_s}", "since stands with column and unit"),
    ],
)
def test_a_source_that_makes_no_sense_is_told(tmp_path: Path, columns: str, fault: str) -> None:
    (tmp_path / "bad.yaml").write_text(f"columns:\n  workload_id: job\n  started_at: s\n  {columns}\n")

    with pytest.raises(InvalidInput, match=fault):
        load_mapping(tmp_path / "bad.yaml")
