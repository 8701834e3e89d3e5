"""What there is to run on: a cluster's size, its hosts and their GPUs, and when hosts were away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import HOSTS, OUTAGES, REJECTED, Reading
from gpupolicy.ingest.distinct import each_once
from gpupolicy.ingest.host_names import host_lists
from gpupolicy.ingest.host_states import outage_state
from gpupolicy.ingest.moments import Moments, check_timezone, read_moments, utc_without_zone
from gpupolicy.ingest.parts import rejected_rows, summed
from gpupolicy.ingest.records import Batch, Layout, ignored_rows
from gpupolicy.ingest.table.cells import read_numbers, told
from gpupolicy.ingest.table.lines import csv_batches
from gpupolicy.ingest.table.mapping import NULL_WORDS
from gpupolicy.ingest.text import digest_of, refusal

ANY_HOST = "*"  # a cluster known only by its size
ALWAYS = datetime(1970, 1, 1)  # noqa: DTZ001 - frames carry UTC without a zone
FORMS = (
    "a capacity file has one of the headers gpus,valid_from,valid_to (a cluster's size over time); "
    "host,gpus[,gpu_type][,valid_from][,valid_to][,cluster] (its hosts); "
    "host,state,start,end[,reason][,cluster] (when hosts were away)"
)

_ALIASES = {
    "node": "host", "hostname": "host", "nodename": "host", "node_group": "host", "host_group": "host",
    "timestart": "start", "timeend": "end",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Form:
    """What a kind of capacity file becomes: its schema, the moments that begin and end a row, and how it is read."""

    schema: pl.Schema
    span: tuple[str, str]
    read: Callable[[pl.DataFrame, pl.Series, pl.Series], pl.DataFrame]


def read_capacity(
    path: Path,
    *,
    cluster: str | None,
    timezone: str | None = None,
    observed_until: datetime | None = None,
) -> Reading:
    """Read a CSV file of a cluster's size, of hosts, or of outages; its header tells which (FORMS).

    Outages may also be what `sacctmgr -P show event` says. A row may name several hosts, `n[1-3]`: it stands for a
    row of each. `cluster` names the cluster, the file's own column if it is None. Stamps without a zone are in
    `timezone`; without one they are rejected. Raises UnreadableLog for a file that is refused whole.
    """
    zone = check_timezone(timezone)
    layout, batches = csv_batches(path, free_text="Reason")
    columns = {_ALIASES.get(name.casefold(), name.casefold()): name for name in layout.columns}
    form = _form(path, columns, cluster)
    texts = (_texts(batch, columns, cluster) for batch in batches)
    parts = [_part(batch, layout, text, form, zone) for batch, text in texts]
    accepted, rejected, ignored = (list(frames) for frames in zip(*parts, strict=True)) if parts else ([], [], [])
    kept, again = _without_repeats(pl.concat([form.schema.to_frame(), *accepted]))
    counted = summed([*ignored, again])
    refused = pl.concat([REJECTED.to_frame(), *rejected])
    return Reading(
        source="capacity",
        path=str(path),
        digest=digest_of(path),
        observed_until=utc_without_zone(observed_until) or _newest(kept, form.schema),
        rows_read=kept.height + refused.height + int(counted["rows"].sum()),
        hosts=kept if form.schema is HOSTS else HOSTS.to_frame(),
        outages=kept if form.schema is OUTAGES else OUTAGES.to_frame(),
        rejected=refused,
        ignored=counted,
    )


def _form(path: Path, columns: dict[str, str], cluster: str | None) -> _Form:
    names = columns.keys()
    if cluster is None and "cluster" not in names:
        raise refusal(path, "missing_column", "nothing names the cluster; name it with --cluster")
    if names >= {"host", "state", "start", "end"}:
        return _Form(OUTAGES, ("start", "end"), _outages)
    if names >= {"gpus"} and names & {"host", "valid_from"} and not names & {"start", "end", "state"}:
        return _Form(HOSTS, ("valid_from", "valid_to"), _hosts)
    raise refusal(path, "unknown_form", f"its header is {', '.join(columns.values())}; {FORMS}")


def _texts(batch: Batch, columns: dict[str, str], cluster: str | None) -> tuple[Batch, pl.DataFrame]:
    """The cells under our names; rows of nothing but delimiters are none."""
    frame = batch.frame.filter(~pl.all_horizontal(pl.exclude("line").is_null()))
    texts = frame.select("line", **{name: told(pl.col(column), NULL_WORDS) for name, column in columns.items()})
    if cluster is not None:
        texts = texts.with_columns(cluster=pl.lit(cluster))
    return Batch(frame, batch.rejected, batch.ignored), texts


def _part(
    batch: Batch, layout: Layout, texts: pl.DataFrame, form: _Form, zone: str | None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """What of a block was accepted, rejected and ignored."""
    begins, ends = (_moments(texts, name, zone) for name in form.span)
    rows = form.read(texts, begins.at, ends.at)
    rows = rows.with_columns(hosts=host_lists(rows["host"]))
    rows = rows.with_columns(fault=_fault(rows, begins, ends))
    is_good = rows["fault"].is_null()
    is_up = is_good & rows["is_up"]
    said = [pl.format("{} '{}'", pl.lit(name), pl.col(name).fill_null("")) for name in layout.columns]
    faulty = batch.frame.with_columns(rows["fault"], detail=pl.concat_str(said, separator=", ")).filter(~is_good)
    return (
        rows.filter(is_good & ~is_up).with_columns(host="hosts").explode("host").select(form.schema.names()),
        pl.concat([batch.rejected, rejected_rows(faulty, layout)]),
        pl.concat([batch.ignored, ignored_rows(rows.filter(is_up), "no_outage")]),
    )


def _moments(texts: pl.DataFrame, name: str, zone: str | None) -> Moments:
    column = texts[name] if name in texts.columns else pl.repeat(None, texts.height, dtype=pl.String, eager=True)
    return read_moments(pl.DataFrame({name: column}), timezone=zone, no_moment=())[name]


def _hosts(texts: pl.DataFrame, valid_from: pl.Series, valid_to: pl.Series) -> pl.DataFrame:
    """HOSTS, with the fault of a cell; a host without a date has always been there."""
    gpus = read_numbers(pl.col("gpus"))
    has_host = "host" in texts.columns
    return texts.select(
        "line",
        "cluster",
        host="host" if has_host else pl.lit(ANY_HOST),
        gpu_type="gpu_type" if "gpu_type" in texts.columns else pl.lit(None, pl.String),
        gpus=gpus.value,
        fault=gpus.fault,
        is_up=pl.lit(value=False),
    ).with_columns(valid_from=valid_from.fill_null(ALWAYS), valid_to=valid_to)


def _outages(texts: pl.DataFrame, started_at: pl.Series, ended_at: pl.Series) -> pl.DataFrame:
    """OUTAGES, with the fault of a cell; `is_up` where a host is in a state that takes nothing away."""
    states = each_once(texts["state"], _read_states)["outage"]
    told = texts.with_columns(outage=states, started_at=started_at, ended_at=ended_at)
    is_unknown = pl.col("state").is_not_null() & pl.col("outage").is_null()
    return told.select(
        "line",
        "cluster",
        "host",
        "started_at",
        "ended_at",
        state="outage",
        reason="reason" if "reason" in texts.columns else pl.lit(None, pl.String),
        fault=pl.when(is_unknown).then(pl.lit("unknown_state")),
    ).with_columns(is_up=_is_no_outage())


def _is_no_outage() -> pl.Expr:
    """A state in which a host can be used; or sacctmgr's row of the cluster itself, which has a reason alone."""
    is_of_cluster = pl.col("host").is_null() & pl.col("state").is_null() & pl.col("reason").is_not_null()
    return (pl.col("state") == "up").fill_null(value=False) | is_of_cluster


