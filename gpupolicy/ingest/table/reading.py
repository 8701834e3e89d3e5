"""Any table of runs, in any format, by a mapping that says which column is what."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import RUNS, Reading
from gpupolicy.ingest.moments import check_timezone
from gpupolicy.ingest.parts import Part, flagged, reading_of_runs
from gpupolicy.ingest.records import Batch
from gpupolicy.ingest.run_moments import newest_of
from gpupolicy.ingest.table.formats import Rows, open_rows
from gpupolicy.ingest.table.mapping import AnyMapping, Source, TableMapping, Text
from gpupolicy.ingest.table.runs import table_runs
from gpupolicy.ingest.text import refusal


def read_table(
    path: Path,
    mapping: TableMapping,
    *,
    cluster: str | None,
    timezone: str | None = None,
    observed_until: datetime | None = None,
) -> Reading:
    """Read a file of runs: CSV, Parquet, a JSON document or a JSON object a line; text may be compressed with gzip.

    `cluster` names the cluster, the mapping's column if it is None. Stamps without a zone are in `timezone`, or
    in the mapping's; with neither they are rejected. Without `observed_until` the log was taken at the newest
    moment in it. Raises UnreadableLog for a file that is refused whole.
    """
    zone = check_timezone(timezone) or mapping.timezone
    rows = open_rows(path, mapping, needs=needed_columns(mapping), attempts=mapping.attempts)
    sources = sources_of(path, mapping, rows, cluster)
    parts = [_part(batch, rows, mapping, sources, zone) for batch in rows.batches]
    notices = []
    if mapping.columns.workload_id.line_number:
        notices.append("ids are line numbers: the same job in another cut of this log has another id")
    return reading_of_runs(path, "table", parts, observed_until=observed_until, notices=notices)


def needed_columns(mapping: AnyMapping) -> list[str]:
    """The columns of a file that the mapping refers to."""
    return list(dict.fromkeys(name for _, source in mapping.columns.sources() for name in source.needs))


def sources_of(path: Path, mapping: AnyMapping, rows: Rows, cluster: str | None) -> dict[str, Source]:
    """Where each of our columns comes from in this file; refuses a file that lacks what is not optional."""
    sources: dict[str, Source] = {}
    faults: list[str] = []
    for name, source in mapping.columns.sources():
        missing = [column for column in source.needs if column not in rows.columns]
        if not missing:
            sources[name] = _of_file(path, source, faults)
        elif not source.optional:
            faults += [_missing(column, rows.columns) for column in missing]
    if cluster is not None:
        sources["cluster"] = Text(value=cluster)
    elif "cluster" not in sources:
        faults.append("nothing names the cluster; name it with --cluster")
    if faults:
        raise refusal(path, "missing_column", "; ".join(dict.fromkeys(faults)))
    return sources


def _of_file(path: Path, source: Source, faults: list[str]) -> Source:
    """A source whose value stands in the name of the file has it from here on."""
    if not isinstance(source, Text) or source.file_name is None:
        return source
    found = re.search(source.file_name, path.name)
    if found is None:
        faults.append(f"the file's name has nothing that fits '{source.file_name}'")
        return source
    return Text(value=found.group(1) if found.re.groups else found.group())


def _missing(column: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(column, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"the file has {', '.join(known)}"
    return f"there is no column '{column}'; {hint}"


def _part(batch: Batch, rows: Rows, mapping: TableMapping, sources: Mapping[str, Source], zone: str | None) -> Part:
    texts = batch.frame.filter(~pl.all_horizontal(pl.exclude("line").is_null()))  # a spreadsheet's empty rows
    runs = table_runs(texts, sources, mapping=mapping, timezone=zone)
    is_good = runs["fault"].is_null()
    good = runs.filter(is_good)
    faulty = texts.filter(~is_good).with_columns(runs.filter(~is_good).select("fault", "detail"))
    return Part(
        runs=good.select(RUNS.names()),
        rejected=pl.concat([batch.rejected, rows.rejected(faulty)]),
        ignored=batch.ignored,
        flagged=flagged(good),
        newest=newest_of(good),
    )
