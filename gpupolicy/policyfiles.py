"""Policy files: YAML in, a domain Policy out, all faults of a file at once with line and path."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from gpupolicy.domain import BudgetTree, Node, Policy, Quarter, parse_quarter
from gpupolicy.domain.policy import DEFAULT_LOOKBACK_H, DEFAULT_MINIMUM_RUNTIME_CAP_S
from gpupolicy.errors import InvalidInput, InvalidPolicy

_UNIT_S = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FINEST = 10**18  # times a span's GPU-nanoseconds this still fits 128 bits
# no exponents and few digits: a number that takes a page is no share, and its fraction could take all memory
_SHARE = re.compile(r"(?P<number>-?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20}|\d{1,18}/[1-9]\d{0,17}))\s*(?P<percent>%)?")
_MOST_VALUES = 200_000
_DEEPEST = 200
_TOO_DEEP = f"nested too deeply; a tree has at most {_DEEPEST} levels"
_LISTS = ("children", "researchers")
_NAME = re.compile(r"[^/\s](?:[^/\n]*[^/\s])?")
_A_SHARE = "a share such as 35%, 0.35 or 7/20"


def load_policy(path: Path) -> Policy:
    """Read and check a policy file.

    Raises InvalidPolicy with every fault as `FILE:LINE: NODE PATH: what is wrong; what would be right`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as trouble:
        raise InvalidPolicy([f"{path}: cannot be read: {_reason(trouble)}"]) from None
    return parse_policy(text, name=str(path))


def parse_policy(text: str, *, name: str) -> Policy:
    """As load_policy, from text; `name` stands for the file in messages."""
    document = _parse_yaml(text, name)
    faults = _writing_faults(document) + _shape_faults(document) + _tree_faults(document)
    if faults:
        raise InvalidPolicy([f"{name}:{fault.line}: {fault.text}" for fault in sorted(faults)])
    return _policy(_PolicyForm.model_validate(document.value))


def policy_in_force(folder: Path, quarter: Quarter) -> Path:
    """The file of `folder` that holds the policy of a quarter, named for it: 2026Q3.yaml."""
    path = folder / f"{quarter}.yaml"
    if path.is_file():
        return path
    there = ", ".join(sorted(found.stem for found in folder.glob("*.yaml"))) or "nothing"
    raise InvalidInput(
        f"no policy in force for {quarter}: {path} is not there ({folder} holds {there}); give one with --policy FILE"
    )


# What a file may say


def parse_share(value: object) -> Fraction:
    """35%, 0.35 or 7/20 as an exact fraction between 0 and 1.

    YAML's floats come in as the text that was typed, so 0.1 is a tenth and not its nearest double.
    """
    text = str(value).strip()
    match = _SHARE.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text[:40]}' is not {_A_SHARE}")
    share = Fraction(match["number"]) / (100 if match["percent"] else 1)
    if not 0 <= share <= 1:
        hint = f"; write {text}% for percent" if 1 < share <= 100 and not text.endswith("%") else ""  # noqa: PLR2004
        raise ValueError(f"'{text}' is outside 0% to 100%{hint}")
    return share


def parse_duration_s(value: object) -> int:
    """7d, 8h, 90min or 30s as whole seconds; a bare number has no unit and is refused."""
    text = str(value).strip()
    match = re.fullmatch(r"(-?\d{1,12}(?:\.\d{1,6})?)\s*([a-z]+)", text.lower())
    if match is None or match[2] not in _UNIT_S:
        raise ValueError(f"'{text[:40]}' is not a duration such as 7d, 8h, 15min or 30s")
    seconds = Fraction(match[1]) * _UNIT_S[match[2]]
    if seconds < 0:
        raise ValueError(f"'{text}' is below zero")
    if seconds.denominator != 1:
        raise ValueError(f"'{text}' is not a whole number of seconds")
    return int(seconds)


def _lookback_h(value: object) -> int:
    seconds = parse_duration_s(value)
    if seconds == 0 or seconds % 3600:
        raise ValueError(f"'{value}': a lookback is a whole number of hours, at least one")
    return seconds // 3600


def _quarter(value: object) -> Quarter:
    try:
        return parse_quarter(str(value))
    except InvalidInput as wrong:
        raise ValueError(str(wrong)) from None


def _node_name(value: object) -> str:
    if value is None:
        raise ValueError("is missing")
    text = str(value)
    if not _NAME.fullmatch(text):
        raise ValueError(f"'{text}' cannot be a node's name: no '/', no line break, no blanks around it")
    return text


