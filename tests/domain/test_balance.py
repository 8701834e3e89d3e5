from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpupolicy.domain import BudgetTree, Node, balance, balances, level_fair_share, queue_order


def test_balance_is_charged_over_entitled_time() -> None:
    assert balance(120, Fraction(1, 2), 2688) == Fraction(120, 1344)
    assert balance(0, Fraction(1, 5), 2688) == 0


def test_nothing_entitled_has_no_balance() -> None:
    assert balance(10, Fraction(0), 2688) is None
    assert balance(10, Fraction(1, 2), 0) is None


def test_a_team_that_used_half_of_its_claim_goes_before_one_that_used_all() -> None:
    tree = BudgetTree(Node("lab", children=(Node("language", Fraction(1, 2)), Node("vision", Fraction(1, 2)))))

    by_path = balances(tree, {"lab/language": 500, "lab/vision": 250}, 1000)

    assert [place.path for place in queue_order(tree, by_path)] == ["lab/vision", "lab/language"]


def test_an_under_served_researcher_of_an_over_served_program_waits_for_the_other_program() -> None:
    hungry = Node("hungry", Fraction(1, 2))
    a = Node("a", Fraction(1, 2), (hungry, Node("hog", Fraction(1, 2))))
    tree = BudgetTree(Node("org", children=(a, Node("b", Fraction(1, 2)))))

    by_path = balances(tree, {"org/a/hog": 900, "org/a": 900, "org/b": 400}, 1000)

    assert [place.path for place in queue_order(tree, by_path)] == ["org/b", "org/a/hungry", "org/a/hog"]


def test_nodes_without_entitlement_go_last_and_ties_go_by_path() -> None:
    names = {"z": Fraction(1, 2), "a": Fraction(1, 2), "nothing": Fraction(0)}
    tree = BudgetTree(Node("org", children=tuple(Node(name, share) for name, share in names.items())))

    order = queue_order(tree, balances(tree, {}, 1000))

    assert [place.path for place in order] == ["org/a", "org/z", "org/nothing"]


@given(st.lists(st.integers(0, 10**9), min_size=3, max_size=3), st.permutations([0, 1, 2]))
def test_the_order_does_not_depend_on_how_the_tree_is_written(used: list[int], written: list[int]) -> None:
    nodes = [Node(f"n{index}", Fraction(1, 3)) for index in range(3)]
    charged = {f"org/n{index}": amount for index, amount in enumerate(used)}
    as_listed = BudgetTree(Node("org", children=tuple(nodes)))
    shuffled = BudgetTree(Node("org", children=tuple(nodes[index] for index in written)))

    first = queue_order(as_listed, balances(as_listed, charged, 10**9))
    second = queue_order(shuffled, balances(shuffled, charged, 10**9))

    assert [place.path for place in first] == [place.path for place in second]


def test_level_fair_share_is_slurms_and_high_goes_first() -> None:
    level = {"siblings_share": Fraction(1), "siblings_usage": 168}

    assert level_fair_share(Fraction(1, 2), 120, **level) == Fraction(7, 10)  # case fs-07
    assert level_fair_share(Fraction(1, 5), 0, **level) is None, "infinite"
    assert level_fair_share(Fraction(0), 0, **level) == 0
