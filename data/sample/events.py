"""What happens at the institute: what is waiting, what runs where, and what becomes of it.

Schedules nothing by itself: schedule.py says what starts and what is displaced.
"""

from __future__ import annotations

import heapq
from bisect import insort
from dataclasses import dataclass
from enum import IntEnum
from random import Random

from fairness import Standing
from machines import FAR_AWAY, GPUS_PER_HOST, Host, Incident, Outage, growth, incidents, pools
from people import Draft, Person, decide, next_thought_s, patience_s, people, pool_for, workload
from work import DAY, HOUR, KINDS, Workload

from gpupolicy.domain import Policy

REQUEUE_HOLD_S = 120  # as Slurm's: a requeued job may not start at once
RESTARTS_BORNE = 20  # then its owner gives it up
NIGHTLY_USER = "rgrabowski"  # whose script evaluates the newest models on every cluster at midnight
NIGHTLY_RUN = Draft(KINDS["evaluation"], 8, is_free=False)
NIGHTLY_POOLS = ("heron/h100", "kestrel/h100", "plover/b200", "wren/b300")


class Happening(IntEnum):
    """What can be due, in the order in which it is dealt with at one moment."""

    ENDS = 0
    DRAINS = 1
    SICK = 2
    HEALED = 3
    ARRIVES = 4
    THINKS = 5
    NIGHTLY = 6
    ELIGIBLE = 7
    GIVES_UP = 8


@dataclass(frozen=True, slots=True)
class Run:
    """A row of the log: one stay in the queue and, if it came to that, one stretch of holding GPUs."""

    workload: Workload
    submitted: int
    eligible: int | None
    started: int | None
    ended: int | None
    state: str
    hosts: tuple[str, ...] = ()


