"""Nodes of Kubernetes, which we call hosts: their GPUs, of which type, and among how many pods each is divided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from gpupolicy.ingest.canonical import HOSTS, Reading
from gpupolicy.ingest.capacity import ALWAYS
from gpupolicy.ingest.kubernetes.gpus import SLICES_PER_GPU, gpu_part, quantity
from gpupolicy.ingest.kubernetes.objects import Fields, KubeObject, inner
from gpupolicy.ingest.parts import summed
from gpupolicy.ingest.records import ignored_rows

GPU_TYPE_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator")
_REPLICAS = "nvidia.com/gpu.replicas"
_SLICED_PRODUCT = re.compile(r"(.*)-MIG-(\d)g\..*")  # all cards cut alike: each slice goes by the name of a GPU
_SHARED_PRODUCT = "-SHARED"


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A host as its node object tells it; `part_of_device` is how much of a GPU one of its devices is."""

    line: int
    host: str
    gpu_type: str | None
    gpus: float
    part_of_device: float
    since: datetime | None


def read_node(each: KubeObject, resources: frozenset[str]) -> ListedNode:
    labels = inner(each.metadata, "labels")
    product = next((str(labels[name]) for name in GPU_TYPE_LABELS if name in labels), None)
    part = _part_of_device(each, labels, product)
    return ListedNode(
        each.line,
        each.id,
        plain_product(product),
        _gpus(each, resources, part),
        part,
        each.moment(each.metadata.get("creationTimestamp"), "creationTimestamp"),
    )


def with_hosts(reading: Reading, listed: Sequence[ListedNode], cluster: str) -> Reading:
    """The reading with the nodes of its file: each as it was listed last, and only those with GPUs."""
    last = {node.host: node for node in listed}.values()
    rows = [(cluster, node.host, node.gpu_type, node.gpus, node.since or ALWAYS, None, node.line) for node in last]
    hosts = pl.DataFrame(rows, schema=HOSTS, orient="row")
    earlier = [node.line for node in listed if node not in last]
    ignored = [
        reading.ignored,
        ignored_rows(hosts.filter(pl.col("gpus") == 0), "no_gpus"),
        ignored_rows(pl.DataFrame({"line": earlier}, schema={"line": pl.Int64()}), "superseded_record"),
    ]
    return replace(
        reading,
        hosts=hosts.filter(pl.col("gpus") > 0),
        ignored=summed(ignored),
        rows_read=reading.rows_read + len(listed),
    )


def plain_product(product: str | None) -> str | None:
    """The type of a GPU without the word that says how it is divided."""
    if product is None:
        return None
    sliced = _SLICED_PRODUCT.fullmatch(product)
    return (sliced[1] if sliced else product).removesuffix(_SHARED_PRODUCT)


def _part_of_device(each: KubeObject, labels: Fields, product: str | None) -> float:
    replicas = each.whole_number(labels.get(_REPLICAS), _REPLICAS) or 1
    sliced = _SLICED_PRODUCT.fullmatch(product or "")
    slices = int(sliced[2]) if sliced else SLICES_PER_GPU
    return slices / SLICES_PER_GPU / max(replicas, 1)


def _gpus(each: KubeObject, resources: frozenset[str], part_of_device: float) -> float:
    total = 0.0
    for resource, text in inner(each.status, "capacity").items():
        part, number = gpu_part(resource, resources), quantity(text)
        if part is not None and number is None:
            each.refuse("bad_number", f"{resource} '{text}'")
        total += (number or 0) * (part or 0) * (part_of_device if resource.startswith("nvidia.com/gpu") else 1)
    return total
