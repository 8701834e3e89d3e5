"""What each team of the institute is like: its work, its appetite, its ways around the rules, its seasons."""

from __future__ import annotations

from dataclasses import dataclass

from work import DAY, HOUR

WEEK_DAYS = 7


@dataclass(frozen=True, slots=True)
class Team:
    """Habits of a project's people. Chances and preferences are weights, not sums to one."""

    kinds: tuple[tuple[str, float], ...]
    pools: tuple[tuple[str, float], ...]
    appetite: float = 1.3  # funded GPUs wanted at once for each GPU entitled to
    free_appetite: float = 2.8  # the same for free work
    pace: float = 0.9  # thoughts of submitting something, per person and busy hour
    top_priority: tuple[float, float] = (0.18, 0.22)  # how often the highest, first and last day of the quarter
    members: tuple[tuple[str, float], ...] = ()  # of a project that is a leaf: its people and their weights


_EVERYWHERE = (
    ("heron/h100", 0.5),
    ("kestrel/h100", 0.14),
    ("kestrel/b200", 0.15),
    ("plover/b200", 0.15),
    ("wren/b300", 0.06),
)
_MOSTLY_H100 = (("heron/h100", 0.7), ("kestrel/h100", 0.2), ("plover/b200", 0.1))
_MOSTLY_B200 = (("kestrel/b200", 0.35), ("plover/b200", 0.35), ("heron/h100", 0.2), ("wren/b300", 0.1))
_COMMON = (("debug", 0.25), ("interactive", 0.05), ("small", 0.27), ("large", 0.15), ("sweep", 0.25))

TEAMS = {
    "pretraining": Team(
        appetite=1.1,
        kinds=(
            ("debug", 0.3),
            ("interactive", 0.03),
            ("small", 0.1),
            ("large", 0.17),
            ("flagship", 0.2),
            ("sweep", 0.14),
        ),
        pools=(
            ("heron/h100", 0.66),
            ("kestrel/h100", 0.1),
            ("kestrel/b200", 0.1),
            ("plover/b200", 0.1),
            ("wren/b300", 0.04),
        ),
        members=(
            ("lbaptista", 34),
            ("ambeki", 18),
            ("bruzicka", 12),
            ("sbellini", 8),
            ("ayamada", 8),
            ("mnavarro", 6),
            ("vaoki", 5),
            ("lchaudhry", 4),
            ("abrandt", 4),
            ("lsvoboda", 3),
            ("conyango", 3),
            ("kshirazi", 2),
            ("odalgaard", 2),
            ("eheikkila", 2),
            ("knowicki", 2),
            ("ulindholm", 1),
            ("gosman", 1),
            ("eserrano", 1),
        ),
    ),
    "posttraining": Team(kinds=_COMMON, pools=_EVERYWHERE, appetite=1.9, pace=1.3, top_priority=(0.15, 0.96)),
    "evaluation": Team(
        kinds=(("debug", 0.25), ("evaluation", 0.35), ("padded", 0.1), ("small", 0.3), ("large", 0.1), ("sweep", 0.15)),
        pools=_EVERYWHERE,
        appetite=1.6,
        pace=1.2,
    ),
    "multilingual": Team(kinds=_COMMON, pools=_MOSTLY_H100),
    "video": Team(
        kinds=(("debug", 0.32), ("interactive", 0.05), ("small", 0.22), ("large", 0.22), ("sweep", 0.19)),
        pools=_MOSTLY_B200,
        appetite=1.7,
        pace=1.2,
    ),
    "robotics": Team(
        kinds=(("debug", 0.2), ("placeholder", 0.25), ("parked session", 0.2), ("small", 0.25), ("sweep", 0.1)),
        pools=_EVERYWHERE,
        appetite=1.2,
        free_appetite=0.6,
    ),
    "imaging": Team(kinds=_COMMON, pools=_MOSTLY_B200),
    "proteins": Team(
        kinds=(("debug", 0.3), ("interactive", 0.05), ("small", 0.2), ("large", 0.25), ("sweep", 0.2)),
        pools=_MOSTLY_H100,
    ),
    "climate": Team(
        kinds=(("debug", 0.2), ("padded", 0.25), ("small", 0.25), ("large", 0.2), ("sweep", 0.1)),
        pools=_EVERYWHERE,
        appetite=1.8,
        pace=1.2,
    ),
    "materials": Team(kinds=_COMMON, pools=_MOSTLY_H100),
    "code": Team(
        kinds=_COMMON,
        pools=_EVERYWHERE,
        top_priority=(0.25, 0.99),
        appetite=1.9,
        pace=1.5,
        members=(
            ("hkobayashi", 5),
            ("msantoro", 4),
            ("ghayashi", 4),
            ("nbergstrom", 3),
            ("shidalgo", 3),
            ("ijafari", 2),
            ("jgunawan", 2),
            ("ahaddad", 1),
            ("kreyes", 1),
        ),
    ),
    "tool-use": Team(kinds=_COMMON, pools=_EVERYWHERE, appetite=3.9, pace=1.6),
    "planning": Team(
        kinds=(("debug", 0.25), ("interactive", 0.05), ("small", 0.12), ("large", 0.42), ("sweep", 0.16)),
        pools=_MOSTLY_H100,
        appetite=2.0,
    ),
    "interpretability": Team(
        kinds=(("debug", 0.35), ("interactive", 0.15), ("small", 0.35), ("sweep", 0.15)), pools=_EVERYWHERE
    ),
    "learning-theory": Team(kinds=(("debug", 0.3), ("small", 0.4), ("sweep", 0.3)), pools=_MOSTLY_H100),
}
PROGRAM_OF_DEADLINE = "vision"

# by hour of the day, UTC: the institute works from 7 to 18
_BUSY = (3, 2, 2, 2, 2, 3, 8, 35, 75, 95, 100, 95, 75, 90, 100, 100, 95, 75, 50, 35, 25, 18, 10, 5)


def busyness(quarter_s: int) -> float:
    """How many of the day's thoughts of submitting come now, 0 to 1. The quarter begins on a Wednesday."""
    weekday = (quarter_s // DAY + 2) % WEEK_DAYS
    return _BUSY[quarter_s % DAY // HOUR] / 100 * (0.3 if weekday >= 5 else 1.0)


def season(account: str, program: str, quarter_s: int) -> float:
    """How a project's appetite swings over the quarter; 1 is its usual appetite."""
    day = quarter_s / DAY
    appetite = 0.88 if 33 <= day < 52 else 1.0  # August: many are away
    if program == PROGRAM_OF_DEADLINE:
        appetite *= _before_a_deadline(day)
    if account == "climate":
        appetite *= 0.05 if day < 31 else 1.3  # its simulations were late: July hardly used, then all at once
    return appetite


def _before_a_deadline(day: float) -> float:
    """A conference takes papers until 16 September: the burst before it, the calm after."""
    if 64 <= day < 77.5:
        return 1.0 + (day - 64) / 9
    return 0.45 if 77.5 <= day < 85 else 1.0
