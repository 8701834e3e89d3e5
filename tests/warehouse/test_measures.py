"""The store's answers, held against the rules of domain/ applied hour by hour."""

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_store import at, load

from gpupolicy.domain import BudgetTree, Node, Span, delivery
from gpupolicy.warehouse import GPU_NS_PER_GPU_H, measures, reading

SPAN = Span(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, 6, tzinfo=UTC))
TREE = BudgetTree(
    Node(
        "org",
        children=(
            Node("a", Fraction(1, 3), (Node("x", Fraction(2, 7)), Node("y", Fraction(5, 7)))),
            Node("b", Fraction(1, 7)),
        ),
    )
)
SIZE = {"host": "*", "gpus": 16, "valid_from": at(1)}


def gpu_h(hourly: pl.DataFrame, column: str) -> list[float]:
    return (hourly.group_by("hour").agg(pl.col(column).sum()).sort("hour")[column] / GPU_NS_PER_GPU_H).to_list()


def capacity_of(store: Path, span: Span = SPAN) -> pl.DataFrame:
    with reading(store) as reader:
        return measures.capacity(reader, span).hourly


a_run = st.fixed_dictionaries(
    {
        "account": st.sampled_from(["x", "y", "b", "a", "stranger"]),
        "gpus": st.sampled_from([1, 3, 8]),
        "is_charged": st.booleans(),
        "submitted": st.integers(0, 300),
        "wait": st.integers(0, 200),
        "length": st.integers(1, 300),
    }
)


def run_of(drawn: dict[str, int], number: int) -> dict[str, object]:
    submitted = at(1).timestamp() + 60 * drawn["submitted"]
    started = submitted + 60 * drawn["wait"]
    return {
        "workload_id": str(number),
        "account": drawn["account"],
        "gpus": drawn["gpus"],
        "is_charged": drawn["is_charged"],
        "submitted_at": datetime.fromtimestamp(submitted),  # noqa: DTZ006
        "started_at": datetime.fromtimestamp(started),  # noqa: DTZ006
        "ended_at": datetime.fromtimestamp(started + 60 * drawn["length"]),  # noqa: DTZ006
    }


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(a_run, min_size=1, max_size=8))
def test_sums_over_the_span_equal_the_rule_applied_hour_by_hour(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[dict[str, int]]
) -> None:
    store = tmp_path_factory.mktemp("store")
    load(store, [run_of(one, number) for number, one in enumerate(drawn)], hosts=[SIZE], observed_until=at(2))

    with reading(store) as reader:
        placing = measures.placing(reader, TREE)
        capacity = measures.capacity(reader, SPAN)
        fast = measures.deliveries(reader, TREE, span=SPAN, placing=placing, capacity=capacity)
        slow = {
            place.path: delivery(
                measures.node_hours(reader, TREE, place.path, span=SPAN, placing=placing, capacity=capacity)
            )
            for place in TREE.places
        }

    assert fast == slow


def test_a_parents_owed_is_not_the_sum_of_its_childrens(tmp_path: Path) -> None:
    busy = {"workload_id": "1", "account": "x", "gpus": 16, "started_at": at(1), "ended_at": at(1, 6)}
    load(tmp_path, [busy], hosts=[SIZE], observed_until=at(2))

    with reading(tmp_path) as reader:
        placing, capacity = measures.placing(reader, TREE), measures.capacity(reader, SPAN)
        of_nodes = measures.deliveries(reader, TREE, span=SPAN, placing=placing, capacity=capacity)

    assert of_nodes["org/a"].owed == Fraction(16 * 6, 3) * GPU_NS_PER_GPU_H
    assert of_nodes["org/a/x"].owed == Fraction(16 * 6 * 2, 21) * GPU_NS_PER_GPU_H
    assert of_nodes["org/a/y"].owed == 0


