"""Rows of the job table in Slurm's own database (`CLUSTER_job_table`), as CSV or with tabs, into runs.

The table speaks in numbers: states, resources by the ids of tres_table, 0 for a moment that is not yet, and
4294967295 or one less for no value (trace supercloud-slurmdb).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest.canonical import Reading
from gpupolicy.ingest.distinct import each_once
from gpupolicy.ingest.parts import Part, reading_of_runs
from gpupolicy.ingest.records import Batch, Layout, ignored_rows
from gpupolicy.ingest.slurm.part import slurm_part
from gpupolicy.ingest.slurm.settings import FREE_QOS, OVERRUN_GRACE_H, Count, MigRule, Settings
from gpupolicy.ingest.slurm.states import state_name
from gpupolicy.ingest.table.lines import csv_batches
from gpupolicy.ingest.text import refusal

_NO_VALUE = ("", "NULL", "\\N", "None", str(2**32 - 2), str(2**32 - 1), str(2**64 - 2), str(2**64 - 1))
_WHOLE_FLOAT = r"^(\d+)\.0+$"
_CPU_ID = "1"
_SITE_ID = r"(?:^|,)\d{4,}="  # ids below 1001 are Slurm's own
_GPU_NAME = re.compile(r"gres/(?:gpu|shard)(?::[^=,]+)?")
_FIRST_EPOCH_S = 10**8  # while a job is suspended, time_suspended holds since when
_NEEDED = ("id_job", "state", "time_submit", "time_start", "time_end", "tres_alloc")
_PLAIN = {
    "JobIDRaw": ("id_job",),
    "Account": ("account",),
    "User": ("user", "id_user"),
    "Partition": ("partition",),
    "QOS": ("qos", "id_qos"),
    "TimelimitRaw": ("timelimit",),
    "NodeList": ("nodelist",),
    "Priority": ("priority",),
    "ReqCPUS": ("cpus_req",),
    "Comment": ("derived_es",),  # the job's own comment
    "AdminComment": ("admin_comment",),
}
_STAMPS = {"Submit": "time_submit", "Eligible": "time_eligible", "Start": "time_start", "End": "time_end"}


def read_slurmdb(
    path: Path,
    *,
    cluster: str,
    gpu_tres_ids: Mapping[int, str] | None = None,
    observed_until: datetime | None = None,
    count: Count = "gpus",
    free_qos: frozenset[str] = FREE_QOS,
    gpu_only_partitions: frozenset[str] = frozenset(),
    mig_rule: MigRule = "compute_slices_over_7",
    shards_per_gpu: int | None = None,
    overrun_grace_h: float | None = OVERRUN_GRACE_H,
) -> Reading:
    """Read an export of the job table with a header of its column names, plain or gzip.

    `gpu_tres_ids` names the resources that are GPUs as `sacctmgr show tres` does, e.g. {1001: "gpu", 1002:
    "gpu:h100"}: ids differ from site to site. Columns `user` and `qos`, joined in by the export, go before the
    numbers in id_user and id_qos; `free_qos` holds what then stands there. The other keywords are those of
    `read_slurm`. Raises InvalidInput if GPUs are counted and no id says which they are, UnreadableLog for a file
    that is refused whole.
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
    tres_names = _tres_names(gpu_tres_ids or {}, settings)
    layout, batches = csv_batches(path)
    _refuse_missing(path, layout)
    parts: list[Part] = []
    notices: set[str] = set()
    for batch in batches:
        notices |= _notices(batch.frame, tres_names)
        parts.append(slurm_part(_as_sacct(batch, tres_names), layout, settings))
    return reading_of_runs(path, "slurmdb", parts, observed_until=observed_until, notices=sorted(notices))


def _tres_names(gpu_ids: Mapping[int, str], settings: Settings) -> dict[str, str]:
    """The names of the ids that are counted, as AllocTRES has them."""
    if settings.count == "gpus" and not gpu_ids:
        raise InvalidInput(
            "nothing says which ids of tres_alloc are GPUs, and they differ from site to site; "
            "`sacctmgr -nP show tres format=id,type,name` lists them, e.g. 1001=gpu 1002=gpu:h100"
        )
    names = {number: name if name.startswith("gres/") else f"gres/{name}" for number, name in gpu_ids.items()}
    strange = [name for name in names.values() if not _GPU_NAME.fullmatch(name)]
    if strange:
        raise InvalidInput(f"{', '.join(strange)}: a GPU is called gpu, gpu:TYPE, shard or shard:TYPE by Slurm")
    return {_CPU_ID: "cpu", **{str(number): name for number, name in names.items()}}


