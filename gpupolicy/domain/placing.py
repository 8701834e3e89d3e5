"""Where usage belongs in the budget tree: from what a log says to a node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from gpupolicy.domain.tree import BudgetTree, Place

Claimant = tuple[str, str]  # account, user: how a usage log names who ran something


def placements(tree: BudgetTree, claimants: Iterable[Claimant]) -> dict[Claimant, str | None]:
    """The path that each claimant's usage is charged to; None where the tree does not tell.

    The account decides: a full path, or a name or account that only one node bears; then the user, if a
    child of that node bears the name. Without an account, the one node that bears the user's name. Letter
    case does not count, as in Slurm (case tr-06); a name that fits two nodes is never guessed (tr-01).
    """
    known = _known_names(tree)
    return {claimant: _place(tree, known, *claimant) for claimant in claimants}


def _place(tree: BudgetTree, known: Mapping[str, set[str]], account: str, user: str) -> str | None:
    named = known.get((account or user).casefold(), set())
    if len(named) != 1:
        return None
    (path,) = named
    own = [child.path for child in tree.children(path) if user.casefold() in _names(child)]
    return own[0] if len(own) == 1 else path


def _known_names(tree: BudgetTree) -> dict[str, set[str]]:
    known: defaultdict[str, set[str]] = defaultdict(set)
    for place in tree.places:
        for name in _names(place):
            known[name].add(place.path)
    for place in tree.places:
        known[place.path.casefold()] = {place.path}
    return dict(known)


def _names(place: Place) -> set[str]:
    return {name.casefold() for name in place.node.known_as}
