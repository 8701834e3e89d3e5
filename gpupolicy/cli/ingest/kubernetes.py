"""Kubernetes and Beaker: workloads, pods, samples and allocations as their tools list them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from gpupolicy.cli.ingest.loading import Files, load_files, named_cluster
from gpupolicy.cli.options import options_of
from gpupolicy.ingest import (
    read_beaker_jobs,
    read_beaker_usage,
    read_kueue,
    read_opencost,
    read_pods,
    read_prometheus,
)

KUEUE_EXAMPLES = "Example: `kubectl get workloads -A -o json > w.json; gpupolicy ingest kueue w.json --cluster k`"
PODS_EXAMPLES = "Example: `kubectl get pods,nodes -A -o json > pods.json; gpupolicy ingest pods pods.json --cluster k`"
PROMETHEUS_EXAMPLES = "Example: `gpupolicy ingest prometheus range.json --cluster k`, a saved reply of query_range"
OPENCOST_EXAMPLES = "Example: `gpupolicy ingest opencost allocation.json --cluster k`"
BEAKER_EXAMPLES = "Example: `gpupolicy ingest beaker replies.json --cluster jupiter --take usage`"


class BeakerTake(StrEnum):
    jobs = "jobs"
    usage = "usage"


def kueue(context: typer.Context, files: Files) -> None:
    """Workload objects of Kueue, as kubectl lists them."""
    options = options_of(context)
    load_files(options, files, lambda path: read_kueue(path, cluster=options.cluster, observed_until=options.at))


def pods(
    context: typer.Context,
    files: Files,
    pods_per_gpu: Annotated[int | None, typer.Option(min=1, help="Pods that share a GPU by turns.")] = None,
) -> None:
    """Pods and nodes, as kubectl lists them."""
    options = options_of(context)
    load_files(
        options,
        files,
        lambda path: read_pods(path, cluster=options.cluster, observed_until=options.at, pods_per_gpu=pods_per_gpu),
    )


def prometheus(context: typer.Context, files: Files) -> None:
    """Saved replies of Prometheus: GPUs held over time."""
    options = options_of(context)
    load_files(options, files, lambda path: read_prometheus(path, cluster=options.cluster, observed_until=options.at))


def opencost(context: typer.Context, files: Files) -> None:
    """Allocations of OpenCost: GPU-hours by window, without workloads."""
    options = options_of(context)
    load_files(options, files, lambda path: read_opencost(path, cluster=options.cluster, observed_until=options.at))


def beaker(
    context: typer.Context,
    files: Files,
    take: Annotated[
        BeakerTake, typer.Option(help="Jobs with waits, or usage by the hour; not both.")
    ] = BeakerTake.jobs,
) -> None:
    """Saved replies of Beaker."""
    options = options_of(context)
    cluster, read = named_cluster(options), read_beaker_usage if take is BeakerTake.usage else read_beaker_jobs
    load_files(options, files, lambda path: read(path, cluster=cluster, observed_until=options.at))
