"""Replies of Prometheus in files, and the same samples as a table: series with their labels, and their samples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gpupolicy.ingest.canonical import IGNORED, MOMENT, REJECTED
from gpupolicy.ingest.moments import read_moments
from gpupolicy.ingest.parts import rejected_rows, summed
from gpupolicy.ingest.records import Batch
from gpupolicy.ingest.slurm.json_text import JsonText
from gpupolicy.ingest.table.cells import read_numbers
from gpupolicy.ingest.table.lines import csv_batches
from gpupolicy.ingest.text import json_chunks, refusal

SAMPLES = pl.Schema({"series": pl.UInt32(), "at": MOMENT, "value": pl.Float64(), "line": pl.Int64()})

_ASK = "ask /api/v1/query_range"
_TIMES = ("time", "timestamp", "at")
_VALUES = ("gpus", "utilization", "value")


@dataclass
class Reply:
    """What a file holds; `query`, `step_s` and the window stand in the replies that we saved ourselves."""

    labels: list[Mapping[str, str]] = field(default_factory=list)  # of each series, by its number
    samples: pl.DataFrame = field(default_factory=SAMPLES.to_frame)
    rejected: pl.DataFrame = field(default_factory=REJECTED.to_frame)
    ignored: pl.DataFrame = field(default_factory=IGNORED.to_frame)
    query: str | None = None
    step_s: float | None = None
    warnings: list[str] = field(default_factory=list)
    measured: str | None = None  # what the column of a table says it holds


def read_reply(path: Path) -> Reply:
    """Read the reply of /api/v1/query_range, a bare list of series, or a CSV file with a row a sample.

    Raises UnreadableLog for an error answer, an instant query, and what is cut short.
    """
    if next(json_chunks(path), "").lstrip()[:1] not in {"{", "["}:
        return _read_table(path)
    text = JsonText(path)
    found = _Found(path)
    if text.peek() == "[":
        for value in text.elements():
            found.add(value.value)
        return found.reply()
    said = _said(text, found)
    if said.get("status") != "success":
        raise refusal(path, "error_answer", _complaint(said))
    if said.get("resultType") != "matrix":
        raise refusal(path, "no_range", f"it answers an instant query ({said.get('resultType')}); {_ASK}")
    warnings = [str(warning) for warning in said.get("warnings") or ()]
    return found.reply(query=said.get("query"), step_s=said.get("step_s"), warnings=warnings)


class _Found:
    """The series found so far, one after another, so that the whole reply is never in memory as text."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._labels: list[Mapping[str, str]] = []
        self._frames: list[pl.DataFrame] = [SAMPLES.to_frame()]
        self._rejected: list[tuple[int, str, str, str]] = []
        self._rows = 0

    def add(self, series: object) -> None:
        if not isinstance(series, Mapping) or not isinstance(series.get("values"), list):
            raise refusal(self._path, "no_range", f"a series in it has no values over time; {_ASK}")
        try:
            frame = _samples(series["values"], len(self._labels), self._rows + 1)
        except (TypeError, ValueError):
            reason = f"the values of series {len(self._labels) + 1} are no pairs of a time and a text"
            raise refusal(self._path, "not_parsable_output", reason) from None
        self._labels.append(series.get("metric") or {})
        self._rows += frame.height
        self._frames.append(frame.filter(pl.col("value").is_not_null()).select(SAMPLES.names()))
        self._rejected += _rejected(frame.filter(pl.col("value").is_null()), self._labels[-1])

    def reply(self, *, query: str | None = None, step_s: float | None = None, warnings: Sequence[str] = ()) -> Reply:
        return Reply(
            labels=self._labels,
            samples=pl.concat(self._frames),
            rejected=pl.DataFrame(self._rejected, schema=REJECTED, orient="row"),
            query=query,
            step_s=step_s,
            warnings=list(warnings),
        )


