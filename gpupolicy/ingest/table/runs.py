"""The columns of a table into runs, as its mapping says, with what is wrong or odd about each row."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from gpupolicy.ingest.canonical import MOMENT, RUNS
from gpupolicy.ingest.moments import Moments, read_moments
from gpupolicy.ingest.run_moments import STAMPS, early_start_flags, run_moments
from gpupolicy.ingest.table.cells import duration_ms, read_cells, told
from gpupolicy.ingest.table.mapping import Moment, Source, TableMapping

_NO_DURATION = {"eligible_at": "missing_value", "started_at": "unknown_start", "ended_at": "missing_runtime"}
_SAME_EPOCH_UNIT = r"^\d{9,}$"


def table_runs(
    rows: pl.DataFrame, sources: Mapping[str, Source], *, mapping: TableMapping, timezone: str | None
) -> pl.DataFrame:
    """Runs as in RUNS; with `fault` and `detail`, null in a good row, and a column for each flag.

    `rows` holds the table's texts and `line`; `sources` says for each column of a run where it comes from.
    """
    texts = rows.select("line", **{name: _told(source, mapping) for name, source in sources.items()})
    moments = _moments(texts, sources, mapping, timezone)
    cells = {
        name: read_cells(name, pl.col(name), source, mapping) for name, source in sources.items() if name not in STAMPS
    }
    values = texts.select("line", **{name: cell.value for name, cell in cells.items()})
    faults = texts.select("line", **{name: cell.fault for name, cell in cells.items()}).with_columns(
        **{name: moment.fault for name, moment in moments.items()}, epochs=_mixed_epochs(texts, sources)
    )
    stamps = run_moments(_all_four(moments, rows.height), _no_elapsed)
    runs = _completed(pl.concat([values, stamps.drop("fault")], how="horizontal"), sources)
    return runs.with_columns(_first_fault(texts, faults.drop("line"), sources)).with_columns(_last_fault())


def _told(source: Source, mapping: TableMapping) -> pl.Expr:
    if source.column is None:
        return pl.lit(source.value, pl.String)
    return told(pl.col(source.column), mapping.null_words)


def _moments(
    texts: pl.DataFrame, sources: Mapping[str, Source], mapping: TableMapping, timezone: str | None
) -> dict[str, Moments]:
    moments: dict[str, Moments] = {}
    for name in STAMPS:
        source = sources.get(name)
        if not isinstance(source, Moment):
            continue
        if source.after is None:
            moments |= read_moments(texts.select(name), timezone=timezone, form=source.form, no_moment=())
        elif source.after in moments:
            moments[name] = _after(texts, name, source, moments[source.after], mapping)
    return moments


def _after(texts: pl.DataFrame, name: str, source: Moment, base: Moments, mapping: TableMapping) -> Moments:
    """So much time after another moment; the same moment if the mapping names no column."""
    if source.column is None:
        return base
    later = duration_ms(pl.col(name), source.unit, mapping)
    read = texts.select(ms=later.value, fault=later.fault)
    at = base.at + read["ms"].cast(pl.Duration("ms"))
    no_duration = pl.lit(None if source.optional else _NO_DURATION[name], pl.String)
    is_missing = base.at.is_not_null() & read["ms"].is_null()
    fault = read.select(pl.coalesce("fault", pl.when(is_missing).then(no_duration))).to_series()
    return Moments(at, at.clone(), fault)


def _all_four(moments: Mapping[str, Moments], height: int) -> dict[str, Moments]:
    nothing = pl.repeat(None, height, dtype=MOMENT, eager=True)
    none = Moments(nothing, nothing, pl.repeat(None, height, dtype=pl.String, eager=True))
    return {name: moments.get(name, none) for name in STAMPS}


def _no_elapsed(mask: pl.Series) -> pl.Series:
    return pl.repeat(None, int(mask.sum()), dtype=pl.Int64, eager=True)


def _mixed_epochs(texts: pl.DataFrame, sources: Mapping[str, Source]) -> pl.Series:
    """The unit of an epoch that tells itself by its digits is the same in all stamps of a row (case cs-04)."""
    told = [
        pl.when(pl.col(name).str.contains(_SAME_EPOCH_UNIT)).then((pl.col(name).str.len_chars() - 9) // 3)
        for name in STAMPS
        if isinstance(source := sources.get(name), Moment) and source.after is None and source.form == "auto"
    ]
    differ = pl.max_horizontal(told) != pl.min_horizontal(told) if len(told) > 1 else pl.lit(value=False)
    return texts.select("line", epochs=pl.when(differ).then(pl.lit("bad_time"))).to_series(1)


def _completed(runs: pl.DataFrame, sources: Mapping[str, Source]) -> pl.DataFrame:
    """What the table does not say: submitted when started, eligible when submitted, charged unless free.

    Where it tells of eligibility, a workload without it that did not start was never eligible.
    """
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in RUNS.items() if name not in runs.columns]
    is_charged = pl.coalesce("is_charged", pl.col("minimum_runtime_s") != 0, pl.lit(value=True))
    submitted = pl.coalesce("submitted_at", "started_at")
    was_eligible = pl.col("started_at").is_not_null() | ("eligible_at" not in sources)
    eligible = pl.coalesce("eligible_at", pl.when(was_eligible).then(submitted))
    return (
        runs.with_columns(absent)
        .with_columns(submitted_at=submitted, eligible_at=eligible, is_charged=is_charged)
        .with_columns(**early_start_flags(), ambiguous_local_time=pl.col("is_ambiguous"))
    )


def _first_fault(texts: pl.DataFrame, faults: pl.DataFrame, sources: Mapping[str, Source]) -> list[pl.Series]:
    """The first cell of a row that cannot be read, and what stands in it."""
    said = {
        name: pl.format("{} '{}'", pl.lit(sources[name].column or name), texts[name].fill_null(""))
        for name in faults.columns
        if name in sources
    }
    detail = pl.coalesce(
        *(pl.when(pl.col(name).is_not_null()).then(text) for name, text in said.items()), pl.lit(None, pl.String)
    )
    judged = faults.select(fault=pl.coalesce(pl.all()), detail=detail)
    return [judged["fault"], judged["detail"]]


def _last_fault() -> list[pl.Expr]:
    """What no single cell shows."""
    needed = ("cluster", "workload_id", "submitted_at", "gpus")
    lacks = [pl.when(pl.col(name).is_null()).then(pl.lit(name)) for name in needed]
    is_backward = (pl.col("ended_at") < pl.col("started_at")).fill_null(value=False)
    fault = (
        pl.when(pl.col("fault").is_not_null())
        .then("fault")
        .when(pl.any_horizontal(pl.col(name).is_null() for name in needed))
        .then(pl.lit("missing_value"))
        .when(is_backward)
        .then(pl.lit("end_before_start"))
    )
    return [
        fault.alias("fault"),
        pl.coalesce("detail", pl.format("{} is empty", pl.coalesce(lacks))).alias("detail"),
    ]
