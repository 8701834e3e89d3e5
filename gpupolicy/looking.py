"""An open store seen through one policy, over a span that ends where observation ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy import warehouse
from gpupolicy.domain import BudgetTree, Delivery, Hour, Policy, Span, full_hour, quarter_of
from gpupolicy.errors import InvalidInput, NothingMeasured
from gpupolicy.policyfiles import load_policy, policy_in_force
from gpupolicy.warehouse import Capacity, Extent, Reader, measures

IN_FORCE = Path("data/policies/in_force")  # below the folder one works in; --policy names any other file


@dataclass(frozen=True)
class Look:
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
def looking(
    store: Path,
    policy: Path | None,
    *,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    cluster: str | None = None,
) -> Iterator[Look]:
    with warehouse.reading(store) as reader:
        extent = extent_of(reader, store, cluster)
        in_force = policy_or_in_force(policy, starts_at or extent.last_hour)
        span = _span(in_force, extent, starts_at, ends_at)
        if policy is None:
            _stay_inside(span, in_force)
        capacity = _capacity(reader, store, span, cluster)
        yield Look(reader, in_force, span, cluster, measures.placing(reader, in_force.tree), capacity)


def policy_or_in_force(path: Path | None, at: datetime) -> Policy:
    return load_policy(path or file_in_force(at))


def file_in_force(at: datetime) -> Path:
    return policy_in_force(IN_FORCE, quarter_of(at))


def extent_of(reader: Reader, store: Path, cluster: str | None) -> Extent:
    extent = measures.extent(reader, cluster=cluster)
    if extent is None:
        of_cluster = (
            f" of cluster '{cluster}' (known: {', '.join(measures.clusters(reader)) or 'none'})" if cluster else ""
        )
        raise NothingMeasured(f"{store} holds no usage{of_cluster}; load some with `gpupolicy ingest`")
    return extent


def _span(policy: Policy, extent: Extent, starts_at: datetime | None, ends_at: datetime | None) -> Span:
    if ends_at:
        refuse_after_observation(extent, ends_at)
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


def refuse_after_observation(extent: Extent, moment: datetime) -> None:
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
