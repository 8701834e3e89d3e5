from fractions import Fraction

from gpupolicy.domain import BudgetTree, Node, Policy, Quarter
from gpupolicy.recommend import recommend_slurm


def policy(root: Node) -> Policy:
    return Policy(Quarter(2026, 4), BudgetTree(root), lookback_h=168)


def test_the_half_life_matches_the_lookback_by_mean_age() -> None:
    weights = recommend_slurm(policy(Node("org")))

    assert weights.slurm_conf["PriorityDecayHalfLife"] == "2-10:13:28"
    assert round(weights.half_life_of_equal_weight_h / 24, 2) == 4.85


def test_the_rounding_error_of_each_node_is_told() -> None:
    thirds = Node("org", children=tuple(Node(name, Fraction(1, 3)) for name in "abc"))

    weights = recommend_slurm(policy(thirds), scale=100)

    assert {one.path: one.shares for one in weights.associations} == {
        "org": 100,
        "org/a": 34,
        "org/b": 33,
        "org/c": 33,
    }
    assert weights.rounding_errors["org/a"] == Fraction(34, 100) - Fraction(1, 3)
    assert sum(weights.rounding_errors.values()) == 0


def test_what_slurm_cannot_hold_back_is_said() -> None:
    weights = recommend_slurm(policy(Node("org", children=(Node("a", Fraction(1, 2)), Node("b", Fraction(0))))))

    assert any("org keep unassigned cannot be held back" in one for one in weights.cannot_express)
    assert any("A share of 0 starves in Slurm: org/b" in one for one in weights.cannot_express)
    assert any("forgets it after 7 days" in one for one in weights.cannot_express)
