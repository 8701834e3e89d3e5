"""What a site says about its Slurm records: what counts as a GPU, whose work is free, when an end was lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Count = Literal["gpus", "cpus"]
MigRule = Literal["compute_slices_over_7", "devices"]

FREE_QOS = frozenset({"free"})
OVERRUN_GRACE_H = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The keywords of the readers of Slurm's records, which say what each means."""

    cluster: str | None
    timezone: str = "UTC"
    count: Count = "gpus"
    free_qos: frozenset[str] = FREE_QOS
    gpu_only_partitions: frozenset[str] = frozenset()
    mig_rule: MigRule = "compute_slices_over_7"
    shards_per_gpu: int | None = None
    overrun_grace_h: float | None = OVERRUN_GRACE_H