def _refuse_missing(path: Path, layout: Layout) -> None:
    missing = [name for name in _NEEDED if name not in layout.columns]
    if missing:
        raise refusal(
            path,
            "missing_column",
            f"{', '.join(missing)}; the file has {', '.join(layout.columns)}; "
            "export the rows of CLUSTER_job_table with a header",
        )


def _as_sacct(batch: Batch, tres_names: Mapping[str, str]) -> Batch:
    """The same rows with sacct's fields beside the table's; rows that Slurm has deleted are ignored."""
    rows = batch.frame
    is_deleted = _told(rows, "deleted").is_in(["1"]).fill_null(value=False)
    fields: dict[str, pl.Expr | pl.Series] = {
        **{name: pl.coalesce(*(_told(rows, column) for column in columns)) for name, columns in _PLAIN.items()},
        **{name: _stamp(rows, column) for name, column in _STAMPS.items() if column in rows.columns},
        "State": _states(rows["state"]),
        "Suspended": _suspended(rows),
        "AllocTRES": _tres(rows, "tres_alloc", tres_names),
        "ReqTRES": _tres(rows, "tres_req", tres_names),
    }
    deleted = ignored_rows(rows.filter(is_deleted), "deleted_record")
    return replace(
        batch,
        frame=rows.with_columns(**fields).with_columns(PendingTasks=_pending_tasks(rows)).filter(~is_deleted),
        ignored=pl.concat([batch.ignored, deleted]),
    )


def _told(rows: pl.DataFrame, column: str) -> pl.Expr:
    """A column's texts; null where it says that there is nothing, or where the table has no such column."""
    if column not in rows.columns:
        return pl.lit(None, pl.String)
    text = pl.col(column).str.strip_chars().str.replace(_WHOLE_FLOAT, "${1}")
    return pl.when(~text.is_in(_NO_VALUE)).then(text)


def _stamp(rows: pl.DataFrame, column: str) -> pl.Expr:
    text = _told(rows, column)
    return pl.when(text != "0").then(text)


def _states(numbers: pl.Series) -> pl.Series:
    texts = numbers.unique().drop_nulls().to_list()
    names = [(state_name(int(text)) if text.isdigit() else None) or text for text in texts]
    return numbers.replace_strict(texts, names, default=None, return_dtype=pl.String)


def _suspended(rows: pl.DataFrame) -> pl.Expr:
    seconds = _told(rows, "time_suspended").cast(pl.Int64, strict=False)
    return pl.when(seconds < _FIRST_EPOCH_S).then(pl.format("{}:{}", seconds // 60, seconds % 60))


def _pending_tasks(rows: pl.DataFrame) -> pl.Expr:
    """Waiting tasks of an array; id_array_job tells nothing where ids were hashed, and is not needed."""
    waiting = _told(rows, "array_task_pending").cast(pl.Int64, strict=False)
    return pl.when((pl.col("State") == "PENDING") & (waiting > 0)).then(waiting)


def _tres(rows: pl.DataFrame, column: str, names: Mapping[str, str]) -> pl.Series:
    """`1=40,2=262144,1002=2` as `cpu=40,2=262144,gres/gpu:h100=2`."""

    def named(known: pl.DataFrame) -> pl.DataFrame:
        text = pl.col("text")
        for number, name in names.items():
            text = text.str.replace(rf"(^|,){number}=", f"${{1}}{name}=")
        return known.with_columns(named=text)

    return each_once(rows.select(_told(rows, column).alias("text"), "line")["text"], named)["named"]


def _notices(rows: pl.DataFrame, tres_names: Mapping[str, str]) -> set[str]:
    notices = set()
    if "time_eligible" not in rows.columns:
        notices.add("there is no time_eligible: waits and demand count from submission")
    ids = rows["tres_alloc"].drop_nulls().unique().str.extract_all(_SITE_ID).explode().drop_nulls().unique()
    others = {text.strip(",=") for text in ids} - tres_names.keys()
    notices |= {f"resource {other} of tres_alloc is not counted; `sacctmgr show tres` names it" for other in others}
    if rows["id_job"].str.contains(_WHOLE_FLOAT).any():
        notices.add("ids are written as floats: where digits were lost, several jobs may share one")
    return notices
