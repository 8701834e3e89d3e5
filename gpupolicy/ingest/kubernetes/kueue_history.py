"""What happened to one workload of Kueue, event by event, and the runs and waits that come of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

# In the order in which they happen where the stamps, whole seconds, are the same.
EVENTS = ("created", "evicted", "released", "held", "requeued", "quota_reserved", "admitted", "finished")
PREEMPTED = "Preempted"


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a workload; the reason is a word of Kueue's, such as Preempted."""

    at: datetime
    what: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A wait, and the run that followed it unless `started_at` is None; after an eviction a new one begins."""

    queued_at: datetime
    eligible_at: datetime | None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    state: str = "PENDING"

    @property
    def ran_s(self) -> float:
        """How long it ran, if it is over."""
        return (self.ended_at - self.started_at).total_seconds() if self.started_at and self.ended_at else 0.0


def in_order(events: Iterable[Event]) -> list[Event]:
    """Each event once, by time; of one second as EVENTS lists them."""
    return sorted(set(events), key=lambda event: (event.at, EVENTS.index(event.what)))


def stretches(events: Sequence[Event]) -> Iterator[Stretch]:
    """The runs of one workload, whose events stand in order, and at last its wait, if it waits.

    A run begins with the admission and ends with the eviction or the end; until its checks are through, a
    workload with reserved quota still waits. A wait begins with the creation, or with the return to the queue
    (case k8-07). Held back, by a back-off or by a switch, it is not eligible.
    """
    now = Stretch(events[0].at, events[0].at)
    for event in events:
        if now.started_at is None:
            now = _while_waiting(now, event)
        elif event.what in {"evicted", "released", "finished"}:
            yield replace(now, ended_at=event.at, state=_word(event))
            now = Stretch(event.at, event.at)
            if event.what == "finished":
                return
        if now.ended_at is not None:
            break
    yield now


def earlier_run(events: Sequence[Event], *, past_s: int, evictions: int | None) -> list[Event]:
    """The steps of the run before the last return to the queue, where the conditions no longer tell them.

    Kueue adds up for how many seconds a workload was admitted in earlier runs, each until its quota was released,
    and keeps the stamp of that release: of a waiting workload as such, of one that runs again as its return to
    the queue, if it was preempted (other evictions may wait before they return). So of a workload that was
    evicted exactly once the earlier run is known to the second. In all other cases nothing is.
    """
    told = {event.what: event for event in events}
    returned = told.get("requeued")
    released = told.get("released") or (returned if returned and returned.reason == PREEMPTED else None)
    if released is None or evictions != 1:
        return []
    admitted = Event(released.at - timedelta(seconds=past_s), "admitted")
    return [admitted] if "evicted" in told else [admitted, Event(released.at, "evicted", PREEMPTED)]


def _while_waiting(now: Stretch, event: Event) -> Stretch:
    match event.what:
        case "evicted" | "released" | "requeued":
            return Stretch(event.at, event.at)
        case "held":
            return replace(now, eligible_at=None)
        case "admitted":
            return Stretch(now.queued_at, now.eligible_at or now.queued_at, event.at, state="RUNNING")
        case "finished":
            return replace(now, ended_at=event.at, state=_word(event))
        case _:
            return now


def _word(event: Event) -> str:
    return (event.reason or event.what).upper()
