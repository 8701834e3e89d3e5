"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a job, -1 where one is not known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Literal

import polars as pl

from gpupolicy.ingest.canonical import MOMENT, REJECTED, RUNS, Reading
from gpupolicy.ingest.parts import Part, flagged, reading_of_runs
from gpupolicy.ingest.records import ignored_rows
from gpupolicy.ingest.run_moments import newest_of
from gpupolicy.ingest.text import refusal, text_blocks, tool_error

AccountFrom = Literal["group", "user", "executable", "queue", "partition"]

FIELDS = (
    "job", "submit", "wait", "run", "processors", "cpu_time", "memory", "asked_processors", "asked_time",
    "asked_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think_time",
)  # fmt: skip

_NUMBERS = ("submit", "wait", "run", "processors", "asked_processors", "asked_time", "status")
_STATES = {0: "FAILED", 1: "COMPLETED", 2: "PREEMPTED", 3: "COMPLETED", 4: "FAILED", 5: "CANCELLED"}
_PARTS_OF_A_JOB = (2, 3, 4)
_CANCELLED = 5
_HEADER = re.compile(r"(?m)^;\s*(\w+):\s*(\S.*?)\s*$")


def read_swf(
    path: Path,
    *,
    cluster: str,
    gpus_per_processor: float = 1,
    account_from: AccountFrom = "group",
    observed_until: datetime | None = None,
) -> Reading:
    """Read a workload in the Standard Workload Format (version 2.2), plain or gzip.

    The format knows processors only: each counts as `gpus_per_processor` GPUs. `account_from` says which field is
    the account. A job that ran in parts is one workload with several runs, each waiting from the end of the one
    before; the line that sums them up is ignored (case sw-02). Raises UnreadableLog for a file that is refused
    whole.
    """
    rows, header = _rows(path)
    is_record = rows["fields"].list.len() == len(FIELDS)
    timed = _timed(_numbered(rows.filter(is_record)), _starts_ms(header))
    is_summary = timed["is_summary"]
    runs = _runs(timed.filter(~is_summary), cluster, gpus_per_processor, account_from)
    good, faulty = runs.filter(pl.col("fault").is_null()), runs.filter(pl.col("fault").is_not_null())
    part = Part(
        runs=good.select(RUNS.names()),
        rejected=pl.concat([_misshapen(rows.filter(~is_record)), _rejected(faulty)]),
        ignored=ignored_rows(timed.filter(is_summary), "summary_of_parts"),
        flagged=flagged(good),
        newest=newest_of(good),
    )
    return reading_of_runs(path, "swf", [part], observed_until=observed_until, notices=_notices(header))


# Lines


def _rows(path: Path) -> tuple[pl.DataFrame, dict[str, str]]:
    """The lines that are no comments: line, text, fields; and what the comments in front say by name."""
    frames, header, line, is_ended = [], dict[str, str](), 1, True
    for block in text_blocks(path):
        header |= _HEADER.findall(block.decode()) if b";" in block else {}
        frames.append(_block_rows(block, line))
        line += block.count(b"\n")
        is_ended = block.endswith(b"\n")
    rows = pl.concat(frames)
    _refuse_other_text(path, rows.head(1))
    if not is_ended and _is_short(rows.tail(1)):
        said = rows["text"][-1][-60:]
        raise refusal(path, "truncated", f"the last line breaks off ('{said}'); fetch the whole file again")
    return rows, header


def _block_rows(block: bytes, first: int) -> pl.DataFrame:
    text = pl.col("text").str.strip_chars()
    return (
        pl.read_lines(BytesIO(block), name="text")
        .with_columns(line=pl.int_range(first, first + pl.len(), dtype=pl.Int64))
        .filter((text != "") & ~text.str.starts_with(";"))
        .with_columns(fields=text.str.replace_all(r"\s+", " ").str.split(" "))
    )


def _is_short(row: pl.DataFrame) -> bool:
    return not row.is_empty() and row["fields"].list.len()[0] < len(FIELDS)


def _refuse_other_text(path: Path, first: pl.DataFrame) -> None:
    for line, text, fields in first.select("line", "text", "fields").iter_rows():
        if complaint := tool_error(path, line, text):
            raise complaint
        if len(fields) != len(FIELDS):
            raise refusal(
                path,
                "other_format",
                f"line {line} has {len(fields)} fields ('{text.strip()[:60]}'), "
                f"a job in the Standard Workload Format has {len(FIELDS)} numbers parted by blanks",
            )


def _starts_ms(header: Mapping[str, str]) -> int:
    told = header.get("UnixStartTime", "")
    return int(told) * 1000 if told.isdigit() else 0


def _notices(header: Mapping[str, str]) -> list[str]:
    notices = []
    if not header.get("UnixStartTime", "").isdigit():
        notices.append(
            "the header has no UnixStartTime: moments count from 1970, only their differences mean something"
        )
    if processors := header.get("MaxProcs"):
        notices.append(f"its header gives the size of the cluster as {processors} processors (MaxProcs)")
    return notices


