"""Columns of formats that have types, as the texts that a table of texts would hold: one reading for all formats."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from gpupolicy.ingest.table.cells import OWN_UNIT
from gpupolicy.ingest.table.mapping import COUNT_OF, OURS

_EXACT_FLOATS = 2.0**53  # from here on a float is no longer one whole number (case cs-05)


def columns_of(schema: pl.Schema) -> dict[str, pl.Expr]:
    """Every name a mapping may refer to, and the texts it stands for.

    A field of a struct is `a.b`, through lists too; a list is its values with commas between them, and
    `count of a.b` their number. A column that is itself called `a.b` goes before a field.
    """
    found: dict[str, pl.Expr] = {}
    for name, dtype in schema.items():
        found |= _texts(name, pl.col(name), dtype)
    return found | {name: _text(pl.col(name), dtype) for name, dtype in schema.items() if not dtype.is_nested()}


def numbered(rows: pl.DataFrame, *, first: int) -> pl.DataFrame:
    """The rows with `line`, their number in the file; a column of that name gives way."""
    return rows.rename(OURS, strict=False).with_columns(line=pl.int_range(first, first + pl.len(), dtype=pl.Int64))


def _texts(name: str, values: pl.Expr, dtype: pl.DataType) -> dict[str, pl.Expr]:
    if isinstance(dtype, pl.Struct):
        fields = (_texts(f"{name}.{field}", values.struct.field(field), below) for field, below in _fields(dtype))
        return {below: texts for found in fields for below, texts in found.items()}
    if isinstance(dtype, pl.Array):
        return _texts(name, values.arr.to_list(), pl.List(dtype.inner))
    if isinstance(dtype, pl.List):
        found = {COUNT_OF + name: values.list.len().cast(pl.String)}
        for below, leaf in _leaves(pl.element(), _one(dtype.inner)):
            listed = values.list.eval(leaf.drop_nulls())
            found |= {name + below: listed.list.join(","), COUNT_OF + name + below: listed.list.len().cast(pl.String)}
        return found
    return {name: _text(values, dtype)}


def _leaves(element: pl.Expr, dtype: pl.DataType) -> Iterator[tuple[str, pl.Expr]]:
    """The values that an element of a list holds, with the path to them; lists in lists are laid end to end."""
    if isinstance(dtype, pl.Struct):
        for field, inner in _fields(dtype):
            for below, leaf in _leaves(element.struct.field(field), inner):
                yield f".{field}{below}", leaf
    elif isinstance(dtype, pl.List):
        yield from _leaves(element.explode(), _one(dtype.inner))
    else:
        yield "", _text(element, dtype)


def _fields(dtype: pl.Struct) -> list[tuple[str, pl.DataType]]:
    return [(field.name, _one(field.dtype)) for field in dtype.fields]


def _one(dtype: pl.DataType | pl.datatypes.DataTypeClass) -> pl.DataType:
    return dtype if isinstance(dtype, pl.DataType) else dtype()


def _text(values: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone is None:
            return values.dt.to_string("%Y-%m-%dT%H:%M:%S%.f")
        return values.dt.convert_time_zone("UTC").dt.to_string("%Y-%m-%dT%H:%M:%S%.fZ")
    if isinstance(dtype, pl.Duration):
        return (values.dt.total_microseconds() / 1e6).cast(pl.String) + OWN_UNIT
    if dtype.is_float():
        number = values.cast(pl.Float64)
        told = number.cast(pl.String).str.to_uppercase()
        mangled = pl.when(told.str.contains("E", literal=True)).then(told).otherwise(told + "E+0")
        return pl.when(number.is_finite() & (number.abs() >= _EXACT_FLOATS)).then(mangled).otherwise(told)
    return values.cast(pl.String, strict=False)
