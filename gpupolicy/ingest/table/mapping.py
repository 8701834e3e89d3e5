"""What a mapping says: which column of a table gives which column of ours, and in which form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest.moments import EPOCH_FORMS, check_timezone
from gpupolicy.ingest.run_moments import STAMPS

NULL_WORDS = ("", "-", "?", "\\N", "NULL", "(null)", "N/A", "NA", "NaN", "NaT", "None", "Unknown")
COUNT_OF = "count of "  # how many there are in a list of that name
OURS = {"line": "line (column)"}  # our `line` is where a row stands

Unit = Literal["ms", "s", "min", "h"]


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Source(Form):
    """Where values come from: a column of the file, or one value for all rows.

    In formats that nest, `a.b` is the field b of a; a list is its values with commas between them.
    """

    _places: ClassVar[tuple[str, ...]] = ("column", "value")

    column: str | None = None
    value: str | None = None
    optional: bool = False  # the file may lack the column

    @model_validator(mode="after")
    def _from_one_place(self) -> Self:
        given = [place for place in self._places if getattr(self, place) is not None]
        if len(given) > 1:
            raise ValueError(f"give either {' or '.join(given)}")
        if not given:
            raise ValueError(f"give one of {', '.join(self._places)}")
        return self

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the file that are read."""
        return () if self.column is None else (OURS.get(self.column, self.column),)


class Text(Source):
    _places = ("column", "file_name", "value")

    form: Literal["text", "whole_float"] = "text"  # whole_float: an id that was written as 24166353244411.0
    file_name: str | None = None  # a pattern; what is in its brackets, or all that it fits, is the value

    @model_validator(mode="after")
    def _is_pattern(self) -> Self:
        try:
            re.compile(self.file_name or "")
        except re.error as wrong:
            raise ValueError(f"'{self.file_name}' is no regular expression: {wrong}") from None
        return self


class WorkloadId(Text):
    line_number: bool = False

    @model_validator(mode="after")
    def _from_one_place(self) -> Self:
        if self.line_number == (self.column is not None) or self.value is not None or self.file_name is not None:
            raise ValueError("give either column or line_number: true")
        return self


class Moment(Source):
    """A stamp; or, with `since`, so much time after that moment; or, with `after`, so much after an earlier one.

    With `after` and no column it is the same moment.
    """

    form: str = "auto"
    since: datetime | None = None  # without a zone: UTC
    after: Literal["submitted_at", "eligible_at", "started_at"] | None = None
    unit: Unit = "s"

    @model_validator(mode="after")
    def _from_one_place(self) -> Self:
        if self.value is not None or (self.column is None and self.after is None):
            raise ValueError("give column, or after, or both")
        if self.since is not None and (self.after is not None or self.form != "auto"):
            raise ValueError("since stands with column and unit alone")
        if self.form not in ("auto", *EPOCH_FORMS) and "%" not in self.form:
            known = ", ".join(("auto", *EPOCH_FORMS))
            raise ValueError(f"'{self.form}' is none of {known}, nor a format such as '%d.%m.%Y %H:%M'")
        return self

    @property
    def origin(self) -> datetime | None:
        """`since` as UTC without a zone."""
        if self.since is None or self.since.tzinfo is None:
            return self.since
        return self.since.astimezone(UTC).replace(tzinfo=None)


class Duration(Source):
    unit: Unit = "s"


class Number(Source):
    """A number; the product or the sum of several columns; or how many things there are in a list."""

    _places = ("column", "count", "product", "sum", "value")

    count: str | None = None
    product: Annotated[tuple[str, ...], Field(min_length=2)] | None = None
    sum: Annotated[tuple[str, ...], Field(min_length=2)] | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        if self.count is not None:
            return (COUNT_OF + self.count,)
        return self.product or self.sum or super().needs


class Ratio(Source):
    form: Literal["fraction", "percent"] = "fraction"


class Truth(Source):
    yes: tuple[str, ...] = ("yes", "y", "true", "t", "1")
    no: tuple[str, ...] = ("no", "n", "false", "f", "0")


def _short(value: object) -> object:
    """A name alone stands for the column of that name."""
    return {"column": value} if isinstance(value, str) else value


def _words(value: object) -> object:
    """As _short; and YAML's yes and no, which are truths where they stand as keys, are the words again."""
    if isinstance(value, dict):
        return {{True: "yes", False: "no"}.get(key, key): words for key, words in value.items()}
    return _short(value)


def _zone(name: str) -> str:
    try:
        return check_timezone(name) or name
    except InvalidInput as unknown:
        raise ValueError(str(unknown)) from None


AnyText = Annotated[Text, BeforeValidator(_short)]
AnyMoment = Annotated[Moment, BeforeValidator(_short)]
AnyNumber = Annotated[Number, BeforeValidator(_short)]
AnyDuration = Annotated[Duration, BeforeValidator(_short)]
AnyRatio = Annotated[Ratio, BeforeValidator(_short)]
AnyTruth = Annotated[Truth, BeforeValidator(_words)]


class Columns(Form):
    """The columns of one of our frames, by their names there, and where each comes from."""

    cluster: AnyText | None = None

    def sources(self) -> Iterator[tuple[str, Source]]:
        for name in type(self).model_fields:
            source = getattr(self, name)
            if source is not None:
                yield name, source


class RunColumns(Columns):
    """The columns of a run, as in canonical.RUNS."""

    workload_id: Annotated[WorkloadId, BeforeValidator(_short)]
    submitted_at: AnyMoment | None = None
    eligible_at: AnyMoment | None = None
    started_at: AnyMoment | None = None
    ended_at: AnyMoment | None = None
    gpus: AnyNumber
    gpu_type: AnyText | None = None
    account: AnyText | None = None
    user_name: AnyText | None = None
    partition: AnyText | None = None
    qos: AnyText | None = None
    state: AnyText | None = None
    hosts: AnyText | None = None
    walltime_s: AnyDuration | None = None
    minimum_runtime_s: AnyDuration | None = None
    is_resumable: AnyTruth | None = None
    is_charged: AnyTruth | None = None
    priority: AnyNumber | None = None
    utilization_ratio: AnyRatio | None = None

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


class AnyMapping(Form):
    """How to read one form of table, whatever file and format it stands in."""

    columns: Columns
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None  # None: found from the header
    decimal: Literal[".", ","] = "."
    thousands: str | None = None
    timezone: Annotated[str, AfterValidator(_zone)] | None = None  # of stamps without a zone
    null_words: tuple[str, ...] = NULL_WORDS
    rows: str | None = None  # where in a JSON document the list of rows stands; None: the document is the list


class TableMapping(AnyMapping):
    """How to read a table of runs."""

    columns: RunColumns
    attempts: str | None = None  # a list in each row, of a workload's runs; a later one waits from the end of the last
