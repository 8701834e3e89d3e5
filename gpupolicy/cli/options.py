"""The options that every command understands, wherever on the line they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import typer

DEFAULT_STORE = Path("data/store")
_EVERYWHERE = ("--store", "--format", "--at", "--cluster")


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"


@dataclass(frozen=True, slots=True)
class Options:
    store: Path
    format: Format
    at: datetime | None
    cluster: str | None


def options_of(context: typer.Context) -> Options:
    options = context.find_object(Options)
    assert options is not None  # noqa: S101 - the root command always sets it
    return options


def hoist(arguments: Sequence[str]) -> list[str]:
    """Put the options of every command in front, so that they may stand before or after the verb."""
    front: list[str] = []
    rest: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            rest += [word, *waiting]
            break
        if word in _EVERYWHERE and waiting:
            front += [word, waiting.pop(0)]
        elif word.startswith(tuple(f"{name}=" for name in _EVERYWHERE)):
            front.append(word)
        else:
            rest.append(word)
    return front + rest


def parse_moment(text: str | None) -> datetime | None:
    """2026-07-01, 2026-07-01T12:00Z or with another offset; without one it is UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is no date or moment; write 2026-07-01 or 2026-07-01T12:00Z") from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
