"""Durations as Slurm writes them: 1-02:30:00, 59:59.123, UNLIMITED."""

from __future__ import annotations

import re

import polars as pl

_DURATION = r"^(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)(?:\.(\d+))?$"


def duration_s(text: str) -> float | None:
    """Seconds of [DAYS-[HOURS:]]MINUTES:SECONDS[.FRACTION] (case sa-01); None for a word or nothing (sa-02)."""
    match = re.match(_DURATION, text)
    if match is None:
        return None
    days, hours, minutes, seconds, fraction = match.groups()
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes)) * 60 + int(seconds)
    return whole + float(f"0.{fraction}") if fraction else whole


def durations_s(text: pl.Expr) -> pl.Expr:
    """The same over a column, whole seconds."""
    part = [text.str.extract(_DURATION, group).cast(pl.Int64) for group in range(1, 5)]
    days, hours, minutes, seconds = part
    return ((days.fill_null(0) * 24 + hours.fill_null(0)) * 60 + minutes) * 60 + seconds
