"""`gpupolicy measure WHAT` and `gpupolicy fairshare`: what was delivered, and who is next."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from gpupolicy import cycle
from gpupolicy.cli.options import Options, options_of, parse_moment
from gpupolicy.cli.output import Column, show, tell

app = typer.Typer(help="Measure what happened: delivery against owed, and the pyramid.", no_args_is_help=True)

PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        help="Policy file; default: the one in force, data/policies/in_force/QUARTER.yaml.",
        envvar="GPUPOLICY_POLICY",
    ),
]
From = Annotated[
    str | None,
    typer.Option("--from", help="First hour (UTC), e.g. 2026-07-01; default: the quarter's start."),
]
To = Annotated[str | None, typer.Option("--to", help="End of the last hour (UTC); default: as far as observed.")]
NodeName = Annotated[
    str | None, typer.Option("--node", help="Node of the budget tree: its path, or a name only it bears.")
]

FAIRSHARE_EXAMPLES = "Examples: `gpupolicy fairshare` · `gpupolicy fairshare --at 2026-09-15T00:00Z --format json`"

_NODES = (
    Column("name", "node", "tree"),
    Column("entitled_gpus", "entitled (GPUs)", "gpus"),
    Column("demand_gpu_h", "demand (GPU-h)", "gpu_h"),
    Column("owed_gpu_h", "owed (GPU-h)", "gpu_h"),
    Column("delivered_gpu_h", "delivered (GPU-h)", "gpu_h"),
    Column("strict_ratio", "strict", "percent"),
    Column("net_ratio", "net", "percent"),
    Column("free_gpu_h", "free (GPU-h)", "gpu_h"),
    Column("balance", "balance", "ratio"),
)
_HOURS = (
    Column("hour", "hour (UTC)", "hour"),
    Column("entitled_gpus", "entitled (GPUs)", "gpus"),
    Column("demand_gpus", "demand", "gpus"),
    Column("owed_gpus", "owed", "gpus"),
    Column("delivered_gpus", "delivered", "gpus"),
    Column("free_gpus", "free", "gpus"),
)
_PYRAMID = (
    Column("cluster", "cluster"),
    Column("available_gpu_h", "available (GPU-h)", "gpu_h"),
    Column("availability", "availability", "percent"),
    Column("occupancy", "occupancy", "percent"),
    Column("impact", "impact", "percent"),
    Column("utilization", "utilization", "percent"),
    Column("oversubscription", "demand / available", "ratio"),
)
_WAITS = (
    Column("label", "node"),
    Column("started", "started", "whole"),
    Column("p50_s", "median", "wait"),
    Column("p90_s", "p90", "wait"),
    Column("p99_s", "p99", "wait"),
    Column("p90_censored_s", "p90, censored", "wait"),
    Column("never_started", "never started", "whole"),
    Column("restarted", "restarted", "whole"),
    Column("requeue_p50_s", "median after requeue", "wait"),
)
_QUEUE = (
    Column("name", "node", "tree"),
    Column("queue_rank", "next in queue", "whole"),
    Column("balance", "balance", "ratio"),
    Column("charged_gpu_h", "charged (GPU-h)", "gpu_h"),
    Column("entitled_gpu_h", "entitled (GPU-h)", "gpu_h"),
)


class WaitsBy(StrEnum):
    class_ = "class"
    node = "node"


class By(StrEnum):
    node = "node"
    hour = "hour"
    day = "day"


@app.command(
    epilog="Examples: `gpupolicy measure delivery` · "
    "`gpupolicy measure delivery --node language --from 2026-09-01 --to 2026-10-01 --by day`"
)
def delivery(
    context: typer.Context,
    from_: From = None,
    to: To = None,
    node: NodeName = None,
    by: Annotated[By, typer.Option(help="A row a node, or the node's own hours or days.")] = By.node,
    policy: PolicyFile = None,
) -> None:
    """Owed and delivered GPU time: strict and net ratio, free beside it, per node or over time."""
    options = options_of(context)
    review = cycle.review(
        options.store,
        policy,
        node=node,
        starts_at=parse_moment(from_),
        ends_at=parse_moment(to) or options.at,
        cluster=options.cluster,
    )
    below = _subtree(review.nodes, review.node)
    title = (
        f"{review.node}: delivered against owed, {review.starts_at:%Y-%m-%d %H:%M} to "
        f"{review.ends_at:%Y-%m-%d %H:%M} UTC{_of_cluster(options)}"
    )
    frame, columns = (below, _NODES) if by is By.node else (_over_time(review.hourly, by), _HOURS)
    show(
        options.format,
        frame,
        columns,
        document=_delivery_document(review, below, options),
        title=title,
        note=_NODE_NOTE if by is By.node else None,
    )
    if review.unmapped_gpu_h:
        tell(f"not in the tree: {review.unmapped_gpu_h:,.1f} GPU-hours of accounts without a node")


_NODE_NOTE = (
    "strict: delivered within each hour's owed / owed. net: hours above may make up for hours below. "
    "balance: charged / entitled in the lookback; low goes first."
)


@app.command(
    epilog="Examples: `gpupolicy measure pyramid` · `gpupolicy measure pyramid --from 2026-09-01 --to 2026-10-01`"
)
def pyramid(context: typer.Context, from_: From = None, to: To = None, policy: PolicyFile = None) -> None:
    """Availability, occupancy, impact and utilization of each cluster, each of the one before it."""
    options = options_of(context)
    frame = cycle.pyramid(
        options.store,
        policy,
        starts_at=parse_moment(from_),
        ends_at=parse_moment(to) or options.at,
        cluster=options.cluster,
    )
    note = (
        "availability: available / installed. occupancy: occupied / available. impact: delivered within owed, over "
        "leaves / occupied. utilization: used / occupied, where measured."
    )
    show(options.format, frame, _PYRAMID, document={"clusters": frame}, title="Pyramid of metrics", note=note)


@app.command(
    epilog="Examples: `gpupolicy measure waits` · `gpupolicy measure waits --by node --from 2026-09-01 --to 2026-10-01`"
)
def waits(
    context: typer.Context,
    from_: From = None,
    to: To = None,
    node: NodeName = None,
    by: Annotated[WaitsBy, typer.Option(help="A row a class of work, or a node right below --node.")] = WaitsBy.class_,
    policy: PolicyFile = None,
) -> None:
    """How long workloads waited for their first start; waits after a requeue, and those never started, apart."""
    options = options_of(context)
    frame = cycle.waits(
        options.store,
        policy,
        node=node,
        by_node=by is WaitsBy.node,
        starts_at=parse_moment(from_),
        ends_at=parse_moment(to) or options.at,
        cluster=options.cluster,
    )
    shown = frame if by is WaitsBy.node else frame.with_columns(pl.col("class").fill_null("all classes"))
    columns = _WAITS if by is WaitsBy.node else (_WAITS[0], Column("class", "class"), *_WAITS[1:])
    show(
        options.format,
        shown,
        columns,
        document={"waits": frame},
        title=f"Waits{_of_cluster(options)}",
        note=_WAITS_NOTE,
    )


_WAITS_NOTE = (
    "wait: first start less the moment of eligibility. Censored: those never started taken in with what they waited; "
    "no value where too few have started."
)


def fairshare(context: typer.Context, policy: PolicyFile = None) -> None:
    """The balance of every node at --at, and the order of the queue. Low goes first."""
    options = options_of(context)
    standing = cycle.fair_share(options.store, policy, at=options.at, cluster=options.cluster)
    frame = standing.nodes.with_columns(name=pl.col("path").str.split("/").list.last())
    document = {
        "at": standing.at,
        "lookback_h": standing.lookback_h,
        "direction": "low goes first",
        "order": list(standing.queue),
        "nodes": standing.nodes,
    }
    title = (
        f"Fair share at {standing.at:%Y-%m-%d %H:%M} UTC over the last {standing.lookback_h} h{_of_cluster(options)}"
    )
    note = "balance = charged / entitled in the lookback; low goes first, level by level; nothing entitled goes last."
    show(options.format, frame, _QUEUE, document=document, title=title, note=note)


def _subtree(nodes: pl.DataFrame, path: str) -> pl.DataFrame:
    return nodes.filter((pl.col("path") == path) | pl.col("path").str.starts_with(path + "/"))


def _over_time(hourly: pl.DataFrame, by: By) -> pl.DataFrame:
    if by is By.hour:
        return hourly
    return hourly.group_by_dynamic("hour", every="1d").agg(pl.exclude("hour").mean())


def _delivery_document(review: cycle.Review, below: pl.DataFrame, options: Options) -> dict[str, object]:
    return {
        "node": review.node,
        "from": review.starts_at,
        "to": review.ends_at,
        "cluster": options.cluster,
        "quarter": review.quarter,
        "lookback_h": review.lookback_h,
        "total": below.row(0, named=True),
        "nodes": below,
        "hourly": review.hourly,
        "teams_ratio": review.teams_ratio,  # of the teams at or below the node; what follows is of all teams
        "teams_at_95": review.teams_at_95,
        "team_count": review.team_count,
        "worst_team": review.worst_team,
        "worst_ratio": review.worst_ratio,
        "unmapped_gpu_h": review.unmapped_gpu_h,  # of all nodes, whichever is looked at
    }


def _of_cluster(options: Options) -> str:
    return f", cluster {options.cluster}" if options.cluster else ""