def test_usage_without_a_place_in_the_tree_is_listed_not_lost(tmp_path: Path) -> None:
    runs = [
        {"workload_id": "1", "account": "mystery", "gpus": 3, "started_at": at(1), "ended_at": at(1, 1)},
        {"workload_id": "2", "account": None, "gpus": 1, "started_at": at(1), "ended_at": at(1, 2)},
        {"workload_id": "3", "account": "b", "gpus": 2, "started_at": at(1), "ended_at": at(1, 1)},
    ]
    load(tmp_path, runs, hosts=[SIZE], observed_until=at(2))

    with reading(tmp_path) as reader:
        placing = measures.placing(reader, TREE)
        listed = measures.unmapped(reader, span=SPAN, placing=placing)

    assert [(one.account, one.held_gpu_ns // GPU_NS_PER_GPU_H) for one in listed] == [("mystery", 3), ("", 2)]


def test_capacity_follows_hosts_that_come_and_go(tmp_path: Path) -> None:
    hosts = [
        {"host": "n1", "gpus": 8, "valid_from": at(1)},
        {"host": "n2", "gpus": 8, "valid_from": at(1, 1, 30), "valid_to": at(1, 3)},
    ]
    load(tmp_path, hosts=hosts)

    hourly = capacity_of(tmp_path)

    assert gpu_h(hourly, "installed_gpu_ns") == [8, 12, 16, 8, 8, 8]
    assert gpu_h(hourly, "available_gpu_ns") == [8, 12, 16, 8, 8, 8]


def test_overlapping_outages_of_a_host_are_counted_once_and_draining_takes_nothing_away(
    tmp_path: Path,
) -> None:
    outages = [
        {"host": "n1", "state": "draining", "started_at": at(1), "ended_at": at(1, 1)},
        {"host": "n1", "state": "drained", "started_at": at(1, 1), "ended_at": at(1, 3)},
        {"host": "n1", "state": "down", "started_at": at(1, 2), "ended_at": at(1, 4, 30)},
        {"host": "n2", "state": "down", "started_at": at(1, 5), "ended_at": None},
    ]
    load(
        tmp_path,
        hosts=[{"host": name, "gpus": 8, "valid_from": at(1)} for name in ("n1", "n2")],
        outages=outages,
    )

    hourly = capacity_of(tmp_path)

    assert gpu_h(hourly, "installed_gpu_ns") == [16] * 6
    assert gpu_h(hourly, "available_gpu_ns") == [16, 8, 8, 8, 12, 8]


def test_an_outage_that_began_before_the_span_still_counts_in_it(tmp_path: Path) -> None:
    outage = {"host": "n1", "state": "down", "started_at": at(1), "ended_at": at(1, 3)}
    load(tmp_path, hosts=[{"host": "n1", "gpus": 8, "valid_from": datetime(2025, 1, 1)}], outages=[outage])

    later = Span(SPAN.starts_at.replace(hour=2), SPAN.ends_at)

    assert gpu_h(capacity_of(tmp_path, later), "available_gpu_ns") == [0, 8, 8, 8]


def test_a_size_gives_way_to_named_hosts_of_the_same_cluster(tmp_path: Path) -> None:
    load(tmp_path, hosts=[SIZE, {"host": "n1", "gpus": 8, "valid_from": at(1)}])

    assert gpu_h(capacity_of(tmp_path), "installed_gpu_ns") == [8] * 6


def test_a_size_that_is_listed_anew_replaces_the_one_before(tmp_path: Path) -> None:
    later = {"host": "*", "gpus": 32, "valid_from": at(1, 3)}
    load(tmp_path, hosts=[SIZE, later])

    assert gpu_h(capacity_of(tmp_path), "installed_gpu_ns") == [16, 16, 16, 32, 32, 32]


def test_a_gpu_type_is_one_type_however_it_is_spelt(tmp_path: Path) -> None:
    load(tmp_path, hosts=[{"host": "h1", "gpus": 8, "gpu_type": "h100", "valid_from": at(1)}])
    load(tmp_path, hosts=[{"host": "h1", "gpus": 4, "gpu_type": "H100", "valid_from": at(1, 2)}])

    assert gpu_h(capacity_of(tmp_path), "installed_gpu_ns") == [8, 8, 4, 4, 4, 4]


def test_an_outage_without_an_end_lasts_as_far_as_its_cluster_was_observed(tmp_path: Path) -> None:
    outage = {"host": "n1", "state": "down", "started_at": at(1, 1), "ended_at": None}
    run = {"workload_id": "1", "account": "b", "gpus": 1, "started_at": at(1), "ended_at": at(1, 1)}
    load(
        tmp_path,
        [run],
        hosts=[{"host": "n1", "gpus": 8, "valid_from": at(1)}],
        outages=[outage],
        observed_until=at(1, 3),
    )

    assert gpu_h(capacity_of(tmp_path), "available_gpu_ns") == [8, 0, 0, 8, 8, 8]


def test_the_cluster_observed_least_far_decides_unless_all_its_hosts_have_left(tmp_path: Path) -> None:
    run = {"workload_id": "1", "account": "b", "gpus": 1, "started_at": at(1), "ended_at": at(1, 1)}
    load(tmp_path, [run], hosts=[SIZE], observed_until=at(1, 4))
    load(tmp_path, [run | {"cluster": "d"}], hosts=[SIZE | {"cluster": "d"}], observed_until=at(1, 9))
    gone = SIZE | {"cluster": "old", "valid_to": at(1, 2)}
    load(tmp_path, [run | {"cluster": "old"}], hosts=[gone], observed_until=at(1, 2))

    with reading(tmp_path) as reader:
        extent = measures.extent(reader)

    assert extent is not None
    assert (extent.least_observed, extent.observed_until.hour) == ("c", 4)


def test_what_a_leaf_got_within_its_owed_is_divided_among_clusters_by_what_it_held_there(tmp_path: Path) -> None:
    run = {"workload_id": "1", "account": "b", "gpus": 3, "started_at": at(1), "ended_at": at(1, 1)}
    size = {"host": "*", "gpus": 7, "valid_from": at(1)}
    load(
        tmp_path, [run, run | {"cluster": "d", "gpus": 1}], hosts=[size, size | {"cluster": "d"}], observed_until=at(2)
    )

    with reading(tmp_path) as reader:
        placing, capacity = measures.placing(reader, TREE), measures.capacity(reader, SPAN)
        pyramids = measures.pyramids(reader, TREE, span=SPAN, placing=placing, capacity=capacity)

    # b may claim a seventh of 14 GPUs: 2 of the 4 it held, of which three quarters stood on c
    assert {name: one.served / GPU_NS_PER_GPU_H for name, one in pyramids.items()} == {
        "c": Fraction(3, 2),
        "d": Fraction(1, 2),
    }
