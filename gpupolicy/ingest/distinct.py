"""Columns of which few texts differ: each is read once, however many rows hold it."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl


def each_once(texts: pl.Series, read: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """What `read` makes of the different texts, a row for each row of the column.

    `read` gets a frame with the column `text`, without null, and gives it back with the columns it adds; rows
    it leaves out, and null, have null in them.
    """
    asked = pl.DataFrame({"text": texts})
    known = read(asked.unique().drop_nulls())
    return asked.join(known, on="text", how="left", maintain_order="left")
