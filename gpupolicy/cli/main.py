"""The root command: what every verb shares, and how an error ends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpupolicy import __version__
from gpupolicy.cli import budget, ingest, measure, run, targets
from gpupolicy.cli.options import DEFAULT_STORE, Format, Options, hoist, parse_moment
from gpupolicy.cli.output import tell
from gpupolicy.errors import GpuPolicyError

app = typer.Typer(
    name="gpupolicy",
    help="Fund research with GPU time: what was delivered, what was owed, and the weights that follow.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Start with `gpupolicy demo`. The options above may stand before or after the verb.",
)
app.add_typer(ingest.app, name="ingest")
app.add_typer(measure.app, name="measure")
app.command("fairshare", epilog=measure.FAIRSHARE_EXAMPLES)(measure.fairshare)
app.add_typer(budget.app, name="budget")
app.add_typer(targets.recommend_app, name="recommend")
app.add_typer(targets.plan_app, name="plan")
app.add_typer(run.report_app, name="report")
app.command("dashboard", epilog=run.DASHBOARD_EXAMPLES)(run.dashboard)
app.command("demo", epilog=run.DEMO_EXAMPLES)(run.demo)


def main() -> None:
    """Run the command line; a user's mistake or a missing store ends in one message and its exit code."""
    try:
        app(hoist(sys.argv[1:]))
    except GpuPolicyError as error:
        tell(f"gpupolicy: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough
        sys.exit(0)


def _say_version(wanted: bool) -> None:  # noqa: FBT001 - Typer calls it so
    if wanted:
        typer.echo(f"gpupolicy {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    store: Annotated[Path, typer.Option(help="Folder of the store.", envvar="GPUPOLICY_STORE")] = DEFAULT_STORE,
    form: Annotated[Format, typer.Option("--format", help="How to answer; messages go to stderr.")] = Format.table,
    at: Annotated[
        str | None,
        typer.Option(
            help="The moment to look at (UTC), e.g. 2026-09-30T12:00Z; default: as far as the store was observed."
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="One cluster only; while loading: the cluster of the file.")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    context.obj = Options(store, form, parse_moment(at), cluster)
