"""Kubernetes objects in a file, as kubectl prints them: lists, single objects, streams; JSON or YAML."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
import yaml

from gpupolicy.ingest.canonical import IGNORED, REJECTED
from gpupolicy.ingest.moments import utc_without_zone
from gpupolicy.ingest.slurm.json_text import JsonText
from gpupolicy.ingest.text import json_chunks, refusal

Fields = Mapping[str, Any]  # JSON, of any depth
T = TypeVar("T")

_ASK = "ask with `kubectl get ... -A -o json`"
_TOOL_ERROR = re.compile(
    r"\s*(?:Error from server|Unable to connect|No resources found|The connection to |error: )[^\n]*"
)
_YAML = re.compile(r"\s*(?:---|#|- |\w+:(?:\s|$))")
_WATCH_EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED"})


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes means it: a stamp stays the text that it is."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class Condition:
    """Whether something holds, since when, and why."""

    holds: bool
    since: datetime
    reason: str


@dataclass(slots=True)
class KubeObject:
    """One object, where it begins, what is found wrong in it (reason and detail), and the last moment it proves."""

    line: int
    fields: Fields
    faults: list[tuple[str, str]] = field(default_factory=list)
    newest: datetime | None = None

    @property
    def kind(self) -> str:
        return str(self.fields.get("kind") or "")

    @property
    def metadata(self) -> Fields:
        return inner(self.fields, "metadata")

    @property
    def spec(self) -> Fields:
        return inner(self.fields, "spec")

    @property
    def status(self) -> Fields:
        return inner(self.fields, "status")

    @property
    def id(self) -> str:
        """The name with its namespace: one name may stand in two of them."""
        name, namespace = str(self.metadata.get("name") or ""), self.metadata.get("namespace")
        return f"{namespace}/{name}" if namespace else name

    def moment(self, said: object, where: str) -> datetime | None:
        """The moment of a stamp in the past, None where there is none; what is no stamp is a fault."""
        moment = self.moment_ahead(said, where)
        if moment is not None:
            self.newest = max(moment, self.newest or moment)
        return moment

    def moment_ahead(self, said: object, where: str) -> datetime | None:
        """The moment of a stamp that may lie in the future, so that it proves nothing."""
        if said in (None, ""):
            return None
        moment = _moment(str(said))
        if moment is None:
            self.faults.append(("bad_time", f"{where} '{said}'"))
        return moment

    def conditions(self) -> dict[str, Condition]:
        """The conditions of the status by their type; one without a stamp says nothing."""
        told = {}
        for each in entries(self.status, "conditions"):
            kind = str(each.get("type"))
            since = self.moment(each.get("lastTransitionTime"), f"{kind}.lastTransitionTime")
            if since is not None:
                told[kind] = Condition(str(each.get("status")) == "True", since, str(each.get("reason") or ""))
        return told

    def whole_number(self, said: object, where: str) -> int | None:
        """An integer, None where there is none; anything else is a fault."""
        if said is None:
            return None
        try:
            return int(str(said))
        except ValueError:
            self.faults.append(("bad_number", f"{where} '{said}'"))
            return None

    def refuse(self, reason: str, detail: str) -> None:
        self.faults.append((reason, detail))


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """What the objects of a file told, and what became of the others."""

    values: list[T]
    rejected: pl.DataFrame
    ignored: pl.DataFrame
    newest: datetime | None


def told_by_objects(path: Path, read: Mapping[str, Callable[[KubeObject], T | None]]) -> Told[T]:
    """What `read` makes of the objects of each kind; an object in which it finds a fault is rejected.

    Raises UnreadableLog for a file that is cut short, is a tool's or the server's error, or has no such kind.
    """
    others: Counter[str] = Counter()
    first_other = 0

    def asked() -> Iterator[KubeObject]:
        nonlocal first_other
        for each in read_objects(path):
            if each.kind in read:
                yield each
            else:
                first_other = first_other or each.line
                others[each.kind or "without a kind"] += 1

    told = told_by(asked(), lambda each: read[each.kind](each))
    if others and not told.values and told.rejected.is_empty():
        listed = ", ".join(f"{count} {kind}" for kind, count in others.most_common())
        raise refusal(path, "other_kind", f"there is no {' or '.join(read)} in it, but {listed}; {_ASK}")
    ignored = [("other_kind", others.total(), first_other)] if others else []
    return replace(told, ignored=pl.DataFrame(ignored, schema=IGNORED, orient="row"))


def told_by(objects: Iterable[KubeObject], read: Callable[[KubeObject], T | None]) -> Told[T]:
    """What `read` makes of each object; one in which it finds a fault is rejected."""
    values: list[T] = []
    rejected: list[tuple[int, str, str, str]] = []
    newest: datetime | None = None
    for each in objects:
        value = read(each)
        if each.faults or value is None:
            rejected.append(_rejected(each))
        else:
            values.append(value)
            newest = max(filter(None, (newest, each.newest)), default=None)
    return Told(values, pl.DataFrame(rejected, schema=REJECTED, orient="row"), IGNORED.to_frame(), newest)


def is_objects(path: Path) -> bool:
    """Whether a file holds objects, or a complaint of who should have printed them; if not, it may be a table."""
    head = next(json_chunks(path), "")
    return head.lstrip()[:1] in {"{", "["} or bool(_YAML.match(head) or _TOOL_ERROR.match(head))


def read_objects(path: Path) -> Iterator[KubeObject]:
    """Every object of a file, one after another, lists and watch events unpacked."""
    head = next(json_chunks(path), "")
    if complaint := _TOOL_ERROR.match(head):
        said = complaint[0].strip()[:120]
        raise refusal(path, "tool_error", f"this is an error message, no object ('{said}'); fetch it again")
    found = _in_json(path) if head.lstrip()[:1] in {"{", "["} else _in_yaml(path)
    line = 0
    for content, at in found:
        line = max(line + 1, at)  # where several begin in one line, each counts one more
        yield KubeObject(line, content)


def inner(fields: Fields, *names: str) -> Fields:
    """What stands at a path of names, empty where there is nothing."""
    for name in names:
        below = fields.get(name)
        fields = below if isinstance(below, Mapping) else {}
    return fields


def entries(fields: Fields, name: str) -> list[Fields]:
    below = fields.get(name)
    return [each for each in below if isinstance(each, Mapping)] if isinstance(below, list) else []


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return utc_without_zone(moment) if moment.tzinfo is not None else None


def _rejected(each: KubeObject) -> tuple[int, str, str, str]:
    """The first fault's reason, all of them in the detail, and the object whole, so that it can be mended."""
    detail = f"{each.id}: {'; '.join(detail for _, detail in each.faults)}"
    return each.line, each.faults[0][0], detail, json.dumps(each.fields, separators=(",", ":"))


