"""Waits by class and node, against a slow, obvious twin."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_store import at, load

from gpupolicy.domain import BudgetTree, Node, Span
from gpupolicy.warehouse import measures, reading

SPAN = Span(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
TREE = BudgetTree(Node("org", children=(Node("a", Fraction(1, 2)), Node("b", Fraction(1, 2)))))
TAKEN = at(1, 12)


def waits_of(store: Path, runs: list[dict[str, Any]], labels: dict[str, str] | None = None) -> pl.DataFrame:
    load(store, runs, observed_until=TAKEN)
    with reading(store) as reader:
        shown = labels or dict.fromkeys(("org", "org/a", "org/b"), "org")
        return measures.waits(reader, span=SPAN, placing=measures.placing(reader, TREE), labels=shown)


def run(name: str, eligible: int | None, started: int | None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A run of account a, in minutes of the first of March; it ends an hour after its start."""
    moment = None if eligible is None else at(1) + timedelta(minutes=eligible)
    times = {"submitted_at": at(1), "eligible_at": moment}
    if started is not None:
        start = at(1) + timedelta(minutes=started)
        times |= {"started_at": start, "ended_at": start + timedelta(hours=1)}
    return {"workload_id": name, "account": "a", "gpus": 1, "minimum_runtime_s": 3600} | times | more


def row_of(frame: pl.DataFrame, label: str = "org", kind: str | None = None) -> dict[str, Any]:
    is_kind = pl.col("class").is_null() if kind is None else pl.col("class") == kind
    (row,) = frame.filter((pl.col("label") == label) & is_kind).to_dicts()
    return row


def test_waiting_starts_when_a_workload_may_run(tmp_path: Path) -> None:
    runs = [
        run("A", 0, 10),
        run("B", 240, 245),
        run("held", None, None, ended_at=at(1, 8)),
        run("cancelled", 60, None, ended_at=at(1, 1, 30)),
        run("E", None, 20),  # no moment of eligibility: from submission
        run("F", 61, 60),  # clocks that disagree: no wait
    ]

    row = row_of(waits_of(tmp_path, runs))

    # the waits of case ti-07, which are 0, 5, 10 and 20 minutes
    assert (row["started"], row["never_started"]) == (4, 1)
    assert (row["p50_s"], row["p90_s"], row["longest_s"]) == pytest.approx((450, 1020, 1200))
    assert row["longest_unstarted_s"] == 1800


def test_waits_after_a_requeue_are_counted_apart(tmp_path: Path) -> None:
    first = run("501", 0, 60)
    second = run("501", 122, 130) | {"submitted_at": at(1, 2)}

    row = row_of(waits_of(tmp_path, [first, second]))

    assert (row["started"], row["restarted"]) == (1, 1)
    assert (row["p50_s"], row["requeue_p50_s"]) == (3600, 480)


def test_each_class_of_work_has_its_row(tmp_path: Path) -> None:
    runs = [
        run("debug", 0, 1, gpus=8, minimum_runtime_s=900),
        run("small", 0, 2, gpus=8, minimum_runtime_s=901),
        run("large", 0, 3, gpus=9),
        run("notebook", 0, 4, partition="interactive"),
        run("free", 0, 5, is_charged=False),
        run("short, without a contract", 0, 6, minimum_runtime_s=None, ended_at=at(1, 0, 20)),
    ]

    frame = waits_of(tmp_path, runs).filter(pl.col("class").is_not_null())

    assert dict(frame.select("class", "started").iter_rows()) == {
        "debug": 2,
        "free": 1,
        "interactive": 1,
        "large": 1,
        "small": 1,
    }


def test_each_node_is_shown_under_its_label_and_strangers_apart(tmp_path: Path) -> None:
    runs = [run("1", 0, 1), run("2", 0, 2, account="b"), run("3", 0, 3, account="stranger")]

    frame = waits_of(tmp_path, runs, {"org/a": "A"})

    assert row_of(frame, "A")["p50_s"] == 60
    assert row_of(frame, "(not in the tree)")["p50_s"] == 180
    assert frame["label"].unique().sort().to_list() == ["(not in the tree)", "A"]


def censored_quantile(waits: list[tuple[int, bool]], part: float) -> float | None:
    """The twin: the product-limit estimate, one moment after the other."""
    surviving = Fraction(1)
    for moment in sorted({wait for wait, has_started in waits if has_started}):
        at_risk = sum(wait >= moment for wait, _ in waits)
        started = sum(wait == moment and has_started for wait, has_started in waits)
        surviving *= 1 - Fraction(started, at_risk)
        if surviving <= Fraction(str(part)):
            return moment * 60
    return None


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 600), st.booleans()), min_size=1, max_size=12))
def test_those_who_still_wait_are_taken_in_with_the_time_they_have_waited(
    tmp_path_factory: pytest.TempPathFactory, waits: list[tuple[int, bool]]
) -> None:
    runs = [
        run(
            str(number),
            0,
            wait if has_started else None,
            **({} if has_started else {"ended_at": at(1) + timedelta(minutes=wait)}),
        )
        for number, (wait, has_started) in enumerate(waits)
    ]

    row = row_of(waits_of(tmp_path_factory.mktemp("store"), runs))

    assert row["p50_censored_s"] == censored_quantile(waits, 0.5)
    assert row["p90_censored_s"] == censored_quantile(waits, 0.1)
