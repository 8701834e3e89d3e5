"""Usage logs and capacity, one file a source: bytes in, canonical frames and rejected rows out. No database."""

from gpupolicy.ingest.canonical import FLAGGED, HOSTS, IGNORED, OUTAGES, REJECTED, RUNS, Reading
from gpupolicy.ingest.capacity import read_capacity
from gpupolicy.ingest.slurm import read_slurm
from gpupolicy.ingest.table import read_table
from gpupolicy.ingest.table.mapping import TableMapping, load_mapping

__all__ = [
    "FLAGGED",
    "HOSTS",
    "IGNORED",
    "OUTAGES",
    "REJECTED",
    "RUNS",
    "Reading",
    "TableMapping",
    "load_mapping",
    "read_capacity",
    "read_slurm",
    "read_table",
]
