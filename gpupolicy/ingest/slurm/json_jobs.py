"""A job of `sacct --json` under sacct's own names for its fields.

The shapes changed with every release (cases sj-01 to sj-05): numbers are plain or {set, infinite, number}, the state
is a word or a list of a state and flags, what is missing is null, empty, unset or 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpupolicy.ingest.slurm.runs import array_tasks
from gpupolicy.ingest.slurm.states import BASE_STATES

_NO_VALUE = frozenset(map(str, (2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1)))
_MASK = re.compile(r"0x([0-9A-Fa-f]+)")
_COUNTED = frozenset({"cpu", "node", "gres"})


def job_fields(job: object) -> dict[str, str | None]:
    """The fields as texts, as `sacct -P` would print them with epochs for stamps; None for what is missing."""
    job = _object(job)
    time, tres, comment = _object(job.get("time")), _object(job.get("tres")), _object(job.get("comment"))
    association = _object(job.get("association"))
    return {
        "JobID": _job_id(job),
        "JobIDRaw": _text(job.get("job_id")),
        "Cluster": _text(job.get("cluster")) or _text(association.get("cluster")),
        "Account": _text(job.get("account")) or _text(association.get("account")),
        "User": _text(job.get("user")) or _text(association.get("user")),
        "Partition": _text(job.get("partition")),
        "QOS": _text(job.get("qos")),
        "State": _state(job),
        "Submit": _stamp(time.get("submission")),
        "Eligible": _stamp(time.get("eligible")),
        "Start": _stamp(time.get("start")),
        "End": _stamp(time.get("end")),
        "ElapsedRaw": _text(time.get("elapsed")),
        "Suspended": _duration(time.get("suspended")),
        "TimelimitRaw": _text(time.get("limit")),
        "ReqTRES": _tres(tres.get("requested")),
        "AllocTRES": _tres(tres.get("allocated")),
        "NodeList": _text(job.get("nodes")),
        "Priority": _text(job.get("priority")),
        "Comment": _text(comment.get("job")) or _text(job.get("comment")),
        "AdminComment": _text(comment.get("administrator")),
        "PendingTasks": _pending_tasks(job),
    }


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    """Numbers in any of the shapes and texts; None where there is nothing, no limit or no value (case sj-03)."""
    if isinstance(value, dict):
        is_number = value.get("set", True) and not value.get("infinite")
        return _text(value.get("number")) if is_number else None
    if value is None or isinstance(value, bool | list):
        return None
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    return text if text and text not in _NO_VALUE else None


def _stamp(value: object) -> str | None:
    """0 is not yet, or never (case sj-04)."""
    text = _text(value)
    return None if text == "0" else text


def _duration(value: object) -> str | None:
    seconds = _text(value)
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}" if seconds and seconds.isdigit() else None


def _job_id(job: Mapping[str, Any]) -> str | None:
    """600_1 of an array, where task 0 is a task; 600_[3-6%2] of its waiting tasks; 603+0 of a het job."""
    array, het = _object(job.get("array")), _object(job.get("het"))
    array_id, task = _stamp(array.get("job_id")), _text(array.get("task_id"))
    het_id, offset = _stamp(het.get("job_id")), _text(het.get("job_offset"))
    if array_id and _text(array.get("task")):
        return f"{array_id}_[{_text(array.get('task'))}]"
    if array_id and task:
        return f"{array_id}_{task}"
    if het_id and offset:
        return f"{het_id}+{offset}"
    return _text(job.get("job_id"))


def _pending_tasks(job: Mapping[str, Any]) -> str | None:
    """How many tasks of an array wait in this record, whether they are listed or told in a bit mask."""
    listed = _text(_object(job.get("array")).get("task"))
    if listed is None:
        return None
    mask = _MASK.match(listed)
    return str(int(mask[1], base=16).bit_count() if mask else array_tasks(f"[{listed}]"))


def _state(job: Mapping[str, Any]) -> str | None:
    """The state, wherever it stands among its flags; a flag if there is nothing else (case sj-02)."""
    state = job.get("state")
    current = state.get("current") if isinstance(state, dict) else state
    words = [word for word in map(_text, current if isinstance(current, list) else [current]) if word]
    return next((word for word in words if word.split()[0].upper() in BASE_STATES), words[0] if words else None)


def _tres(listed: object) -> str | None:
    """What is counted, as `cpu=8,gres/gpu:h100=2`: a sentinel for an energy that was never measured is no count."""
    if not isinstance(listed, list):
        return _text(listed)
    entries = []
    for item in map(_object, listed):
        kind, name, count = _text(item.get("type")), _text(item.get("name")), _text(item.get("count"))
        if kind in _COUNTED:
            entries.append(f"{kind}/{name}={count}" if name else f"{kind}={count}")
    return ",".join(entries) or None
