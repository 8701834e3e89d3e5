from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpupolicy.domain import Hour, delivery, hours

whole = st.integers(min_value=0, max_value=10**15)
a_share = st.fractions(min_value=0, max_value=1, max_denominator=1000)
an_hour = st.builds(Hour, entitled=st.fractions(min_value=0, max_value=10**15), demand=whole, charged=whole, free=whole)


def test_owed_is_the_entitlement_capped_at_demand_in_every_hour() -> None:
    assert Hour(Fraction(10), demand=4, charged=4).owed == 4
    assert Hour(Fraction(10), demand=20, charged=16).owed == 10
    assert Hour(Fraction(10), demand=0, charged=0).owed == 0


def test_an_hour_above_owed_does_not_make_up_for_one_below_in_the_strict_ratio() -> None:
    below = Hour(Fraction(10), demand=10, charged=5)
    above = Hour(Fraction(10), demand=20, charged=15)

    total = delivery([below, above])

    assert total.strict_ratio == Fraction(15, 20)
    assert total.net_ratio == 1
    assert total.raw_ratio == 1


def test_net_counts_delivery_only_up_to_the_entitlement_of_the_span() -> None:
    total = delivery([Hour(Fraction(10), demand=40, charged=30), Hour(Fraction(10), demand=40, charged=0)])

    assert total.net_ratio == 1
    assert total.raw_ratio == Fraction(30, 20)


def test_nothing_owed_has_no_ratio() -> None:
    total = delivery([Hour(Fraction(6), demand=0, charged=0, free=9)])

    assert (total.strict_ratio, total.net_ratio, total.raw_ratio) == (None, None, None)
    assert total.free == 9


def test_free_time_stands_beside_delivered_never_inside() -> None:
    total = delivery([Hour(Fraction(8), demand=8, charged=3, free=5)])

    assert (total.delivered, total.free) == (3, 5)
    assert total.strict_ratio == Fraction(3, 8)


@given(st.lists(an_hour, max_size=20))
def test_the_strict_ratio_lies_between_nothing_and_all(listed: list[Hour]) -> None:
    total = delivery(listed)

    assert total.delivered_of_owed <= total.owed <= total.entitled
    assert total.strict_ratio is None or 0 <= total.strict_ratio <= 1


@given(a_share, st.lists(st.tuples(whole, whole, whole, whole), max_size=20))
def test_hours_carry_each_series_to_its_place(share: Fraction, rows: list[tuple[int, int, int, int]]) -> None:
    available, demand, charged, free = ([row[place] for row in rows] for place in range(4))

    made = hours(share, available=available, demand=demand, charged=charged, free=free)

    assert [hour.entitled for hour in made] == [share * one for one in available]
    assert [(hour.demand, hour.charged, hour.free) for hour in made] == [row[1:] for row in rows]
