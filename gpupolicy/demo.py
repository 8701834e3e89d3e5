"""The whole way on the sample institute: logs, store, measures, fair share, weights, plan, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gpupolicy import assets, cycle
from gpupolicy.ingest import read_capacity, read_slurm
from gpupolicy.recommend import recommend_slurm
from gpupolicy.reports import run_report

QUARTER = "2026Q3"
POLICY = assets.POLICIES / "in_force" / f"{QUARTER}.yaml"
REPORT = assets.NOTEBOOKS / "01_usage_review.ipynb"


@dataclass(frozen=True, slots=True)
class Demo:
    """Where the demo left what it made."""

    store: Path
    plan: list[Path]
    report: Path


def run_demo(folder: Path, *, made_at: datetime, tell: Callable[[str], None]) -> Demo:
    """Walk the main path once; `tell` hears of every step as it is done."""
    store = folder / "store"
    _fill(store, made_at, tell)
    review = cycle.review(store, POLICY)
    tell(
        f"measured {review.starts_at:%Y-%m-%d} to {review.ends_at:%Y-%m-%d}: "
        f"{_percent(review.teams_ratio)} of the GPU time owed to teams was delivered, {review.teams_at_95} of "
        f"{review.team_count} teams got at least 95%, the worst, {review.worst_team}, {_percent(review.worst_ratio)}"
    )
    standing = cycle.fair_share(store, POLICY)
    tell(f"fair share at {standing.at:%Y-%m-%d %H:%M} UTC: next in the queue is {standing.queue[0]}")
    policy = cycle.policy_for(store, POLICY)
    weights = recommend_slurm(policy)
    tell(
        f"recommended for Slurm: {len(weights.associations)} shares, "
        f"half-life {weights.half_life_of_equal_mean_age_h / 24:.2f} d"
    )
    plan = cycle.plan_slurm(policy, weights, clusters=cycle.known_clusters(store), out=folder / "plan", made_at=made_at)
    tell(f"plan for the scheduler: {len(plan)} files in {folder / 'plan'}")
    tell("report: papermill runs the notebook (some seconds) ...")
    report = run_report(
        REPORT, {"store": str(store.resolve()), "policy": str(POLICY.resolve())}, out_dir=folder / "reports"
    )
    tell(f"report: {report.html}")
    return Demo(store, plan, report.html)


def _fill(store: Path, loaded_at: datetime, tell: Callable[[str], None]) -> None:
    for path in (assets.SAMPLE / "hosts.csv", assets.SAMPLE / "outages.csv"):
        cycle.ingest(store, read_capacity(path, cluster=None), loaded_at=loaded_at)
    for path in sorted(assets.SAMPLE.glob("sacct-*.psv.gz")):
        reading = read_slurm(path, cluster=None)
        loaded = cycle.ingest(store, reading, loaded_at=loaded_at)
        tell(f"loaded {path.name}: {reading.accepted:,} runs, {loaded.new:,} of them new")


def _percent(ratio: float | None) -> str:
    return "none" if ratio is None else f"{100 * ratio:.1f}%"
