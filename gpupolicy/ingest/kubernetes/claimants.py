"""Who runs something: account and user, from the namespace, the queue, a label or an annotation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpupolicy.errors import InvalidInput

NODE_LABEL = "gpupolicy/node"  # the budget node that a workload names itself
ACCOUNT_FROM = (f"label:{NODE_LABEL}", f"annotation:{NODE_LABEL}", "namespace")
USER_FROM = ("label:gpupolicy/user", "annotation:gpupolicy/user")

_PLAIN = ("namespace", "queue")
_KEYED = ("label", "annotation")


def check_places(places: Sequence[str]) -> tuple[str, ...]:
    """The places where a name is looked for, in order; raises InvalidInput for what is no place."""
    faults = [place for place in places if place not in _PLAIN and not _is_keyed(place)]
    if faults:
        known = ", ".join((*_PLAIN, *(f"{kind}:KEY" for kind in _KEYED)))
        raise InvalidInput(f"'{faults[0]}' is no place where a name stands; write {known}")
    return tuple(places)


def first_named(
    places: Sequence[str],
    *,
    namespace: str | None = None,
    queue: str | None = None,
    labels: Mapping[str, object] | None = None,
    annotations: Mapping[str, object] | None = None,
) -> str | None:
    """The first name that stands in one of the places."""
    plain, keyed = {"namespace": namespace, "queue": queue}, {"label": labels or {}, "annotation": annotations or {}}
    for place in places:
        kind, _, key = place.partition(":")
        named = _keyed(keyed[kind], key) if key else plain[place]
        if named:
            return named
    return None


def underscored(key: str) -> str:
    """A label's key as Prometheus and OpenCost spell it."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", key)


def _keyed(said: Mapping[str, object], key: str) -> str | None:
    value = said.get(key, said.get(underscored(key)))
    return str(value) if value not in (None, "") else None


def _is_keyed(place: str) -> bool:
    kind, _, key = place.partition(":")
    return kind in _KEYED and bool(key)
