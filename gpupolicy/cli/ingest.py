"""`gpupolicy ingest SOURCE FILE...`: usage logs into the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import polars as pl
import typer

from gpupolicy import assets, cycle
from gpupolicy.cli.options import Format, Options, options_of
from gpupolicy.cli.output import print_json, tell
from gpupolicy.errors import InvalidInput
from gpupolicy.ingest import (
    Reading,
    load_mapping,
    read_capacity,
    read_slurm,
    read_slurm_json,
    read_slurmdb,
    read_swf,
    read_table,
)
from gpupolicy.warehouse import Loaded


class Count(StrEnum):
    gpus = "gpus"
    cpus = "cpus"


class MigRule(StrEnum):
    compute_slices_over_7 = "compute_slices_over_7"
    devices = "devices"


class SwfAccount(Enum):
    group = "group"
    user = "user"
    executable = "executable"
    queue = "queue"
    partition = "partition"


class SlurmSettings(TypedDict):
    """The settings that all forms of Slurm's accounting share, by the names of their readers."""

    count: Literal["gpus", "cpus"]
    free_qos: frozenset[str]
    gpu_only_partitions: frozenset[str]
    mig_rule: Literal["compute_slices_over_7", "devices"]
    shards_per_gpu: int | None
    overrun_grace_h: float | None


app = typer.Typer(help="Load usage logs and host inventories into the store.", no_args_is_help=True)

Files = Annotated[list[Path], typer.Argument(help="Files to load; .gz is read as it is.", show_default=False)]
CountOption = Annotated[Count, typer.Option(help="What to count; cpus is for clusters without GPUs.")]
FreeQos = Annotated[str, typer.Option(help="QOS names whose work is free, with commas.")]
GpuOnlyPartitions = Annotated[
    str, typer.Option(help="Partitions, with commas, whose runs hold what they asked for if the log has no allocation.")
]
MigOption = Annotated[MigRule, typer.Option(help="What a MIG slice counts: its part of a card, or one device.")]
ShardsPerGpu = Annotated[int | None, typer.Option(min=1, help="Shards that make one GPU, where a site shares GPUs so.")]
OverrunGrace = Annotated[
    float, typer.Option(min=0, help="Hours an open run may be over its time limit before it counts as forgotten.")
]
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
    count: CountOption = Count.gpus,
    free_qos: FreeQos = "free",
    gpu_only_partitions: GpuOnlyPartitions = "",
    mig_rule: MigOption = MigRule.compute_slices_over_7,
    shards_per_gpu: ShardsPerGpu = None,
    overrun_grace_h: OverrunGrace = 24,
) -> None:
    """Slurm's `sacct -P`: any field order, any delimiter, -D duplicates, steps and arrays, or key=value cells."""
    options = options_of(context)
    given = _slurm_settings(count, free_qos, gpu_only_partitions, mig_rule, shards_per_gpu, overrun_grace_h)
    named = fields.split(",") if fields else None

    def read(path: Path) -> Reading:
        zone = timezone or "UTC"
        return read_slurm(
            path, cluster=options.cluster, timezone=zone, observed_until=options.at, fields=named, **given
        )

    _load(options, files, read)


@app.command(
    "slurm-json",
    epilog="Example: `sacct -a -D --json -S 2026-07-01 -E now > sacct.json; "
    "gpupolicy ingest slurm-json sacct.json --cluster jupiter`",
)
def slurm_json(
    context: typer.Context,
    files: Files,
    count: CountOption = Count.gpus,
    free_qos: FreeQos = "free",
    gpu_only_partitions: GpuOnlyPartitions = "",
    mig_rule: MigOption = MigRule.compute_slices_over_7,
    shards_per_gpu: ShardsPerGpu = None,
    overrun_grace_h: OverrunGrace = 24,
) -> None:
    """Slurm's `sacct --json`, of every release so far."""
    options = options_of(context)
    given = _slurm_settings(count, free_qos, gpu_only_partitions, mig_rule, shards_per_gpu, overrun_grace_h)
    _load(
        options, files, lambda path: read_slurm_json(path, cluster=options.cluster, observed_until=options.at, **given)
    )


@app.command(
    epilog="Example: `gpupolicy ingest slurmdb job_table.csv --cluster jupiter --gpu-tres 1001=gpu,1002=gpu:h100`"
)
def slurmdb(
    context: typer.Context,
    files: Files,
    gpu_tres: Annotated[
        str | None, typer.Option(help="Ids of GPU resources as `sacctmgr show tres` names them.")
    ] = None,
    count: CountOption = Count.gpus,
    free_qos: FreeQos = "free",
    overrun_grace_h: OverrunGrace = 24,
) -> None:
    """Rows of the job table in Slurm's database, as CSV."""
    options = options_of(context)
    ids = _tres_ids(gpu_tres) if gpu_tres else None
    given = _slurm_settings(count, free_qos, "", MigRule.compute_slices_over_7, None, overrun_grace_h)
    cluster = _named_cluster(options)
    _load(
        options,
        files,
        lambda path: read_slurmdb(path, cluster=cluster, gpu_tres_ids=ids, observed_until=options.at, **given),
    )


@app.command(epilog="Example: `gpupolicy ingest swf hpc2n.swf --cluster hpc2n --account-from user`")
def swf(
    context: typer.Context,
    files: Files,
    gpus_per_processor: Annotated[float, typer.Option(help="GPUs that a processor of the log stands for.")] = 1,
    account_from: Annotated[SwfAccount, typer.Option(help="Which field names the account.")] = SwfAccount.group,
) -> None:
    """The Standard Workload Format of the Parallel Workloads Archive."""
    options = options_of(context)
    cluster = _named_cluster(options)
    _load(
        options,
        files,
        lambda path: read_swf(
            path,
            cluster=cluster,
            gpus_per_processor=gpus_per_processor,
            account_from=account_from.value,
            observed_until=options.at,
        ),
    )


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


def _slurm_settings(
    count: Count, free_qos: str, gpu_only: str, mig_rule: MigRule, shards_per_gpu: int | None, overrun_grace_h: float
) -> SlurmSettings:
    return {
        "count": count.value,
        "free_qos": frozenset(free_qos.split(",")),
        "gpu_only_partitions": frozenset(filter(None, gpu_only.split(","))),
        "mig_rule": mig_rule.value,
        "shards_per_gpu": shards_per_gpu,
        "overrun_grace_h": overrun_grace_h,
    }


def _tres_ids(text: str) -> dict[int, str]:
    try:
        pairs = [pair.split("=", 1) for pair in text.split(",")]
        return {int(number): name for number, name in pairs}
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not like 1001=gpu,1002=gpu:h100", param_hint="--gpu-tres") from None


def _named_cluster(options: Options) -> str:
    if options.cluster is None:
        raise InvalidInput("such a file does not name its cluster; say it with --cluster NAME")
    return options.cluster


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