# Numbers and moments


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """A column a field: null where it is -1; `bad` names the first that is no number or below it."""
    texts = [pl.col("fields").list.get(at).alias(name) for at, name in enumerate(FIELDS)]
    number = {name: pl.col(name).cast(pl.Float64, strict=False) for name in _NUMBERS}
    is_told = {name: value.is_finite() & (value >= 0) for name, value in number.items()}
    is_bad = {name: ~(is_told[name] | (value == -1)).fill_null(value=False) for name, value in number.items()}
    known = [pl.when(pl.col(name) != "-1").then(name).alias(name) for name in FIELDS if name not in (*_NUMBERS, "job")]
    return (
        rows.select("line", "text", *texts)
        .with_columns(
            *known,
            *(pl.when(is_told[name]).then(value).alias(name) for name, value in number.items()),
            bad=pl.coalesce(pl.when(bad).then(pl.lit(name)) for name, bad in is_bad.items()),
        )
        .with_columns(pl.col("status").cast(pl.Int64))
    )


def _timed(rows: pl.DataFrame, starts_ms: int) -> pl.DataFrame:
    """The moments of each line, null where nothing tells, and whether it only sums up others."""
    rows = _submitted(rows)
    never_started = (pl.col("status") == _CANCELLED) & (pl.col("run").fill_null(0) == 0)
    rows = rows.with_columns(never_started=never_started.fill_null(value=False))
    start_s = pl.col("submitted_s") + pl.col("wait")
    return rows.with_columns(
        submitted_at=_moment("submitted_s", starts_ms),
        started_at=pl.when(~pl.col("never_started")).then(_moment(start_s, starts_ms)),
        ended_at=pl.when("never_started")
        .then(_moment(start_s.fill_null(pl.col("submitted_s")), starts_ms))
        .otherwise(_moment(start_s + pl.col("run"), starts_ms)),
    )


def _submitted(rows: pl.DataFrame) -> pl.DataFrame:
    """`submitted_s`: of a part of a job that names none, the end of the part before, from where its wait counts."""
    is_part = pl.col("status").is_in(_PARTS_OF_A_JOB).fill_null(value=False)
    rows = rows.with_columns(is_part=is_part, submitted_s="submit")
    parts = rows.filter("is_part")
    rows = rows.with_columns(is_summary=~pl.col("is_part") & pl.col("job").is_in(parts["job"].implode()))
    if parts.is_empty():
        return rows
    took = pl.col("wait") + pl.col("run")
    chain = ("job", pl.col("submit").is_not_null().cum_sum().over("job"))
    is_known = took.is_null().cum_sum().shift(1, fill_value=0).over(chain) == 0
    since_s = took.fill_null(0).cum_sum().shift(1, fill_value=0).over(chain)
    chained = parts.select(pl.when(is_known).then(pl.col("submit").first().over(chain) + since_s)).to_series()
    return rows.with_columns(rows["submitted_s"].scatter(rows["is_part"].arg_true(), chained))


def _moment(seconds: pl.Expr | str, starts_ms: int) -> pl.Expr:
    after = pl.col(seconds) if isinstance(seconds, str) else seconds
    return ((after * 1000).round().cast(pl.Int64) + starts_ms).cast(MOMENT)


# Runs


def _runs(timed: pl.DataFrame, cluster: str, gpus_per_processor: float, account_from: AccountFrom) -> pl.DataFrame:
    """Runs as in RUNS; with `text`, `fault`, null in a good row, and a column for each flag."""
    has_started = pl.col("started_at").is_not_null()
    unknown = has_started & pl.col("processors").is_null()
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in RUNS.items()]
    runs = timed.select(
        "line",
        "text",
        "submitted_at",
        "started_at",
        "ended_at",
        cluster=pl.lit(cluster),
        workload_id="job",
        eligible_at="submitted_at",
        gpus=pl.coalesce("processors", "asked_processors").fill_null(0) * gpus_per_processor,
        account=account_from,
        user_name="user",
        partition="partition",
        qos="queue",
        state=pl.col("status").replace_strict(_STATES, default=None, return_dtype=pl.String),
        walltime_s=pl.col("asked_time").round().cast(pl.Int64),
        is_charged=pl.lit(value=True),
        fault=_fault(),
        detail=_detail(),
        allocation_from_request=unknown & pl.col("asked_processors").is_not_null(),
        gpu_count_unknown=unknown & pl.col("asked_processors").is_null(),
    )
    return runs.with_columns(one for one in absent if one.meta.output_name() not in runs.columns)


def _fault() -> pl.Expr:
    """Why a line is not trusted: the first that holds (case sw-01)."""
    return (
        pl.when(pl.col("bad").is_not_null())
        .then(pl.lit("bad_number"))
        .when(pl.col("submitted_at").is_null() & ~pl.col("is_part"))
        .then(pl.lit("missing_value"))
        .when("never_started")
        .then(None)
        .when(pl.col("started_at").is_null())
        .then(pl.lit("unknown_start"))
        .when(pl.col("ended_at").is_null())
        .then(pl.lit("missing_runtime"))
    )


def _detail() -> pl.Expr:
    told = [
        pl.format("{} {}", pl.lit(name), pl.col(name).fill_null(-1)) for name in ("submit", "wait", "run", "status")
    ]
    return pl.coalesce(pl.format("{} is no number from 0 on, nor -1", "bad"), pl.concat_str(told, separator=", "))


def _rejected(faulty: pl.DataFrame) -> pl.DataFrame:
    return faulty.select("line", reason="fault", detail="detail", text="text")


def _misshapen(rows: pl.DataFrame) -> pl.DataFrame:
    counted = pl.format("{} fields, {} expected", pl.col("fields").list.len(), pl.lit(len(FIELDS)))
    return rows.select("line", reason=pl.lit("wrong_field_count"), detail=counted, text="text").cast(REJECTED)