def _said(text: JsonText, found: _Found) -> dict[str, Any]:
    """What the reply says beside its series; what it says of its data stands among the rest."""
    said: dict[str, Any] = {}
    for key in text.members():
        if key != "data" or text.peek() != "{":
            said[key] = text.value().value
            continue
        for name in text.members():
            if name == "result" and text.peek() == "[" and said.get("resultType", "matrix") == "matrix":
                for value in text.elements():
                    found.add(value.value)
            else:
                said[name] = text.value().value
    return said


def _complaint(said: Mapping[str, Any]) -> str:
    if "error" in said:
        return f"Prometheus answered {said.get('errorType')}: {said['error']}"
    return f"this is no reply of Prometheus: it has {', '.join(said) or 'nothing in it'}"


def _samples(values: Sequence[Sequence[Any]], number: int, first: int) -> pl.DataFrame:
    """SAMPLES of one series, with the text of each; no value where that is no finite number from 0 on."""
    ats, texts = ([float(at) for at, _ in values], [str(text) for _, text in values])
    cells = read_numbers(pl.col("text"))
    return pl.DataFrame({"at": ats, "text": texts}, schema={"at": pl.Float64, "text": pl.String}).select(
        "text",
        series=pl.lit(number, pl.UInt32),
        at=(pl.col("at") * 1000).round().cast(pl.Int64).cast(MOMENT),
        value=cells.value,
        line=pl.int_range(first, first + pl.len(), dtype=pl.Int64),
    )


def _rejected(faulty: pl.DataFrame, labels: Mapping[str, str]) -> Iterator[tuple[int, str, str, str]]:
    for line, at, text in faulty.select("line", pl.col("at").dt.epoch("ms"), "text").iter_rows():
        sample = {"metric": labels, "values": [[at / 1000, text]]}
        yield line, "bad_number", f"value '{text}'", json.dumps(sample)


def _read_table(path: Path) -> Reply:
    layout, batches = csv_batches(path)
    time, value = (next((name for name in names if name in layout.columns), None) for names in (_TIMES, _VALUES))
    if time is None or value is None:
        raise refusal(
            path,
            "missing_column",
            f"a table of samples has a column time and one of {', '.join(_VALUES)}; all others are labels. "
            f"This one has {', '.join(layout.columns)}",
        )
    read = [(batch, _judged(batch, time, value)) for batch in batches]
    rows = pl.concat(judged for _, judged in read)
    is_good = pl.col("fault").is_null()
    names = [name for name in layout.columns if name not in {time, value, ""}]
    series = (pl.struct(names).rank("dense") - 1) if names else pl.lit(0)
    good = rows.filter(is_good).with_columns(series=series.cast(pl.UInt32))
    labels = good.unique("series").sort("series").select(names)
    return Reply(
        labels=[{name: text for name, text in row.items() if text} for row in labels.iter_rows(named=True)],
        samples=good.select("series", at="sampled_at", value="number", line="line"),
        rejected=pl.concat([*(batch.rejected for batch, _ in read), rejected_rows(rows.filter(~is_good), layout)]),
        ignored=summed([batch.ignored for batch, _ in read]),
        measured=value if value != "value" else None,
    )


def _judged(batch: Batch, time: str, value: str) -> pl.DataFrame:
    """The rows with what was read of them, and `fault` and `detail` where it could not be."""
    at, cells = read_moments(batch.frame.select(time), timezone=None)[time], read_numbers(pl.col(value))
    is_missing = pl.col(time).is_null() | pl.col(value).is_null()
    return batch.frame.with_columns(
        sampled_at=at.at,
        bad_time=at.fault,
        number=cells.value,
        detail=pl.format("time '{}', {} '{}'", pl.col(time).fill_null(""), pl.lit(value), pl.col(value).fill_null("")),
        fault=pl.when(is_missing).then(pl.lit("missing_value")).otherwise(cells.fault),
    ).with_columns(fault=pl.coalesce("bad_time", "fault"))
