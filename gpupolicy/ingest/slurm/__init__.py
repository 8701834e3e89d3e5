"""Slurm's accounting, in the forms its tools and its database give it."""

from gpupolicy.ingest.slurm.database import read_slurmdb
from gpupolicy.ingest.slurm.json import read_slurm_json
from gpupolicy.ingest.slurm.sacct import read_slurm

__all__ = ["read_slurm", "read_slurm_json", "read_slurmdb"]
