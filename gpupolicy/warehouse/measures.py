"""What happened, asked of the store and answered in the words of domain/. SQL adds up; nothing is rounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import polars as pl

from gpupolicy.domain import BudgetTree, Claimant, Delivery, Hour, Pyramid, Span, full_hour, hours, placements
from gpupolicy.domain.contract import DEBUG_MAX_GPUS, DEBUG_MAX_S, INTERACTIVE_PARTITION, SMALL_MAX_GPUS
from gpupolicy.warehouse.store import Reader

GPU_NS_PER_GPU_S = 10**9
GPU_NS_PER_GPU_H = 3600 * GPU_NS_PER_GPU_S

_PLACING = pl.Schema({"account": pl.String(), "user_name": pl.String(), "path": pl.String()})


@dataclass(frozen=True, slots=True)
class Extent:
    """How far the store reaches: its first hour with usage or demand, and the moment up to which all was observed.

    Of several clusters the one that was observed least far decides; it is named, so that a reader can tell.
    """

    first_hour: datetime
    observed_until: datetime
    least_observed: str

    @property
    def last_hour(self) -> datetime:
        """The hour that the last observed moment closes or lies in; on the full hour, the one before."""
        return full_hour(self.observed_until - timedelta(microseconds=1))


@dataclass(frozen=True, slots=True)
class Capacity:
    """GPU time a span offers. `hourly`: cluster, gpu_type, hour, installed_gpu_ns, available_gpu_ns."""

    hourly: pl.DataFrame

    @property
    def installed_gpu_ns(self) -> int:
        return int(self.hourly["installed_gpu_ns"].cast(pl.Int128).sum())

    @property
    def available_gpu_ns(self) -> int:
        return int(self.hourly["available_gpu_ns"].cast(pl.Int128).sum())

    def of(self, cluster: str) -> Capacity:
        return Capacity(self.hourly.filter(pl.col("cluster") == cluster))

    def by_hour(self) -> pl.DataFrame:
        """hour, available_gpu_ns over all clusters and types."""
        return self.hourly.group_by("hour").agg(pl.col("available_gpu_ns").sum()).sort("hour")


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Usage that no node of the tree answers for."""

    account: str
    user: str
    held_gpu_ns: int


def extent(reader: Reader, *, cluster: str | None = None) -> Extent | None:
    """None for a store without runs."""
    rows = reader.rows("extent", {"cluster": cluster})
    firsts = [first_hour for _, first_hour, _, _ in rows if first_hour is not None]
    if not firsts:
        return None
    there = [row for row in rows if not row[3]] or rows
    least, _, observed_until, _ = min(there, key=lambda row: row[2])
    return Extent(min(firsts).replace(tzinfo=UTC), observed_until.replace(tzinfo=UTC), least)


def clusters(reader: Reader) -> list[str]:
    return [name for (name,) in reader.rows("clusters")]


def placing(reader: Reader, tree: BudgetTree) -> pl.DataFrame:
    """Where each claimant of the store belongs: account, user_name, path. Those without a place are left out."""
    claimants: list[Claimant] = reader.rows("claimants")
    placed = placements(tree, claimants)
    rows = [(account, user, path) for (account, user), path in placed.items() if path is not None]
    return pl.DataFrame(rows, schema=_PLACING, orient="row")


def capacity(reader: Reader, span: Span, *, cluster: str | None = None) -> Capacity:
    return Capacity(reader.frame("capacity_hourly", _bounds(span, cluster)))


def node_hours(
    reader: Reader,
    tree: BudgetTree,
    path: str,
    *,
    span: Span,
    placing: pl.DataFrame,
    capacity: Capacity,
    cluster: str | None = None,
) -> tuple[Hour, ...]:
    """One node, hour by hour."""
    below = [place.path for place in tree.subtree(path)]
    rows = reader.rows(
        "node_hourly",
        _bounds(span, cluster),
        claimant_node=placing.filter(pl.col("path").is_in(below)),
        capacity=capacity.by_hour(),
    )
    _, available, demand, charged, free = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return hours(tree[path].entitlement, available=available, demand=demand, charged=charged, free=free)


def deliveries(
    reader: Reader,
    tree: BudgetTree,
    *,
    span: Span,
    placing: pl.DataFrame,
    capacity: Capacity,
    cluster: str | None = None,
) -> dict[str, Delivery]:
    """Every node's sums over the span, by path."""
    rows = reader.rows(
        "node_delivery",
        _bounds(span, cluster),
        claimant_node=placing,
        lineage=_lineage(tree),
        capacity=capacity.by_hour(),
        claims=_claims(tree),
    )
    sums = {node: amounts for node, *amounts in rows}
    available = capacity.available_gpu_ns
    return {
        place.path: _delivery(place.entitlement, available, sums.get(node, [0] * 7))
        for node, place in enumerate(tree.places)
    }


def charged(
    reader: Reader, tree: BudgetTree, *, span: Span, placing: pl.DataFrame, cluster: str | None = None
) -> dict[str, int]:
    """What each node was charged in the span, itself or below, in GPU-ns by path."""
    rows = reader.rows("node_charged", _bounds(span, cluster), claimant_node=placing, lineage=_lineage(tree))
    paths = [place.path for place in tree.places]
    return {paths[node]: int(amount) for node, amount in rows}


