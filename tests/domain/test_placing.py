from fractions import Fraction

from gpupolicy.domain import BudgetTree, Node, placements


def tree() -> BudgetTree:
    people = (
        Node("ada", Fraction(1, 2), is_researcher=True),
        Node("ben", Fraction(1, 2), accounts=("bmoore",)),
    )
    nlp = Node("nlp", Fraction(1, 2), (Node("ML-Lab", Fraction(1, 2), people), Node("eval", Fraction(1, 2))))
    vision = Node("vision", Fraction(1, 2), (Node("eval", Fraction(1)),))
    return BudgetTree(Node("org", children=(nlp, vision)))


def test_the_account_names_the_node_and_the_user_the_researcher_below_it() -> None:
    placed = placements(tree(), [("ml-lab", "ada"), ("ML-LAB", "bmoore"), ("ml-lab", "guest")])

    assert placed == {
        ("ml-lab", "ada"): "org/nlp/ML-Lab/ada",
        ("ML-LAB", "bmoore"): "org/nlp/ML-Lab/ben",
        ("ml-lab", "guest"): "org/nlp/ML-Lab",
    }


def test_a_name_that_fits_two_nodes_is_told_by_its_path_or_not_at_all() -> None:
    placed = placements(tree(), [("eval", ""), ("org/vision/eval", "")])  # case tr-01

    assert placed == {("eval", ""): None, ("org/vision/eval", ""): "org/vision/eval"}


def test_without_an_account_the_user_alone_may_tell() -> None:
    assert placements(tree(), [("", "ada"), ("", "stranger"), ("", "")]) == {
        ("", "ada"): "org/nlp/ML-Lab/ada",
        ("", "stranger"): None,
        ("", ""): None,
    }


def test_a_known_user_does_not_make_up_for_an_unknown_account() -> None:
    assert placements(tree(), [("mystery", "ada")]) == {("mystery", "ada"): None}  # case tr-07
