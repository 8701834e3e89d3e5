"""`gpupolicy demo`, `gpupolicy report` and `gpupolicy dashboard`: what people look at.

Notebooks and the web server take seconds to import, so the verbs that need them do it when they run.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Annotated

import polars as pl
import typer

from gpupolicy import assets, cycle
from gpupolicy.cli.measure import From, NodeName, PolicyFile, To
from gpupolicy.cli.options import Format, options_of, parse_moment
from gpupolicy.cli.output import Column, show, tell
from gpupolicy.errors import InvalidInput

report_app = typer.Typer(help="Notebooks into dated, self-contained HTML reports.", no_args_is_help=True)

DEMO_EXAMPLES = (
    "Examples: `gpupolicy demo` · `gpupolicy demo --no-serve` · `gpupolicy demo --folder /tmp/demo --port 5007`"
)
DASHBOARD_EXAMPLES = "Examples: `gpupolicy dashboard` · `gpupolicy dashboard --store /srv/gpupolicy/store --port 8080`"

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the dashboard; 0 takes any free one.")]


def demo(
    context: typer.Context,
    serve: Annotated[bool, typer.Option("--serve/--no-serve", help="Serve the dashboard at the end.")] = True,
    folder: Annotated[Path, typer.Option(help="Where store, plan and report go.")] = Path("data/demo"),
    port: Port = 5006,
) -> None:
    """The whole way on a sample institute: logs to store, measures, weights, plan, report, dashboard."""
    from gpupolicy.demo import POLICY, run_demo
    from gpupolicy.serving import serve_dashboards

    options = options_of(context)
    began = monotonic()
    made = run_demo(folder, made_at=datetime.now(UTC), tell=lambda line: tell(f"[{monotonic() - began:4.1f} s] {line}"))
    _show_paths(options.format, store=made.store, plan=made.plan[0].parent, report=made.report)
    tell(
        f"\nLook further: gpupolicy --store {made.store} measure delivery (or fairshare, budget show, recommend slurm)"
    )
    if serve:
        serve_dashboards(store=made.store, policy=POLICY, port=port, on_ready=_tell_address)


def dashboard(
    context: typer.Context,
    policy: PolicyFile = None,
    port: Port = 5006,
    address: Annotated[
        str, typer.Option(help="Address to listen on; only this machine unless you say so.")
    ] = "127.0.0.1",
) -> None:
    """Serve the dashboard until Ctrl-C."""
    from gpupolicy.serving import serve_dashboards

    serve_dashboards(store=options_of(context).store, policy=policy, port=port, address=address, on_ready=_tell_address)


@report_app.command("run", epilog="Example: `gpupolicy report run 01_usage_review --out reports/ --node language`")
def run(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(help="A notebook by its name, or the path of one of your own.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("data/quarters"),
    from_: From = None,
    to: To = None,
    node: NodeName = None,
    policy: PolicyFile = None,
) -> None:
    """Run one notebook and write its report."""
    from gpupolicy.reports import run_report

    options = options_of(context)
    in_force = policy or cycle.policy_file_for(options.store, at=options.at)
    given = {"node": node, "starts_at": parse_moment(from_), "ends_at": parse_moment(to), "cluster": options.cluster}
    parameters = {key: value for key, value in given.items() if value is not None}
    report = run_report(
        _notebook(name),
        {"store": str(options.store.resolve()), "policy": str(in_force.resolve()), **parameters},
        out_dir=out,
        progress=tell,
    )
    _show_paths(options.format, report=report.html, notebook=report.executed_notebook)


def _show_paths(form: Format, **paths: Path) -> None:
    document = {what: str(path) for what, path in paths.items()}
    frame = pl.DataFrame({"what": document.keys(), "path": document.values()})
    show(form, frame, (Column("what", "made"), Column("path", "where")), document=document)


def _notebook(name: str) -> Path:
    for path in (Path(name), assets.NOTEBOOKS / name, assets.NOTEBOOKS / f"{name}.ipynb"):
        if path.suffix == ".ipynb" and path.is_file():
            return path
    known = ", ".join(sorted(path.stem for path in assets.NOTEBOOKS.glob("*.ipynb")))
    raise InvalidInput(f"no notebook '{name}'; there are {known}")


def _tell_address(address: str) -> None:
    tell(f"dashboard: {address}   (Ctrl-C ends it)")
