"""The field cases of capacity as far as reading goes, lists of hosts, and what sacctmgr says of them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from ingest_cases import check, expectations

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest import host_lists, host_names, load_mapping, read_capacity, read_table
from gpupolicy.ingest.host_names import MOST_HOSTS
from gpupolicy.ingest.host_states import outage_state


def hour(of_day: int) -> datetime:
    return datetime(2026, 3, 1, of_day)


@pytest.fixture
def case(shared: Path) -> Path:
    return shared / "cases" / "capacity"


def test_groups_of_hosts_that_come_later_are_there_from_then_on(case: Path) -> None:
    reading = read_capacity(case / "ca-01-nodes-added" / "capacity.csv", cluster="c")

    assert reading.hosts.select("host", "gpus", "valid_from", "valid_to").rows() == [
        ("base", 80, datetime(2026, 1, 1), None),
        ("new", 16, datetime(2026, 3, 16), None),
    ]


def test_a_host_drains_under_a_job_and_goes_down(case: Path, repository: Path) -> None:
    folder = case / "ca-02-draining-then-down"
    outages = read_capacity(folder / "input_events.csv", cluster="c").outages
    hosts = read_capacity(folder / "nodes.csv", cluster="c").hosts
    ((path, expected), *_) = expectations(folder)
    reading = read_table(path, load_mapping(repository / "data/mappings/generic.yaml"), cluster="c")

    assert outages.select("host", "state", "started_at", "ended_at").rows() == [
        ("n1", "draining", hour(10), hour(12)),
        ("n1", "down", hour(12), hour(15)),
    ]
    assert hosts.select("host", "gpus").rows() == [("n1", 8), ("n2", 8)]
    assert [host_names(hosts) for hosts in reading.runs["hosts"]] == [["n1"]]
    check(reading, expected)


def test_events_of_one_host_may_overlap(case: Path) -> None:
    outages = read_capacity(case / "ca-03-overlapping-node-events" / "input_events.csv", cluster="c").outages

    assert outages.select("state", "started_at", "ended_at").rows() == [
        ("down", hour(10), hour(14)),
        ("drained", hour(12), hour(16)),
        ("down", hour(13), hour(15)),
    ]


def test_more_may_be_used_than_there_is(case: Path, repository: Path) -> None:
    folder = case / "ca-04-more-used-than-exists"
    generic = load_mapping(repository / "data/mappings/generic.yaml")

    for path, expected in expectations(folder):
        check(read_table(path, generic, cluster="c"), expected)
    assert read_capacity(folder / "capacity.csv", cluster="c").hosts.select("host", "gpus").rows() == [("*", 8)]


def test_events_of_a_real_slurm_have_reasons_with_bars(shared: Path) -> None:
    reading = read_capacity(shared / "slurm/captures/sacctmgr-event.psv", cluster=None, timezone="UTC")

    assert reading.outages.select("cluster", "host", "state", "ended_at", "reason", "line").rows() == [
        ("testcluster", "n3", "drained", datetime(2026, 12, 1, 3, 16, 35), "firmware, see ticket | 12", 3),
        ("testcluster", "n4", "down", datetime(2026, 12, 1, 3, 15, 56), "GPU fell off the bus", 4),
    ]
    assert reading.ignored.rows() == [("no_outage", 1, 2)]  # the cluster's own row


def test_bars_and_quotes_belong_to_the_reason_and_too_few_fields_are_no_row(tmp_path: Path) -> None:
    (tmp_path / "events.psv").write_text(
        "NodeName|TimeStart|TimeEnd|State|Reason|User\n"
        'n1|2026-03-01T10:00:00|Unknown|DOWN*|"half | a || quote|root\n'
        "n2|2026-03-01T10:00:00|DOWN\n"
    )
    reading = read_capacity(tmp_path / "events.psv", cluster="c", timezone="UTC")

    assert reading.outages.select("host", "ended_at", "reason").rows() == [("n1", None, '"half | a || quote')]
    assert reading.rejected.select("line", "reason").rows() == [(3, "wrong_field_count")]


def test_a_row_may_name_several_hosts(tmp_path: Path) -> None:
    rows = ["n[1-3],8,h100", '"g[01-02],x",4,b200', "n[1,8,h100", "n3,8,h100"]
    (tmp_path / "hosts.csv").write_text("\n".join(["host,gpus,gpu_type", *rows]) + "\n")
    reading = read_capacity(tmp_path / "hosts.csv", cluster="c")

    assert reading.hosts.select("host", "gpus", "line").rows() == [
        ("n1", 8, 2), ("n2", 8, 2), ("n3", 8, 2), ("g01", 4, 3), ("g02", 4, 3), ("x", 4, 3),
    ]  # fmt: skip
    assert reading.rejected.select("line", "reason").rows() == [(4, "bad_host")]
    assert reading.ignored.rows() == [("duplicate_record", 1, 5)]  # n3 again


@pytest.mark.parametrize(
    ("nodelist", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3,07],gpu", ["n1", "n2", "n3", "n07", "gpu"]),
        ("a[008-011]", ["a008", "a009", "a010", "a011"]),
        ("r[1-2]n[1-2]-ib", ["r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"]),
        ("n1, n2", ["n1", "n2"]),
        *((nobody, []) for nobody in (None, "", "None assigned", "(null)")),
    ],
)
def test_a_list_of_hosts_is_the_names_it_stands_for(nodelist: str | None, names: list[str]) -> None:
    assert host_names(nodelist) == names


@pytest.mark.parametrize("text", ["n[1", "n1]", "n[a-b]", "n[3-1]", "n[]", ",n1", "n1,,n2", f"n[1-{MOST_HOSTS + 1}]",
                                  "n[1-9999]m[1-9999]"])  # fmt: skip
def test_what_is_no_list_of_hosts_is_refused_and_null_in_a_column(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no list of hosts; write it like"):
        host_names(text)
    assert host_lists(pl.Series([text, "n[1-2]", None, "n[1-2]"])).to_list() == [None, ["n1", "n2"], None, ["n1", "n2"]]


def test_a_dollar_marks_a_reservation_for_maintenance() -> None:
    assert [outage_state(state) for state in ("IDLE$", "MIXED$", "DOWN$", "idle*")] == [
        "maintenance", "maintenance", "down", "up",
    ]  # fmt: skip
