"""Where a workload could start, and what would have to go first. Decides nothing, moves nothing.

Less than a host: into one host, the fullest that has room. A host or more: whole hosts. Free work never
displaces anything; funded work displaces free work at any time, and funded work past its protection that
stands later in the queue: its leaf does, or it has a lower priority in the same leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from machines import GPUS_PER_HOST, Host, Pool
from work import Workload


@dataclass(frozen=True, slots=True)
class Hold:
    """Hosts kept for the first blocked gang; others may use them as long as none is protected beyond."""

    hosts: frozenset[Host]
    ready_at: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Who asks for room, in the terms of the queue, and when."""

    ranks: Sequence[int]
    rank: int
    priority: int
    at: int


@dataclass(frozen=True, slots=True)
class Placement:
    hosts: list[Host]
    victims: list[Workload]


def place_without_eviction(pool: Pool, workload: Workload, *, at: int, hold: Hold | None) -> Placement | None:
    """Idle GPUs on the fullest host with room, or the first idle hosts."""
    hosts = _usable(pool, at + workload.protected_s, hold)
    if workload.gpus < GPUS_PER_HOST:
        roomy = [host for host in hosts if host.idle >= workload.gpus]
        return Placement([min(roomy, key=_fullness)], []) if roomy else None
    idle = [host for host in hosts if host.idle == GPUS_PER_HOST]
    wanted = workload.gpus // GPUS_PER_HOST
    return Placement(idle[:wanted], []) if len(idle) >= wanted else None


def place_with_eviction(
    pool: Pool, workload: Workload, *, at: int, ranks: Sequence[int], hold: Hold | None
) -> Placement | None:
    """The hosts where the least valuable work has to go: free before funded, few GPUs before many."""
    hosts = _usable(pool, at + workload.protected_s, hold)
    claim = Claim(ranks, ranks[workload.leaf], workload.priority, at)
    if workload.gpus < GPUS_PER_HOST:
        return _part_of_a_host(hosts, workload.gpus, claim)
    return _whole_hosts(hosts, workload.gpus // GPUS_PER_HOST, claim)


def hold_for(pool: Pool, workload: Workload, *, at: int, ranks: Sequence[int], cap_s: int) -> Hold | None:
    """The hosts that become free for a blocked gang soonest; none if no protection bounds the wait."""
    claim = Claim(ranks, ranks[workload.leaf], workload.priority, at)
    ready = sorted(
        (_ready_at(host, claim, never=at + cap_s + 1), host.position, host)
        for host in pool.hosts
        if host.is_up and at + workload.protected_s <= host.closes_at
    )
    chosen = ready[: workload.gpus // GPUS_PER_HOST]
    if len(chosen) * GPUS_PER_HOST < workload.gpus or chosen[-1][0] > at + cap_s:
        return None
    return Hold(frozenset(host for _, _, host in chosen), chosen[-1][0])


def _usable(pool: Pool, protected_until: int, hold: Hold | None) -> list[Host]:
    if hold is None or protected_until <= hold.ready_at:
        return [host for host in pool.hosts if host.state == "up" and protected_until <= host.closes_at]
    kept = hold.hosts
    return [
        host for host in pool.hosts if host.state == "up" and protected_until <= host.closes_at and host not in kept
    ]


def _fullness(host: Host) -> tuple[int, int]:
    return (host.idle, host.position)


def _part_of_a_host(hosts: list[Host], gpus: int, claim: Claim) -> Placement | None:
    cheapest: tuple[tuple[int, int, int], Host, list[Workload]] | None = None
    for host in hosts:
        victims = _victims_on(host, gpus, claim)
        if victims is None:
            continue
        cost = (sum(not one.is_free for one in victims), sum(one.gpus for one in victims), host.position)
        if cheapest is None or cost < cheapest[0]:
            cheapest = (cost, host, victims)
    return None if cheapest is None else Placement([cheapest[1]], cheapest[2])


def _victims_on(host: Host, gpus: int, claim: Claim) -> list[Workload] | None:
    """The least that must go for so many GPUs on this host; None if too much may not go."""
    if not host.running:
        return []
    may_go = [one for one in host.running if _may_go(one, claim)]
    missing = gpus - host.idle
    victims = []
    for one in sorted(may_go, key=_least_valuable):
        if missing <= 0:
            break
        victims.append(one)
        missing -= min(one.gpus, GPUS_PER_HOST)
    return victims if missing <= 0 else None


def _whole_hosts(hosts: list[Host], wanted: int, claim: Claim) -> Placement | None:
    idle = [host for host in hosts if host.idle == GPUS_PER_HOST]
    clearable = [host for host in hosts if host.running and all(_may_go(one, claim) for one in host.running)]
    if len(idle) + len(clearable) < wanted:
        return None
    clearable.sort(key=_cost_of_clearing)
    chosen = (idle + clearable)[:wanted]
    victims = {one.number: one for host in chosen for one in host.running}
    return Placement(chosen, [victims[number] for number in sorted(victims)])


def _may_go(workload: Workload, claim: Claim) -> bool:
    if workload.minimum_runtime_s == 0:
        return True
    return workload.protected_until <= claim.at and _stands_later(workload, claim)


def _stands_later(workload: Workload, claim: Claim) -> bool:
    rank = claim.ranks[workload.person.leaf]
    return rank > claim.rank or (rank == claim.rank and workload.priority < claim.priority)


def _least_valuable(workload: Workload) -> tuple[bool, int, int, int]:
    """Free first, then small, then what has run the shortest and loses the least."""
    return (not workload.is_free, workload.gpus, -workload.started, workload.number)


def _cost_of_clearing(host: Host) -> tuple[bool, int, int, int, int]:
    """Gangs stay together in this order, so that one is evicted before the next is touched."""
    worst = max(host.running, key=_least_valuable)
    return (*_least_valuable(worst), host.position)


def _ready_at(host: Host, claim: Claim, *, never: int) -> int:
    ready = claim.at
    for one in host.running:
        if one.is_free:
            continue
        ready = max(ready, one.protected_until if _stands_later(one, claim) else never)
    return ready
