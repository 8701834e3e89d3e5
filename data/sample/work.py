"""Kinds of work: how large, how long and under which contract, and one workload drawn from a kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from machines import Host
    from people import Person

MINUTE = 60
HOUR = 3600
DAY = 86400
_LIMITS_S = tuple(hours * HOUR for hours in (1, 2, 4, 8, 12, 24, 48, 72, 120, 168))

Weighted = tuple[tuple[int, float], ...]
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a researcher may submit. Runtimes are log-normal around the median, up to the longest."""

    name: str
    gpus: Weighted
    median_s: int
    sigma: float
    longest_s: int
    minimum_runtimes_s: Weighted  # what is declared; (0, 1.0) is free work
    resumable_chance: float
    utilization_percent: int
    failure_chance: float = 0.08
    is_interactive: bool = False

    @property
    def is_debug(self) -> bool:
        return self.name == "debug"


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            name="debug",
            gpus=((1, 0.5), (2, 0.15), (4, 0.1), (8, 0.25)),
            median_s=6 * MINUTE,
            sigma=0.9,
            longest_s=2 * HOUR,
            minimum_runtimes_s=((5 * MINUTE, 0.3), (10 * MINUTE, 0.3), (15 * MINUTE, 0.4)),
            resumable_chance=0.1,
            utilization_percent=34,
            failure_chance=0.3,
        ),
        Kind(
            name="interactive",
            gpus=((1, 0.6), (2, 0.2), (4, 0.1), (8, 0.1)),
            median_s=int(3.5 * HOUR),
            sigma=0.7,
            longest_s=14 * HOUR,
            minimum_runtimes_s=((1 * HOUR, 0.2), (4 * HOUR, 0.4), (8 * HOUR, 0.4)),
            resumable_chance=0.0,
            utilization_percent=14,
            failure_chance=0.02,
            is_interactive=True,
        ),
        Kind(
            name="small",
            gpus=((1, 0.2), (2, 0.2), (4, 0.25), (8, 0.35)),
            median_s=10 * HOUR,
            sigma=1.0,
            longest_s=96 * HOUR,
            minimum_runtimes_s=((1 * HOUR, 0.4), (2 * HOUR, 0.35), (4 * HOUR, 0.25)),
            resumable_chance=0.8,
            utilization_percent=66,
        ),
        Kind(
            name="evaluation",
            gpus=((1, 0.35), (2, 0.25), (4, 0.2), (8, 0.2)),
            median_s=50 * MINUTE,
            sigma=0.8,
            longest_s=10 * HOUR,
            minimum_runtimes_s=((30 * MINUTE, 0.6), (1 * HOUR, 0.4)),
            resumable_chance=0.4,
            utilization_percent=52,
        ),
        Kind(
            name="padded",  # asks for eight hours of protection and needs twenty minutes of them
            gpus=((2, 0.3), (4, 0.3), (8, 0.4)),
            median_s=20 * MINUTE,
            sigma=0.35,
            longest_s=2 * HOUR,
            minimum_runtimes_s=((8 * HOUR, 1.0),),
            resumable_chance=0.3,
            utilization_percent=48,
        ),
        Kind(
            name="large",
            gpus=((16, 0.5), (32, 0.3), (64, 0.15), (128, 0.05)),
            median_s=11 * HOUR,
            sigma=0.9,
            longest_s=120 * HOUR,
            minimum_runtimes_s=((2 * HOUR, 0.3), (4 * HOUR, 0.4), (8 * HOUR, 0.3)),
            resumable_chance=0.95,
            utilization_percent=78,
        ),
        Kind(
            name="flagship",
            gpus=((64, 0.45), (128, 0.34), (256, 0.14), (512, 0.07)),
            median_s=22 * HOUR,
            sigma=0.8,
            longest_s=160 * HOUR,
            minimum_runtimes_s=((4 * HOUR, 0.35), (8 * HOUR, 0.65)),
            resumable_chance=0.99,
            utilization_percent=88,
            failure_chance=0.12,
        ),
        Kind(
            name="sweep",
            gpus=((1, 0.1), (2, 0.1), (4, 0.25), (8, 0.4), (16, 0.1), (32, 0.05)),
            median_s=6 * HOUR,
            sigma=0.8,
            longest_s=60 * HOUR,
            minimum_runtimes_s=((0, 1.0),),
            resumable_chance=0.85,
            utilization_percent=70,
        ),
        Kind(
            name="placeholder",  # holds GPUs for later and computes nothing
            gpus=((8, 0.7), (16, 0.3)),
            median_s=40 * HOUR,
            sigma=0.6,
            longest_s=160 * HOUR,
            minimum_runtimes_s=((8 * HOUR, 1.0),),
            resumable_chance=1.0,
            utilization_percent=0,
            failure_chance=0.01,
        ),
        Kind(
            name="parked session",
            gpus=((1, 0.3), (4, 0.3), (8, 0.4)),
            median_s=30 * HOUR,
            sigma=0.5,
            longest_s=96 * HOUR,
            minimum_runtimes_s=((8 * HOUR, 1.0),),
            resumable_chance=0.0,
            utilization_percent=1,
            failure_chance=0.01,
            is_interactive=True,
        ),
    )
}


