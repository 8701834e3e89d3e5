"""Mapping files: YAML or TOML into a mapping, all faults of a file at once, each with its line."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest.table.mapping import AnyMapping, TableMapping

M = TypeVar("M", bound=AnyMapping)


def load_mapping(path: Path) -> TableMapping:
    """Read the mapping of a table of runs, YAML or TOML.

    Raises InvalidInput with every fault as `FILE:LINE: KEY: what is wrong; what would be right` (TOML: no line).
    """
    return load_mapping_as(TableMapping, path)


def load_mapping_as(form: type[M], path: Path) -> M:
    """Read a mapping of any form, as load_mapping does."""
    try:
        text = path.read_text(encoding="utf-8")
        document, lines = _parse(path, text)
    except (OSError, UnicodeDecodeError) as trouble:
        raise InvalidInput(f"{path}: cannot be read: {trouble}") from None
    except (yaml.YAMLError, tomllib.TOMLDecodeError) as trouble:
        raise InvalidInput(f"{path}: is neither YAML nor TOML as its name says: {trouble}") from None
    try:
        return form.model_validate(document)
    except ValidationError as wrong:
        faults = sorted((_line_of(lines, error["loc"]), _fault(form, dict(error))) for error in wrong.errors())
        told = [f"{path}{f':{line}' if line else ''}: {fault}" for line, fault in faults]
        raise InvalidInput("\n".join(told)) from None


def _parse(path: Path, text: str) -> tuple[object, dict[tuple[str, ...], int]]:
    if path.suffix == ".toml":
        return tomllib.loads(text), {}
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = dict(_lines(node, ())) if node is not None else {}
    return yaml.safe_load(text), lines


def _lines(node: yaml.Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        below = (*path, str(key.value))
        yield below, key.start_mark.line + 1
        yield from _lines(value, below)


def _line_of(lines: dict[tuple[str, ...], int], path: tuple[str | int, ...]) -> int:
    """The line of a key, or of the nearest around it; 0 if the file has none."""
    steps = tuple(map(str, path))
    while steps and steps not in lines:
        steps = steps[:-1]
    return lines.get(steps, 0)


def _fault(form: type[BaseModel], error: dict[str, Any]) -> str:
    where = ".".join(map(str, error["loc"])) or "the file"
    if error["type"] == "missing":
        return f"{where}: is missing"
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key; {_nearest(form, error['loc'])}"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"


def _nearest(form: Any, path: tuple[str | int, ...]) -> str:  # noqa: ANN401 - a model of any kind
    for step in path[:-1]:
        form = next(_forms_in(form.model_fields[step].annotation))
    close = difflib.get_close_matches(str(path[-1]), list(form.model_fields), n=1)
    return f"did you mean '{close[0]}'?" if close else f"known are {', '.join(form.model_fields)}"


def _forms_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - a type of any kind
    """The model in `Form`, `Form | None` or `Annotated[Form, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _forms_in(part)
