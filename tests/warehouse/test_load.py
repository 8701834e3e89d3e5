"""What the store holds after any number of loads, against a slow, obvious twin."""

from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_store import at, load

from gpupolicy.errors import EnvironmentTrouble
from gpupolicy.warehouse import reading

HOUR = timedelta(hours=1)
GPU_NS_PER_GPU_H = 3600 * 10**9

Run = dict[str, Any]


def hourly(store: Path) -> dict[tuple[str, datetime], tuple[int, ...]]:
    """By account and hour: charged, free, waiting charged, waiting free, measured, used; nothing left out."""
    with reading(store) as reader:
        rows = reader._connection.execute(
            "select account, hour, charged_gpu_ns, free_gpu_ns, waiting_charged_gpu_ns, waiting_free_gpu_ns, "
            "measured_gpu_ns, used_gpu_ns from out_hourly"
        ).fetchall()
    return {(account, hour): tuple(amounts) for account, hour, *amounts in rows if any(amounts)}


def runs_held(store: Path) -> set[tuple[Any, ...]]:
    with reading(store) as reader:
        rows = reader._connection.execute(
            "select workload_id, submitted_at, started_at, ended_at, observed_until, gpus from core_run"
        ).fetchall()
    return set(rows)


def add_up(runs: list[Run], until: datetime) -> dict[tuple[str, datetime], tuple[int, ...]]:
    """The twin: every run cut into its hours, one after the other."""
    sums: defaultdict[tuple[str, datetime], list[int]] = defaultdict(lambda: [0] * 6)
    for run in runs:
        started, ended = run.get("started_at"), run.get("ended_at")
        held = (started, min(ended or until, until)) if started else None
        waited = (run["submitted_at"], min(started or ended or until, until))
        is_free = run.get("is_charged") is False
        for stretch, place in ((held, 1 if is_free else 0), (waited, 3 if is_free else 2)):
            for hour, ns in hours_of(stretch):
                sums[(run["account"], hour)][place] += int(run["gpus"] * ns)
                if stretch is held and run.get("utilization_ratio") is not None:
                    sums[(run["account"], hour)][4] += int(run["gpus"] * ns)
                    sums[(run["account"], hour)][5] += int(run["gpus"] * run["utilization_ratio"] * ns)
    return {key: tuple(amounts) for key, amounts in sums.items() if any(amounts)}


def hours_of(stretch: tuple[datetime, datetime] | None) -> list[tuple[datetime, int]]:
    if stretch is None:
        return []
    begin, end = stretch
    pieces = []
    hour = begin.replace(minute=0, second=0, microsecond=0)
    while hour < end:
        overlap = min(end, hour + HOUR) - max(begin, hour)
        pieces.append((hour, overlap // timedelta(microseconds=1) * 1000))
        hour += HOUR
    return pieces


minutes = st.integers(0, 6 * 60)


@st.composite
def histories(draw: st.DrawFn) -> list[Run]:
    """Finished runs with awkward borders; what a log shows of them depends on when it was taken."""
    runs = []
    for number in range(draw(st.integers(1, 6))):
        submitted = draw(minutes)
        started = submitted + draw(st.integers(0, 90))
        ended = started + draw(st.integers(0, 200))
        runs.append(
            {
                "workload_id": str(draw(st.integers(0, 3))) if draw(st.booleans()) else f"j{number}",
                "account": draw(st.sampled_from(["a", "b"])),
                "gpus": draw(st.sampled_from([1, 2, 8, 0.5])),
                "is_charged": draw(st.booleans()),
                "utilization_ratio": draw(st.sampled_from([None, 0.5, 1.0])),
                "submitted_at": at(1) + timedelta(minutes=submitted, seconds=number),
                "started_at": at(1) + timedelta(minutes=started, seconds=number),
                "ended_at": at(1) + timedelta(minutes=ended, seconds=number),
            }
        )
    return runs


def log_taken_at(history: list[Run], moment: datetime) -> list[Run]:
    """What sacct would print at a moment: ended, running or waiting, as it was then."""
    shown = []
    for run in history:
        if run["submitted_at"] < moment:
            later = {key: None for key in ("started_at", "ended_at") if run[key] > moment}
            shown.append({**run, **later, **({"utilization_ratio": None} if later else {})})
    return shown


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=histories(),
    cuts=st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True),
    order=st.randoms(),
)
def test_dumps_lead_to_one_store_whatever_the_order_they_are_loaded_in(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[Run],
    cuts: list[int],
    order: Any,  # noqa: ANN401 - hypothesis' own
) -> None:
    dumps = [(log_taken_at(history, at(1, hour)), at(1, hour)) for hour in cuts]
    sorted_store, shuffled_store = tmp_path_factory.mktemp("sorted"), tmp_path_factory.mktemp("shuffled")
    for dump, moment in sorted(dumps, key=lambda dump: dump[1]):
        load(sorted_store, dump, observed_until=moment)

    again = dumps + dumps[:1]
    order.shuffle(again)
    for dump, moment in again:
        load(shuffled_store, dump, observed_until=moment)

    last_dump, last_moment = max(dumps, key=lambda dump: dump[1])
    assert hourly(sorted_store) == add_up(last_dump, last_moment)
    assert hourly(shuffled_store) == hourly(sorted_store)
    assert runs_held(shuffled_store) == runs_held(sorted_store)


