"""Slurm's accounting, in the forms its tools give it."""

from gpupolicy.ingest.slurm.sacct import read_slurm

__all__ = ["read_slurm"]
