"""Slurm's accounting, `sacct -P` in any field order and with any delimiter, or key=value, into runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from gpupolicy.ingest.canonical import Reading
from gpupolicy.ingest.moments import check_timezone
from gpupolicy.ingest.parts import Part, reading_of_runs
from gpupolicy.ingest.records import Layout
from gpupolicy.ingest.slurm.lines import ASK_SACCT, sacct_batches
from gpupolicy.ingest.slurm.part import WHOLE_RECORD, cluster_notices, slurm_part
from gpupolicy.ingest.slurm.settings import FREE_QOS, OVERRUN_GRACE_H, Count, MigRule, Settings
from gpupolicy.ingest.text import refusal

_COUNTED = {
    "gpus": ("AllocTRES", "ReqTRES", "AllocGRES"),
    "cpus": ("AllocCPUS", "NCPUS", "AllocTRES", "ReqTRES"),
}
_NEEDED = (("JobIDRaw", "JobID"), ("Submit",), ("Start",), ("End",))


def read_slurm(
    path: Path,
    *,
    cluster: str | None,
    timezone: str = "UTC",
    observed_until: datetime | None = None,
    fields: Sequence[str] | None = None,
    count: Count = "gpus",
    free_qos: frozenset[str] = FREE_QOS,
    gpu_only_partitions: frozenset[str] = frozenset(),
    mig_rule: MigRule = "compute_slices_over_7",
    shards_per_gpu: int | None = None,
    overrun_grace_h: float | None = OVERRUN_GRACE_H,
) -> Reading:
    """Read the output of `sacct -P`, or lines of `JobID=1,State=FAILED,...`; plain or gzip.

    `cluster` names the cluster, the file's own Cluster field if it is None. Stamps without a zone are in
    `timezone`. `fields` names the columns of a dump without a header (XDMoD's 26 are known). `count` says what
    a run holds. Without `observed_until` the log was taken at the newest moment that the file proves. Raises
    UnreadableLog for a file that is refused whole.

    A run in `gpu_only_partitions` without a GPU on record is flagged (case sa-09). `mig_rule` says whether a
    slice of a card is as many sevenths of it as it has compute slices, or a GPU of its own (case sa-15);
    `shards_per_gpu`, how many shards make a GPU: without it they are flagged, not counted. A run that is open
    although its limit was over `overrun_grace_h` before is set aside (case sa-16); None sets none aside.
    """
    settings = Settings(
        cluster=cluster,
        timezone=timezone,
        count=count,
        free_qos=free_qos,
        gpu_only_partitions=gpu_only_partitions,
        mig_rule=mig_rule,
        shards_per_gpu=shards_per_gpu,
        overrun_grace_h=overrun_grace_h,
    )
    parts, notices = _parts(path, fields, settings)
    return reading_of_runs(path, "slurm", parts, observed_until=observed_until, notices=notices)


def _parts(path: Path, fields: Sequence[str] | None, settings: Settings) -> tuple[list[Part], list[str]]:
    check_timezone(settings.timezone)
    layout, batches = sacct_batches(path, fields)
    if layout is not WHOLE_RECORD:
        _refuse_missing(path, layout, settings)
    columns = set(layout.columns)
    parts = []
    for batch in batches:
        columns.update(batch.frame.columns)
        parts.append(slurm_part(batch, layout, settings))
    notices = cluster_notices(path, parts, settings.cluster)
    if "Eligible" not in columns:
        notices.append("there is no field Eligible: waits and demand count from submission")
    return parts, notices


def _refuse_missing(path: Path, layout: Layout, settings: Settings) -> None:
    missing = [
        " or ".join(names) for names in (*_NEEDED, _COUNTED[settings.count]) if not set(names) & set(layout.columns)
    ]
    if settings.cluster is None and "Cluster" not in layout.columns:
        missing.append("Cluster (or name the cluster with --cluster)")
    if missing:
        raise refusal(
            path,
            "missing_column",
            f"{', '.join(missing)}; the file has {', '.join(filter(None, layout.columns))}; {ASK_SACCT}",
        )
