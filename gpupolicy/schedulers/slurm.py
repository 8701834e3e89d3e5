"""Slurm: what budgets are called there, the numbers it takes, and the file that `sacctmgr load` reads.

What sacctmgr does with odd names and numbers was seen on a real Slurm 22.05 (slurm.conf(5), sacctmgr(1)): it
accepts much that it then misreads, so nothing reaches it that has not passed here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpupolicy.domain import BudgetTree, Place
from gpupolicy.errors import UnsafeExport

LARGEST_SHARE = 2**31 - 2  # one more means "parent"
SIBLINGS_BELOW = 2**32
RESERVED = frozenset({"root"})

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Association:
    """A line of Slurm's tree: an account or a user in one, under the name and number Slurm keeps."""

    path: str
    name: str
    parent: str
    is_user: bool
    shares: int


def slurm_name(name: str) -> str:
    """The name as Slurm keeps it: lower case, of letters, digits, '_', '-', '.', a letter or digit first.

    Raises UnsafeExport for anything else: blanks, quotes, '=', ',' and ':' split or change what sacctmgr
    reads (case ex-01).
    """
    folded = name.lower()
    if folded in RESERVED:
        raise UnsafeExport([f"'{name}' is Slurm's own name for the top of its tree; give the node another account"])
    if not _NAME.fullmatch(folded):
        what = f"{name!r} cannot be a Slurm name: only letters, digits, '_', '-' and '.', a letter or digit first"
        raise UnsafeExport([f"{what}; give the node an account under `accounts:` in the policy file"])
    return folded


def slurm_share(raw: str) -> int:
    """A share number as Slurm takes it: whole, 0 to 2147483646.

    sacctmgr cuts fractions, clears negative numbers to 1, takes 2147483647 for "parent" and lets larger
    ones wrap (case ex-02). Raises UnsafeExport with the reason: not_whole, negative, means_parent, too_large.
    """
    if re.fullmatch(r"-\d+", raw):
        raise UnsafeExport([f"share {raw}: negative; sacctmgr would set it to 1"])
    if not re.fullmatch(r"\d+", raw):
        raise UnsafeExport([f"share {raw}: not_whole; sacctmgr would cut or refuse it"])
    number = int(raw)
    if number == LARGEST_SHARE + 1:
        raise UnsafeExport([f"share {raw}: means_parent to Slurm"])
    if number > LARGEST_SHARE:
        raise UnsafeExport([f"share {raw}: too_large; at most {LARGEST_SHARE}"])
    return number


def associations(tree: BudgetTree, shares: Mapping[str, int]) -> tuple[Association, ...]:
    """The tree as Slurm's accounts and users, parents first, in the order of the budget.

    `shares` gives each path its whole number. Raises UnsafeExport with every name and number that must not
    reach sacctmgr; then nothing is exported.
    """
    faults: list[str] = []
    names = _names(tree, faults)
    made = [_association(place, names, shares, faults) for place in tree.places]
    faults += _collisions(made) + _heavy_siblings(made)
    if faults:
        raise UnsafeExport(faults)
    return tuple(made)


def render_load_file(cluster: str, made: Sequence[Association], *, comment: Iterable[str] = ()) -> str:
    """The file for `sacctmgr -i load file=...` that sets these shares on one cluster.

    It names every parent, because an account under another Parent line would be moved; it removes nothing.
    """
    lines = [f"# {line}" for line in comment]
    lines.append(f"Cluster - '{slurm_name(cluster)}'")
    children: defaultdict[str, list[Association]] = defaultdict(list)
    for one in made:
        children[one.parent].append(one)
    for parent, below in children.items():
        lines.append(f"Parent - '{parent}'")
        lines += [f"{'User' if one.is_user else 'Account'} - '{one.name}':Fairshare={one.shares}" for one in below]
    return "\n".join(lines) + "\n"


def render_conf_lines(settings: Mapping[str, str]) -> str:
    """The slurm.conf lines to compare with what the site has; gpupolicy never writes slurm.conf itself."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def render_duration(hours: float) -> str:
    """Hours as slurm.conf writes them, days-hours:minutes:seconds."""
    seconds = round(hours * 3600)
    days, rest = divmod(seconds, 86400)
    return f"{days}-{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"


def _names(tree: BudgetTree, faults: list[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for place in tree.places:
        try:
            names[place.path] = slurm_name(place.node.known_as[0])
        except UnsafeExport as unsafe:
            faults += [f"{place.path}: {fault}" for fault in unsafe.faults]
    return names


def _association(place: Place, names: Mapping[str, str], shares: Mapping[str, int], faults: list[str]) -> Association:
    try:
        number = slurm_share(str(shares[place.path]))
    except UnsafeExport as unsafe:
        faults += [f"{place.path}: {fault}" for fault in unsafe.faults]
        number = 0
    parent = "root" if place.parent is None else names.get(place.parent, "")
    return Association(place.path, names.get(place.path, ""), parent, place.node.is_researcher, number)


def _collisions(made: Iterable[Association]) -> list[str]:
    """Accounts are one name space of a cluster, users one of each account; letter case is lost (case ex-03)."""
    bearers: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for one in made:
        if one.name:
            bearers[(one.parent if one.is_user else "", one.name)].append(one.path)
    return [
        f"name_collision: {' and '.join(paths)} would all be '{name}' in Slurm; give all but one an account of its own"
        for (_, name), paths in bearers.items()
        if len(paths) > 1
    ]


def _heavy_siblings(made: Iterable[Association]) -> list[str]:
    sums: defaultdict[str, int] = defaultdict(int)
    for one in made:
        sums[one.parent] += one.shares
    return [
        f"the shares under '{parent}' sum to {total}; Slurm needs less than {SIBLINGS_BELOW}"
        for parent, total in sums.items()
        if total >= SIBLINGS_BELOW
    ]
