from fractions import Fraction

from gpupolicy.domain import Pyramid


def test_each_ratio_is_of_the_one_before_it() -> None:
    one = Pyramid(
        installed=200,
        available=160,
        occupied=120,
        served=Fraction(90),
        demand=320,
        measured=60,
        used=Fraction(30),
    )

    assert one.availability == Fraction(8, 10)
    assert one.occupancy == Fraction(3, 4)
    assert one.impact == Fraction(3, 4)
    assert one.utilization == Fraction(1, 2)
    assert one.oversubscription == 2


def test_what_was_not_measured_has_no_value() -> None:
    empty = Pyramid(installed=0, available=0, occupied=0, served=Fraction(0), demand=0)

    assert (empty.availability, empty.occupancy, empty.impact, empty.utilization) == (None, None, None, None)
