"""The budget tree: who holds which share of whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from gpupolicy.errors import UnknownNode

SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class Node:
    """A line of the budget: organization, program, project or researcher.

    `share` is its exact part of the parent's entitlement. `accounts` are the names under which usage logs
    and schedulers know it, its own name if there are none: of a researcher the user name.
    """

    name: str
    share: Fraction = Fraction(1)
    children: tuple[Node, ...] = ()
    owner: str | None = None
    accounts: tuple[str, ...] = ()
    is_researcher: bool = False

    @property
    def known_as(self) -> tuple[str, ...]:
        return self.accounts or (self.name,)


@dataclass(frozen=True, slots=True)
class Place:
    """A node where it stands: its path from the root and the fraction of all capacity it may claim."""

    path: str
    node: Node
    depth: int
    parent: str | None
    entitlement: Fraction

    @property
    def is_leaf(self) -> bool:
        return not self.node.children


@dataclass(frozen=True, slots=True)
class BudgetTree:
    """All places of a tree in the order they are written, and each by its path."""

    root: Node
    places: tuple[Place, ...] = field(init=False)
    _by_path: dict[str, Place] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = tuple(_walk(self.root, parent=None, depth=0, entitlement=Fraction(1)))
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "_by_path", {place.path: place for place in places})

    def __getitem__(self, path: str) -> Place:
        try:
            return self._by_path[path]
        except KeyError:
            raise UnknownNode(f"no node '{path}' in the budget tree; {self._nearest(path)}") from None

    def __contains__(self, path: str) -> bool:
        return path in self._by_path

    def find(self, name: str) -> Place:
        """The place of a full path, of a path without the root, or of a name that only one node bears."""
        if name in self:
            return self[name]
        tail = SEPARATOR + name.strip(SEPARATOR)
        found = [place for place in self.places if place.path.endswith(tail)]
        if len(found) > 1:
            listed = ", ".join(place.path for place in found)
            raise UnknownNode(f"'{name}' is the name of {len(found)} nodes, give a path: {listed}")
        return found[0] if found else self[name]

    def children(self, path: str) -> tuple[Place, ...]:
        return tuple(self[path + SEPARATOR + child.name] for child in self[path].node.children)

    def leaves(self, under: str | None = None) -> tuple[Place, ...]:
        """The places where work is charged: those without children, below `under` or anywhere."""
        return tuple(place for place in self.subtree(under or self.root.name) if place.is_leaf)

    def subtree(self, path: str) -> tuple[Place, ...]:
        """The place itself and all below it."""
        inside = path + SEPARATOR
        return tuple(place for place in self.places if place.path == path or place.path.startswith(inside))

    def path_to(self, path: str) -> tuple[Place, ...]:
        """From the root down to the place itself."""
        names = path.split(SEPARATOR)
        return tuple(self[SEPARATOR.join(names[: end + 1])] for end in range(len(names)))

    def _nearest(self, path: str) -> str:
        last = path.rsplit(SEPARATOR, 1)[-1].lower()
        alike = [place.path for place in self.places if last and last in place.path.lower()][:3]
        return f"did you mean {' or '.join(alike)}?" if alike else f"its root is '{self.root.name}'"


def unassigned(node: Node) -> Fraction:
    """What a node has not divided among its children; a leaf has nothing to divide."""
    if not node.children:
        return Fraction(0)
    return 1 - sum((child.share for child in node.children), Fraction(0))


def _walk(node: Node, *, parent: Place | None, depth: int, entitlement: Fraction) -> Iterator[Place]:
    path = node.name if parent is None else parent.path + SEPARATOR + node.name
    place = Place(path, node, depth, parent.path if parent else None, entitlement * node.share)
    yield place
    for child in node.children:
        yield from _walk(child, parent=place, depth=depth + 1, entitlement=place.entitlement)
