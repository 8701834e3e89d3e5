"""Stamps of any common form into moments: UTC without a zone, to the millisecond."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest.canonical import MOMENT

NO_MOMENT = ("", "Unknown", "None", "NONE", "N/A", "NaN", "NaT", "null", "NULL", "(null)", "-")
ISO = "%Y-%m-%dT%H:%M:%S"
EPOCH_FORMS = ("epoch_s", "epoch_ms", "epoch_us", "epoch_ns")

_NAIVE = r"^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?$"
_ZONED = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)? ?(?:Z|UTC|[+-]\d\d:?\d\d)$"
_EPOCH = r"^\d+(?:\.\d*)?$"
_PLAIN_UTC = re.compile(r"\d{9,10}|.{10}T.{8}Z")
_DAY_OR_MONTH_FIRST = r"^\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}\b"


@dataclass(frozen=True, slots=True)
class Moments:
    """One column of stamps as read; all series are as long as the column.

    `second` is the other moment that a local stamp of the hour that comes twice may mean, equal to `at`
    elsewhere. `fault` is why a stamp is no moment, null where it is one or where there is none.
    """

    at: pl.Series
    second: pl.Series
    fault: pl.Series


def check_timezone(name: str | None) -> str | None:
    """The name of an IANA zone; raises InvalidInput if there is no such zone."""
    try:
        return None if name is None else ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError):
        raise InvalidInput(
            f"'{name}' is no time zone; write one of the IANA names, e.g. UTC or Europe/Berlin"
        ) from None


def utc_without_zone(moment: datetime | None) -> datetime | None:
    """A moment as the frames carry it; one without a zone is UTC already."""
    if moment is None or moment.tzinfo is None:
        return moment
    return moment.astimezone(UTC).replace(tzinfo=None)


def read_moments(
    frame: pl.DataFrame, *, timezone: str | None, form: str = "auto", no_moment: Sequence[str] = NO_MOMENT
) -> dict[str, Moments]:
    """Read every column of a frame of texts.

    Forms: auto (ISO with or without a zone, or epoch by its number of digits), epoch_s, epoch_ms, epoch_us,
    epoch_ns, or a strptime format. Faults: bad_time, ambiguous_date, naive_without_timezone,
    nonexistent_local_time (cases ti-01, cs-03, cs-04).
    """
    if form != "auto":
        return {name: _slowly(frame[name], timezone, form, no_moment) for name in frame.columns}
    firsts = {name: next(iter(frame[name].drop_nulls().head(1)), "") for name in frame.columns}
    plain = frame.select(_plain(name, first) for name, first in firsts.items())
    zones = {name: "UTC" if _PLAIN_UTC.fullmatch(first) else timezone for name, first in firsts.items()}
    return {
        name: _completed(frame[name], _from_local(plain[name], zones[name]), timezone, no_moment)
        for name in frame.columns
    }


def _plain(name: str, first: str) -> pl.Expr:
    """A column read in the form of its first stamp, which most others have too; null for those that have not."""
    if first.isdigit():
        return _plain_epoch(name)
    form = ISO + "Z" if _PLAIN_UTC.fullmatch(first) else ISO
    return pl.col(name).str.to_datetime(form, time_unit="ms", strict=False)


def _plain_epoch(name: str) -> pl.Expr:
    seconds = pl.col(name).cast(pl.Int64, strict=False)
    return pl.when(seconds.is_between(10**8, 10**10)).then(seconds * 1000).cast(MOMENT).alias(name)


def _from_local(local: pl.Series, timezone: str | None) -> Moments:
    if timezone == "UTC":
        return Moments(local, local.clone(), _no_fault(local))
    if timezone is None:
        nothing = local.clear(len(local))
        return Moments(nothing, nothing.clone(), _faults(local.is_not_null(), "naive_without_timezone"))
    first, second = (
        local.dt.replace_time_zone(timezone, ambiguous=which, non_existent="null")
        .dt.convert_time_zone("UTC")
        .dt.replace_time_zone(None)
        for which in ("earliest", "latest")
    )
    return Moments(first, second, _faults(local.is_not_null() & first.is_null(), "nonexistent_local_time"))


def _completed(texts: pl.Series, quick: Moments, timezone: str | None, no_moment: Sequence[str]) -> Moments:
    """What the quick reading left open, read slowly."""
    left = (texts.is_not_null() & quick.at.is_null() & quick.fault.is_null()).arg_true()
    if left.is_empty():
        return quick
    slow = _slowly(texts.gather(left), timezone, "auto", no_moment)
    return Moments(
        quick.at.scatter(left, slow.at),
        quick.second.scatter(left, slow.second),
        quick.fault.scatter(left, slow.fault),
    )


def _slowly(texts: pl.Series, timezone: str | None, form: str, no_moment: Sequence[str]) -> Moments:
    text = pl.col("text").str.strip_chars()
    read = pl.DataFrame({"text": texts}).with_columns(
        local=_local(text, form), utc=_utc(text, form), is_none=text.is_in(no_moment) | text.is_null()
    )
    naive = _from_local(read["local"], timezone)
    faults = (
        pl.when(pl.col("is_none") | pl.col("utc").is_not_null())
        .then(None)
        .when(pl.col("naive").is_not_null())
        .then(pl.col("naive"))
        .when(pl.col("local").is_not_null())
        .then(None)
        .when(text.str.contains(_DAY_OR_MONTH_FIRST))
        .then(pl.lit("ambiguous_date"))
        .otherwise(pl.lit("bad_time"))
    )
    return Moments(
        naive.at.fill_null(read["utc"]),
        naive.second.fill_null(read["utc"]),
        read.with_columns(naive=naive.fault).select(faults.alias(texts.name)).to_series(),
    )


def _local(text: pl.Expr, form: str) -> pl.Expr:
    """Stamps without a zone; null for the others."""
    if form in EPOCH_FORMS or "%z" in form:
        return pl.lit(None, dtype=MOMENT)
    if form == "auto":
        text = _full_iso(pl.when(text.str.contains(_NAIVE)).then(text))
        form = ISO + "%.f"
    return text.str.to_datetime(form, time_unit="us", strict=False).dt.round("1ms").cast(MOMENT)


def _utc(text: pl.Expr, form: str) -> pl.Expr:
    """Stamps with a zone, and epochs; null for the others."""
    if form in EPOCH_FORMS:
        return _epoch(text, unit=form)
    if form == "auto":
        zoned = _full_iso(pl.when(text.str.contains(_ZONED)).then(text).str.replace(r" ?(?:Z|UTC)$", "+00:00"))
        return _zoned(zoned, ISO + "%.f%z").fill_null(_epoch(text, unit=None))
    return _zoned(text, form) if "%z" in form else pl.lit(None, dtype=MOMENT)


def _full_iso(text: pl.Expr) -> pl.Expr:
    """2026-03-01 and 2026-03-01 08:00 with all that the parser asks for."""
    return (
        text.str.replace(r"^(.{10})[ T](\d\d:\d\d)", "${1}T${2}")
        .str.replace(r"^(.{10})$", "${1}T00:00")
        .str.replace(r"^(.{10}T\d\d:\d\d)($| ?[+-])", "${1}:00${2}")
        .str.replace(" ", "")
    )


def _zoned(text: pl.Expr, form: str) -> pl.Expr:
    read = text.str.to_datetime(form, time_unit="us", time_zone="UTC", strict=False)
    return read.dt.round("1ms").dt.replace_time_zone(None).cast(MOMENT)


def _epoch(text: pl.Expr, unit: str | None) -> pl.Expr:
    """Epochs in a unit, or in the one that their number of digits tells: 10, 13, 16 or 19 (case cs-04)."""
    number = pl.when(text.str.contains(_EPOCH)).then(text)
    whole, exact = number.cast(pl.Int64, strict=False), number.cast(pl.Float64, strict=False)
    in_ms = {
        "epoch_s": (exact * 1000).round().cast(pl.Int64, strict=False),
        "epoch_ms": exact.round().cast(pl.Int64, strict=False),
        "epoch_us": (whole + 500) // 1000,
        "epoch_ns": (whole + 500_000) // 1_000_000,
    }
    if unit is not None:
        return in_ms[unit].cast(MOMENT)
    digits = number.str.extract(r"^(\d+)").str.len_chars()
    by_digits = zip(((9, 11), (12, 14), (15, 17), (18, 19)), EPOCH_FORMS, strict=True)
    read = pl.coalesce(pl.when(digits.is_between(least, most)).then(in_ms[name]) for (least, most), name in by_digits)
    return read.cast(MOMENT)


def _no_fault(like: pl.Series) -> pl.Series:
    return pl.Series(like.name, [], pl.String).clear(len(like))


def _faults(where: pl.Series, reason: str) -> pl.Series:
    return pl.DataFrame({"where": where}).select(pl.when("where").then(pl.lit(reason))).to_series()
