"""The rules by which the generator places work, on a pool of two hosts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pytest
from fairness import RERANK_S, Standing
from machines import Host, Pool
from placing import hold_for, place_with_eviction, place_without_eviction
from work import HOUR, KINDS, Workload

from gpupolicy.domain import BudgetTree, Node, Policy, parse_quarter

FIRST, SECOND, THIRD = 0, 1, 2  # leaves in the order of the queue
RANKS = (0, 1, 2)
NOW = 100 * HOUR


@dataclass(frozen=True)
class Owner:
    leaf: int


@pytest.fixture
def pool() -> Pool:
    return Pool("wren", "b300", [Host("wren001", 0), Host("wren002", 1)])


def workload(leaf: int, gpus: int, *, minimum_runtime_h: float, priority: int = 200, number: int = 1) -> Workload:
    protected_s = int(minimum_runtime_h * HOUR)
    return Workload(
        number=number,
        person=Owner(leaf),  # type: ignore[arg-type]
        kind=KINDS["small"],
        pool="wren/b300",
        gpus=gpus,
        runtime_s=50 * HOUR,
        limit_s=72 * HOUR,
        minimum_runtime_s=protected_s,
        protected_s=protected_s,
        is_resumable=True,
        priority=priority,
        utilization_percent=50,
        outcome="COMPLETED",
        names_type=True,
        first_submitted=0,
        submitted=0,
        eligible=0,
        remaining_s=50 * HOUR,
    )


def running(one: Workload, *hosts: Host, since_h: float) -> Workload:
    one.started = NOW - int(since_h * HOUR)
    one.protected_until = one.started + one.protected_s
    for host in hosts:
        host.idle -= min(one.gpus, 8)
        host.running.append(one)
    return one


def test_free_work_finds_no_room_where_all_is_taken(pool: Pool) -> None:
    running(workload(FIRST, 16, minimum_runtime_h=0), *pool.hosts, since_h=1)

    placement = place_without_eviction(pool, workload(SECOND, 1, minimum_runtime_h=0), at=NOW, hold=None)

    assert placement is None


def test_funded_work_displaces_free_work_from_its_first_second(pool: Pool) -> None:
    free = running(workload(FIRST, 16, minimum_runtime_h=0), *pool.hosts, since_h=0)

    placement = place_with_eviction(pool, workload(THIRD, 1, minimum_runtime_h=1), at=NOW, ranks=RANKS, hold=None)

    assert placement is not None
    assert placement.victims == [free]


def test_protected_work_is_never_displaced(pool: Pool) -> None:
    running(workload(THIRD, 16, minimum_runtime_h=8), *pool.hosts, since_h=7.9)

    placement = place_with_eviction(pool, workload(FIRST, 16, minimum_runtime_h=1), at=NOW, ranks=RANKS, hold=None)

    assert placement is None


def test_past_its_protection_work_yields_only_to_what_stands_before_it_in_the_queue(pool: Pool) -> None:
    running(workload(SECOND, 16, minimum_runtime_h=2), *pool.hosts, since_h=3)

    before, after = (
        place_with_eviction(pool, workload(leaf, 8, minimum_runtime_h=1), at=NOW, ranks=RANKS, hold=None)
        for leaf in (FIRST, THIRD)
    )

    assert before is not None
    assert after is None


def test_inside_a_leaf_only_a_higher_priority_displaces(pool: Pool) -> None:
    running(workload(SECOND, 16, minimum_runtime_h=2, priority=200), *pool.hosts, since_h=3)

    same, higher = (
        place_with_eviction(
            pool, workload(SECOND, 8, minimum_runtime_h=1, priority=priority), at=NOW, ranks=RANKS, hold=None
        )
        for priority in (200, 300)
    )

    assert same is None
    assert higher is not None


def test_the_least_valuable_work_goes_first(pool: Pool) -> None:
    running(workload(THIRD, 8, minimum_runtime_h=1, number=1), pool.hosts[0], since_h=5)
    free = running(workload(FIRST, 8, minimum_runtime_h=0, number=2), pool.hosts[1], since_h=5)

    placement = place_with_eviction(pool, workload(FIRST, 4, minimum_runtime_h=1), at=NOW, ranks=RANKS, hold=None)

    assert placement is not None
    assert placement.victims == [free]


def test_a_held_host_takes_only_what_is_not_protected_beyond_the_hold(pool: Pool) -> None:
    running(workload(THIRD, 8, minimum_runtime_h=8, number=1), pool.hosts[0], since_h=6)
    hold = hold_for(pool, workload(FIRST, 16, minimum_runtime_h=8), at=NOW, ranks=RANKS, cap_s=8 * HOUR)

    short, long = (
        place_without_eviction(pool, workload(SECOND, 8, minimum_runtime_h=hours), at=NOW, hold=hold)
        for hours in (2, 3)
    )

    assert hold is not None
    assert hold.ready_at == NOW + 2 * HOUR
    assert short is not None
    assert long is None


def test_nothing_is_protected_into_a_maintenance(pool: Pool) -> None:
    for host in pool.hosts:
        host.closes_at = NOW + 2 * HOUR

    short, long = (
        place_without_eviction(pool, workload(FIRST, 8, minimum_runtime_h=hours), at=NOW, hold=None) for hours in (2, 3)
    )

    assert short is not None
    assert long is None


def test_the_order_follows_what_was_charged_in_the_lookback_and_no_longer() -> None:
    leaves = (Node("video", Fraction(1, 2)), Node("code", Fraction(1, 2)))
    policy = Policy(parse_quarter("2026Q3"), BudgetTree(Node("lab", children=leaves)), lookback_h=2)
    standing = Standing(policy)
    standing.available(16, at=0)
    standing.holds(0, 8, at=0)

    orders = {}
    for at in range(0, 4 * HOUR + 1, RERANK_S):
        if at == HOUR:  # video gives way to code, and nothing changes any more
            standing.holds(0, -8, at=at)
            standing.holds(1, 2, at=at)
        standing.rerank(at)
        orders[at / HOUR] = [policy.tree.leaves()[leaf].node.name for leaf in standing.order]

    assert orders[1] == ["code", "video"]  # 8 GPU-hours stand against none
    assert orders[2.5] == ["code", "video"]  # 4 against 3 in the last two hours
    assert orders[3] == ["video", "code"]  # none against 4
