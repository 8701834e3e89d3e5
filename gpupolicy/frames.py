"""Exact values as frames for people: one row a node, an hour or a cluster; rounded to floats here, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import polars as pl

from gpupolicy.domain import BudgetTree, Delivery, Hour, Place, Policy, Pyramid, level_fair_share, unassigned
from gpupolicy.warehouse import GPU_NS_PER_GPU_H, Unmapped

TEAM_DEPTH = 2  # organization, program, team: where leadership asks "did they get what they were owed?"


def budget(policy: Policy, available_gpu_ns: int | None) -> pl.DataFrame:
    """What each node may claim: of all GPUs, and of the quarter's GPU time where that is known."""
    rows = [
        {**_place(place), **_entitled(place, policy.quarter.hours, available_gpu_ns)} for place in policy.tree.places
    ]
    return _frame(rows)


def delivered(tree: BudgetTree, of_nodes: Mapping[str, Delivery], *, hours: int) -> pl.DataFrame:
    """Each node's sums over a span of so many hours."""
    return _frame([{**_place(place), **_delivery(of_nodes[place.path], hours)} for place in tree.places])


def hourly(hours: Iterable[Hour], starts: pl.Series) -> pl.DataFrame:
    """One node's hours, as mean GPUs in each; `starts` are the moments at which they begin."""
    rows = [
        {
            "entitled_gpus": gpu_h(hour.entitled),
            "demand_gpus": gpu_h(hour.demand),
            "owed_gpus": gpu_h(hour.owed),
            "delivered_gpus": gpu_h(hour.charged),
            "free_gpus": gpu_h(hour.free),
        }
        for hour in hours
    ]
    return pl.DataFrame(rows).insert_column(0, starts.alias("hour"))


def pyramids(by_name: Mapping[str, Pyramid]) -> pl.DataFrame:
    return _frame(
        [
            {
                "cluster": name,
                "installed_gpu_h": gpu_h(one.installed),
                "available_gpu_h": gpu_h(one.available),
                "occupied_gpu_h": gpu_h(one.occupied),
                "demand_gpu_h": gpu_h(one.demand),
                "availability": _float(one.availability),
                "occupancy": _float(one.occupancy),
                "impact": _float(one.impact),
                "utilization": _float(one.utilization),
                "oversubscription": _float(one.oversubscription),
            }
            for name, one in by_name.items()
        ]
    )


def standing(
    tree: BudgetTree,
    by_path: Mapping[str, Fraction | None],
    queue: Sequence[str],
    *,
    charged: Mapping[str, int],
    available_gpu_ns: int,
) -> pl.DataFrame:
    """Each node's balance in the lookback (low goes first) and, of a leaf, its rank in the queue."""
    ranks = {path: rank for rank, path in enumerate(queue, start=1)}
    return _frame(
        [
            {
                "path": place.path,
                "depth": place.depth,
                "is_leaf": place.is_leaf,
                "entitlement": float(place.entitlement),
                "charged_gpu_h": gpu_h(charged.get(place.path, 0)),
                "entitled_gpu_h": gpu_h(place.entitlement * available_gpu_ns),
                "balance": _float(by_path[place.path]),
                "queue_rank": ranks.get(place.path),
                "level_fair_share": _level_fair_share(tree, place, charged),
            }
            for place in tree.places
        ]
    )


def teams(nodes: pl.DataFrame) -> pl.DataFrame:
    """The nodes two levels below the organization, or leaves above; best served first, owed nothing last."""
    return (
        nodes.filter((pl.col("depth") == TEAM_DEPTH) | (pl.col("is_leaf") & (pl.col("depth") < TEAM_DEPTH)))
        .select("path", "owed_gpu_h", "delivered_gpu_h", "delivered_of_owed_gpu_h", "strict_ratio", "net_ratio")
        .sort("strict_ratio", "path", descending=[True, False], nulls_last=True)
    )


def unmapped(listed: Iterable[Unmapped]) -> pl.DataFrame:
    rows = [(one.account, one.user, gpu_h(one.held_gpu_ns)) for one in listed]
    return pl.DataFrame(rows, schema={"account": pl.String, "user": pl.String, "held_gpu_h": pl.Float64}, orient="row")


def gpu_h(gpu_ns: int | Fraction) -> float:
    """GPU-nanoseconds as GPU-hours; of one hour, the mean number of GPUs in it."""
    return float(Fraction(gpu_ns) / GPU_NS_PER_GPU_H)


def _frame(rows: list[dict[str, object]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def _place(place: Place) -> dict[str, object]:
    return {
        "path": place.path,
        "name": place.node.name,
        "depth": place.depth,
        "parent": place.parent,
        "owner": place.node.owner,
        "is_leaf": place.is_leaf,
        "share": float(place.node.share),
        "entitlement": float(place.entitlement),
        "unassigned": float(unassigned(place.node)),
    }


def _entitled(place: Place, hours: int, available_gpu_ns: int | None) -> dict[str, object]:
    if available_gpu_ns is None:
        return {"entitled_gpus": None, "entitled_gpu_h": None}
    entitled = gpu_h(place.entitlement * available_gpu_ns)
    return {"entitled_gpus": entitled / hours, "entitled_gpu_h": entitled}


def _delivery(one: Delivery, hours: int) -> dict[str, object]:
    return {
        "entitled_gpus": gpu_h(one.entitled) / hours,
        "entitled_gpu_h": gpu_h(one.entitled),
        "demand_gpu_h": gpu_h(one.demand),
        "owed_gpu_h": gpu_h(one.owed),
        "delivered_gpu_h": gpu_h(one.delivered),
        "delivered_of_owed_gpu_h": gpu_h(one.delivered_of_owed),
        "free_gpu_h": gpu_h(one.free),
        "strict_ratio": _float(one.strict_ratio),
        "net_ratio": _float(one.net_ratio),
        "raw_ratio": _float(one.raw_ratio),
    }


def _level_fair_share(tree: BudgetTree, place: Place, charged: Mapping[str, int]) -> float | None:
    """Slurm's figure, for comparison with sshare: high goes first, infinity without usage; the root has none."""
    if place.parent is None:
        return None
    siblings = tree.children(place.parent)
    value = level_fair_share(
        place.node.share,
        charged.get(place.path, 0),
        siblings_share=sum((one.node.share for one in siblings), Fraction(0)),
        siblings_usage=sum(charged.get(one.path, 0) for one in siblings),
    )
    return float("inf") if value is None else float(value)


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