@dataclass(slots=True, eq=False)
class Workload:
    """One submission and where it stands. Moments are seconds since the log begins."""

    number: int
    person: Person
    kind: Kind
    pool: str
    gpus: int
    runtime_s: int
    limit_s: int
    minimum_runtime_s: int
    protected_s: int
    is_resumable: bool
    priority: int
    utilization_percent: int
    outcome: str
    names_type: bool  # whether the request says which type of GPU
    first_submitted: int
    submitted: int
    eligible: int | None
    remaining_s: int
    state: str = "held"
    started: int = 0
    protected_until: int = 0
    hosts: list[Host] = field(default_factory=list)
    runs: int = 0
    restarts: int = 0

    @property
    def is_free(self) -> bool:
        return self.minimum_runtime_s == 0

    @property
    def leaf(self) -> int:
        return self.person.leaf

    @property
    def queue_key(self) -> tuple[int, int, int]:
        """Inside a leaf: priority, then submission; requeued work keeps its turn."""
        return (-self.priority, self.first_submitted, self.number)

    @property
    def may_requeue(self) -> bool:
        """Resumable work goes on; other work starts over twice at most, and sessions and free work not at all."""
        if self.is_resumable:
            return True
        return not self.is_free and not self.kind.is_interactive and self.restarts < 2


def pick(rng: Random, weighted: Sequence[tuple[Choice, float]]) -> Choice:
    """One of the values, as often as its weight says."""
    left = rng.random() * sum(weight for _, weight in weighted)
    for value, weight in weighted:
        left -= weight
        if left < 0:
            return value
    return weighted[-1][0]


def runtime_s(rng: Random, kind: Kind) -> int:
    drawn = kind.median_s * math.exp(kind.sigma * rng.gauss(0.0, 1.0))
    return max(5, min(kind.longest_s, int(drawn)))


def outcome_and_runtime(rng: Random, kind: Kind) -> tuple[str, int]:
    """How it would end if it were left alone, and after how long."""
    whole_s = runtime_s(rng, kind)
    chance = rng.random()
    if chance < kind.failure_chance:
        return "FAILED", max(3, int(whole_s * rng.uniform(0.01, 0.6)))
    if chance < kind.failure_chance + 0.04:
        return "CANCELLED", max(3, int(whole_s * rng.uniform(0.05, 0.9)))
    return "COMPLETED", whole_s


def limit_s(rng: Random, kind: Kind, runtime_s: int) -> int:
    """The wall time asked for: from a short ladder, generous as a rule, too short now and then."""
    if kind.is_debug:
        return 30 * MINUTE if runtime_s < 25 * MINUTE else 2 * HOUR
    wanted = runtime_s * (0.8 if rng.random() < 0.03 else rng.uniform(1.2, 2.5))
    return next((limit for limit in _LIMITS_S if limit >= wanted), _LIMITS_S[-1])