def _in_json(path: Path) -> Iterator[tuple[Fields, int]]:
    """The objects of one document, or of several one after another as `kubectl get --watch` prints them."""
    text = JsonText(path)
    while start := text.peek():
        if start == "[":
            for value in text.elements():
                yield from _unpacked(path, value.value, value.line)
        else:
            yield from _of_document(path, text)


def _of_document(path: Path, text: JsonText) -> Iterator[tuple[Fields, int]]:
    """The items of a list as they come, whatever else stands before or after them; or one object."""
    document: dict[str, Any] = {}
    line = 0
    for key in text.members():
        if key == "items" and text.peek() == "[":
            for value in text.elements():
                yield from _unpacked(path, _of_list(document, value.value), value.line)
            document["items"] = []
        else:
            held = text.value()
            document[key], line = held.value, line or held.line
    yield from _unpacked(path, document, line)


def _in_yaml(path: Path) -> Iterator[tuple[Fields, int]]:
    text = "".join(json_chunks(path))
    try:
        for document in yaml.load_all(text, Loader=_Loader):
            yield from _unpacked(path, document, 0)
    except yaml.YAMLError as trouble:
        raise refusal(path, "not_parsable_output", f"this is neither JSON nor YAML ({trouble}); {_ASK}") from None


def _unpacked(path: Path, document: object, line: int) -> Iterator[tuple[Fields, int]]:
    if document is None:
        return
    if not isinstance(document, Mapping):
        raise refusal(path, "not_parsable_output", f"this holds no objects; {_ASK}")
    if document.get("kind") == "Status":
        raise refusal(path, "error_answer", f"the server answered: {document.get('message') or document.get('reason')}")
    if document.get("type") in _WATCH_EVENTS:
        yield inner(document, "object"), line
    elif "items" in document:
        if inner(document, "metadata").get("continue"):
            raise refusal(path, "truncated", "this is one page of a longer list; fetch all of them (kubectl does)")
        yield from ((_of_list(document, each), line) for each in entries(document, "items"))
    elif document.get("type") != "BOOKMARK":
        yield document, line


def _of_list(document: Fields, item: object) -> Fields:
    """An item of a list; in one of a single kind it need not say that kind again."""
    kind = str(document.get("kind") or "").removesuffix("List")
    return {"kind": kind} | dict(item) if isinstance(item, Mapping) else {}