def _read_states(known: pl.DataFrame) -> pl.DataFrame:
    return known.with_columns(outage=pl.Series([outage_state(text) for text in known["text"]], dtype=pl.String))


def _fault(rows: pl.DataFrame, begins: Moments, ends: Moments) -> pl.Series:
    begin, end = ("valid_from", "valid_to") if "valid_from" in rows.columns else ("started_at", "ended_at")
    needed = [name for name in ("cluster", "host", "gpus", "state", begin) if name in rows.columns]
    lacks = pl.any_horizontal(pl.col(name).is_null() for name in needed) & ~pl.col("is_up")
    is_no_host = pl.col("host").is_not_null() & (pl.col("hosts").list.len().fill_null(0) == 0)
    faults = rows.with_columns(begins=begins.fault, ends=ends.fault)
    return faults.select(
        pl.coalesce(
            "begins",
            "ends",
            "fault",
            pl.when(lacks).then(pl.lit("missing_value")),
            pl.when(is_no_host).then(pl.lit("bad_host")),
            pl.when(pl.col(end) < pl.col(begin)).then(pl.lit("end_before_start")),
        )
    ).to_series()


def _without_repeats(accepted: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    what = [name for name in accepted.columns if name != "line"]
    is_again = ~accepted.select(pl.struct(what).is_first_distinct()).to_series()
    return accepted.filter(~is_again), ignored_rows(accepted.filter(is_again), "duplicate_record")


def _newest(kept: pl.DataFrame, schema: pl.Schema) -> datetime | None:
    names = ("started_at", "ended_at") if schema is OUTAGES else ("valid_from",)
    newest = [kept[name].max() for name in names]
    return max((moment for moment in newest if isinstance(moment, datetime) and moment != ALWAYS), default=None)
