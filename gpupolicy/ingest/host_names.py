"""Lists of hosts as Slurm writes them, `n[1-3,07],gpu[01-12]b[1-2]`, into the names they stand for."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

import polars as pl

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest.distinct import each_once

MOST_HOSTS = 2**16  # of one list: a slip such as n[1-1000000000] must not fill the memory

_NOBODY = frozenset({"", "None", "None assigned", "(null)"})
_ONE = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")  # up to a comma that stands in no brackets
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def host_names(nodelist: str | None) -> list[str]:
    """The hosts of a list in its order, each as a name of its own; zeros in front are kept: n[08-10] has n08.

    Raises InvalidInput for brackets that are not closed or hold no range, and for more than MOST_HOSTS.
    """
    names = _expanded((nodelist or "").strip())
    if names is None:
        raise InvalidInput(f"'{nodelist}' is no list of hosts; write it like n[1-3,5],gpu01")
    return list(names)


def host_lists(nodelists: pl.Series) -> pl.Series:
    """host_names of a whole column, each different list expanded once; null for what is no list, or none at all."""
    return each_once(nodelists, _expand_all)["hosts"]


def _expand_all(known: pl.DataFrame) -> pl.DataFrame:
    lists = [_expanded(text.strip()) for text in known["text"]]
    return known.with_columns(hosts=pl.Series(lists, dtype=pl.List(pl.String)))


@lru_cache(maxsize=100_000)
def _expanded(nodelist: str) -> tuple[str, ...] | None:
    if nodelist in _NOBODY:
        return ()
    parts = _ONE.findall(nodelist)
    if ",".join(parts) != nodelist:
        return None
    expanded = [_names_of(part.strip()) for part in parts]
    if any(names is None for names in expanded) or sum(len(names or ()) for names in expanded) > MOST_HOSTS:
        return None
    return tuple(name for names in expanded for name in names or ())


def _names_of(part: str) -> list[str] | None:
    choices = [[literal] if literal else _numbers(ranges) for ranges, literal in _PIECE.findall(part)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if not 0 < count <= MOST_HOSTS:
        return None
    return ["".join(pieces) for pieces in product(*choices)]


def _numbers(ranges: str) -> list[str]:
    """The numbers of `1-3,07`; none if it is not so written."""
    numbers: list[str] = []
    for one in ranges.split(","):
        found = _RANGE.fullmatch(one.strip())
        if found is None:
            return []
        first, last = found[1], found[2] or found[1]
        if not 0 <= int(last) - int(first) < MOST_HOSTS:
            return []
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers
