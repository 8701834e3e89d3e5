"""Capacity files: a cluster's size, its hosts, and when they were away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, read_capacity
from gpupolicy.ingest.host_states import outage_state

Capacity = Callable[..., Reading]

JANUARY, MARCH = datetime(2026, 1, 1), datetime(2026, 3, 1)


@pytest.fixture
def capacity(tmp_path: Path) -> Capacity:
    def read(text: str, *, cluster: str | None = "c", **options: object) -> Reading:
        (tmp_path / "capacity.csv").write_text(text)
        return read_capacity(tmp_path / "capacity.csv", cluster=cluster, **options)  # type: ignore[arg-type]

    return read


def test_a_size_over_time_is_a_host_without_a_name(capacity: Capacity) -> None:
    reading = capacity("gpus,valid_from,valid_to\n80,2026-01-01T00:00:00Z,2026-03-01\n96,2026-03-01,\n", timezone="UTC")

    assert reading.hosts.rows() == [
        ("c", "*", None, 80, JANUARY, MARCH, 2),
        ("c", "*", None, 96, MARCH, None, 3),
    ]


def test_hosts_have_gpus_of_a_type_and_a_cluster_of_their_own(capacity: Capacity) -> None:
    reading = capacity(
        "cluster,host,gpu_type,gpus,valid_from,valid_to\njupiter,n1,h100,8,2026-01-01T00:00:00Z,\nmars,n1,,4,,\n",
        cluster=None,
    )

    assert reading.hosts.rows() == [
        ("jupiter", "n1", "h100", 8, JANUARY, None, 2),
        ("mars", "n1", None, 4, datetime(1970, 1, 1), None, 3),
    ]
    assert reading.observed_until == JANUARY


def test_outages_have_a_state_a_span_and_a_reason(capacity: Capacity) -> None:
    reading = capacity(
        "node,state,start,end,reason\n"
        'n1,DOWN*+DRAIN,2026-01-01T00:00:00Z,2026-03-01T00:00:00Z,"dead, again"\n'
        "n1,MIXED+DRAIN,2026-03-01T00:00:00Z,,\n"
        "n1,IDLE,2026-01-01T00:00:00Z,,\n"
    )

    assert reading.outages.rows() == [
        ("c", "n1", "down", JANUARY, MARCH, "dead, again", 2),
        ("c", "n1", "draining", MARCH, None, None, 3),
    ]
    assert reading.ignored.rows() == [("no_outage", 1, 4)]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("DOWN", "down"), ("down*", "down"), ("DOWN*+DRAIN", "down"), ("IDLE+FAIL", "down"),
        ("DRAIN", "drained"), ("drained", "drained"), ("IDLE+DRAIN", "drained"),
        ("MIXED+DRAIN", "draining"), ("draining", "draining"), ("ALLOCATED+DRAIN", "draining"),
        ("MAINT", "maintenance"), ("IDLE+MAINTENANCE", "maintenance"), ("IDLE+MAINT+DRAIN", "drained"),
        ("IDLE", "up"), ("MIXED+CLOUD", "up"), ("ALLOCATED", "up"),
        ("WOBBLING", None), ("DOWN+WOBBLING", None), ("", None),
    ],
)  # fmt: skip
def test_compound_states_are_read_to_the_last_word(text: str, state: str | None) -> None:
    assert outage_state(text) == state


def test_rows_that_cannot_be_trusted_are_rejected_with_reason_and_text(capacity: Capacity) -> None:
    hosts = capacity("host,gpus,valid_from,valid_to\nn1,eight,,\nn2,,,\n,8,,\nn4,8,soon,\nn5,8\n")
    outages = capacity(
        "host,state,start,end\nn1,WOBBLING,2026-01-01T00:00:00Z,\nn1,DOWN,,\n"
        "n1,DOWN,2026-03-01T00:00:00Z,2026-01-01T00:00:00Z\nn1,DOWN,2026-01-01,\n"
    )

    assert hosts.rejected["reason"].sort().to_list() == [
        "bad_number", "bad_time", "missing_value", "missing_value", "wrong_field_count",
    ]  # fmt: skip
    assert outages.rejected.select("line", "reason").rows() == [
        (2, "unknown_state"),
        (3, "missing_value"),
        (4, "end_before_start"),
        (5, "naive_without_timezone"),
    ]
    assert outages.rejected["text"][0] == "n1,WOBBLING,2026-01-01T00:00:00Z,"


def test_a_row_that_stands_twice_is_one(capacity: Capacity) -> None:
    reading = capacity("host,gpus\nn1,8\nn1,8\nn2,8\n")

    assert reading.hosts["host"].to_list() == ["n1", "n2"]
    assert reading.ignored.rows() == [("duplicate_record", 1, 3)]
    assert reading.rows_read == 3


@pytest.mark.parametrize("header", ["job_id,account,node,gpus,start,end", "gpus", "host,state", "a,b"])
def test_another_form_is_refused_with_the_three_that_are_known(capacity: Capacity, header: str) -> None:
    with pytest.raises(UnreadableLog) as refused:
        capacity(f"{header}\n")

    message = str(refused.value)
    assert f"capacity.csv: unknown_form: its header is {', '.join(header.split(','))}" in message
    assert all(form in message for form in ("gpus,valid_from,valid_to", "host,gpus[", "host,state,start,end"))


def test_without_a_cluster_in_file_or_call_nothing_is_read(capacity: Capacity) -> None:
    with pytest.raises(UnreadableLog, match="name it with --cluster"):
        capacity("host,gpus\nn1,8\n", cluster=None)
