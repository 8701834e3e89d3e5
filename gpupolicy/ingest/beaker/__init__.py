"""Beaker: its jobs, its hourly usage and its allocations, from replies that were saved, and how to ask for them."""

from gpupolicy.ingest.beaker.allocations import ALLOCATIONS, read_beaker_allocations
from gpupolicy.ingest.beaker.asking import fetch_beaker
from gpupolicy.ingest.beaker.jobs import AccountFrom, read_beaker_jobs
from gpupolicy.ingest.beaker.usage import read_beaker_usage

__all__ = [
    "ALLOCATIONS",
    "AccountFrom",
    "fetch_beaker",
    "read_beaker_allocations",
    "read_beaker_jobs",
    "read_beaker_usage",
]
