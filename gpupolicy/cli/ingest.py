"""`gpupolicy ingest SOURCE FILE...`: usage logs into the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from gpupolicy import assets, cycle
from gpupolicy.cli.options import Format, Options, options_of
from gpupolicy.cli.output import print_json, tell
from gpupolicy.errors import InvalidInput
from gpupolicy.ingest import Reading, load_mapping, read_capacity, read_slurm, read_table
from gpupolicy.warehouse import Loaded

app = typer.Typer(help="Load usage logs and host inventories into the store.", no_args_is_help=True)

Files = Annotated[list[Path], typer.Argument(help="Files to load; .gz is read as it is.", show_default=False)]
Timezone = Annotated[str | None, typer.Option(help="Zone of stamps that carry none, e.g. Europe/Berlin.")]


@app.command(
    epilog="Examples: `gpupolicy ingest slurm sacct.psv --cluster jupiter` · "
    "`TZ=UTC sacct -a -X -D -P --noconvert -S 2026-07-01 -E now -o ALL > sacct.psv` makes such a file"
)
def slurm(
    context: typer.Context,
    files: Files,
    timezone: Timezone = "UTC",
    fields: Annotated[str | None, typer.Option(help="Field names of a dump without a header, with commas.")] = None,
    count: Annotated[str, typer.Option(help="What to count: gpus, or cpus on a cluster without GPUs.")] = "gpus",
    free_qos: Annotated[str, typer.Option(help="QOS names whose work is free, with commas.")] = "free",
) -> None:
    """Slurm's `sacct -P`: any field order, any delimiter, -D duplicates, steps and arrays."""
    options = options_of(context)
    if count not in {"gpus", "cpus"}:
        raise typer.BadParameter(f"'{count}' cannot be counted; gpus or cpus", param_hint="--count")

    def read(path: Path) -> Reading:
        return read_slurm(
            path,
            cluster=options.cluster,
            timezone=timezone or "UTC",
            observed_until=options.at,
            fields=fields.split(",") if fields else None,
            count="cpus" if count == "cpus" else "gpus",
            free_qos=frozenset(free_qos.split(",")),
        )

    _load(options, files, read)


@app.command(
    epilog="Example: `gpupolicy ingest table jobs.csv --mapping data/mappings/thetagpu.yaml --cluster theta`. "
    "Without --mapping the columns are expected to be named as in data/mappings/generic.yaml."
)
def table(
    context: typer.Context,
    files: Files,
    mapping: Annotated[Path | None, typer.Option(help="YAML or TOML file that says which column is what.")] = None,
    timezone: Timezone = None,
) -> None:
    """Any CSV, by a mapping file."""
    options = options_of(context)
    known = load_mapping(mapping or assets.MAPPINGS / "generic.yaml")

    def read(path: Path) -> Reading:
        return read_table(path, known, cluster=options.cluster, timezone=timezone, observed_until=options.at)

    _load(options, files, read)


@app.command(
    epilog="Examples: `gpupolicy ingest capacity hosts.csv outages.csv` · "
    "a cluster known only by its size: a CSV of gpus,valid_from,valid_to and --cluster NAME"
)
def capacity(context: typer.Context, files: Files, timezone: Timezone = None) -> None:
    """Hosts, their GPUs and their outages; or just a cluster's size over time."""
    options = options_of(context)

    def read(path: Path) -> Reading:
        return read_capacity(path, cluster=options.cluster, timezone=timezone, observed_until=options.at)

    _load(options, files, read)


def _load(options: Options, files: Sequence[Path], read: Callable[[Path], Reading]) -> None:
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
