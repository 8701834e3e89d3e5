"""Usage logs and capacity, one file a source: bytes in, canonical frames and rejected rows out. No database."""

from gpupolicy.ingest.beaker import (
    fetch_beaker,
    read_beaker_allocations,
    read_beaker_jobs,
    read_beaker_usage,
)
from gpupolicy.ingest.canonical import FLAGGED, HOSTS, IGNORED, OUTAGES, REJECTED, RUNS, UTILIZATION, Reading
from gpupolicy.ingest.capacity import read_capacity
from gpupolicy.ingest.host_names import host_lists, host_names
from gpupolicy.ingest.kubernetes import (
    GPU_UTILIZATION,
    GPUS_HELD,
    RangeReply,
    fetch_range,
    read_kueue,
    read_opencost,
    read_pods,
    read_prometheus,
    save_reply,
)
from gpupolicy.ingest.levels import LevelMapping, load_level_mapping, read_levels
from gpupolicy.ingest.slurm import read_slurm, read_slurm_json, read_slurmdb
from gpupolicy.ingest.swf import read_swf
from gpupolicy.ingest.table import TableMapping, load_mapping, read_table
from gpupolicy.ingest.utilization import UtilizationMapping, load_utilization_mapping, read_utilization

__all__ = [
    "FLAGGED",
    "GPUS_HELD",
    "GPU_UTILIZATION",
    "HOSTS",
    "IGNORED",
    "OUTAGES",
    "REJECTED",
    "RUNS",
    "UTILIZATION",
    "LevelMapping",
    "RangeReply",
    "Reading",
    "TableMapping",
    "UtilizationMapping",
    "fetch_beaker",
    "fetch_range",
    "host_lists",
    "host_names",
    "load_level_mapping",
    "load_mapping",
    "load_utilization_mapping",
    "read_beaker_allocations",
    "read_beaker_jobs",
    "read_beaker_usage",
    "read_capacity",
    "read_kueue",
    "read_levels",
    "read_opencost",
    "read_pods",
    "read_prometheus",
    "read_slurm",
    "read_slurm_json",
    "read_slurmdb",
    "read_swf",
    "read_table",
    "read_utilization",
    "save_reply",
]
