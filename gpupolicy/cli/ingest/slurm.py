"""Slurm's accounting in its forms, and the format that most public logs of such schedulers have."""

from __future__ import annotations

from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import typer

from gpupolicy.cli.ingest.loading import Files, Timezone, load_files, named_cluster
from gpupolicy.cli.options import options_of
from gpupolicy.ingest import Reading, read_slurm, read_slurm_json, read_slurmdb, read_swf


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


SLURM_EXAMPLES = (
    "Examples: `gpupolicy ingest slurm sacct.psv --cluster jupiter` · "
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

    load_files(options, files, read)


SLURM_JSON_EXAMPLES = (
    "Example: `sacct -a -D --json -S 2026-07-01 -E now > sacct.json; "
    "gpupolicy ingest slurm-json sacct.json --cluster jupiter`"
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
    load_files(
        options, files, lambda path: read_slurm_json(path, cluster=options.cluster, observed_until=options.at, **given)
    )


SLURMDB_EXAMPLES = (
    "Example: `gpupolicy ingest slurmdb job_table.csv --cluster jupiter --gpu-tres 1001=gpu,1002=gpu:h100`"
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
    cluster = named_cluster(options)
    load_files(
        options,
        files,
        lambda path: read_slurmdb(path, cluster=cluster, gpu_tres_ids=ids, observed_until=options.at, **given),
    )


SWF_EXAMPLES = "Example: `gpupolicy ingest swf hpc2n.swf --cluster hpc2n --account-from user`"


def swf(
    context: typer.Context,
    files: Files,
    gpus_per_processor: Annotated[float, typer.Option(help="GPUs that a processor of the log stands for.")] = 1,
    account_from: Annotated[SwfAccount, typer.Option(help="Which field names the account.")] = SwfAccount.group,
) -> None:
    """The Standard Workload Format of the Parallel Workloads Archive."""
    options = options_of(context)
    cluster = named_cluster(options)
    load_files(
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
