"""The main path: from usage logs to a plan for the scheduler, one function a step, in the order of the cycle.

    ingest ─▶ budget ─▶ review ─▶ fair_share ─▶ recommend_slurm ─▶ plan_slurm

Each step opens what it needs, asks the store, applies the rules of domain/ and gives frames for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy import __version__, frames, warehouse
from gpupolicy.domain import (
    WELL_SERVED,
    Delivery,
    Policy,
    Span,
    balances,
    lookback_span,
    queue_order,
)
from gpupolicy.ingest.canonical import Reading
from gpupolicy.looking import Look, extent_of, file_in_force, looking, policy_or_in_force, refuse_after_observation
from gpupolicy.policyfiles import load_policy
from gpupolicy.recommend import SlurmWeights
from gpupolicy.schedulers import plan, slurm
from gpupolicy.warehouse import Loaded, Reader, measures

ALL_CLUSTERS = "all clusters"


@dataclass(frozen=True)
class Review:
    """What leadership looks at: every node over a span, one node hour by hour, the pyramid, the teams."""

    quarter: str
    node: str
    starts_at: datetime
    ends_at: datetime
    lookback_h: int
    nodes: pl.DataFrame
    hourly: pl.DataFrame
    pyramid: pl.DataFrame
    teams: pl.DataFrame
    unmapped_gpu_h: float

    @property
    def teams_ratio(self) -> float | None:
        """Delivered within owed over owed, summed over the teams at or below the node: the headline of all teams."""
        is_below = (pl.col("path") == self.node) | pl.col("path").str.starts_with(self.node + "/")
        below = self.teams.filter(is_below)
        owed = float(below["owed_gpu_h"].sum())
        return float(below["delivered_of_owed_gpu_h"].sum()) / owed if owed else None

    @property
    def team_count(self) -> int:
        return self.teams.filter(pl.col("strict_ratio").is_not_null()).height

    @property
    def teams_at_95(self) -> int:
        return self.teams.filter(pl.col("strict_ratio") >= float(WELL_SERVED)).height

    @property
    def worst_team(self) -> str | None:
        rated = self.teams.filter(pl.col("strict_ratio").is_not_null())
        return str(rated["path"][-1]) if rated.height else None

    @property
    def worst_ratio(self) -> float | None:
        rated = self.teams.filter(pl.col("strict_ratio").is_not_null())
        return float(rated["strict_ratio"][-1]) if rated.height else None


@dataclass(frozen=True)
class FairShare:
    """The metric that sorts the queue, at one full hour. `nodes`: path, balance (low goes first), queue_rank, ..."""

    at: datetime
    lookback_h: int
    nodes: pl.DataFrame
    queue: tuple[str, ...]


# The steps


def ingest(store: Path, reading: Reading, *, loaded_at: datetime) -> Loaded:
    """Put one file's rows into the store, whole or not at all."""
    batch = warehouse.Batch(
        source=reading.source,
        path=reading.path,
        digest=reading.digest,
        observed_until=reading.observed_until,
        rows_read=reading.rows_read,
        accepted=reading.accepted,
        ignored=int(reading.ignored["rows"].sum()),
        rejected=reading.rejected.height,
    )
    return warehouse.load(
        store,
        batch,
        runs=reading.runs,
        hosts=reading.hosts,
        outages=reading.outages,
        rejected=reading.rejected,
        loaded_at=loaded_at,
    )


def budget(policy: Policy, *, available_gpu_ns: int | None = None) -> pl.DataFrame:
    """The tree in tree order; GPUs and GPU-hours of the quarter where the quarter's capacity is given.

    Columns: path, name, depth, parent, owner, is_leaf, share, entitlement, unassigned, entitled_gpus, entitled_gpu_h.
    """
    return frames.budget(policy, available_gpu_ns)


def quarter_capacity_gpu_ns(store: Path, policy: Policy, *, cluster: str | None = None) -> int | None:
    """Available GPU time of the policy's quarter, hosts taken to stay as last known; None if no hosts are known."""
    span = Span(policy.quarter.starts_at, policy.quarter.ends_at)
    with warehouse.reading(store) as reader:
        return measures.capacity(reader, span, cluster=cluster).available_gpu_ns or None


def review(
    store: Path,
    policy: Path | None = None,
    *,
    node: str | None = None,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    cluster: str | None = None,
) -> Review:
    """Delivered against owed over a span: by default the policy's quarter as far as it was observed."""
    with looking(store, policy, starts_at=starts_at, ends_at=ends_at, cluster=cluster) as look:
        path = look.tree.find(node).path if node else look.tree.root.name
        of_nodes = look.deliveries()
        standing = _fair_share(look.reader, look.policy, look.span.ends_at, cluster)
        nodes = frames.delivered(look.tree, of_nodes, hours=look.span.hours)
        return Review(
            quarter=str(look.policy.quarter),
            node=path,
            starts_at=look.span.starts_at,
            ends_at=look.span.ends_at,
            lookback_h=look.policy.lookback_h,
            nodes=nodes.join(standing.nodes.select("path", "balance", "queue_rank"), on="path", maintain_order="left"),
            hourly=frames.hourly(look.hours(path), look.capacity.by_hour()["hour"]),
            pyramid=_pyramid(look, of_nodes),
            teams=frames.teams(nodes),
            unmapped_gpu_h=sum(frames.gpu_h(one.held_gpu_ns) for one in look.unmapped()),
        )


