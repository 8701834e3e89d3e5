"""The institute's log as files: what sacct would print, and what is known of hosts and their outages.

Rows are those of `sacct -a -X -D -P` with TZ=UTC (Slurm 22.05), held work included as `-s PD` gives it. A
requeued run has the moment of the requeue as its Submit; a typed GPU count stands beside the untyped one in
AllocTRES; work cancelled while it waited has Start None.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from events import Institute, Run
from machines import GPUS_PER_HOST, Outage

HEADER = (
    "JobIDRaw|Cluster|Account|User|Partition|QOS|State|Submit|Eligible|Start|End|TimelimitRaw|AllocTRES|ReqTRES"
    "|NodeList|Priority|Comment|AdminComment"
)
_INSTALLED_ON = {"heron": "2024-02-12", "kestrel": "2025-01-20", "plover": "2025-06-02", "wren": "2026-03-09"}
_CPUS_PER_GPU = 12
_MEMORY_GB_PER_GPU = 200


@dataclass(frozen=True, slots=True)
class Clock:
    """Moments of the loop as text; the log shows what was there from `log_from_s` on."""

    begins_at: datetime
    log_from_s: int

    def text(self, moment: int) -> str:
        return (self.begins_at + timedelta(seconds=moment)).strftime("%Y-%m-%dT%H:%M:%S")

    def unless_none(self, moment: int | None, word: str) -> str:
        return word if moment is None else self.text(moment)


def write_logs(institute: Institute, folder: Path, *, clock: Clock) -> dict[str, int]:
    """One sacct file a cluster; gives the rows of each."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[tuple[int, int, str]]] = {pool.cluster: [] for pool in institute.pools.values()}
    for run in institute.runs:
        if run.ended is None or run.ended >= clock.log_from_s:
            cluster, gpu_type = run.workload.pool.split("/")
            line = _line(run, cluster=cluster, gpu_type=gpu_type, clock=clock)
            rows[cluster].append((run.submitted, run.workload.number, line))
    for cluster, of_cluster in rows.items():
        _write_lines(folder / f"sacct-{cluster}.psv.gz", (line for *_, line in sorted(of_cluster)))
    return {cluster: len(of_cluster) for cluster, of_cluster in rows.items()}


def write_capacity(institute: Institute, folder: Path, *, clock: Clock) -> None:
    """hosts.csv and outages.csv. What ended before the log begins is left out."""
    arrived = {host.name: clock.text(at) + "Z" for host, at in institute.arrived}
    with (folder / "hosts.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("cluster", "host", "gpu_type", "gpus", "valid_from", "valid_to"))
        for pool in institute.pools.values():
            installed = f"{_INSTALLED_ON[pool.cluster]}T00:00:00Z"
            for host in pool.hosts:
                valid_from = arrived.get(host.name, installed)
                table.writerow((pool.cluster, host.name, pool.gpu_type, GPUS_PER_HOST, valid_from, ""))
    with (folder / "outages.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("cluster", "host", "state", "start", "end", "reason"))
        for one in _in_log(institute.outages, clock):
            ended = "" if one.ended is None else clock.text(one.ended) + "Z"
            table.writerow((one.cluster, one.host, one.state, clock.text(one.started) + "Z", ended, one.reason))


def host_list(names: Iterable[str]) -> str:
    """Slurm's short form: heron[001-003,017]; one host stands for itself."""
    listed = sorted(names)
    if len(listed) == 1:
        return listed[0]
    prefix = listed[0].rstrip("0123456789")
    numbers = [int(name.removeprefix(prefix)) for name in listed]
    return f"{prefix}[{','.join(_ranges(numbers))}]"


def _ranges(numbers: list[int]) -> Iterator[str]:
    breaks = [place for place, (one, other) in enumerate(pairwise(numbers), 1) if other != one + 1]
    for first, last in pairwise([0, *breaks, len(numbers)]):
        low, high = numbers[first], numbers[last - 1]
        yield f"{low:03}" if low == high else f"{low:03}-{high:03}"


def _line(run: Run, *, cluster: str, gpu_type: str, clock: Clock) -> str:
    one = run.workload
    tres = _tres(one.gpus)
    typed = tres.replace("gres/gpu=", f"gres/gpu:{gpu_type}={one.gpus},gres/gpu=")
    never_started = "Unknown" if run.ended is None else "None"
    return "|".join(
        (
            str(one.number),
            cluster,
            one.person.account,
            one.person.user,
            "interactive" if one.kind.is_interactive else "batch",
            "free" if one.is_free else "funded",
            run.state,
            clock.text(run.submitted),
            clock.unless_none(run.eligible, "Unknown"),
            clock.unless_none(run.started, never_started),
            clock.unless_none(run.ended, "Unknown"),
            str(one.limit_s // 60),
            "" if run.started is None else typed,
            typed if one.names_type else tres,
            host_list(run.hosts) if run.hosts else "None assigned",
            str(one.priority),
            f"minrt={one.minimum_runtime_s} resumable={'yes' if one.is_resumable else 'no'}",
            "" if run.started is None or run.ended is None else f"gpu_util={one.utilization_percent}",
        )
    )


def _tres(gpus: int) -> str:
    hosts = max(1, gpus // GPUS_PER_HOST)
    memory = f"{gpus * _MEMORY_GB_PER_GPU}G"
    return f"billing={gpus},cpu={gpus * _CPUS_PER_GPU},gres/gpu={gpus},mem={memory},node={hosts}"


def _in_log(outages: list[Outage], clock: Clock) -> list[Outage]:
    seen = [one for one in outages if one.ended is None or one.ended > clock.log_from_s]
    return sorted(seen, key=lambda one: (one.started, one.host, one.ended is None))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    """Compressed without name and time, so that the same rows are the same bytes."""
    text = "\n".join((HEADER, *lines)) + "\n"
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode("utf-8"))
