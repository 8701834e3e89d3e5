"""Tables by a mapping file, and the hosts that there were."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpupolicy import assets
from gpupolicy.cli.ingest.loading import Files, Timezone, load_files
from gpupolicy.cli.options import options_of
from gpupolicy.ingest import Reading, load_level_mapping, load_mapping, read_capacity, read_levels, read_table

TABLE_EXAMPLES = (
    "Example: `gpupolicy ingest table jobs.csv --mapping data/mappings/thetagpu.yaml --cluster theta`. "
    "Without --mapping the columns are expected to be named as in data/mappings/generic.yaml."
)


def table(
    context: typer.Context,
    files: Files,
    mapping: Annotated[Path | None, typer.Option(help="YAML or TOML file that says which column is what.")] = None,
    timezone: Timezone = None,
) -> None:
    """CSV, Parquet, JSON or NDJSON, by a mapping file."""
    options = options_of(context)
    known = load_mapping(mapping or assets.MAPPINGS / "generic.yaml")

    def read(path: Path) -> Reading:
        return read_table(path, known, cluster=options.cluster, timezone=timezone, observed_until=options.at)

    load_files(options, files, read)


CAPACITY_EXAMPLES = (
    "Examples: `gpupolicy ingest capacity hosts.csv outages.csv` · "
    "a cluster known only by its size: a CSV of gpus,valid_from,valid_to and --cluster NAME"
)


def capacity(context: typer.Context, files: Files, timezone: Timezone = None) -> None:
    """Hosts, their GPUs and their outages; or just a cluster's size over time."""
    options = options_of(context)

    def read(path: Path) -> Reading:
        return read_capacity(path, cluster=options.cluster, timezone=timezone, observed_until=options.at)

    load_files(options, files, read)


LEVELS_EXAMPLES = (
    "Example: `gpupolicy ingest levels minutes.csv --mapping data/mappings/helios-minutes.yaml --cluster earth`"
)


def levels(
    context: typer.Context,
    files: Files,
    mapping: Annotated[
        Path, typer.Option(help="YAML or TOML file that says which column is what.", show_default=False)
    ],
    timezone: Timezone = None,
) -> None:
    """Counts of GPUs held and wanted, sampled over time: sums, without workloads."""
    options = options_of(context)
    known = load_level_mapping(mapping)

    def read(path: Path) -> Reading:
        return read_levels(path, known, cluster=options.cluster, timezone=timezone, observed_until=options.at)

    load_files(options, files, read)
