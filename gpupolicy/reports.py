"""Reports: a notebook run with parameters into a dated HTML file that needs no network to be read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from nbconvert import HTMLExporter
from papermill.exceptions import PapermillExecutionError

from gpupolicy import __version__, charts
from gpupolicy.errors import InvalidInput, ReportFailed
from gpupolicy.warehouse.store import PUBLISHED

TEMPLATE = Path(__file__).parent / "report_template"
SHOWN_IN = "shown_in"  # the parameter by which a notebook learns that its charts go into a report
_QUIET_KERNEL = ("--log-level=40",)  # it would warn on every start that loopback is not encrypted


@dataclass(frozen=True)
class Report:
    """Where a report and the notebook it was made of lie."""

    html: Path
    executed_notebook: Path


def run_report(
    notebook: Path,
    parameters: Mapping[str, object],
    *,
    out_dir: Path,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Run the notebook and write QUARTER-NAME-DATE.html and .ipynb into `out_dir`, whole or not at all.

    Quarter and date are those that the notebook's `charts.cover` names; without one, the day of the run.
    Raises InvalidInput for a parameter the notebook does not take, ReportFailed if a cell fails.
    """
    given = {name: _plain(value) for name, value in parameters.items() if value is not None}
    tell = progress or (lambda _: None)
    given |= _shown_in_report(_known_parameters(notebook, given))
    digests = _digests(given)
    out_dir.mkdir(parents=True, exist_ok=True)
    # Beside the result, so that the finished files can be moved there in one step.
    with TemporaryDirectory(dir=out_dir, prefix=".report-") as folder:
        draft = Path(folder) / "executed.ipynb"
        executed = _execute(notebook, given, draft=draft, out_dir=out_dir, tell=tell)
        tell("writing the report")
        page = Path(folder) / "report.html"
        page.write_text(_as_html(executed, notebook=notebook, digests=digests), encoding="utf-8")
        name = _name(notebook, executed)
        return Report(page.replace(out_dir / f"{name}.html"), draft.replace(out_dir / f"{name}.ipynb"))


def _known_parameters(notebook: Path, given: Mapping[str, object]) -> set[str]:
    if not notebook.is_file():
        raise InvalidInput(f"{notebook}: no such notebook")
    # papermill itself only logs an unknown parameter and runs with the default: a wrong report.
    known = set(papermill.inspect_notebook(str(notebook)))
    unknown = sorted(given.keys() - known)
    if unknown:
        takes = ", ".join(sorted(known - {SHOWN_IN})) or "none"
        raise InvalidInput(f"{notebook.name} has no parameter {', '.join(unknown)}; it takes {takes}")
    return known


def _shown_in_report(known: set[str]) -> dict[str, object]:
    return {SHOWN_IN: "report"} if SHOWN_IN in known else {}


def _execute(
    notebook: Path, given: Mapping[str, object], *, draft: Path, out_dir: Path, tell: Callable[[str], None]
) -> nbformat.NotebookNode:
    try:
        executed: nbformat.NotebookNode = papermill.execute_notebook(
            str(notebook),
            str(draft),
            dict(given),
            progress_bar=False,
            extra_arguments=list(_QUIET_KERNEL),
            on_cell_start=lambda cell, **_: _tell_heading(cell, tell),
        )
    except PapermillExecutionError as stopped:
        first_line = stopped.source.strip().split("\n")[0]
        reason = f"in cell {stopped.cell_index + 1} ({first_line}): {stopped.ename}: {stopped.evalue}"
    except DeadKernelError:
        reason = "because its kernel died, often for want of memory"
    else:
        return executed
    kept = draft.replace(out_dir / f"{_slug(notebook)}-failed.ipynb")
    raise ReportFailed(
        f"{notebook.name} stopped {reason}\nNo report was written; the notebook as far as it came is {kept}"
    )


def _tell_heading(cell: nbformat.NotebookNode, tell: Callable[[str], None]) -> None:
    heading = re.match(r"##\s+(.+)", cell.source)
    if heading:
        tell(heading[1])


def _as_html(executed: nbformat.NotebookNode, *, notebook: Path, digests: Mapping[str, str]) -> str:
    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name=TEMPLATE.name,
        extra_template_basedirs=[str(TEMPLATE.parent)],
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    run = executed.metadata.papermill
    about = {
        "title": _title(executed),
        "style": (TEMPLATE / "report.css").read_text(encoding="utf-8"),
        "vega_bundle": charts.vega_bundle(),
        "notebook": notebook.name,
        "ran_at": f"{datetime.fromisoformat(run.start_time):%Y-%m-%d %H:%M} UTC",
        "version": __version__,
        "parameters": [(name, value) for name, value in run.parameters.items() if name != SHOWN_IN],
        "digests": list(digests.items()),
    }
    page, _ = exporter.from_notebook_node(executed, resources={"report": about})
    return str(page)


def _name(notebook: Path, executed: nbformat.NotebookNode) -> str:
    cover = _cover(executed)
    if cover is None:
        return f"{_slug(notebook)}-{executed.metadata.papermill.start_time[:10]}"
    return f"{cover['quarter']}-{_slug(notebook)}-{cover['ends_on']}"


def _cover(executed: nbformat.NotebookNode) -> dict[str, str] | None:
    for cell in executed.cells:
        for output in cell.get("outputs", ()):
            if charts.COVER_TYPE in output.get("data", {}):
                return dict(output["data"][charts.COVER_TYPE])
    return None


def _title(executed: nbformat.NotebookNode) -> str:
    heading = re.match(r"#\s+(.+)", executed.cells[0].source) if executed.cells else None
    return heading[1] if heading else "gpupolicy report"


def _slug(notebook: Path) -> str:
    return re.sub(r"^\d+_", "", notebook.stem).replace("_", "-")


def _digests(given: Mapping[str, object]) -> dict[str, str]:
    """What the report was computed from: every parameter that names a file, or a store's folder."""
    files = {name: _input_file(str(value)) for name, value in given.items()}
    return {name: _sha256(path) for name, path in files.items() if path is not None}


def _input_file(value: str) -> Path | None:
    for path in (Path(value), Path(value) / PUBLISHED):
        if path.is_file():
            return path
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _plain(value: object) -> Any:  # noqa: ANN401 - what papermill can write into a cell
    if isinstance(value, Path):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value
