"""Mapping files: which column of a table gives which column of a run, and in which form."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest.moments import EPOCH_FORMS, check_timezone
from gpupolicy.ingest.run_moments import STAMPS

NULL_WORDS = ("", "-", "?", "\\N", "NULL", "(null)", "N/A", "NA", "NaN", "NaT", "None", "Unknown")


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Source(_Form):
    """Where values come from: a column of the file, or one value for all rows."""

    column: str | None = None
    value: str | None = None
    optional: bool = False  # the file may lack the column

    @model_validator(mode="after")
    def _from_one_place(self) -> Self:
        if (self.column is None) == (self.value is None):
            raise ValueError("give either column or value")
        return self


class Text(Source):
    form: Literal["text", "whole_float"] = "text"  # whole_float: an id that was written as 24166353244411.0


class WorkloadId(Text):
    line_number: bool = False

    @model_validator(mode="after")
    def _from_one_place(self) -> Self:
        if self.line_number == (self.column is not None) or self.value is not None:
            raise ValueError("give either column or line_number: true")
        return self


class Moment(Source):
    """A stamp; or, with `after`, so much time after an earlier moment of the run, none if there is no column."""

    form: str = "auto"
    after: Literal["submitted_at", "eligible_at", "started_at"] | None = None
    unit: Literal["ms", "s", "min", "h"] = "s"

    @model_validator(mode="after")
    def _from_one_place(self) -> Self:
        if self.value is not None or (self.column is None and self.after is None):
            raise ValueError("give column, or after, or both")
        if self.form not in ("auto", *EPOCH_FORMS) and "%" not in self.form:
            known = ", ".join(("auto", *EPOCH_FORMS))
            raise ValueError(f"'{self.form}' is none of {known}, nor a format such as '%d.%m.%Y %H:%M'")
        return self


class Duration(Source):
    unit: Literal["ms", "s", "min", "h"] = "s"


class Ratio(Source):
    form: Literal["fraction", "percent"] = "fraction"


class Truth(Source):
    yes: tuple[str, ...] = ("yes", "y", "true", "t", "1")
    no: tuple[str, ...] = ("no", "n", "false", "f", "0")


def _short(value: object) -> object:
    """A name alone stands for the column of that name."""
    return {"column": value} if isinstance(value, str) else value


def _zone(name: str) -> str:
    try:
        return check_timezone(name) or name
    except InvalidInput as unknown:
        raise ValueError(str(unknown)) from None


_Text = Annotated[Text, BeforeValidator(_short)]
_Moment = Annotated[Moment, BeforeValidator(_short)]
_Number = Annotated[Source, BeforeValidator(_short)]
_Duration = Annotated[Duration, BeforeValidator(_short)]
_Truth = Annotated[Truth, BeforeValidator(_short)]


class Columns(_Form):
    """The columns of a run, as in canonical.RUNS, and where each comes from."""

    cluster: _Text | None = None
    workload_id: Annotated[WorkloadId, BeforeValidator(_short)]
    submitted_at: _Moment | None = None
    eligible_at: _Moment | None = None
    started_at: _Moment | None = None
    ended_at: _Moment | None = None
    gpus: _Number
    gpu_type: _Text | None = None
    account: _Text | None = None
    user_name: _Text | None = None
    partition: _Text | None = None
    qos: _Text | None = None
    state: _Text | None = None
    hosts: _Text | None = None
    walltime_s: _Duration | None = None
    minimum_runtime_s: _Duration | None = None
    is_resumable: _Truth | None = None
    is_charged: _Truth | None = None
    priority: _Number | None = None
    utilization_ratio: Annotated[Ratio, BeforeValidator(_short)] | None = None

    @model_validator(mode="after")
    def _moments_in_order(self) -> Self:
        if self.submitted_at is None and self.started_at is None:
            raise ValueError("a run needs submitted_at or started_at")
        known: list[str] = []
        for name in STAMPS:
            moment = getattr(self, name)
            if moment is not None and moment.after is not None and moment.after not in known:
                raise ValueError(f"{name} is after {moment.after}, which is not given before it")
            known += [name] if moment is not None else []
        return self


class TableMapping(_Form):
    """How to read one form of table, whatever file it stands in."""

    columns: Columns
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None  # None: found from the header
    decimal: Literal[".", ","] = "."
    thousands: str | None = None
    timezone: Annotated[str, AfterValidator(_zone)] | None = None  # of stamps without a zone
    null_words: tuple[str, ...] = NULL_WORDS

    def source_of(self, name: str) -> Source | None:
        source: Source | None = getattr(self.columns, name)
        return source


def load_mapping(path: Path) -> TableMapping:
    """Read a mapping file, YAML or TOML.

    Raises InvalidInput with every fault as `FILE:LINE: KEY: what is wrong; what would be right` (TOML: no line).
    """
    try:
        text = path.read_text(encoding="utf-8")
        document, lines = _parse(path, text)
    except (OSError, UnicodeDecodeError) as trouble:
        raise InvalidInput(f"{path}: cannot be read: {trouble}") from None
    except (yaml.YAMLError, tomllib.TOMLDecodeError) as trouble:
        raise InvalidInput(f"{path}: is neither YAML nor TOML as its name says: {trouble}") from None
    try:
        return TableMapping.model_validate(document)
    except ValidationError as wrong:
        faults = sorted((_line_of(lines, error["loc"]), _fault(dict(error))) for error in wrong.errors())
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


def _fault(error: dict[str, Any]) -> str:
    where = ".".join(map(str, error["loc"])) or "the file"
    if error["type"] == "missing":
        return f"{where}: is missing"
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key; {_nearest(error['loc'])}"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"


def _nearest(path: tuple[str | int, ...]) -> str:
    form: Any = TableMapping
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
