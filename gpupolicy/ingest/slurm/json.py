"""Slurm's accounting as `sacct --json` tells it, in the schema of any release, into runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from gpupolicy.ingest.canonical import IGNORED, REJECTED, Reading
from gpupolicy.ingest.parts import reading_of_runs
from gpupolicy.ingest.records import Batch
from gpupolicy.ingest.slurm.json_jobs import job_fields
from gpupolicy.ingest.slurm.json_text import JsonText, Value
from gpupolicy.ingest.slurm.part import WHOLE_RECORD, cluster_notices, slurm_part
from gpupolicy.ingest.slurm.settings import FREE_QOS, OVERRUN_GRACE_H, Count, MigRule, Settings
from gpupolicy.ingest.text import refusal, tool_error

_ASK_JSON = "ask sacct with -a -D -S FROM -E TO --json"
_JOBS_AT_ONCE = 2000
_RECORD = {**dict.fromkeys(job_fields({}), pl.String()), "text": pl.String(), "line": pl.Int64()}


def read_slurm_json(
    path: Path,
    *,
    cluster: str | None,
    observed_until: datetime | None = None,
    count: Count = "gpus",
    free_qos: frozenset[str] = FREE_QOS,
    gpu_only_partitions: frozenset[str] = frozenset(),
    mig_rule: MigRule = "compute_slices_over_7",
    shards_per_gpu: int | None = None,
    overrun_grace_h: float | None = OVERRUN_GRACE_H,
) -> Reading:
    """Read the answer of `sacct --json` or of slurmrestd's jobs, plain or gzip; several in one file are fine.

    The keywords are those of `read_slurm`. A job's `line` is the one it begins in; where several begin in one, each
    is counted a line after the one before. Raises UnreadableLog for a file that is refused whole: what breaks off
    or answers with errors.
    """
    settings = Settings(
        cluster=cluster,
        count=count,
        free_qos=free_qos,
        gpu_only_partitions=gpu_only_partitions,
        mig_rule=mig_rule,
        shards_per_gpu=shards_per_gpu,
        overrun_grace_h=overrun_grace_h,
    )
    warnings: list[str] = []
    jobs = _jobs(path, warnings)
    parts = [slurm_part(batch, WHOLE_RECORD, settings) for batch in _batches(jobs)]
    notices = cluster_notices(path, parts, cluster)
    if warnings:
        notices.append(f"Slurm itself warns, first of {len(warnings):,}: {warnings[0]}")
    return reading_of_runs(path, "slurm-json", parts, observed_until=observed_until, notices=notices)


def _batches(jobs: Iterator[Value]) -> Iterator[Batch]:
    records = _records(jobs)
    while held := list(islice(records, _JOBS_AT_ONCE)):
        frame = pl.from_dicts(held, schema=_RECORD)
        yield Batch(frame, REJECTED.to_frame(), IGNORED.to_frame())


def _records(jobs: Iterator[Value]) -> Iterator[dict[str, str | int | None]]:
    line = 0
    for job in jobs:
        line = max(line + 1, job.line)
        yield {**job_fields(job.value), "text": job.text, "line": line}


def _jobs(path: Path, warnings: list[str]) -> Iterator[Value]:
    """The jobs of all answers in the file; what Slurm warns of is added to `warnings`."""
    text = JsonText(path)
    _refuse_no_json(path, text)
    while text.peek():
        beside: dict[str, Any] = {}
        has_jobs = False
        for key in text.members():
            if key == "jobs" and text.peek() == "[":
                has_jobs = True
                for job in text.elements():
                    _refuse_squeue(path, job)
                    yield job
            else:
                beside[key] = text.value().value
        _refuse_answer(path, beside, has_jobs=has_jobs)
        warnings += map(_description, beside.get("warnings") or [])


def _refuse_no_json(path: Path, text: JsonText) -> None:
    if text.peek() == "{":
        return
    said = text.rest_of_line()
    raise tool_error(path, 1, said) or refusal(
        path, "other_format", f"it does not begin as an answer of Slurm does, but '{said[:60]}'; {_ASK_JSON}"
    )


def _refuse_squeue(path: Path, job: Value) -> None:
    if isinstance(job.value, dict) and "job_state" in job.value and "time" not in job.value:
        raise refusal(path, "other_format", f"this is the queue, not the accounting; {_ASK_JSON}")


def _refuse_answer(path: Path, beside: dict[str, Any], *, has_jobs: bool) -> None:
    if errors := beside.get("errors"):
        said = _description(errors[0] if isinstance(errors, list) else errors)
        raise refusal(path, "error_answer", f"Slurm answered with errors, the first: {said}; ask it again")
    if not has_jobs:
        there = ", ".join(beside) or "nothing"
        raise refusal(path, "other_format", f"there is no list of jobs in it, but {there}; {_ASK_JSON}")


def _description(trouble: object) -> str:
    """What an error or a warning says: a sentence, or an object with one."""
    said = trouble
    if isinstance(trouble, dict):
        said = trouble.get("description") or trouble.get("error") or trouble
    return str(said)
