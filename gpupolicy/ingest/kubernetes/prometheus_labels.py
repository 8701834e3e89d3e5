"""What the labels of a series say: whose pod, on which host, of which GPU; and who tells it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import polars as pl

from gpupolicy.ingest.kubernetes.claimants import first_named, underscored
from gpupolicy.ingest.kubernetes.gpus import GPU_RESOURCES, gpu_part

Labels = Mapping[str, str]

SERIES = pl.Schema(
    {
        "cluster_label": pl.String(),
        "namespace": pl.String(),
        "pod": pl.String(),
        "container": pl.String(),
        "queue": pl.String(),
        "host": pl.String(),
        "gpu": pl.String(),
        "gpu_type": pl.String(),
        "resource": pl.String(),
    }
)
TOLD = pl.Schema(
    {
        **SERIES,
        "account": pl.String(),
        "user_name": pl.String(),
        "teller": pl.String(),  # all labels that say nothing of the series itself
        "metric": pl.String(),
        "part": pl.Float64(),  # how much of a GPU one of the resource is; null: it is none
    }
)

_EXPORTED = "exported_"
_LABELS = {
    "cluster_label": ("cluster",),
    "namespace": ("namespace",),
    "pod": ("pod",),
    "container": ("container",),
    "queue": ("local_queue", "cluster_queue", "queue_name", "queue"),
    "host": ("node", "Hostname", "kubernetes_node", "host"),
    "gpu": ("UUID", "gpu"),
    "gpu_type": ("flavor", "modelName", "gpu_type"),
    "resource": ("resource",),
}
_SLICE = "GPU_I_ID"
_OF_TARGET = ("namespace", "pod", "container")  # labels that a scrape puts on, of the exporter itself
_EXPORTERS = ("dcgm-exporter", "kube-state-metrics")
_UNDERSCORED = frozenset(underscored(name) for name in GPU_RESOURCES) | GPU_RESOURCES


def read_labels(
    all_series: Sequence[Labels], *, account_from: tuple[str, ...], user_from: tuple[str, ...]
) -> pl.DataFrame:
    """TOLD, a row for each series in their order."""
    is_exported = any(name.startswith(_EXPORTED) for labels in all_series for name in labels)
    rows = [
        _read(labels, is_exported=is_exported, account_from=account_from, user_from=user_from) for labels in all_series
    ]
    return pl.DataFrame(rows, schema=TOLD, orient="row")


def _read(
    labels: Labels, *, is_exported: bool, account_from: tuple[str, ...], user_from: tuple[str, ...]
) -> list[str | float | None]:
    told = {name: _first(labels, places, is_exported=is_exported) for name, places in _LABELS.items()}
    if any((told["pod"] or "").find(name) >= 0 for name in _EXPORTERS):
        told |= dict.fromkeys(_OF_TARGET)
    if told["gpu"] and labels.get(_SLICE):
        told["gpu"] += f"/{labels[_SLICE]}"
    given = {name.removeprefix("label_"): value for name, value in labels.items()}
    account, user = (
        first_named(places, namespace=told["namespace"], queue=told["queue"], labels=given)
        for places in (account_from, user_from)
    )
    used = {name for places in _LABELS.values() for name in places} | {_SLICE}
    teller = {name: value for name, value in sorted(labels.items()) if name.removeprefix(_EXPORTED) not in used}
    part = 1.0 if told["resource"] is None else gpu_part(told["resource"], _UNDERSCORED)
    return [*told.values(), account, user, json.dumps(teller), labels.get("__name__"), part]


def _first(labels: Labels, places: Sequence[str], *, is_exported: bool) -> str | None:
    """Where the exporter's own labels gave way to those of its scrape, its own are called exported_."""
    for name in places:
        own = labels.get(_EXPORTED + name)
        if own:
            return own
        if labels.get(name) and not (is_exported and name in _OF_TARGET):
            return labels[name]
    return None
