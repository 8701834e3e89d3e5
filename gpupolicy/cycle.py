"""The main path: from usage logs to a plan for the scheduler, one function a step, in the order of the cycle.

    ingest ─▶ budget ─▶ review ─▶ fair_share ─▶ recommend_slurm ─▶ plan_slurm

Each step opens what it needs, asks the store, applies the rules of domain/ and gives frames for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy import __version__, frames, warehouse
from gpupolicy.domain import (
    WELL_SERVED,
    BudgetTree,
    Delivery,
    Hour,
    Policy,
    Span,
    balances,
    full_hour,
    lookback_span,
    quarter_of,
    queue_order,
)
from gpupolicy.errors import InvalidInput, NothingMeasured
from gpupolicy.ingest.canonical import Reading
from gpupolicy.policyfiles import load_policy, policy_in_force
from gpupolicy.recommend import SlurmWeights
from gpupolicy.schedulers import plan, slurm
from gpupolicy.warehouse import Capacity, Extent, Loaded, Reader, measures

IN_FORCE = Path("data/policies/in_force")  # below the folder one works in; --policy names any other file
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
    with _looking(store, policy, starts_at=starts_at, ends_at=ends_at, cluster=cluster) as look:
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
    with _looking(store, policy, starts_at=starts_at, ends_at=ends_at, cluster=cluster) as look:
        return _pyramid(look, look.deliveries())


def fair_share(
    store: Path, policy: Path | None = None, *, at: datetime | None = None, cluster: str | None = None
) -> FairShare:
    """Balance of every node and the order of the queue, `at` taken back to the full hour."""
    with warehouse.reading(store) as reader:
        extent = _extent(reader, store, cluster)
        if at:
            _refuse_after_observation(extent, at)
        in_force = _policy(policy, at or extent.last_hour)
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
    with _looking(store, policy, starts_at=starts_at, ends_at=ends_at, cluster=cluster) as look:
        top = look.tree.find(node) if node else look.tree[look.tree.root.name]
        shown = look.tree.children(top.path) if by_node else (top,)
        labels = {below.path: one.path for one in shown for below in look.tree.subtree(one.path)}
        frame = measures.waits(look.reader, span=look.span, placing=look.placing, labels=labels, cluster=look.cluster)
        return frame.filter(pl.col("class").is_null()).drop("class") if by_node else frame


def unmapped(store: Path, policy: Path | None = None, *, cluster: str | None = None) -> pl.DataFrame:
    """Accounts and users of the policy's quarter whom the tree has no place for: account, user, held_gpu_h."""
    with _looking(store, policy, cluster=cluster) as look:
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
            at = _extent(reader, store, None).last_hour
    return _file_in_force(at)


# What the steps share


@dataclass(frozen=True)
class _Look:
    """An open store seen through one policy, over one span."""

    reader: Reader
    policy: Policy
    span: Span
    cluster: str | None
    placing: pl.DataFrame
    capacity: Capacity

    @property
    def tree(self) -> BudgetTree:
        return self.policy.tree

    def deliveries(self) -> dict[str, Delivery]:
        return measures.deliveries(
            self.reader,
            self.tree,
            span=self.span,
            placing=self.placing,
            capacity=self.capacity,
            cluster=self.cluster,
        )

    def hours(self, path: str) -> tuple[Hour, ...]:
        return measures.node_hours(
            self.reader,
            self.tree,
            path,
            span=self.span,
            placing=self.placing,
            capacity=self.capacity,
            cluster=self.cluster,
        )

    def unmapped(self) -> list[warehouse.Unmapped]:
        return measures.unmapped(self.reader, span=self.span, placing=self.placing, cluster=self.cluster)


@contextmanager
def _looking(
    store: Path,
    policy: Path | None,
    *,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    cluster: str | None = None,
) -> Iterator[_Look]:
    with warehouse.reading(store) as reader:
        extent = _extent(reader, store, cluster)
        in_force = _policy(policy, starts_at or extent.last_hour)
        span = _span(in_force, extent, starts_at, ends_at)
        if policy is None:
            _stay_inside(span, in_force)
        capacity = _capacity(reader, store, span, cluster)
        yield _Look(reader, in_force, span, cluster, measures.placing(reader, in_force.tree), capacity)


def _policy(path: Path | None, at: datetime) -> Policy:
    return load_policy(path or _file_in_force(at))


def _file_in_force(at: datetime) -> Path:
    return policy_in_force(IN_FORCE, quarter_of(at))


def _extent(reader: Reader, store: Path, cluster: str | None) -> Extent:
    extent = measures.extent(reader, cluster=cluster)
    if extent is None:
        of_cluster = (
            f" of cluster '{cluster}' (known: {', '.join(measures.clusters(reader)) or 'none'})" if cluster else ""
        )
        raise NothingMeasured(f"{store} holds no usage{of_cluster}; load some with `gpupolicy ingest`")
    return extent


def _span(policy: Policy, extent: Extent, starts_at: datetime | None, ends_at: datetime | None) -> Span:
    if ends_at:
        _refuse_after_observation(extent, ends_at)
    if starts_at and ends_at:
        return Span(full_hour(starts_at), full_hour(ends_at))
    first = max(policy.quarter.starts_at, extent.first_hour)
    last = min(policy.quarter.ends_at, full_hour(extent.observed_until))
    if last <= first and not (starts_at or ends_at):
        raise NothingMeasured(
            f"the store holds {extent.first_hour:%Y-%m-%d} to {extent.observed_until:%Y-%m-%d}, nothing of "
            f"{policy.quarter}; give --from and --to"
        )
    return Span(full_hour(starts_at or first), full_hour(ends_at or last))


def _refuse_after_observation(extent: Extent, moment: datetime) -> None:
    """Nothing is known there: to count it would show hours without usage as idle ones."""
    if full_hour(moment) > full_hour(extent.observed_until):
        raise InvalidInput(
            f"{extent.least_observed} was observed until {extent.observed_until:%Y-%m-%d %H:%M}Z; "
            f"{moment:%Y-%m-%d %H:%M}Z lies after it: load later logs, or look at an earlier moment"
        )


def _stay_inside(span: Span, policy: Policy) -> None:
    if span.starts_at < policy.quarter.starts_at or span.ends_at > policy.quarter.ends_at:
        raise InvalidInput(
            f"{span.starts_at:%Y-%m-%d} to {span.ends_at:%Y-%m-%d} leaves {policy.quarter}, whose policy is in force "
            "at its start; stay inside the quarter, or name the policy to judge by with --policy"
        )


def _capacity(reader: Reader, store: Path, span: Span, cluster: str | None) -> Capacity:
    capacity = measures.capacity(reader, span, cluster=cluster)
    if not capacity.available_gpu_ns:
        raise NothingMeasured(
            f"{store} knows no GPUs{f' of {cluster}' if cluster else ''} between {span.starts_at:%Y-%m-%d %H:%M}Z and "
            f"{span.ends_at:%Y-%m-%d %H:%M}Z; load hosts or a size with `gpupolicy ingest capacity FILE --cluster NAME`"
        )
    return capacity


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


def _pyramid(look: _Look, of_nodes: dict[str, Delivery]) -> pl.DataFrame:
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
