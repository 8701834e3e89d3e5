"""Any table of runs, as CSV, by a mapping file that says which column is what."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import polars as pl

from gpupolicy.ingest.canonical import RUNS, Reading
from gpupolicy.ingest.moments import check_timezone
from gpupolicy.ingest.parts import Part, flagged, reading_of_runs, rejected_rows
from gpupolicy.ingest.records import Batch, Layout
from gpupolicy.ingest.run_moments import newest_of
from gpupolicy.ingest.table.lines import csv_batches
from gpupolicy.ingest.table.mapping import Source, TableMapping, Text
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
    """Read a CSV file of runs, plain or gzip.

    `cluster` names the cluster, the mapping's column if it is None. Stamps without a zone are in `timezone`, or
    in the mapping's; with neither they are rejected. Without `observed_until` the log was taken at the newest
    moment in it. Raises UnreadableLog for a file that is refused whole.
    """
    zone = check_timezone(timezone) or mapping.timezone
    layout, batches = csv_batches(path, mapping.delimiter)
    sources = _sources(path, mapping, layout, cluster)
    parts = [_part(batch, layout, mapping, sources, zone) for batch in batches]
    notices = []
    if mapping.columns.workload_id.line_number:
        notices.append("ids are line numbers: the same job in another cut of this log has another id")
    return reading_of_runs(path, "table", parts, observed_until=observed_until, notices=notices)


def _sources(path: Path, mapping: TableMapping, layout: Layout, cluster: str | None) -> dict[str, Source]:
    """Where each column of a run comes from in this file; refuses a file that lacks what is not optional."""
    mapped = {name: source for name in RUNS.names() if name != "line" and (source := mapping.source_of(name))}
    missing = {
        source.column: source.optional
        for source in mapped.values()
        if source.column is not None and source.column not in layout.columns
    }
    faults = [_missing(column, layout) for column, is_optional in missing.items() if not is_optional]
    sources = {name: source for name, source in mapped.items() if source.column not in missing}
    if cluster is not None:
        sources["cluster"] = Text(value=cluster)
    elif "cluster" not in sources:
        faults.append("nothing names the cluster; name it with --cluster")
    if faults:
        raise refusal(path, "missing_column", "; ".join(faults))
    return sources


def _missing(column: str, layout: Layout) -> str:
    close = difflib.get_close_matches(column, layout.columns, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"the file has {', '.join(layout.columns)}"
    return f"there is no column '{column}'; {hint}"


def _part(batch: Batch, layout: Layout, mapping: TableMapping, sources: Mapping[str, Source], zone: str | None) -> Part:
    rows = batch.frame.filter(~pl.all_horizontal(pl.exclude("line").is_null()))  # a spreadsheet's empty rows
    runs = table_runs(rows, sources, mapping=mapping, timezone=zone)
    is_good = runs["fault"].is_null()
    good, faulty = runs.filter(is_good), rows.filter(~is_good)
    return Part(
        runs=good.select(RUNS.names()),
        rejected=pl.concat([batch.rejected, rejected_rows(faulty.with_columns(_why(runs.filter(~is_good))), layout)]),
        ignored=batch.ignored,
        flagged=flagged(good),
        newest=newest_of(good),
    )


def _why(runs: pl.DataFrame) -> list[pl.Series]:
    return [runs["fault"], runs["detail"]]
