"""Researchers: what they have outstanding, and what they submit next. Nobody submits without bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from habits import TEAMS, Team, busyness, season
from work import HOUR, KINDS, MINUTE, Kind, Workload, limit_s, outcome_and_runtime, pick

from gpupolicy.domain import Place

FIRST_UID = 20101
PRIORITIES = (100, 200, 300, 400)
_LARGEST_IN = {"heron/h100": 512, "kestrel/h100": 64, "kestrel/b200": 64, "plover/b200": 64, "wren/b300": 32}
_DEBUGS_AT_ONCE = 3
_SESSIONS_AT_ONCE = 2
_LARGEST_FREE = 32
_TOP_PRIORITY_FROM = 256  # the runs that a whole team waits for


@dataclass(frozen=True, slots=True)
class Draft:
    """What a person decides to submit."""

    kind: Kind
    gpus: int
    is_free: bool


@dataclass(slots=True, eq=False)
class Person:
    """A researcher with a stream of chance of their own, so that nobody's day changes another's."""

    user: str
    uid: int
    account: str
    program: str
    leaf: int
    entitled_gpus: float
    team: Team
    rng: Random
    funded_gpus: int = 0
    free_gpus: int = 0
    debugs: int = 0
    sessions: int = 0
    wanted: Draft | None = None  # the large run that does not fit yet

    def takes_on(self, workload: Workload) -> None:
        self._count(workload, 1)

    def is_done_with(self, workload: Workload) -> None:
        self._count(workload, -1)

    def _count(self, workload: Workload, sign: int) -> None:
        if workload.is_free:
            self.free_gpus += sign * workload.gpus
        elif workload.kind.is_debug:
            self.debugs += sign
        else:
            self.funded_gpus += sign * workload.gpus
            self.sessions += sign * workload.kind.is_interactive


def people(leaves: Sequence[Place], *, seed: int, gpus: int) -> list[Person]:
    """Everybody, in the order of the tree: researchers who are leaves, and members of projects that are."""
    listed: list[Person] = []
    for leaf, place in enumerate(leaves):
        account = place.path.split("/")[2]
        team = TEAMS[account]
        members = team.members if not place.node.is_researcher else ((place.node.name, 1.0),)
        whole = sum(weight for _, weight in members)
        for user, weight in members:
            listed.append(
                Person(
                    user=user,
                    uid=FIRST_UID + len(listed),
                    account=account,
                    program=place.path.split("/")[1],
                    leaf=leaf,
                    entitled_gpus=float(place.entitlement * Fraction(weight) / Fraction(whole) * gpus),
                    team=team,
                    rng=Random(f"{seed}/{user}"),
                )
            )
    return listed


def next_thought_s(person: Person) -> int:
    """Seconds until the next thought of submitting something, at the pace of the busiest hour."""
    return 1 + int(person.rng.expovariate(person.team.pace / HOUR))


def decide(person: Person, quarter_s: int) -> Draft | None:
    """What the person submits now, if anything: funded within the appetite, else free, else not at all."""
    swing = season(person.account, person.program, quarter_s)
    if person.rng.random() >= busyness(quarter_s) * min(1.3, swing):
        return None
    appetite = person.entitled_gpus * person.team.appetite * swing
    if person.wanted and _fits(person, person.wanted.gpus, appetite):
        wanted, person.wanted = person.wanted, None
        return wanted
    kind = KINDS[pick(person.rng, person.team.kinds)]
    gpus = _size(person, kind)
    return None if gpus is None else _draft(person, kind, gpus=gpus, appetite=appetite)


def _draft(person: Person, kind: Kind, *, gpus: int, appetite: float) -> Draft | None:
    if kind.is_debug:
        return Draft(kind, gpus, is_free=False) if person.debugs < _DEBUGS_AT_ONCE else None
    if kind.name == "sweep":
        return _free_draft(person, kind, gpus)
    if kind.is_interactive and person.sessions >= _SESSIONS_AT_ONCE:
        return None
    if person.wanted is None and _fits(person, gpus, appetite):
        return Draft(kind, gpus, is_free=False)
    return _second_choice(person, kind, gpus)


def _second_choice(person: Person, kind: Kind, gpus: int) -> Draft | None:
    """What does not fit is saved up for if it is a flagship; sessions and placeholders are let go."""
    if kind.name == "flagship":
        person.wanted = person.wanted or Draft(kind, gpus, is_free=False)
        return None
    if kind.is_interactive or kind.name == "placeholder":
        return None
    return _free_draft(person, kind, gpus)


def _free_draft(person: Person, kind: Kind, gpus: int) -> Draft | None:
    """Work beyond the appetite goes in as free work, up to a bound of its own."""
    gpus = min(gpus, _LARGEST_FREE)
    bound = person.entitled_gpus * person.team.free_appetite
    fits = person.free_gpus + gpus <= bound or person.free_gpus == 0
    return Draft(kind, gpus, is_free=True) if fits else None


def _fits(person: Person, gpus: int, appetite: float) -> bool:
    return person.funded_gpus + gpus <= appetite or person.funded_gpus == 0


def _size(person: Person, kind: Kind) -> int | None:
    """Nobody asks for more than three times what they are entitled to, or two hosts; None if that is too little."""
    bound = max(16.0, 3 * person.entitled_gpus)
    sizes = tuple((gpus, weight) for gpus, weight in kind.gpus if gpus <= bound)
    return pick(person.rng, sizes) if sizes else None


def workload(person: Person, draft: Draft, *, number: int, at: int, pool: str, day_share: float) -> Workload:
    """The submission itself. `day_share` is how much of the quarter has passed."""
    rng, kind = person.rng, draft.kind
    minimum_s = 0 if draft.is_free else pick(rng, kind.minimum_runtimes_s)
    outcome, lasts_s = outcome_and_runtime(rng, kind)
    return Workload(
        number=number,
        person=person,
        kind=kind,
        pool=pool,
        gpus=draft.gpus,
        runtime_s=lasts_s,
        limit_s=limit_s(rng, kind, lasts_s),
        minimum_runtime_s=minimum_s,
        protected_s=min(minimum_s, 8 * HOUR),
        is_resumable=rng.random() < kind.resumable_chance,
        priority=_priority(person, draft, day_share),
        utilization_percent=_utilization(rng, kind),
        outcome=outcome,
        names_type=rng.random() < 0.7 or pool.startswith("kestrel"),
        first_submitted=at,
        submitted=at,
        eligible=_eligible(rng, kind, at),
        remaining_s=lasts_s,
    )


def pool_for(person: Person, gpus: int, crowding: dict[str, float]) -> str:
    """Of two places that come to mind, the one with the shorter queue."""
    large_enough = tuple((pool, weight) for pool, weight in person.team.pools if gpus <= _LARGEST_IN[pool])
    first, second = pick(person.rng, large_enough), pick(person.rng, large_enough)
    return min(first, second, key=lambda pool: crowding[pool])


def patience_s(person: Person, workload: Workload) -> int:
    """How long the person lets it wait before cancelling it."""
    hours = 2.0 if workload.kind.is_debug else 96.0 if workload.is_free else 48.0
    return 10 * MINUTE + int(person.rng.lognormvariate(0.0, 0.6) * hours * HOUR)


def _priority(person: Person, draft: Draft, day_share: float) -> int:
    if draft.gpus >= _TOP_PRIORITY_FROM:
        return PRIORITIES[-1]
    first, last = person.team.top_priority
    top = first + (last - first) * min(1.0, max(0.0, day_share))
    if person.rng.random() < top:
        return PRIORITIES[-1]
    return pick(person.rng, ((100, 0.2), (200, 0.5), (300, 0.3)))


def _utilization(rng: Random, kind: Kind) -> int:
    spread = 1.0 if kind.utilization_percent < 5 else 11.0
    return max(0, min(100, round(rng.gauss(kind.utilization_percent, spread))))


def _eligible(rng: Random, kind: Kind, at: int) -> int | None:
    """At once as a rule; later after a dependency or a begin time; never if it is held and forgotten."""
    chance = rng.random()
    if kind.is_debug or kind.is_interactive or chance >= 0.035:
        return at
    return None if chance < 0.006 else at + int(rng.uniform(0.5, 12) * HOUR)
