from fractions import Fraction

import pytest

from gpupolicy.domain import BudgetTree, Node, whole_shares
from gpupolicy.errors import UnsafeExport
from gpupolicy.schedulers.slurm import (
    associations,
    render_duration,
    render_load_file,
    slurm_name,
    slurm_share,
)


def tree(*names: str) -> BudgetTree:
    return BudgetTree(Node("org", children=tuple(Node(name, Fraction(1, len(names))) for name in names)))


def test_the_load_file_names_every_parent_and_sets_whole_shares() -> None:
    people = (
        Node("Ada", Fraction(2, 3), is_researcher=True),
        Node("ben", Fraction(1, 3), is_researcher=True),
    )
    program = Node("language", Fraction(1, 2), (Node("pretraining", Fraction(7, 10), people, accounts=("pretrain",)),))
    budget = BudgetTree(Node("institute", children=(program, Node("vision", Fraction(1, 2)))))

    text = render_load_file("jupiter", associations(budget, whole_shares(budget, 100)), comment=["of 2026Q4"])

    assert text == (
        "# of 2026Q4\n"
        "Cluster - 'jupiter'\n"
        "Parent - 'root'\n"
        "Account - 'institute':Fairshare=100\n"
        "Parent - 'institute'\n"
        "Account - 'language':Fairshare=50\n"
        "Account - 'vision':Fairshare=50\n"
        "Parent - 'language'\n"
        "Account - 'pretrain':Fairshare=70\n"
        "Parent - 'pretrain'\n"
        "User - 'ada':Fairshare=67\n"
        "User - 'ben':Fairshare=33\n"
    )


def test_all_names_that_must_not_reach_sacctmgr_are_told_at_once() -> None:
    budget = tree("ml lab", "a=b", "fine", "root")

    with pytest.raises(UnsafeExport) as refused:
        associations(budget, whole_shares(budget, 100))

    assert [fault.split(":")[0] for fault in refused.value.faults] == ["org/ml lab", "org/a=b", "org/root"]


def test_names_that_differ_only_in_case_collide() -> None:
    budget = tree("NLP", "nlp", "vision")

    with pytest.raises(UnsafeExport, match="name_collision: org/NLP and org/nlp would all be 'nlp' in Slurm"):
        associations(budget, whole_shares(budget, 100))


def test_one_user_may_stand_in_two_accounts_but_an_account_only_once() -> None:
    ada = Node("ada", Fraction(1), is_researcher=True)
    budget = BudgetTree(Node("org", children=(Node("a", Fraction(1, 2), (ada,)), Node("b", Fraction(1, 2), (ada,)))))

    made = associations(budget, whole_shares(budget, 10))

    assert [(one.parent, one.name) for one in made if one.is_user] == [("a", "ada"), ("b", "ada")]


def test_siblings_together_stay_below_what_slurm_can_add() -> None:
    budget = tree("a", "b", "c")

    with pytest.raises(UnsafeExport, match="sum to 6442450938; Slurm needs less than 4294967296"):
        associations(budget, dict.fromkeys((place.path for place in budget.places), 2**31 - 2))


@pytest.mark.parametrize(("raw", "number"), [("0", 0), ("1", 1), ("65534", 65_534), ("2147483646", 2_147_483_646)])
def test_whole_numbers_up_to_the_largest_pass(raw: str, number: int) -> None:
    assert slurm_share(raw) == number


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("0.35", "not_whole"),
        ("12abc", "not_whole"),
        ("", "not_whole"),
        ("-1", "negative"),
        ("2147483647", "means_parent"),
        ("4294967300", "too_large"),
    ],
)
def test_numbers_that_sacctmgr_would_misread_are_refused(raw: str, reason: str) -> None:
    with pytest.raises(UnsafeExport, match=reason):
        slurm_share(raw)


def test_names_are_folded_to_lower_case() -> None:
    assert slurm_name("NLP-2.old_one") == "nlp-2.old_one"


def test_durations_are_written_as_slurm_conf_wants_them() -> None:
    assert render_duration(58.224) == "2-10:13:26"
    assert render_duration(0.5) == "0-00:30:00"
