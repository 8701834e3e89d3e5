from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupolicy.domain import (
    BudgetTree,
    Node,
    half_life_of_equal_mean_age_h,
    half_life_of_equal_weight_h,
    largest_remainder,
    whole_shares,
)


def test_whole_numbers_sum_to_the_total_and_leftovers_go_to_the_largest_remainder() -> None:
    assert largest_remainder({"a": Fraction(35), "b": Fraction(25), "c": Fraction(40)}, 10_000) == {
        "a": 3500,
        "b": 2500,
        "c": 4000,
    }
    assert largest_remainder({"a": Fraction(1, 2), "b": Fraction(3, 10), "c": Fraction(1, 5)}, 9) == {
        "a": 4,
        "b": 3,
        "c": 2,
    }


def test_equal_remainders_go_to_the_larger_weight_and_then_by_name() -> None:
    assert largest_remainder({"z": Fraction(1), "a": Fraction(1), "m": Fraction(1)}, 10) == {
        "z": 3,
        "a": 4,
        "m": 3,
    }
    assert largest_remainder({"a": Fraction(1, 4), "b": Fraction(3, 4)}, 2) == {"a": 0, "b": 2}


def test_a_weight_of_nothing_gets_nothing() -> None:
    assert largest_remainder({"a": Fraction(0), "b": Fraction(1)}, 7) == {"a": 0, "b": 7}
    assert largest_remainder({"a": Fraction(0)}, 7) == {"a": 0}


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.fractions(0, 10, max_denominator=97), min_size=1),
    st.integers(0, 10_000),
)
def test_each_number_is_within_one_of_the_exact_part(weights: dict[str, Fraction], total: int) -> None:
    whole = largest_remainder(weights, total)
    all_weights = sum(weights.values())

    if all_weights == 0:
        assert set(whole.values()) == {0}
    else:
        assert sum(whole.values()) == total
        assert all(abs(whole[name] - weights[name] * total / all_weights) < 1 for name in weights)


def test_shares_of_siblings_sum_to_the_scale_at_every_level() -> None:
    thirds = tuple(Node(name, Fraction(1, 3)) for name in "xyz")
    tree = BudgetTree(Node("org", children=(Node("a", Fraction(2, 3), thirds), Node("b", Fraction(1, 3)))))

    assert whole_shares(tree, 1000) == {
        "org": 1000,
        "org/a": 667,
        "org/b": 333,
        "org/a/x": 334,
        "org/a/y": 333,
        "org/a/z": 333,
    }


def test_what_a_parent_keeps_is_left_out_of_its_childrens_sum() -> None:
    tree = BudgetTree(Node("org", children=(Node("a", Fraction(1, 2)), Node("b", Fraction(2, 5)))))

    assert whole_shares(tree, 10) == {"org": 10, "org/a": 5, "org/b": 4}


def test_seven_days_are_a_half_life_of_two_and_a_half_or_five() -> None:
    assert half_life_of_equal_mean_age_h(7 * 24) / 24 == pytest.approx(2.426, abs=5e-4)
    assert half_life_of_equal_weight_h(7 * 24) / 24 == pytest.approx(4.852, abs=5e-4)