def test_the_same_file_twice_changes_nothing(tmp_path: Path) -> None:
    runs = [{"workload_id": "1", "account": "a", "gpus": 8, "started_at": at(1), "ended_at": at(1, 2)}]

    first = load(tmp_path, runs, observed_until=at(2))
    before = hourly(tmp_path)
    second = load(tmp_path, runs, observed_until=at(2))

    assert (first.new, first.changed, first.unchanged) == (1, 0, 0)
    assert (second.new, second.changed, second.unchanged) == (0, 0, 1)
    assert (
        hourly(tmp_path)
        == before
        == {
            ("a", at(1, 0)): (8 * GPU_NS_PER_GPU_H, 0, 0, 0, 0, 0),
            ("a", at(1, 1)): (8 * GPU_NS_PER_GPU_H, 0, 0, 0, 0, 0),
        }
    )


def test_a_wait_becomes_a_run_and_a_run_gets_its_end(tmp_path: Path) -> None:
    waiting = {"workload_id": "1", "account": "a", "gpus": 4, "submitted_at": at(1)}
    running = {**waiting, "started_at": at(1, 1)}
    finished = {**running, "ended_at": at(1, 2)}

    load(tmp_path, [waiting], observed_until=at(1, 1))
    assert hourly(tmp_path) == {("a", at(1, 0)): (0, 0, 4 * GPU_NS_PER_GPU_H, 0, 0, 0)}
    load(tmp_path, [running], observed_until=at(1, 3))
    changed = load(tmp_path, [finished], observed_until=at(1, 4))

    assert (changed.new, changed.changed) == (0, 1)
    assert hourly(tmp_path) == {
        ("a", at(1, 0)): (0, 0, 4 * GPU_NS_PER_GPU_H, 0, 0, 0),
        ("a", at(1, 1)): (4 * GPU_NS_PER_GPU_H, 0, 0, 0, 0, 0),
    }


def test_a_workload_that_never_became_eligible_is_no_demand(tmp_path: Path) -> None:
    held = {"workload_id": "1", "account": "a", "gpus": 8, "submitted_at": at(1), "eligible_at": None}

    load(tmp_path, [held], observed_until=at(2))

    assert hourly(tmp_path) == {}


def test_fractions_of_a_gpu_and_of_a_second_add_up_exactly(tmp_path: Path) -> None:
    third = {
        "account": "a",
        "gpus": 0.25,
        "started_at": at(1),
        "ended_at": at(1) + timedelta(milliseconds=1001),
    }

    load(tmp_path, [{**third, "workload_id": str(number)} for number in range(8)], observed_until=at(2))

    assert hourly(tmp_path) == {("a", at(1)): (2 * 1_001_000_000, 0, 0, 0, 0, 0)}


def test_nothing_of_a_failed_load_is_kept(tmp_path: Path) -> None:
    good = {"workload_id": "1", "account": "a", "gpus": 1, "started_at": at(1), "ended_at": at(1, 1)}
    load(tmp_path, [good], observed_until=at(2))
    before = (hourly(tmp_path), runs_held(tmp_path))

    with pytest.raises(EnvironmentTrouble, match="was left as it was"):
        load(
            tmp_path,
            [{**good, "workload_id": "2"}, {**good, "workload_id": "3", "gpus": 1e30}],
            observed_until=at(2),
        )

    assert (hourly(tmp_path), runs_held(tmp_path)) == before


def test_every_run_names_a_batch_on_record_and_a_line_of_its_file(tmp_path: Path) -> None:
    runs = [
        {"workload_id": str(number), "account": "a", "gpus": 1, "started_at": at(1), "ended_at": at(1, 1)}
        for number in "123"
    ]
    load(tmp_path, runs, observed_until=at(2))
    load(tmp_path, runs, observed_until=at(3))  # a later log of the same, finished runs
    load(tmp_path, [runs[0] | {"workload_id": "4"}], observed_until=at(4))

    with reading(tmp_path) as reader:
        rows = reader._connection.execute(
            "select workload_id, batch_id, line, accepted from core_run join batch using (batch_id) order by all"
        ).fetchall()

    assert rows == [("1", 1, 1, 3), ("2", 1, 2, 3), ("3", 1, 3, 3), ("4", 2, 1, 1)]