def pyramid(
    store: Path,
    policy: Path | None = None,
    *,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    cluster: str | None = None,
) -> pl.DataFrame:
    """Availability, occupancy, impact, utilization of each cluster, and of all in the last row."""
    with looking(store, policy, starts_at=starts_at, ends_at=ends_at, cluster=cluster) as look:
        return _pyramid(look, look.deliveries())


def fair_share(
    store: Path, policy: Path | None = None, *, at: datetime | None = None, cluster: str | None = None
) -> FairShare:
    """Balance of every node and the order of the queue, `at` taken back to the full hour."""
    with warehouse.reading(store) as reader:
        extent = extent_of(reader, store, cluster)
        if at:
            refuse_after_observation(extent, at)
        in_force = policy_or_in_force(policy, at or extent.last_hour)
        return _fair_share(reader, in_force, at or extent.observed_until, cluster)


def waits(
    store: Path,
    policy: Path | None = None,
    *,
    node: str | None = None,
    by_node: bool = False,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    cluster: str | None = None,
) -> pl.DataFrame:
    """How long workloads waited, in seconds: of one node by class, or with `by_node` of each node right below it.

    Started, never started and restarted are counted apart; see docs/measures.md for the quantiles.
    """
    with looking(store, policy, starts_at=starts_at, ends_at=ends_at, cluster=cluster) as look:
        top = look.tree.find(node) if node else look.tree[look.tree.root.name]
        shown = look.tree.children(top.path) if by_node else (top,)
        labels = {below.path: one.path for one in shown for below in look.tree.subtree(one.path)}
        frame = measures.waits(look.reader, span=look.span, placing=look.placing, labels=labels, cluster=look.cluster)
        return frame.filter(pl.col("class").is_null()).drop("class") if by_node else frame


def unmapped(store: Path, policy: Path | None = None, *, cluster: str | None = None) -> pl.DataFrame:
    """Accounts and users of the policy's quarter whom the tree has no place for: account, user, held_gpu_h."""
    with looking(store, policy, cluster=cluster) as look:
        return frames.unmapped(look.unmapped())


def plan_slurm(
    policy: Policy, weights: SlurmWeights, *, clusters: Sequence[str], out: Path, made_at: datetime
) -> list[Path]:
    """The files an administrator checks and loads: one sacctmgr file a cluster, the slurm.conf lines, plan.json."""
    title = [
        f"gpupolicy {__version__}: shares of {policy.quarter}",
        "dry run: printf 'n\\n' | sacctmgr load file=THIS",
    ]
    files = {
        f"{cluster}.sacctmgr.cfg": slurm.render_load_file(cluster, weights.associations, comment=title)
        for cluster in clusters
    }
    files["slurm.conf.lines"] = slurm.render_conf_lines(weights.slurm_conf)
    record = {
        "target": "slurm",
        "quarter": str(policy.quarter),
        "clusters": list(clusters),
        "gpupolicy": __version__,
        "made_at": made_at.isoformat(),
        "half_life_h": weights.half_life_of_equal_mean_age_h,
        "cannot_express": list(weights.cannot_express),
    }
    return plan.write_plan(files, out, record=record)


def known_clusters(store: Path) -> list[str]:
    with warehouse.reading(store) as reader:
        return measures.clusters(reader)


def policy_for(store: Path, policy: Path | None, *, at: datetime | None = None) -> Policy:
    """The policy named, or the one in force at `at`, by default when the store was last observed."""
    return load_policy(policy or policy_file_for(store, at=at))


def policy_file_for(store: Path, *, at: datetime | None = None) -> Path:
    """The file of the policy in force at `at`, by default when the store was last observed."""
    if at is None:
        with warehouse.reading(store) as reader:
            at = extent_of(reader, store, None).last_hour
    return file_in_force(at)


def _fair_share(reader: Reader, policy: Policy, at: datetime, cluster: str | None) -> FairShare:
    span = lookback_span(at, policy.lookback_h)
    tree = policy.tree
    placing = measures.placing(reader, tree)
    charged = measures.charged(reader, tree, span=span, placing=placing, cluster=cluster)
    available = measures.capacity(reader, span, cluster=cluster).available_gpu_ns
    by_path = balances(tree, charged, available)
    queue = tuple(place.path for place in queue_order(tree, by_path))
    nodes = frames.standing(tree, by_path, queue, charged=charged, available_gpu_ns=available)
    return FairShare(span.ends_at, policy.lookback_h, nodes, queue)


def _pyramid(look: Look, of_nodes: dict[str, Delivery]) -> pl.DataFrame:
    by_cluster = measures.pyramids(
        look.reader,
        look.tree,
        span=look.span,
        placing=look.placing,
        capacity=look.capacity,
        cluster=look.cluster,
    )
    whole = measures.all_clusters(by_cluster.values(), served=measures.served(of_nodes, look.tree))
    return frames.pyramids({**by_cluster, ALL_CLUSTERS: whole})
