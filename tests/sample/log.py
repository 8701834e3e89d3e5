"""The sample set as its files say it, read by nothing of ours but polars."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

GPUS_PER_HOST = 8
CAP_S = 8 * 3600
LOG_BEGINS = datetime(2026, 6, 24)
QUARTER_BEGINS = datetime(2026, 7, 1)
QUARTER_ENDS = datetime(2026, 10, 1)
MOMENTS = ("Submit", "Eligible", "Start", "End")


@dataclass(frozen=True)
class SampleLog:
    """Rows of sacct with typed columns; `stays` has one row a run and host; all up to the moment `cut`."""

    runs: pl.DataFrame
    hosts: pl.DataFrame
    outages: pl.DataFrame
    cut: datetime

    @property
    def started(self) -> pl.DataFrame:
        return self.runs.filter(pl.col("Start").is_not_null())

    @property
    def stays(self) -> pl.DataFrame:
        on_each = pl.col("gpus").clip(upper_bound=GPUS_PER_HOST).alias("on_host")
        return self.started.with_columns(on_each, host=pl.col("hosts")).explode("host")


def read_sample(folder: Path, *, cut: datetime) -> SampleLog:
    files = sorted(folder.glob("sacct-*.psv.gz"))
    rows = pl.concat([_rows(path) for path in files])
    listed = {text: host_names(text) for text in rows["NodeList"].unique()}
    runs = rows.with_columns(
        [pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False) for name in MOMENTS]
    ).with_columns(
        gpus=pl.col("ReqTRES").str.extract(r"gres/gpu=(\d+)").cast(pl.Int64),
        gpu_type=pl.col("AllocTRES").str.extract(r"gres/gpu:(\w+)="),
        minimum_runtime_s=pl.col("Comment").str.extract(r"minrt=(\d+)").cast(pl.Int64),
        is_resumable=pl.col("Comment").str.ends_with("resumable=yes"),
        is_free=pl.col("QOS") == "free",
        used_percent=pl.col("AdminComment").str.extract(r"gpu_util=(\d+)").cast(pl.Int64),
        until=pl.col("End").fill_null(cut),
        hosts=pl.Series([listed[text] for text in rows["NodeList"]], dtype=pl.List(pl.String)),
    )
    return SampleLog(runs, _table(folder / "hosts.csv"), _table(folder / "outages.csv"), cut)


def host_names(text: str) -> list[str]:
    """heron[001-003,017] as heron001, heron002, heron003, heron017."""
    match = re.fullmatch(r"([a-z]+)\[([\d,-]+)\]", text)
    if match is None:
        return [] if text == "None assigned" else [text]
    spans = [span.split("-") for span in match[2].split(",")]
    return [f"{match[1]}{number:03}" for span in spans for number in range(int(span[0]), int(span[-1]) + 1)]


def _rows(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, separator="|", infer_schema=False)


def _table(path: Path) -> pl.DataFrame:
    table = pl.read_csv(path, infer_schema=False)
    moments = [name for name in ("valid_from", "valid_to", "start", "end") if name in table.columns]
    return table.with_columns([pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%SZ") for name in moments])
