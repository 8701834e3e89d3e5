"""`gpupolicy budget ...`: the tree, what each node may claim, and whether a policy file is sound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from gpupolicy import cycle
from gpupolicy.cli.measure import PolicyFile
from gpupolicy.cli.options import Options, options_of
from gpupolicy.cli.output import Column, show, tell
from gpupolicy.domain import Policy
from gpupolicy.errors import InvalidPolicy, StoreMissing
from gpupolicy.policyfiles import load_policy
from gpupolicy.warehouse import GPU_NS_PER_GPU_H

app = typer.Typer(help="The budget tree: who may claim which part of the GPUs.", no_args_is_help=True)

_TREE = (
    Column("name", "node", "tree"),
    Column("owner", "owner"),
    Column("share", "share of parent", "percent"),
    Column("entitlement", "of all GPUs", "percent"),
    Column("entitled_gpus", "GPUs", "gpus"),
    Column("entitled_gpu_h", "GPU-hours in the quarter", "gpu_h"),
)


@app.command(
    "show",
    epilog="Examples: `gpupolicy budget show` · `gpupolicy budget show --policy next.yaml --gpus 1024 --depth 2`",
)
def show_tree(
    context: typer.Context,
    policy: PolicyFile = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, help="Assume so many GPUs all quarter, instead of asking the store.")
    ] = None,
    depth: Annotated[int | None, typer.Option(min=0, help="Levels below the root to show.")] = None,
) -> None:
    """The tree with each node's share, its part of all GPUs, GPUs and GPU-hours in the quarter."""
    options = options_of(context)
    in_force = cycle.policy_for(options.store, policy, at=options.at)
    frame = cycle.budget(in_force, available_gpu_ns=_capacity(options, in_force, gpus))
    shown = frame if depth is None else frame.filter(pl.col("depth") <= depth)
    document = {
        "quarter": str(in_force.quarter),
        "lookback_h": in_force.lookback_h,
        "minimum_runtime_cap_s": in_force.minimum_runtime_cap_s,
        "nodes": shown,
    }
    show(
        options.format,
        _with_unassigned(shown),
        _TREE,
        document=document,
        title=f"Budget of {in_force.quarter}",
    )


@app.command(epilog="Example: `gpupolicy budget check proposals/2026Q4.yaml`")
def check(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="Policy files.", show_default=False)],
) -> None:
    """Read policy files and tell every fault, with its line."""
    options = options_of(context)
    rows: list[dict[str, object]] = []
    faults: list[str] = []
    for path in files:
        try:
            rows.append({"file": str(path), **_summary(load_policy(path))})
        except InvalidPolicy as invalid:
            faults += invalid.faults
    if faults:
        raise InvalidPolicy(faults)
    columns = (
        Column("file", "file"),
        Column("quarter", "quarter"),
        Column("nodes", "nodes", "whole"),
        Column("leaves", "leaves", "whole"),
    )
    show(options.format, pl.DataFrame(rows), columns, title="Sound policy files")


def _summary(policy: Policy) -> dict[str, object]:
    return {
        "quarter": str(policy.quarter),
        "nodes": len(policy.tree.places),
        "leaves": len(policy.tree.leaves()),
    }


def _capacity(options: Options, policy: Policy, gpus: int | None) -> int | None:
    if gpus is not None:
        return gpus * policy.quarter.hours * GPU_NS_PER_GPU_H
    try:
        capacity = cycle.quarter_capacity_gpu_ns(options.store, policy, cluster=options.cluster)
    except StoreMissing:
        capacity = None
    if capacity is None:
        tell(f"no hosts known in {options.store}: GPUs and GPU-hours are left out; give --gpus N to assume a size")
    return capacity


def _with_unassigned(nodes: pl.DataFrame) -> pl.DataFrame:
    """A line of its own for what a node has not divided, after everything below it."""
    rows = nodes.to_dicts()
    lines: list[dict[str, object]] = []
    open_nodes: list[dict[str, object]] = []
    for row in [*rows, {"depth": -1}]:
        while open_nodes and int(str(open_nodes[-1]["depth"])) >= int(str(row["depth"])):
            lines += _remainder(open_nodes.pop())
        if row["depth"] != -1:
            lines.append(row)
            open_nodes.append(row)
    return pl.DataFrame(lines, schema=nodes.schema)


def _remainder(node: dict[str, object]) -> list[dict[str, object]]:
    part = float(str(node["unassigned"]))
    if not part:
        return []
    scaled = {
        name: None if node[name] is None else float(str(node[name])) * part
        for name in ("entitlement", "entitled_gpus", "entitled_gpu_h")
    }
    return [
        {
            **node,
            **scaled,
            "name": "(unassigned)",
            "owner": None,
            "share": part,
            "depth": int(str(node["depth"])) + 1,
        }
    ]