class _NodeForm(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    name: Annotated[str, BeforeValidator(_node_name)]
    share: Annotated[Fraction, BeforeValidator(parse_share)] = Fraction(1)
    owner: str | None = None
    accounts: list[str] = Field(default_factory=list)
    children: list[_NodeForm] = Field(default_factory=list)
    researchers: list[_NodeForm] = Field(default_factory=list)


class _PolicyForm(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    quarter: Annotated[Quarter, BeforeValidator(_quarter)]
    lookback: Annotated[int, BeforeValidator(_lookback_h)] = DEFAULT_LOOKBACK_H
    minimum_runtime_cap: Annotated[int, BeforeValidator(parse_duration_s)] = DEFAULT_MINIMUM_RUNTIME_CAP_S
    decided_in: str | None = None
    tree: _NodeForm


def _policy(form: _PolicyForm) -> Policy:
    return Policy(
        quarter=form.quarter,
        tree=BudgetTree(_node(form.tree)),
        lookback_h=form.lookback,
        minimum_runtime_cap_s=form.minimum_runtime_cap,
        decided_in=form.decided_in,
    )


def _node(form: _NodeForm, *, is_researcher: bool = False) -> Node:
    below = [_node(child) for child in form.children]
    below += [_node(person, is_researcher=True) for person in form.researchers]
    return Node(form.name, form.share, tuple(below), form.owner, tuple(form.accounts), is_researcher)


# YAML with line numbers

_Steps = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class _Fault:
    line: int
    text: str


@dataclass
class _Document:
    """The plain values of a YAML text, scalars as typed, and the line of each by its path."""

    value: Any = None
    lines: dict[_Steps, int] = field(default_factory=dict)
    twice: list[tuple[_Steps, int]] = field(default_factory=list)
    cycles: list[tuple[_Steps, int]] = field(default_factory=list)
    refusal: str = ""

    def line_of(self, path: _Steps) -> int:
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def _parse_yaml(text: str, name: str) -> _Document:
    document = _Document()
    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        raise InvalidPolicy([f"{name}:1: {_TOO_DEEP}"]) from None
    except yaml.MarkedYAMLError as trouble:
        mark = trouble.problem_mark or trouble.context_mark
        line = mark.line + 1 if mark else 1
        raise InvalidPolicy([f"{name}:{line}: this is not YAML: {trouble.problem or trouble.context}"]) from None
    except yaml.YAMLError as trouble:
        raise InvalidPolicy([f"{name}:1: this is not YAML: {trouble}"]) from None
    if top is None:
        raise InvalidPolicy([f"{name}:1: the file is empty; it needs a quarter and a tree"])
    if not isinstance(top, yaml.MappingNode):
        raise InvalidPolicy([f"{name}:1: a policy file begins with keys such as quarter: and tree:"])
    document.value = _plain(top, (), document, above=())
    if document.refusal:
        raise InvalidPolicy([f"{name}:1: {document.refusal}"])
    return document


def _plain(node: yaml.Node, path: _Steps, document: _Document, *, above: tuple[int, ...]) -> Any:  # noqa: ANN401 - YAML is anything
    document.lines[path] = node.start_mark.line + 1
    if len(document.lines) > _MOST_VALUES:
        document.refusal = f"more than {_MOST_VALUES:,} values, aliases counted each time they stand there"
    if len(above) > 2 * _DEEPEST:  # a level is a node and its list of children
        document.refusal = _TOO_DEEP
    if document.refusal:
        return None
    if id(node) in above:
        # an alias that points at a node around it: the tree would go round for ever (case tr-05)
        document.cycles.append((path, node.start_mark.line + 1))
        return {"name": "itself"}
    above = (*above, id(node))
    if isinstance(node, yaml.MappingNode):
        return _plain_mapping(node, path, document, above=above)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, index), document, above=above) for index, item in enumerate(node.value)]
    is_null = node.tag == "tag:yaml.org,2002:null"
    return None if is_null else node.value


def _plain_mapping(
    node: yaml.MappingNode, path: _Steps, document: _Document, *, above: tuple[int, ...]
) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        if key in plain:
            document.twice.append(((*path, key), key_node.start_mark.line + 1))
        plain[key] = _plain(value_node, (*path, key), document, above=above)
        document.lines[(*path, key)] = key_node.start_mark.line + 1
    return plain


# Faults


def _writing_faults(document: _Document) -> list[_Fault]:
    """What YAML lets pass and a budget must not."""
    twice = [_Fault(line, f"{_named(document.value, path)}: given twice; keep one") for path, line in document.twice]
    return twice + [
        _Fault(line, f"{_named(document.value, path)}: cycle: the node is its own ancestor")
        for path, line in document.cycles
    ]


def _shape_faults(document: _Document) -> list[_Fault]:
    try:
        _PolicyForm.model_validate(document.value)
    except ValidationError as wrong:
        return [_shape_fault(document, dict(error)) for error in wrong.errors()]
    return []


