"""The columns of a table into runs, as its mapping says, with what is wrong or odd about each row."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from gpupolicy.ingest.canonical import MOMENT, RUNS
from gpupolicy.ingest.moments import Moments, read_moments
from gpupolicy.ingest.run_moments import STAMPS, early_start_flags, run_moments
from gpupolicy.ingest.table.cells import duration_ms, read_cells, text_of
from gpupolicy.ingest.table.mapping import AnyMapping, Moment, Source, TableMapping

_NO_DURATION = {"started_at": "unknown_start", "ended_at": "missing_runtime"}
_SAME_EPOCH_UNIT = r"^\d{9,}$"


def table_runs(
    rows: pl.DataFrame, sources: Mapping[str, Source], *, mapping: TableMapping, timezone: str | None
) -> pl.DataFrame:
    """Runs as in RUNS; with `fault` and `detail`, null in a good row, and a column for each flag.

    `rows` holds the table's texts and `line`; `sources` says for each column of a run where it comes from.
    """
    texts = rows.select("line", **{name: text_of(source, mapping) for name, source in sources.items()})
    moments = read_stamps(texts, sources, mapping=mapping, timezone=timezone)
    cells = {
        name: read_cells(name, pl.col(name), source, mapping) for name, source in sources.items() if name not in STAMPS
    }
    values = texts.select("line", **{name: cell.value.cast(RUNS[name]) for name, cell in cells.items()})
    faults = texts.select("line", **{name: cell.fault for name, cell in cells.items()}).with_columns(
        **{name: moment.fault for name, moment in moments.items()}, epochs=_mixed_epochs(texts, sources)
    )
    stamps = run_moments(_all_four(moments, rows.height), _no_elapsed)
    runs = pl.concat([values, stamps.drop("fault")], how="horizontal")
    runs = _completed(runs, tells_eligibility="eligible_at" in sources, has_attempts=mapping.attempts is not None)
    return runs.with_columns(first_fault(texts, faults.drop("line"), sources)).with_columns(_last_fault())


def read_stamps(
    texts: pl.DataFrame, sources: Mapping[str, Source], *, mapping: AnyMapping, timezone: str | None
) -> dict[str, Moments]:
    """The moments among the sources, in their order: one may be so much later than one before it."""
    moments: dict[str, Moments] = {}
    for name, source in sources.items():
        if not isinstance(source, Moment):
            continue
        if source.origin is not None:
            at = pl.repeat(source.origin, texts.height, dtype=MOMENT, eager=True)
            moments[name] = _after(texts, name, source, _certain(at), mapping)
        elif source.after is None:
            moments |= read_moments(texts.select(name), timezone=timezone, form=source.form, no_moment=())
        elif source.after in moments:
            moments[name] = _after(texts, name, source, moments[source.after], mapping)
    return moments


def _certain(at: pl.Series) -> Moments:
    return Moments(at, at.clone(), pl.repeat(None, len(at), dtype=pl.String, eager=True))


def _after(texts: pl.DataFrame, name: str, source: Moment, base: Moments, mapping: AnyMapping) -> Moments:
    """So much time after another moment; the same moment if the mapping names no column."""
    if source.column is None:
        return base
    later = duration_ms(pl.col(name), source.unit, mapping)
    read = texts.select(ms=later.value, fault=later.fault)
    at = base.at + read["ms"].cast(pl.Duration("ms"))
    may_lack = source.optional or source.since is not None
    no_duration = pl.lit(None if may_lack else _NO_DURATION.get(name, "missing_value"), pl.String)
    is_missing = base.at.is_not_null() & read["ms"].is_null()
    fault = read.select(pl.coalesce("fault", pl.when(is_missing).then(no_duration))).to_series()
    return Moments(at, at.clone(), fault)


def _all_four(moments: Mapping[str, Moments], height: int) -> dict[str, Moments]:
    nothing = _certain(pl.repeat(None, height, dtype=MOMENT, eager=True))
    return {name: moments.get(name, nothing) for name in STAMPS}


def _no_elapsed(mask: pl.Series) -> pl.Series:
    return pl.repeat(None, int(mask.sum()), dtype=pl.Int64, eager=True)


def _mixed_epochs(texts: pl.DataFrame, sources: Mapping[str, Source]) -> pl.Series:
    """The unit of an epoch that tells itself by its digits is the same in all stamps of a row (case cs-04)."""
    told = [
        pl.when(pl.col(name).str.contains(_SAME_EPOCH_UNIT)).then((pl.col(name).str.len_chars() - 9) // 3)
        for name in STAMPS
        if isinstance(source := sources.get(name), Moment) and _tells_its_unit(source)
    ]
    differ = pl.max_horizontal(told) != pl.min_horizontal(told) if len(told) > 1 else pl.lit(value=False)
    return texts.select("line", epochs=pl.when(differ).then(pl.lit("bad_time"))).to_series(1)


def _tells_its_unit(source: Moment) -> bool:
    return source.form == "auto" and source.after is None and source.since is None


def _completed(runs: pl.DataFrame, *, tells_eligibility: bool, has_attempts: bool) -> pl.DataFrame:
    """What the table does not say: submitted when started, eligible when submitted, charged unless free.

    Where it tells of eligibility, a workload without it that did not start was never eligible. A later attempt
    has been eligible since the end of the one before.
    """
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in RUNS.items() if name not in runs.columns]
    is_charged = pl.coalesce("is_charged", pl.col("minimum_runtime_s") != 0, pl.lit(value=True))
    submitted = pl.coalesce("submitted_at", "started_at")
    was_eligible = pl.col("started_at").is_not_null() | (not tells_eligibility)
    eligible = pl.coalesce("eligible_at", pl.when(was_eligible).then(submitted))
    if has_attempts:
        eligible = pl.max_horizontal(eligible, pl.col("ended_at").shift(1).over("workload_id", "submitted_at"))
    return (
        runs.with_columns(absent)
        .with_columns(submitted_at=submitted, eligible_at=eligible, is_charged=is_charged)
        .with_columns(**early_start_flags(), ambiguous_local_time=pl.col("is_ambiguous"))
    )


def first_fault(texts: pl.DataFrame, faults: pl.DataFrame, sources: Mapping[str, Source]) -> list[pl.Series]:
    """`fault` and `detail`: the first cell of a row that cannot be read, and what stands in it."""
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
