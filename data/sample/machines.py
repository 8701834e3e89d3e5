"""Clusters, their hosts, and what befalls hosts: sickness, repair, maintenance, growth."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from work import DAY, HOUR, MINUTE, Workload

GPUS_PER_HOST = 8
FAR_AWAY = 10**9


@dataclass(slots=True, eq=False)
class Host:
    name: str
    position: int
    idle: int = GPUS_PER_HOST
    running: list[Workload] = field(default_factory=list)
    state: str = "up"  # up, draining, drained, down, maintenance
    state_since: int = 0
    reason: str = ""
    repair_s: int = 0
    closes_at: int = FAR_AWAY  # the next maintenance: nothing may be protected beyond it

    @property
    def is_up(self) -> bool:
        return self.state == "up"


@dataclass(slots=True, eq=False)
class Pool:
    """The hosts of one cluster with one GPU type: a workload runs inside one pool."""

    cluster: str
    gpu_type: str
    hosts: list[Host]
    funded: defaultdict[int, list[Workload]] = field(default_factory=lambda: defaultdict(list))  # by leaf
    free: list[Workload] = field(default_factory=list)
    is_dirty: bool = False

    @property
    def name(self) -> str:
        return f"{self.cluster}/{self.gpu_type}"

    @property
    def headroom_gpus(self) -> int:
        """What free work leaves idle, so that a debug run finds room without displacing anybody."""
        return len(self.hosts) * GPUS_PER_HOST // 64

    def queue_of(self, workload: Workload) -> list[Workload]:
        return self.free if workload.is_free else self.funded[workload.leaf]


@dataclass(frozen=True, slots=True)
class Incident:
    """Hosts that go out of service: at once, or after their workloads' minimum runtimes."""

    at: int
    hosts: tuple[Host, ...]
    state: str  # drained, down or maintenance
    lasts_s: int
    reason: str


@dataclass(frozen=True, slots=True)
class Outage:
    cluster: str
    host: str
    state: str
    started: int
    ended: int | None
    reason: str


FLEET = (
    ("heron", "h100", 128),
    ("kestrel", "h100", 32),
    ("kestrel", "b200", 32),
    ("plover", "b200", 32),
    ("wren", "b300", 11),
)
DAYS_BETWEEN_FAILURES = 75.0  # of one host
_SOFT = ("ECC errors", "NVLink errors", "network link flaps", "GPU runs hot", "file system hangs")
_HARD = ("GPU fell off the bus", "does not answer", "power supply failed", "kernel panic")


def pools() -> dict[str, Pool]:
    """Fresh pools, by name. Hosts of a cluster are numbered through all its types."""
    numbered: dict[str, int] = {}
    made = {}
    for cluster, gpu_type, count in FLEET:
        first = numbered.get(cluster, 0) + 1
        numbered[cluster] = first + count - 1
        hosts = [Host(f"{cluster}{first + place:03}", place) for place in range(count)]
        made[f"{cluster}/{gpu_type}"] = Pool(cluster, gpu_type, hosts)
    return made


def incidents(rng: Random, of_pools: dict[str, Pool], *, quarter_starts: int, until: int) -> list[Incident]:
    """What will befall the hosts up to a moment, in order of time."""
    listed = _planned(of_pools, quarter_starts)
    for pool in of_pools.values():
        for host in pool.hosts:
            listed += _failures(rng, host, until=until)
    listed += _lemon(rng, of_pools["heron/h100"].hosts[76], until=until)
    return sorted((one for one in listed if one.at < until), key=lambda one: (one.at, one.hosts[0].name))


def growth(of_pools: dict[str, Pool], quarter_starts: int) -> list[tuple[Host, int]]:
    """Hosts that arrive inside the quarter: two more for plover on the twentieth day."""
    return [(host, quarter_starts + 19 * DAY + 9 * HOUR) for host in of_pools["plover/b200"].hosts[-2:]]


def _planned(of_pools: dict[str, Pool], starts: int) -> list[Incident]:
    heron, plover = of_pools["heron/h100"].hosts, of_pools["plover/b200"].hosts
    kestrel = of_pools["kestrel/h100"].hosts + of_pools["kestrel/b200"].hosts
    return [
        Incident(starts + 20 * DAY + 6 * HOUR, tuple(kestrel), "maintenance", 10 * HOUR, "switch firmware"),
        Incident(starts + 41 * DAY + 6 * HOUR, tuple(plover), "maintenance", 8 * HOUR, "driver upgrade"),
        Incident(starts + 69 * DAY + 6 * HOUR, tuple(heron[:64]), "maintenance", 9 * HOUR, "power work, first half"),
        Incident(starts + 70 * DAY + 6 * HOUR, tuple(heron[64:]), "maintenance", 9 * HOUR, "power work, second half"),
        Incident(starts + 55 * DAY + 13 * HOUR, tuple(heron[96:112]), "down", 31 * HOUR, "cooling loop failed"),
    ]


def _failures(rng: Random, host: Host, *, until: int) -> list[Incident]:
    listed = []
    at = _gap(rng, DAYS_BETWEEN_FAILURES)
    while at < until:
        listed.append(_failure(rng, host, at))
        at += _gap(rng, DAYS_BETWEEN_FAILURES)
    return listed


def _lemon(rng: Random, host: Host, *, until: int) -> list[Incident]:
    """One host that falls sick again and again."""
    return [
        Incident(at, (host,), "drained", int(rng.uniform(3, 10) * HOUR), "ECC errors")
        for at in range(9 * DAY + 5 * HOUR, until, 8 * DAY + 3 * HOUR)
    ]


def _failure(rng: Random, host: Host, at: int) -> Incident:
    if rng.random() < 0.7:
        lasts_s = rng.lognormvariate(1.6, 0.8) * HOUR
        return Incident(at, (host,), "drained", _whole_minutes(min(lasts_s, 3 * DAY)), rng.choice(_SOFT))
    lasts_s = rng.lognormvariate(2.6, 1.0) * HOUR
    return Incident(at, (host,), "down", _whole_minutes(min(lasts_s, 6 * DAY)), rng.choice(_HARD))


def _gap(rng: Random, mean_days: float) -> int:
    return 1 + int(rng.expovariate(1.0 / mean_days) * DAY)


def _whole_minutes(seconds: float) -> int:
    return max(30 * MINUTE, int(seconds) // MINUTE * MINUTE)