def _shape_fault(document: _Document, error: dict[str, Any]) -> _Fault:
    path: _Steps = error["loc"]
    where = _named(document.value, path)
    if error["type"] == "missing":
        return _Fault(document.line_of(path), f"{where}: is missing")
    if error["type"] == "extra_forbidden":
        form = _NodeForm if path[0] == "tree" else _PolicyForm
        return _Fault(document.line_of(path), f"{where}: unknown key; {_nearest(str(path[-1]), form)}")
    if error["type"] == "value_error":
        return _Fault(document.line_of(path), f"{where}: {error['ctx']['error']}")
    return _Fault(document.line_of(path), f"{where}: {str(error['msg'])[0].lower()}{str(error['msg'])[1:]}")


def _nearest(key: str, form: type[BaseModel]) -> str:
    known = list(form.model_fields)
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}"


def _tree_faults(document: _Document) -> list[_Fault]:
    """What no single field shows: siblings that bear one name or take more than their parent has."""
    root = document.value.get("tree")
    faults = [fault for path, node in _nodes(root, ("tree",)) for fault in _sibling_faults(document, path, node)]
    faults += _account_faults(document, root) + _fineness_faults(document, root, ("tree",), Fraction(1))
    if isinstance(root, dict) and _share_or_zero(root) not in {0, 1}:
        where = _named(document.value, ("tree", "share"))
        faults.append(_Fault(document.line_of(("tree", "share")), f"{where}: the root holds 100%"))
    return faults


def _nodes(node: object, path: _Steps) -> Iterator[tuple[_Steps, dict[str, Any]]]:
    if not isinstance(node, dict):
        return
    yield path, node
    for below, child in _below(node, path):
        yield from _nodes(child, below)


def _below(node: dict[str, Any], path: _Steps) -> list[tuple[_Steps, dict[str, Any]]]:
    """A node's children and researchers as they stand in the file, whatever else is wrong with them."""
    return [
        ((*path, key, index), child)
        for key in _LISTS
        if isinstance(node.get(key), list)
        for index, child in enumerate(node[key])
        if isinstance(child, dict)
    ]


def _sibling_faults(document: _Document, path: _Steps, node: dict[str, Any]) -> list[_Fault]:
    faults = []
    lines: dict[str, int] = {}
    siblings = _below(node, path)
    for below, child in siblings:
        name, line = str(child.get("name")), document.line_of(below)
        if "name" in child and name in lines:
            where = _named(document.value, below)
            faults.append(
                _Fault(line, f"{where}: the same name as on line {lines[name]}; siblings need different names")
            )
        lines.setdefault(name, line)
    total = sum((_share_or_zero(child) for _, child in siblings), Fraction(0))
    if total > 1:
        percent = float(total * 100)
        faults.append(
            _Fault(
                document.line_of(siblings[0][0][:-1]),
                f"{_named(document.value, path)}: the shares of its children add up to {percent:.10g}%; at most 100%",
            )
        )
    return faults


def _account_faults(document: _Document, root: object) -> list[_Fault]:
    """An account that two nodes claim would leave its usage to neither."""
    first: dict[str, _Steps] = {}
    faults = []
    for path, node in _nodes(root, ("tree",)):
        accounts = node.get("accounts")
        for account in accounts if isinstance(accounts, list) else []:
            before = first.setdefault(str(account).casefold(), path)
            if before != path:
                other = f"{_named(document.value, before)} on line {document.line_of(before)}"
                where = f"{_named(document.value, path)}: accounts"
                faults.append(
                    _Fault(document.line_of((*path, "accounts")), f"{where}: '{account}' is that of {other} too")
                )
    return faults


def _fineness_faults(document: _Document, node: object, path: _Steps, above: Fraction) -> list[_Fault]:
    """Shares whose product has more digits than exact sums in the store can bear; the topmost such node is told."""
    if not isinstance(node, dict):
        return []
    entitlement = above * _share_or_zero(node)
    if entitlement.denominator > _FINEST:
        where = _named(document.value, (*path, "share"))
        return [
            _Fault(document.line_of((*path, "share")), f"{where}: too many digits down the tree; write it with fewer")
        ]
    return [
        fault for below, child in _below(node, path) for fault in _fineness_faults(document, child, below, entitlement)
    ]


def _share_or_zero(child: dict[str, Any]) -> Fraction:
    try:
        return parse_share(child.get("share", 1))
    except ValueError:
        return Fraction(0)  # told as a fault of its own


def _named(document: object, path: _Steps) -> str:
    """The path of a fault in the words of the file: node names instead of positions."""
    words: list[str] = []
    rest: list[str | int] = []
    current = document
    for step in path:
        try:
            current = current[step]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            current = None
        is_node = isinstance(current, dict) and (step == "tree" or isinstance(step, int)) and path[0] == "tree"
        if is_node:
            words.append(str(current.get("name", f"child {step}")))  # type: ignore[union-attr]
            rest = []
        elif step not in _LISTS:
            rest.append(step)
    return ": ".join(part for part in ("/".join(words), ".".join(map(str, rest))) if part) or "file"


def _reason(trouble: OSError | UnicodeDecodeError) -> str:
    return trouble.strerror or str(trouble) if isinstance(trouble, OSError) else "it is not UTF-8 text"
