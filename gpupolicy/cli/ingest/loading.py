"""What all sources share: every file is read before anything is loaded, and what became of its rows is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from gpupolicy import cycle
from gpupolicy.cli.options import Format, Options
from gpupolicy.cli.output import print_json, tell
from gpupolicy.errors import InvalidInput
from gpupolicy.ingest import Reading
from gpupolicy.warehouse import Loaded

Files = Annotated[list[Path], typer.Argument(help="Files to load; .gz is read as it is.", show_default=False)]
Timezone = Annotated[str | None, typer.Option(help="Zone of stamps that carry none, e.g. Europe/Berlin.")]


def load_files(options: Options, files: Sequence[Path], read: Callable[[Path], Reading]) -> None:
    """Read every file before anything is loaded: a file that is refused leaves the store as it was."""
    readings = [read(path) for path in files]
    answers = []
    for reading in readings:
        loaded = cycle.ingest(options.store, reading, loaded_at=datetime.now(UTC))
        answers.append(_answer(reading, loaded))
        _tell(options, reading, loaded)
    if options.format is Format.json:
        print_json({"store": str(options.store), "files": answers})
    elif options.format is Format.csv:
        typer.echo(pl.DataFrame([_flat(answer) for answer in answers]).write_csv(), nl=False)


def _answer(reading: Reading, loaded: Loaded) -> dict[str, object]:
    return {
        "file": reading.path,
        "source": reading.source,
        "rows": {
            "read": reading.rows_read,
            "accepted": reading.accepted,
            "ignored": int(reading.ignored["rows"].sum()),
            "rejected": reading.rejected.height,
            "ignored_by_reason": dict(reading.ignored.select("reason", "rows").iter_rows()),
            "rejected_by_reason": dict(reading.rejected["reason"].value_counts().iter_rows()),
        },
        "loaded": {"new": loaded.new, "changed": loaded.changed, "unchanged": loaded.unchanged},
        "observed_until": reading.observed_until,
        "notices": list(reading.notices),
    }


def _flat(answer: dict[str, object]) -> dict[str, object]:
    rows, loaded = answer["rows"], answer["loaded"]
    assert isinstance(rows, dict)  # noqa: S101 - made above
    assert isinstance(loaded, dict)  # noqa: S101 - made above
    counts = {name: rows[name] for name in ("read", "accepted", "ignored", "rejected")}
    return {"file": answer["file"], **counts, **loaded}


def _tell(options: Options, reading: Reading, loaded: Loaded) -> None:
    ignored = int(reading.ignored["rows"].sum())
    effect = "nothing new" if loaded.is_without_effect else f"{loaded.new:,} new, {loaded.changed:,} changed"
    tell(
        f"{reading.path}: {reading.rows_read:,} rows: {reading.accepted:,} accepted, {ignored:,} ignored, "
        f"{reading.rejected.height:,} rejected; {effect} in {options.store}"
    )
    for line, reason, detail in reading.rejected.select("line", "reason", "detail").head(5).iter_rows():
        tell(f"  rejected line {line}: {reason}{f': {detail}' if detail else ''}")
    for notice in reading.notices:
        tell(f"  note: {notice}")
    if not reading.accepted and reading.rows_read:
        raise InvalidInput(f"{reading.path}: no row was accepted; the reasons stand above")


def named_cluster(options: Options) -> str:
    if options.cluster is None:
        raise InvalidInput("such a file does not name its cluster; say it with --cluster NAME")
    return options.cluster
