from datetime import UTC, datetime

import pytest

from gpupolicy.domain import (
    Contract,
    Quarter,
    Span,
    lookback_span,
    parse_quarter,
    protected_s,
    quarter_of,
    workload_class,
)
from gpupolicy.errors import InvalidInput


def test_a_quarter_ends_where_the_next_begins() -> None:
    assert parse_quarter("2026Q4") == parse_quarter("2026-q4") == Quarter(2026, 4)
    assert Quarter(2026, 4).ends_at == Quarter(2027, 1).starts_at == datetime(2027, 1, 1, tzinfo=UTC)
    assert [Quarter(2026, number).hours for number in (1, 2, 3, 4)] == [2160, 2184, 2208, 2208]


def test_a_moment_belongs_to_the_quarter_it_starts() -> None:
    assert quarter_of(datetime(2026, 10, 1, tzinfo=UTC)) == Quarter(2026, 4)
    assert quarter_of(datetime(2026, 9, 30, 23, 59, 59, tzinfo=UTC)) == Quarter(2026, 3)


def test_what_is_no_quarter_is_refused_with_the_form() -> None:
    with pytest.raises(InvalidInput, match="write it like 2026Q4"):
        parse_quarter("2026Q5")


def test_a_lookback_holds_exactly_as_many_hours_as_it_has() -> None:
    span = lookback_span(datetime(2026, 3, 15, 10, 42, tzinfo=UTC), 168)

    assert span == Span(datetime(2026, 3, 8, 10, tzinfo=UTC), datetime(2026, 3, 15, 10, tzinfo=UTC))
    assert span.hours == 168


def test_an_empty_span_and_one_off_the_hour_are_refused() -> None:
    ten = datetime(2026, 3, 1, 10, tzinfo=UTC)

    with pytest.raises(InvalidInput, match="is empty"):
        Span(ten, ten)
    with pytest.raises(InvalidInput, match="full hour"):
        Span(ten, ten.replace(hour=11, minute=30))


def test_protection_ends_at_the_cap() -> None:
    assert protected_s(Contract(minimum_runtime_s=600), cap_s=8 * 3600) == 600
    assert protected_s(Contract(minimum_runtime_s=90_000), cap_s=8 * 3600) == 28_800


@pytest.mark.parametrize(
    ("gpus", "minimum_runtime_s", "is_interactive", "expected"),
    [
        (1, 0, False, "free"),
        (1, 0, True, "free"),
        (1, 3600, True, "interactive"),
        (8, 900, False, "debug"),
        (9, 900, False, "large"),
        (8, 901, False, "small"),
        (64, 28_800, False, "large"),
    ],
)
def test_the_class_of_a_workload(gpus: int, minimum_runtime_s: int, is_interactive: bool, expected: str) -> None:
    assert workload_class(gpus, Contract(minimum_runtime_s), is_interactive=is_interactive) == expected
