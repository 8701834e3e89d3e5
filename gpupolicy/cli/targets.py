"""`gpupolicy recommend TARGET` and `gpupolicy plan TARGET`: settings for the live scheduler."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from gpupolicy import cycle
from gpupolicy.cli.measure import PolicyFile
from gpupolicy.cli.options import Format, options_of
from gpupolicy.cli.output import Column, show, tell
from gpupolicy.domain import Policy
from gpupolicy.errors import InvalidInput, StoreMissing
from gpupolicy.recommend import DEFAULT_SCALE, SlurmWeights, recommend_slurm

recommend_app = typer.Typer(help="Which settings make a scheduler deliver the budgets.", no_args_is_help=True)
plan_app = typer.Typer(help="Write what would be set, for review; nothing is applied.", no_args_is_help=True)

Scale = Annotated[int, typer.Option(min=1, max=2**31 - 2, help="What the shares of siblings add up to.")]

_SHARES = (
    Column("path", "node"),
    Column("name", "in Slurm"),
    Column("kind", "kind"),
    Column("share", "share of parent", "percent"),
    Column("fairshare", "Fairshare", "whole"),
    Column("error", "rounding error", "percent"),
)


@recommend_app.command(
    "slurm", epilog="Examples: `gpupolicy recommend slurm` · `gpupolicy recommend slurm --format json`"
)
def recommend(context: typer.Context, policy: PolicyFile = None, scale: Scale = DEFAULT_SCALE) -> None:
    """Whole-number shares by largest remainder, and the half-life that matches the lookback."""
    options = options_of(context)
    in_force = cycle.policy_for(options.store, policy, at=options.at)
    weights = recommend_slurm(in_force, scale=scale)
    frame = _shares(in_force, weights)
    show(
        options.format,
        frame,
        _SHARES,
        document=_document(in_force, weights, frame),
        title=f"Slurm shares for {in_force.quarter}",
        note=_note(in_force, weights),
    )


@plan_app.command("slurm", epilog="Example: `gpupolicy plan slurm --out plan/ --cluster jupiter`")
def plan(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the plan's files.", show_default=False)],
    policy: PolicyFile = None,
    scale: Scale = DEFAULT_SCALE,
) -> None:
    """The files that set the budgets: one for `sacctmgr load` a cluster, and the slurm.conf lines to compare."""
    options = options_of(context)
    in_force = cycle.policy_for(options.store, policy, at=options.at)
    weights = recommend_slurm(in_force, scale=scale)
    clusters = [options.cluster] if options.cluster else _clusters(options.store)
    written = cycle.plan_slurm(in_force, weights, clusters=clusters, out=out, made_at=datetime.now(UTC))
    if options.format is Format.table:
        tell(f"planned for {', '.join(clusters)}; nothing was applied. Look at each first, such as")
        tell(f"  printf 'n\\n' | sacctmgr load file={written[0]}")
        for path in written:
            typer.echo(str(path))
    else:
        files = pl.DataFrame({"file": [str(path) for path in written]})
        show(options.format, files, (), document={"clusters": clusters, "files": files["file"].to_list()})


def _clusters(store: Path) -> list[str]:
    try:
        known = cycle.known_clusters(store)
    except StoreMissing:
        known = []
    if not known:
        raise InvalidInput(f"no cluster is known in {store}; say for which one with --cluster NAME")
    return known


def _shares(policy: Policy, weights: SlurmWeights) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "path": one.path,
                "name": one.name,
                "parent": one.parent,
                "kind": "user" if one.is_user else "account",
                "share": float(policy.tree[one.path].node.share),
                "fairshare": one.shares,
                "error": float(weights.rounding_errors[one.path]),
            }
            for one in weights.associations
        ]
    )


def _document(policy: Policy, weights: SlurmWeights, shares: pl.DataFrame) -> dict[str, object]:
    return {
        "target": "slurm",
        "quarter": str(policy.quarter),
        "lookback_h": policy.lookback_h,
        "half_life_h": {
            "equal_mean_age": weights.half_life_of_equal_mean_age_h,
            "equal_weight": weights.half_life_of_equal_weight_h,
        },
        "slurm_conf": weights.slurm_conf,
        "shares": shares,
        "cannot_express": list(weights.cannot_express),
    }


def _note(policy: Policy, weights: SlurmWeights) -> str:
    half_lives = (
        f"A lookback of {policy.lookback_h / 24:g} d is matched by a half-life of "
        f"{weights.half_life_of_equal_mean_age_h / 24:.2f} d (equal mean age, recommended) or "
        f"{weights.half_life_of_equal_weight_h / 24:.2f} d (equal total weight)."
    )
    conf = "slurm.conf: " + "  ".join(f"{name}={value}" for name, value in weights.slurm_conf.items())
    return "\n".join([half_lives, conf, "What Slurm cannot express:", *(f"- {one}" for one in weights.cannot_express)])
