"""`gpupolicy ingest SOURCE FILE...`: usage logs and capacity into the store."""

from __future__ import annotations

import typer

from gpupolicy.cli.ingest import kubernetes, slurm, tables

app = typer.Typer(help="Load usage logs and host inventories into the store.", no_args_is_help=True)
app.command("slurm", epilog=slurm.SLURM_EXAMPLES)(slurm.slurm)
app.command("slurm-json", epilog=slurm.SLURM_JSON_EXAMPLES)(slurm.slurm_json)
app.command("slurmdb", epilog=slurm.SLURMDB_EXAMPLES)(slurm.slurmdb)
app.command("swf", epilog=slurm.SWF_EXAMPLES)(slurm.swf)
app.command("table", epilog=tables.TABLE_EXAMPLES)(tables.table)
app.command("capacity", epilog=tables.CAPACITY_EXAMPLES)(tables.capacity)
app.command("levels", epilog=tables.LEVELS_EXAMPLES)(tables.levels)
app.command("kueue", epilog=kubernetes.KUEUE_EXAMPLES)(kubernetes.kueue)
app.command("pods", epilog=kubernetes.PODS_EXAMPLES)(kubernetes.pods)
app.command("prometheus", epilog=kubernetes.PROMETHEUS_EXAMPLES)(kubernetes.prometheus)
app.command("opencost", epilog=kubernetes.OPENCOST_EXAMPLES)(kubernetes.opencost)
app.command("beaker", epilog=kubernetes.BEAKER_EXAMPLES)(kubernetes.beaker)
