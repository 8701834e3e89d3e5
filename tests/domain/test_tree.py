from fractions import Fraction

import pytest

from gpupolicy.domain import BudgetTree, Node, unassigned
from gpupolicy.errors import UnknownNode


def institute() -> BudgetTree:
    a1 = Node("a1", Fraction(7, 10), (Node("ada", Fraction(1, 2), is_researcher=True),))
    a = Node("a", Fraction(1, 2), (a1, Node("eval", Fraction(3, 10))))
    b = Node("b", Fraction(1, 4), (Node("eval", Fraction(1)),))
    return BudgetTree(Node("org", children=(a, b)))


def test_a_leaf_is_entitled_to_the_product_of_the_shares_on_its_path() -> None:
    # the brief's example: half of the organization, seven tenths of the program
    assert institute()["org/a/a1"].entitlement == Fraction(35, 100)
    assert institute()["org/a/a1/ada"].entitlement == Fraction(35, 200)


def test_what_siblings_leave_is_unassigned() -> None:
    tree = institute()

    assert unassigned(tree.root) == Fraction(1, 4)
    assert unassigned(tree["org/a"].node) == 0
    assert unassigned(tree["org/a/eval"].node) == 0, "a leaf has nothing to divide"


def test_a_node_is_found_by_its_path_a_part_of_it_or_a_name_only_it_bears() -> None:
    tree = institute()

    assert tree.find("org/a/a1").path == "org/a/a1"
    assert tree.find("a/eval").path == "org/a/eval"
    assert tree.find("ada").path == "org/a/a1/ada"
    assert tree.find("org").path == "org"


def test_a_name_that_two_nodes_bear_is_never_guessed() -> None:
    with pytest.raises(UnknownNode, match="name of 2 nodes, give a path: org/a/eval, org/b/eval"):
        institute().find("eval")


def test_an_unknown_node_names_the_nearest() -> None:
    with pytest.raises(UnknownNode, match="did you mean org/a/a1/ada"):
        institute().find("Ada")


def test_leaves_and_subtrees_are_told_by_place_not_by_how_a_name_begins() -> None:
    tree = BudgetTree(Node("org", children=(Node("a", Fraction(1, 2), (Node("x"),)), Node("ab", Fraction(1, 2)))))

    assert [place.path for place in tree.leaves()] == ["org/a/x", "org/ab"]
    assert [place.path for place in tree.subtree("org/a")] == ["org/a", "org/a/x"]
    assert [place.path for place in tree.path_to("org/a/x")] == ["org", "org/a", "org/a/x"]
