"""The lines of `sacct -P`: which columns a file has, and records with delimiters or line breaks inside a field.

sacct quotes and escapes nothing: a bar or a line break in a job's name comes out as it is (cases sa-04, sa-12;
jobs 10 and 11 of the captures).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from gpupolicy.ingest.records import Batch, Layout, Line, Mended, read_batches, split_head
from gpupolicy.ingest.slurm.durations import duration_s
from gpupolicy.ingest.slurm.key_value import is_key_value, key_value_batches
from gpupolicy.ingest.slurm.part import WHOLE_RECORD
from gpupolicy.ingest.slurm.surplus import Fields, prove
from gpupolicy.ingest.text import refusal, text_blocks, tool_error

ASK_SACCT = (
    "ask sacct with -a -X -D -P -S FROM -E TO -o JobID,JobIDRaw,Cluster,Account,User,Partition,QOS,State,"
    "Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,ReqTRES,AllocTRES,NodeList,Priority"
)
USED = frozenset({
    "JobID", "JobIDRaw", "Cluster", "Account", "User", "Partition", "QOS", "State", "Submit", "Eligible",
    "Start", "End", "Elapsed", "ElapsedRaw", "Suspended", "Timelimit", "TimelimitRaw", "AllocTRES",
    "ReqTRES", "AllocGRES", "AllocCPUS", "NCPUS", "ReqCPUS", "NodeList", "Priority",
})  # fmt: skip
FREE_TEXT = frozenset({
    "JobName", "Comment", "AdminComment", "SystemComment", "SubmitLine", "WorkDir", "Constraints",
    "Container", "Extra", "StdIn", "StdOut", "StdErr",
})  # fmt: skip
XDMOD_FIELDS = (
    "JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID", "Submit",
    "Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem",
    "ReqTRES", "AllocTRES", "Timelimit", "NodeList", "JobName",
)  # fmt: skip

_JOB_ID = r"\d+(?:_(?:\d+|\[[^\]|]*\]))?(?:\+\d+)?(?:\.\w+)?"
_MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:?\d\d)?|\d{9,11}|Unknown|None|"
_DURATION = r"(?:\d+-)?(?:\d+:)?\d+:\d+(?:\.\d+)?|"
_COUNT = r"\d*"
_TRES = r"(?:[\w/:.-]+=[^,|]+(?:,[\w/:.-]+=[^,|]+)*)?"
FORMS = {
    name: re.compile(form)
    for names, form in (
        ("JobID JobIDRaw", _JOB_ID),
        ("Submit Eligible Start End", _MOMENT),
        ("Elapsed Suspended Reserved Planned", _DURATION),
        ("Timelimit", rf"{_DURATION}UNLIMITED|Partition_Limit|INVALID|"),
        ("ElapsedRaw TimelimitRaw AllocCPUS AllocNodes NCPUS ReqCPUS Priority DBIndex AssocID UID GID", _COUNT),
        ("CPUTimeRAW ResvCPURAW QOSRAW ConsumedEnergy", _COUNT),
        ("NNodes", r"\d*[KM]?"),
        ("ExitCode DerivedExitCode", r"(?:\d+:\d+)?"),
        ("AllocTRES ReqTRES", _TRES),
        ("State", r"[A-Z_]+(?: by \w+)?"),
        ("WorkDir", r"(?:/(?:.|\n)*)?"),
    )
    for name in names.split()
}
KNOWN = USED | FREE_TEXT | FORMS.keys() | set(XDMOD_FIELDS)

_CANONICAL = {name.casefold(): name for name in KNOWN}
_HEADER = re.compile(r"\s*[A-Za-z]+([^A-Za-z0-9]+)(?=[A-Za-z]|$)")
_DELIMITERS = ("|", "\x1f", "|#", "\t", ";", ",")
_COMMENTS = frozenset({"Comment", "AdminComment"})
_TELLING = ("minrt=", "resumable=", "gpu_util=")


def sacct_batches(path: Path, fields: Sequence[str] | None) -> tuple[Layout, Iterator[Batch]]:
    """The layout of a file and its records, text columns under sacct's own names.

    The layout is WHOLE_RECORD where each record names its own fields. `fields` names the columns of a dump
    without a header; XDMoD's 26 are known. Raises UnreadableLog.
    """
    blocks = text_blocks(path)
    first = next(blocks)
    (number, text), rest = split_head(first)
    if is_key_value(text):
        return WHOLE_RECORD, key_value_batches(path, chain([first], blocks), fields=USED | _COMMENTS)
    layout = _layout(path, (number, text), fields)
    if layout.header is not None:
        number += 1
        blocks = chain([rest] if rest else [], blocks)
    else:
        blocks = chain([text.encode() + b"\n" + rest if rest else first], blocks)
    return layout, read_batches(path, blocks, layout=layout, first_line=number, mend=mend_sacct)


def _layout(path: Path, head: Line, fields: Sequence[str] | None) -> Layout:
    number, text = head
    if complaint := tool_error(path, number, text):
        raise complaint
    layout = _from_header(text) or _from_fields(text, fields) or _from_xdmod(text)
    if layout is None:
        raise _unknown_form(path, head, fields)
    _refuse_columns(path, layout)
    return layout


def _from_header(text: str) -> Layout | None:
    match = _HEADER.match(text)
    if match is None or not match[1].strip(" "):
        return None
    names = tuple(text.split(match[1]))
    columns = _columns(names)
    if not {"JobID", "JobIDRaw"} & set(columns) and len(KNOWN & set(columns)) < min(3, len(columns)):
        return None
    return Layout(columns, match[1], header=names)


def _from_fields(text: str, fields: Sequence[str] | None) -> Layout | None:
    if fields is None:
        return None
    columns = _columns(fields)
    for delimiter in _DELIMITERS:
        count = text.count(delimiter)
        if count == len(columns) - 1:
            return Layout(columns, delimiter)
        if count == len(columns) and text.endswith(delimiter):
            return Layout((*columns, ""), delimiter)
    return None


def _columns(names: Sequence[str]) -> tuple[str, ...]:
    """The names as sacct spells them; a field that was asked for twice says the same twice, so the first is used."""
    known = [_CANONICAL.get(name.strip().casefold(), name.strip()) for name in names]
    return tuple(name if name not in known[:at] else f"{name} ({at})" for at, name in enumerate(known))


def _from_xdmod(text: str) -> Layout | None:
    pieces = text.split("|")
    moments = slice(XDMOD_FIELDS.index("Submit"), XDMOD_FIELDS.index("End") + 1)
    if len(pieces) != len(XDMOD_FIELDS) or not all(map(re.compile(_MOMENT).fullmatch, pieces[moments])):
        return None
    return Layout(XDMOD_FIELDS, "|")


def _unknown_form(path: Path, head: Line, fields: Sequence[str] | None) -> Exception:
    number, text = head
    is_fixed_width = re.match(r"\s*(\w+)\s{2,}", text)
    if is_fixed_width and is_fixed_width[1].casefold() in _CANONICAL:
        return refusal(path, "not_parsable_output", f"columns of fixed width cut their values off; {ASK_SACCT}")
    if fields is not None:
        return refusal(
            path,
            "wrong_field_count",
            f"{len(fields)} fields were named, line {number} has {text.count('|') + 1}: '{text[:60]}'",
        )
    return refusal(
        path,
        "other_format",
        f"line {number} names no fields of sacct ('{text[:60]}'). A dump without a header needs --fields, "
        f"a CSV `gpupolicy ingest table`; otherwise {ASK_SACCT}",
    )


def _refuse_columns(path: Path, layout: Layout) -> None:
    if layout.delimiter == "," and {"AllocTRES", "ReqTRES"} & set(layout.columns):
        raise refusal(path, "not_parsable_output", f"commas part the fields, and TRES fields hold commas; {ASK_SACCT}")


# Irregular lines


def mend_sacct(lines: Sequence[Line], layout: Layout) -> Mended:
    """Join the lines of broken records and give surplus delimiters to the columns that can hold them.

    A record is recovered only if what is in it is proven: with one column of free text by counting, with more
    if every reading in which the other columns fit agrees and the record's own elapsed time confirms it.
    """
    fields = _fields(layout)
    mended = Mended([], [])
    for held in _joined(lines, layout, fields):
        record = _recovered(held, layout, fields)
        if record is None:
            mended.refused.extend(held)
        else:
            mended.records.append((held[0][0], record))
    return mended


def _fields(layout: Layout) -> Fields:
    free = FREE_TEXT & set(layout.columns)
    return Fields(layout.columns, free, FORMS if len(free) > 1 else {})


def _joined(lines: Sequence[Line], layout: Layout, fields: Fields) -> Iterator[list[Line]]:
    """Lines that may be one record; a line that can be no part of one stands alone."""
    held: list[Line] = []
    for line in lines:
        if held and not _goes_on(held, line[1], layout, fields):
            yield from _whole_or_single(held, layout)
            held = []
        held.append(line)
    if held:
        yield from _whole_or_single(held, layout)


def _goes_on(held: Sequence[Line], text: str, layout: Layout, fields: Fields) -> bool:
    """Whether the held record can go on in this line."""
    have, more = _count(held, layout), text.count(layout.delimiter)
    form = FORMS.get(layout.columns[0])
    may_start = form is None or form.fullmatch(text.split(layout.delimiter, 1)[0]) is not None
    if more >= layout.delimiters:
        return False
    if have >= layout.delimiters:  # only its last field can, and that by text without delimiters
        return more == 0 and layout.columns[-1] in fields.free and not may_start
    return not may_start or form is None or have + more <= layout.delimiters


def _whole_or_single(held: list[Line], layout: Layout) -> Iterator[list[Line]]:
    if _count(held, layout) >= layout.delimiters:
        yield held
    else:
        yield from ([line] for line in held)


def _count(held: Sequence[Line], layout: Layout) -> int:
    return sum(text.count(layout.delimiter) for _, text in held)


def _recovered(held: Sequence[Line], layout: Layout, fields: Fields) -> list[str | None] | None:
    pieces = "\n".join(text for _, text in held).split(layout.delimiter)
    surplus = len(pieces) - len(layout.columns)
    if surplus < 0:
        return None
    if surplus == 0:
        is_whole = all(fields.may_break(*field) for field in zip(layout.columns, pieces, strict=True))
        return [*pieces] if is_whole else None
    proven = prove(pieces, layout.delimiter, fields)
    if proven is None or not proven.fields.keys() >= USED & set(layout.columns):
        return None
    if any(word in proven.unproven for word in _TELLING):  # a comment of ours, but whose?
        return None
    if len(fields.free) > 1 and not _is_confirmed(proven.fields):
        return None
    return [proven.fields.get(column) for column in layout.columns]


def _is_confirmed(record: Mapping[str, str]) -> bool:
    """Whether the record tells its elapsed time twice, both times the same."""
    raw = record.get("ElapsedRaw", "")
    told = [duration_s(record.get("Elapsed", "")), int(raw) if raw.isdigit() else None, _between_s(record)]
    first, second, *_ = [*(time for time in told if time is not None), None, None]
    return first is not None and first == second


def _between_s(record: Mapping[str, str]) -> float | None:
    start, end = (_stamp_s(record.get(name, "")) for name in ("Start", "End"))
    if start is None or end is None:
        return None
    return end - start - (duration_s(record.get("Suspended", "")) or 0)


def _stamp_s(text: str) -> float | None:
    if text.isdigit():
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