class Institute:
    """People, pools and the log of what became of their work. Moments are seconds since the beginning."""

    def __init__(self, policy: Policy, *, seed: int, quarter_starts: int, until: int) -> None:
        self.cap_s = policy.minimum_runtime_cap_s
        self.until = until
        self.pools = pools()
        self.standing = Standing(policy)
        self.runs: list[Run] = []
        self.outages: list[Outage] = []
        self.arrived = growth(self.pools, quarter_starts)
        self._quarter_starts = quarter_starts
        self._quarter_s = policy.quarter.hours * HOUR
        self._open: dict[tuple[str, int], Workload] = {}
        self._due: list[tuple[int, int, int, object, int]] = []
        self._planned = 0
        self._last_number = {"heron": 702_113, "kestrel": 318_559, "plover": 96_406, "wren": 20_930}
        self._waiting_gpus = dict.fromkeys(self.pools, 0)
        self._pool_of = {host: pool for pool in self.pools.values() for host in pool.hosts}
        self._begin(seed)

    def _begin(self, seed: int) -> None:
        for host, at in self.arrived:
            host.state = "down"
            self._plan(at, Happening.ARRIVES, host)
        gpus = GPUS_PER_HOST * (len(self._pool_of) - len(self.arrived))
        self.standing.available(gpus, at=0)
        for incident in incidents(
            Random(f"{seed}/hosts"), self.pools, quarter_starts=self._quarter_starts, until=self.until
        ):
            self._plan(incident.at, Happening.SICK, incident)
            if incident.state == "maintenance":
                for host in incident.hosts:
                    host.closes_at = incident.at
        for person in people(self.standing.leaves, seed=seed, gpus=gpus):
            self._plan(next_thought_s(person), Happening.THINKS, person)
            if person.user == NIGHTLY_USER:
                self._plan(0, Happening.NIGHTLY, person)

    def live_until(self, at: int) -> None:
        """Let happen what is due."""
        while self._due and self._due[0][0] <= at:
            moment, what, _, who, stamp = heapq.heappop(self._due)
            self._happens(moment, what, who, stamp)

    def start(self, one: Workload, hosts: list[Host], *, at: int) -> None:
        """Give a waiting workload its GPUs."""
        one.state, one.started, one.hosts = "running", at, hosts
        one.protected_until = at + one.protected_s
        each = min(one.gpus, GPUS_PER_HOST)
        for host in hosts:
            host.idle -= each
            host.running.append(one)
        self._waiting_gpus[one.pool] -= one.gpus
        if not one.is_free:
            self.standing.holds(one.leaf, one.gpus, at=at)
        self._plan(at + min(one.remaining_s, one.limit_s), Happening.ENDS, one, one.runs)

    def evict(self, one: Workload, *, at: int, state: str) -> None:
        """Take its GPUs away; it waits for another start, or that was its end."""
        if not one.may_requeue:
            self._stop(one, at=at, state="CANCELLED by 0" if state == "REQUEUED" else state)
            self._close(one)
            return
        self._stop(one, at=at, state=state)
        if one.is_resumable:
            one.remaining_s = max(1, one.remaining_s - (at - one.started))
        one.restarts += 1
        one.state, one.submitted, one.eligible = "held", at, at + REQUEUE_HOLD_S
        self._plan(one.eligible, Happening.ELIGIBLE, one, one.runs)
        if one.restarts >= RESTARTS_BORNE:
            self._plan(at + HOUR, Happening.GIVES_UP, one, one.runs)

    def take_stock(self) -> None:
        """At the end: what still runs or waits goes into the log as it stands."""
        for _, one in sorted(self._open.items()):
            if one.state == "running":
                names = tuple(host.name for host in one.hosts)
                self.runs.append(Run(one, one.submitted, one.eligible, one.started, None, "RUNNING", names))
            else:
                self.runs.append(Run(one, one.submitted, one.eligible, None, None, "PENDING"))
        for host, pool in self._pool_of.items():
            if host.state != "up" and host.reason:  # one that has not arrived yet has none
                self.outages.append(Outage(pool.cluster, host.name, host.state, host.state_since, None, host.reason))

    # What happens

    def _plan(self, at: int, what: Happening, who: object, stamp: int = 0) -> None:
        self._planned += 1
        heapq.heappush(self._due, (at, what, self._planned, who, stamp))

    def _happens(self, at: int, what: int, who: object, stamp: int) -> None:
        if isinstance(who, Person):
            self._thinks(who, what, at)
        elif isinstance(who, Workload):
            if who.runs == stamp:
                self._moves_on(who, what, at)
        elif isinstance(who, Incident):
            self._falls_sick(who, at)
        elif isinstance(who, Host):
            self._changes(who, what, at, stamp)

    def _thinks(self, person: Person, what: int, at: int) -> None:
        if what == Happening.NIGHTLY:
            self._plan(at + DAY, Happening.NIGHTLY, person)
            for pool in NIGHTLY_POOLS:
                self._submits(person, NIGHTLY_RUN, at=at, pool=pool)
            return
        self._plan(at + next_thought_s(person), Happening.THINKS, person)
        draft = decide(person, at - self._quarter_starts)
        if draft is not None:
            self._submits(person, draft, at=at, pool=pool_for(person, draft.gpus, self._crowding()))

    def _submits(self, person: Person, draft: Draft, *, at: int, pool: str) -> None:
        cluster = self.pools[pool].cluster
        self._last_number[cluster] += 1
        one = workload(
            person,
            draft,
            number=self._last_number[cluster],
            at=at,
            pool=pool,
            day_share=(at - self._quarter_starts) / self._quarter_s,
        )
        self._open[cluster, one.number] = one
        person.takes_on(one)
        self._plan(at + patience_s(person, one), Happening.GIVES_UP, one, one.runs)
        if one.eligible is not None:
            self._plan(one.eligible, Happening.ELIGIBLE, one, one.runs)

    def _crowding(self) -> dict[str, float]:
        return {name: waiting / len(self.pools[name].hosts) for name, waiting in self._waiting_gpus.items()}

    def _moves_on(self, one: Workload, what: int, at: int) -> None:
        if what == Happening.ENDS and one.state == "running":
            self._stop(one, at=at, state=_end_state(one))
            self._close(one)
        elif what == Happening.ELIGIBLE and one.state == "held":
            self._joins_the_queue(one)
        elif what == Happening.GIVES_UP and one.state in {"held", "waiting"}:
            self._gives_up(one, at)

    def _joins_the_queue(self, one: Workload) -> None:
        pool = self.pools[one.pool]
        one.state = "waiting"
        insort(pool.queue_of(one), one, key=_queue_key)
        self._waiting_gpus[one.pool] += one.gpus
        if not one.is_free:
            pool.is_dirty = True

    def _gives_up(self, one: Workload, at: int) -> None:
        if one.state == "waiting":
            self.pools[one.pool].queue_of(one).remove(one)
            self._waiting_gpus[one.pool] -= one.gpus
        self.runs.append(Run(one, one.submitted, one.eligible, None, at, _by_user(one)))
        self._close(one)

    def _stop(self, one: Workload, *, at: int, state: str) -> None:
        each = min(one.gpus, GPUS_PER_HOST)
        for host in one.hosts:
            host.idle += each
            host.running.remove(one)
            if host.state == "draining" and not host.running:
                self._plan(at, Happening.DRAINS, host)
        if not one.is_free:
            self.standing.holds(one.leaf, -one.gpus, at=at)
        names = tuple(host.name for host in one.hosts)
        self.runs.append(Run(one, one.submitted, one.eligible, one.started, at, state, names))
        self.pools[one.pool].is_dirty = True
        one.runs += 1
        one.hosts = []
        one.state = "held"

    def _close(self, one: Workload) -> None:
        one.state = "done"
        one.person.is_done_with(one)
        del self._open[self.pools[one.pool].cluster, one.number]

    # Hosts

    def _falls_sick(self, incident: Incident, at: int) -> None:
        for host in incident.hosts:
            if host.state != "up" and incident.state != "maintenance":
                continue  # already out for another reason
            if incident.state == "drained":
                self._turn(host, "draining", at=at, incident=incident)
                self._drain(host, at)
            else:
                state = "NODE_FAIL" if incident.state == "down" else "REQUEUED"
                for one in list(host.running):
                    self.evict(one, at=at, state=state)
                self._turn(host, incident.state, at=at, incident=incident)
                self._plan(at + incident.lasts_s, Happening.HEALED, host, at)

    def _changes(self, host: Host, what: int, at: int, stamp: int) -> None:
        if what == Happening.ARRIVES:
            host.state = "up"
            self.standing.available(GPUS_PER_HOST, at=at)
            self._pool_of[host].is_dirty = True
        elif what == Happening.DRAINS and host.state == "draining":
            self._drain(host, at)
        elif what == Happening.HEALED and host.state_since == stamp:
            self._turn(host, "up", at=at, incident=None)

    def _drain(self, host: Host, at: int) -> None:
        """Work leaves as it reaches its minimum runtime; the empty host goes to repair."""
        for one in list(host.running):
            if one.protected_until <= at:
                self.evict(one, at=at, state="REQUEUED")
        if host.running:
            self._plan(min(one.protected_until for one in host.running), Happening.DRAINS, host)
            return
        self._turn(host, "drained", at=at, incident=None)
        self._plan(at + host.repair_s, Happening.HEALED, host, at)

    def _turn(self, host: Host, state: str, *, at: int, incident: Incident | None) -> None:
        """Write the state a host leaves into the log, and count the GPUs that come or go with it."""
        pool = self._pool_of[host]
        if host.state != "up" and at > host.state_since:
            self.outages.append(Outage(pool.cluster, host.name, host.state, host.state_since, at, host.reason))
        change = _can_run(state) - _can_run(host.state)
        self.standing.available(change * GPUS_PER_HOST, at=at)
        host.state, host.state_since = state, at
        if incident:
            host.reason, host.repair_s = incident.reason, incident.lasts_s
            host.closes_at = FAR_AWAY if incident.state == "maintenance" else host.closes_at
        pool.is_dirty = True


def _can_run(state: str) -> bool:
    """A draining host still counts as available: what it runs is protected."""
    return state in {"up", "draining"}


def _queue_key(one: Workload) -> tuple[int, int, int]:
    return one.queue_key


def _end_state(one: Workload) -> str:
    if one.remaining_s > one.limit_s:
        return "TIMEOUT"
    return _by_user(one) if one.outcome == "CANCELLED" else one.outcome


def _by_user(one: Workload) -> str:
    return f"CANCELLED by {one.person.uid}"
