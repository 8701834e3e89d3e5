"""Tables whose rows are no runs, as a mapping says, into a frame of a given schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import REJECTED
from gpupolicy.ingest.moments import check_timezone
from gpupolicy.ingest.parts import summed
from gpupolicy.ingest.records import ignored_rows
from gpupolicy.ingest.table.cells import read_cells, text_of
from gpupolicy.ingest.table.formats import open_rows
from gpupolicy.ingest.table.mapping import AnyMapping, Moment, Source
from gpupolicy.ingest.table.reading import needed_columns, sources_of
from gpupolicy.ingest.table.runs import first_fault, read_stamps


@dataclass(frozen=True, slots=True)
class Shape:
    """What a row becomes: of each group in `needed` one column has a value; of rows with one key the last stays."""

    schema: pl.Schema
    key: Sequence[str]
    needed: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a file: those that were accepted, as the schema has them, and the others."""

    accepted: pl.DataFrame
    rejected: pl.DataFrame
    ignored: pl.DataFrame

    @property
    def rows_read(self) -> int:
        return self.accepted.height + self.rejected.height + int(self.ignored["rows"].sum())


def read_frame(path: Path, mapping: AnyMapping, *, shape: Shape, cluster: str | None, timezone: str | None) -> Found:
    """Read a table of any format; arguments and refusals are those of read_table."""
    zone = check_timezone(timezone) or mapping.timezone
    rows = open_rows(path, mapping, needs=needed_columns(mapping))
    sources = sources_of(path, mapping, rows, cluster)
    accepted, rejected, ignored = [shape.schema.to_frame()], [REJECTED.to_frame()], []
    for batch in rows.batches:
        texts = batch.frame.filter(~pl.all_horizontal(pl.exclude("line").is_null()))
        read = _values(texts, sources, mapping=mapping, zone=zone, shape=shape)
        is_good = read["fault"].is_null()
        faulty = texts.filter(~is_good).with_columns(read.filter(~is_good).select("fault", "detail"))
        accepted.append(read.filter(is_good).select(shape.schema.names()))
        rejected += [batch.rejected, rows.rejected(faulty)]
        ignored.append(batch.ignored)
    kept, lost = last_of_each(pl.concat(accepted), shape.key)
    return Found(kept, pl.concat(rejected), summed([*ignored, *lost]))


def last_of_each(rows: pl.DataFrame, key: Sequence[str]) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Of rows with one key the last in the file, and what is counted of the others."""
    what = [name for name in rows.columns if name != "line"]
    is_new = rows.select(pl.struct(what).is_first_distinct()).to_series()
    different = rows.filter(is_new)
    is_last = different.select(pl.struct(key).is_last_distinct()).to_series()
    again = ignored_rows(rows.filter(~is_new), "duplicate_record")
    return different.filter(is_last), [again, ignored_rows(different.filter(~is_last), "superseded_record")]


def _values(
    texts: pl.DataFrame, sources: Mapping[str, Source], *, mapping: AnyMapping, zone: str | None, shape: Shape
) -> pl.DataFrame:
    """The schema's columns, with `fault` and `detail`, null in a good row."""
    cells = texts.select("line", **{name: text_of(source, mapping) for name, source in sources.items()})
    stamps = read_stamps(cells, sources, mapping=mapping, timezone=zone)
    read = {
        name: read_cells(name, pl.col(name), source, mapping)
        for name, source in sources.items()
        if not isinstance(source, Moment)
    }
    faults = cells.select(
        **{name: cell.fault for name, cell in read.items()}, **{name: stamp.fault for name, stamp in stamps.items()}
    )
    values = cells.select("line", **{name: cell.value.cast(shape.schema[name]) for name, cell in read.items()})
    values = values.with_columns(**{name: stamp.at for name, stamp in stamps.items()})
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in shape.schema.items() if name not in values.columns]
    return values.with_columns(absent).with_columns(first_fault(cells, faults, sources)).with_columns(_lacking(shape))


def _lacking(shape: Shape) -> list[pl.Expr]:
    lacking = pl.coalesce(
        pl.when(pl.all_horizontal(pl.col(name).is_null() for name in group)).then(pl.lit(" or ".join(group)))
        for group in shape.needed
    )
    return [
        pl.coalesce("fault", pl.when(lacking.is_not_null()).then(pl.lit("missing_value"))),
        pl.coalesce("detail", pl.format("there is no {}", lacking)),
    ]