def pyramids(
    reader: Reader,
    tree: BudgetTree,
    *,
    span: Span,
    placing: pl.DataFrame,
    capacity: Capacity,
    cluster: str | None = None,
) -> dict[str, Pyramid]:
    """The four ratios of each cluster that the span's capacity names."""
    bounds = _bounds(span, cluster)
    leaves = [(leaf.path, str(leaf.entitlement.numerator), str(leaf.entitlement.denominator)) for leaf in tree.leaves()]
    rows = reader.rows(
        "cluster_served",
        bounds,
        claimant_node=placing,
        capacity=capacity.by_hour(),
        claims=pl.DataFrame(leaves, schema=["path", "numerator", "denominator"], orient="row"),
    )
    served_there = {str(name): int(amount) for name, amount in rows}
    usage = {str(name): tuple(map(int, amounts)) for name, *amounts in reader.rows("cluster_usage", bounds)}
    names = capacity.hourly["cluster"].unique().sort().to_list()
    return {
        name: _pyramid(capacity.of(name), usage.get(name, (0, 0, 0, 0)), Fraction(served_there.get(name, 0)))
        for name in names
    }


def served(of_nodes: dict[str, Delivery], tree: BudgetTree) -> Fraction:
    """The sum over leaves of min(delivered, owed), hour by hour."""
    return sum((of_nodes[leaf.path].delivered_of_owed for leaf in tree.leaves()), Fraction(0))


def all_clusters(of_clusters: Iterable[Pyramid], *, served: Fraction) -> Pyramid:
    """The pyramid of the whole institute. `served` is that of the whole: a budget may be spent on any cluster."""
    listed = tuple(of_clusters)
    return Pyramid(
        installed=sum(one.installed for one in listed),
        available=sum(one.available for one in listed),
        occupied=sum(one.occupied for one in listed),
        served=served,
        demand=sum(one.demand for one in listed),
        measured=sum(one.measured for one in listed),
        used=sum((one.used for one in listed), Fraction(0)),
    )


def unmapped(reader: Reader, *, span: Span, placing: pl.DataFrame, cluster: str | None = None) -> list[Unmapped]:
    """Usage without a place in the tree, the largest first."""
    rows = reader.rows("unmapped", _bounds(span, cluster), claimant_node=placing)
    return [Unmapped(account, user, int(held)) for account, user, held in rows]


def waits(
    reader: Reader, *, span: Span, placing: pl.DataFrame, labels: Mapping[str, str], cluster: str | None = None
) -> pl.DataFrame:
    """Waits of the workloads that became eligible in the span, by label and class; class null is all classes.

    `labels` says under which label each node's waits are shown; nodes without one are left out. Seconds; columns
    as in sql/queries/waits.sql.
    """
    classes = {
        "debug_max_gpus": DEBUG_MAX_GPUS,
        "debug_max_s": DEBUG_MAX_S,
        "small_max_gpus": SMALL_MAX_GPUS,
        "interactive_partition": INTERACTIVE_PARTITION,
    }
    shown = pl.DataFrame(list(labels.items()), schema=["path", "label"], orient="row")
    return reader.frame("waits", _bounds(span, cluster) | classes, claimant_node=placing, labels=shown)


def _bounds(span: Span, cluster: str | None) -> dict[str, Any]:
    return {
        "starts_at": span.starts_at.replace(tzinfo=None),
        "ends_at": span.ends_at.replace(tzinfo=None),
        "cluster": cluster,
    }


def _lineage(tree: BudgetTree) -> pl.DataFrame:
    """Each path with the numbers of its own node and of all above it; numbers are those of tree.places."""
    numbers = {place.path: number for number, place in enumerate(tree.places)}
    rows = [(place.path, numbers[above.path]) for place in tree.places for above in tree.path_to(place.path)]
    return pl.DataFrame(rows, schema=["path", "node"], orient="row")


def _claims(tree: BudgetTree) -> pl.DataFrame:
    """Entitlements as text, because a denominator may be longer than 64 bits."""
    rows = [
        (number, str(place.entitlement.numerator), str(place.entitlement.denominator))
        for number, place in enumerate(tree.places)
    ]
    return pl.DataFrame(rows, schema=["node", "numerator", "denominator"], orient="row")


def _delivery(entitlement: Fraction, available: int, amounts: Sequence[int]) -> Delivery:
    demand, charged, free, owed_of_available, owed_of_demand, of_available, of_charged = map(int, amounts)
    return Delivery(
        entitled=entitlement * available,
        demand=demand,
        owed=entitlement * owed_of_available + owed_of_demand,
        delivered=charged,
        delivered_of_owed=entitlement * of_available + of_charged,
        free=free,
    )


def _pyramid(capacity: Capacity, usage: tuple[int, ...], served: Fraction) -> Pyramid:
    occupied, demand, measured, used = usage
    return Pyramid(
        capacity.installed_gpu_ns,
        capacity.available_gpu_ns,
        occupied,
        served,
        demand,
        measured,
        Fraction(used),
    )
