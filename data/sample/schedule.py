"""One scheduling pass over a pool: who starts, and who is displaced for it.

Funded work goes in the order of the queue. What does not fit is passed over by smaller or shorter protected
work, but the first blocked gang holds the hosts that become free soonest: others may use them only as long
as none of them is protected beyond that moment. Free work fills what is idle, and displaces nothing.
"""

from __future__ import annotations

from events import Institute
from machines import GPUS_PER_HOST, Pool
from placing import Hold, hold_for, place_with_eviction, place_without_eviction
from work import Workload


def schedule_funded(institute: Institute, pool: Pool, at: int) -> None:
    """Try every waiting funded workload once, in the order of the queue."""
    pool.is_dirty = False
    too_large: list[tuple[int, int]] = []
    hold: Hold | None = None
    for leaf in _in_order(institute, pool):
        for one in list(pool.funded[leaf]):
            if any(gpus <= one.gpus and protected_s <= one.protected_s for gpus, protected_s in too_large):
                continue  # what found no room higher up in the order finds none further down
            if _start_funded(institute, pool, one, at=at, hold=hold):
                continue
            too_large.append((one.gpus, one.protected_s))
            if hold is None and one.gpus > GPUS_PER_HOST:
                hold = hold_for(pool, one, at=at, ranks=institute.standing.ranks, cap_s=institute.cap_s)


def schedule_free(institute: Institute, pool: Pool, at: int) -> None:
    """Fill what is idle with free work, first come first served, smaller work passing what does not fit."""
    idle = sum(host.idle for host in pool.hosts if host.is_up) - pool.headroom_gpus
    smallest_failed = 10**6
    for one in list(pool.free):
        if one.gpus >= smallest_failed or one.gpus > idle:
            continue
        placement = place_without_eviction(pool, one, at=at, hold=None)
        if placement is None:
            smallest_failed = one.gpus
            if one.gpus == 1:
                break
            continue
        idle -= one.gpus
        pool.free.remove(one)
        institute.start(one, placement.hosts, at=at)


def _in_order(institute: Institute, pool: Pool) -> list[int]:
    waiting = [leaf for leaf, queue in pool.funded.items() if queue]
    return sorted(waiting, key=institute.standing.ranks.__getitem__)


def _start_funded(institute: Institute, pool: Pool, one: Workload, *, at: int, hold: Hold | None) -> bool:
    ranks = institute.standing.ranks
    placement = place_without_eviction(pool, one, at=at, hold=hold) or place_with_eviction(
        pool, one, at=at, ranks=ranks, hold=hold
    )
    if placement is None:
        return False
    for victim in placement.victims:
        institute.evict(victim, at=at, state="PREEMPTED")
    pool.funded[one.leaf].remove(one)
    institute.start(one, placement.hosts, at=at)
    return True
