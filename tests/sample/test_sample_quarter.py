"""The committed quarter tells the story that its README tells."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

import polars as pl
import pytest
from sample.log import QUARTER_BEGINS, SampleLog
from sample.making import REPOSITORY, SAMPLE

from gpupolicy.domain import Policy, placements
from gpupolicy.policyfiles import load_policy

GPU_H = pl.col("gpus") * (pl.col("until") - pl.col("Start")).dt.total_seconds() / 3600
AUGUST, SEPTEMBER = datetime(2026, 8, 1), datetime(2026, 9, 1)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(REPOSITORY / "data" / "policies" / "in_force" / "2026Q3.yaml")


@pytest.fixture(scope="module")
def in_quarter(quarter: SampleLog) -> pl.DataFrame:
    """The runs that began in the quarter."""
    return quarter.started.filter(pl.col("Start") >= QUARTER_BEGINS).with_columns(gpu_h=GPU_H)


def gpu_h_between(quarter: SampleLog, begins: pl.Expr, ends: pl.Expr) -> pl.DataFrame:
    """GPU-hours of every row between two of its moments, inside the quarter."""
    first, last = begins.clip(lower_bound=QUARTER_BEGINS), ends.clip(upper_bound=quarter.cut)
    seconds = (last - first).dt.total_seconds().clip(lower_bound=0).fill_null(0)
    return quarter.runs.with_columns(gpu_h=pl.col("gpus") * seconds / 3600)


def available_gpu_h(quarter: SampleLog) -> dict[str, float]:
    hosts = quarter.hosts.with_columns(begins=pl.col("valid_from").clip(lower_bound=QUARTER_BEGINS))
    installed = hosts.select("cluster", h=(quarter.cut - pl.col("begins")).dt.total_seconds() / 3600)
    out = quarter.outages.filter((pl.col("state") != "draining") & (pl.col("end") > QUARTER_BEGINS))
    begins = pl.col("start").clip(lower_bound=QUARTER_BEGINS)
    away = out.select("cluster", h=-(pl.col("end").fill_null(quarter.cut) - begins).dt.total_seconds() / 3600)
    total = pl.concat([installed, away]).group_by("cluster").agg(pl.col("h").sum() * 8)
    return dict(total.iter_rows())


def test_it_stays_small_enough_for_git() -> None:
    assert sum(path.stat().st_size for path in SAMPLE.iterdir() if path.is_file()) <= 5_000_000


def test_one_project_claims_35_percent_of_all_capacity(policy: Policy) -> None:
    place = policy.tree["institute/language/pretraining"]

    assert place.is_leaf
    assert place.entitlement == Fraction(35, 100)


def test_everybody_in_the_log_has_a_place_among_the_leaves(quarter: SampleLog, policy: Policy) -> None:
    claimants = list(quarter.runs.select("Account", "User").unique().iter_rows())

    placed = placements(policy.tree, claimants)

    leaves = {leaf.path for leaf in policy.tree.leaves()}
    assert len(claimants) == 150
    assert set(placed.values()) == leaves


def test_demand_is_two_to_three_times_what_there_is(quarter: SampleLog) -> None:
    waits = gpu_h_between(quarter, pl.col("Eligible"), pl.coalesce("Start", "until"))
    holds = gpu_h_between(quarter, pl.col("Start"), pl.col("until"))
    wanted = pl.concat([waits, holds]).group_by("Cluster").agg(pl.col("gpu_h").sum())
    available = available_gpu_h(quarter)

    oversubscription = {cluster: gpu_h / available[cluster] for cluster, gpu_h in wanted.iter_rows()}

    assert sorted(oversubscription) == ["heron", "kestrel", "plover", "wren"]
    assert [cluster for cluster, times in oversubscription.items() if not 2 <= times <= 3] == []


def test_the_gpus_are_kept_busy_and_a_fifth_of_the_time_is_free(quarter: SampleLog) -> None:
    holds = gpu_h_between(quarter, pl.col("Start"), pl.col("until"))
    total = holds["gpu_h"].sum()

    occupancy = total / sum(available_gpu_h(quarter).values())
    free_share = holds.filter("is_free")["gpu_h"].sum() / total

    assert 0.965 <= occupancy <= 0.985
    assert 0.15 <= free_share <= 0.22


def test_debug_runs_start_at_once_and_the_largest_wait_for_hours(quarter: SampleLog) -> None:
    firsts = quarter.runs.sort("Submit").unique(["Cluster", "JobIDRaw"], keep="first").filter(~pl.col("is_free"))
    wait_s = (pl.col("Start") - pl.col("Eligible")).dt.total_seconds()

    debug = firsts.filter((pl.col("gpus") <= 8) & (pl.col("minimum_runtime_s") <= 900)).select(wait_s).to_series()
    gangs = firsts.filter(pl.col("gpus") == 512).select(wait_s).to_series()

    assert debug.quantile(0.9) <= 30
    assert gangs.len() >= 4
    assert gangs.max() >= 3600


def test_one_team_squats(in_quarter: pl.DataFrame) -> None:
    measured = in_quarter.filter(pl.col("used_percent").is_not_null() & ~pl.col("is_free"))
    idle = pl.col("gpu_h").filter(pl.col("used_percent") < 5).sum() / pl.col("gpu_h").sum()

    by_team = dict(measured.group_by("Account").agg(idle).iter_rows())

    assert by_team.pop("robotics") > 0.6
    assert max(by_team.values()) < 0.05


def test_top_priority_inflates_in_two_teams(in_quarter: pl.DataFrame) -> None:
    top = (pl.col("Priority") == "400").mean().alias("top")
    july = dict(in_quarter.filter(pl.col("Submit") < AUGUST).group_by("Account").agg(top).iter_rows())
    september = dict(in_quarter.filter(pl.col("Submit") >= SEPTEMBER).group_by("Account").agg(top).iter_rows())

    grown = {account for account, share in september.items() if share > 1.5 * july[account]}

    assert grown == {"code", "posttraining"}
    assert september["code"] > 0.8


def test_one_team_pads_its_minimum_runtimes(in_quarter: pl.DataFrame) -> None:
    of_eight_h = in_quarter.filter((pl.col("minimum_runtime_s") == 8 * 3600) & (pl.col("State") == "COMPLETED"))
    used_s = (pl.col("End") - pl.col("Start")).dt.total_seconds().median()

    by_team = dict(of_eight_h.group_by("Account").agg(used_s).iter_rows())

    assert by_team["climate"] < 1800
    assert by_team["video"] > 4 * 3600


def test_one_team_leaves_july_unused_and_one_program_bursts_before_its_deadline(in_quarter: pl.DataFrame) -> None:
    days = pl.col("Start").dt.ordinal_day() - 182  # 1 July is day 0
    held = in_quarter.filter(~pl.col("is_free")).group_by("Account", week=days // 7).agg(pl.col("gpu_h").sum())
    by_week = {(account, week): gpu_h for account, week, gpu_h in held.iter_rows()}

    assert sum(by_week["climate", week] for week in range(4)) < by_week["climate", 6]
    assert by_week["video", 10] > 1.3 * by_week["video", 6]
    assert by_week["video", 11] < by_week["video", 10]


def test_some_work_was_held_and_never_became_eligible(quarter: SampleLog) -> None:
    held = quarter.runs.filter(pl.col("Eligible").is_null())

    assert held.filter(pl.col("State") == "PENDING").height > 0
    assert held.filter(pl.col("State").str.starts_with("CANCELLED")).height > 50
    assert held["Start"].is_null().all()
