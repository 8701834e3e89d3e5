"""What the commands answer."""

import csv
import io
import json
from pathlib import Path

import pytest


def test_the_version_is_said(gpupolicy) -> None:
    assert gpupolicy("--version").out == "gpupolicy 0.1.0\n"


def test_the_briefs_example_a_leaf_with_a_claim_on_35_percent(gpupolicy, files: Path) -> None:
    shown = gpupolicy("budget", "show", "--policy", files / "policy.yaml", "--gpus", 1000, "--format", "json")

    (leaf,) = [node for node in shown.json["nodes"] if node["path"] == "org/a/a1"]
    assert leaf["entitlement"] == 0.35
    assert leaf["entitled_gpus"] == 350
    assert leaf["entitled_gpu_h"] == 350 * 2160


def test_the_tree_shows_what_nobody_was_given(gpupolicy, files: Path) -> None:
    shown = gpupolicy("budget", "show", "--policy", files / "policy.yaml", "--gpus", 1000)

    lines = [line.split() for line in shown.out.splitlines()]
    assert ["a1", "Ada", "70.0%", "35.0%", "350.0", "756,000"] in lines
    assert ["(unassigned)", "-", "10.0%", "5.0%", "50.0", "108,000"] in lines
    assert ["(unassigned)", "-", "10.0%", "10.0%", "100.0", "216,000"] in lines


def test_without_a_store_the_tree_is_shown_without_gpus_and_says_why(gpupolicy, files: Path) -> None:
    shown = gpupolicy("budget", "show", "--policy", files / "policy.yaml", "--store", files / "none")

    assert shown.code == 0
    assert "35.0%" in shown.out
    assert "give --gpus N" in shown.err


def test_delivery_is_told_for_a_node_and_all_below_it(gpupolicy, files: Path, store: Path) -> None:
    span = ("--from", "2026-03-01T00:00Z", "--to", "2026-03-01T08:00Z")
    told = gpupolicy(
        "measure",
        "delivery",
        *span,
        "--node",
        "a",
        "--policy",
        files / "policy.yaml",
        "--store",
        store,
        "--format",
        "json",
    )

    by_path = {node["path"]: node for node in told.json["nodes"]}
    assert list(by_path) == ["org/a", "org/a/a1", "org/a/a2"]
    a1, a2 = by_path["org/a/a1"], by_path["org/a/a2"]
    assert (a1["owed_gpu_h"], a1["delivered_gpu_h"], a1["strict_ratio"]) == (pytest.approx(6 * 5.6), 48, 1)
    # a2 is entitled to 1.6 GPUs: it waits in the first hour and runs in the next two
    assert (a2["owed_gpu_h"], a2["delivered_of_owed_gpu_h"]) == (pytest.approx(4.8), pytest.approx(3.2))
    assert a2["strict_ratio"] == pytest.approx(2 / 3)
    assert a2["net_ratio"] == pytest.approx(4 / 4.8)
    assert told.json["unmapped_gpu_h"] == 1
    assert [hour["demand_gpus"] for hour in told.json["hourly"]] == [10, 10, 10, 8, 8, 8, 0, 0]


def test_delivery_can_be_seen_hour_by_hour_as_csv(gpupolicy, files: Path, store: Path) -> None:
    span = ("--from", "2026-03-01T00:00Z", "--to", "2026-03-01T04:00Z", "--by", "hour")
    told = gpupolicy(
        "--format",
        "csv",
        "measure",
        "delivery",
        *span,
        "--node",
        "a2",
        "--policy",
        files / "policy.yaml",
        "--store",
        store,
    )

    rows = list(csv.DictReader(io.StringIO(told.out)))
    assert [float(row["owed_gpus"]) for row in rows] == pytest.approx([1.6, 1.6, 1.6, 0])
    assert [float(row["delivered_gpus"]) for row in rows] == [0, 2, 2, 0]


def test_the_pyramid_is_told_per_cluster_and_for_all(gpupolicy, files: Path, store: Path) -> None:
    span = ("--from", "2026-03-01", "--to", "2026-03-02")
    told = gpupolicy(
        "measure", "pyramid", *span, "--policy", files / "policy.yaml", "--store", store, "--format", "json"
    )

    c, whole = told.json["clusters"]
    assert (c["cluster"], whole["cluster"]) == ("c", "all clusters")
    assert c["availability"] == 1
    assert c["occupancy"] == pytest.approx((48 + 4 + 16 + 1) / (16 * 24))
    assert c["utilization"] is None


def test_fair_share_names_its_direction_and_the_order(gpupolicy, files: Path, store: Path) -> None:
    told = gpupolicy(
        "fairshare",
        "--at",
        "2026-03-01T08:30Z",
        "--policy",
        files / "policy.yaml",
        "--store",
        store,
        "--format",
        "json",
    )

    assert told.json["at"] == "2026-03-01T08:00:00Z"
    assert told.json["direction"] == "low goes first"
    assert told.json["order"] == ["org/b", "org/a/a2", "org/a/a1"]
    root = told.json["nodes"][0]
    assert root["balance"] == pytest.approx((48 + 4 + 16) / (16 * 168))


def test_recommended_shares_are_whole_and_sum_at_every_level(gpupolicy, files: Path) -> None:
    told = gpupolicy("recommend", "slurm", "--policy", files / "policy.yaml", "--scale", 100, "--format", "json")

    assert {one["path"]: one["fairshare"] for one in told.json["shares"]} == {
        "org": 100,
        "org/a": 50,
        "org/a/a1": 70,
        "org/a/a2": 20,
        "org/b": 40,
    }
    assert told.json["half_life_h"]["equal_mean_age"] / 24 == pytest.approx(2.426, abs=1e-3)
    assert told.json["half_life_h"]["equal_weight"] / 24 == pytest.approx(4.852, abs=1e-3)


def test_a_plan_is_files_and_a_record_of_what_they_were_made_from(gpupolicy, files: Path, store: Path) -> None:
    out = files / "plan"
    told = gpupolicy("plan", "slurm", "--out", out, "--policy", files / "policy.yaml", "--store", store)

    assert told.out.splitlines() == [str(out / name) for name in ("c.sacctmgr.cfg", "slurm.conf.lines", "plan.json")]
    assert "Account - 'a1':Fairshare=7000" in (out / "c.sacctmgr.cfg").read_text()
    assert "PriorityDecayHalfLife=2-10:13:28" in (out / "slurm.conf.lines").read_text()
    assert sorted(json.loads((out / "plan.json").read_text())["files"]) == ["c.sacctmgr.cfg", "slurm.conf.lines"]
    assert "nothing was applied" in told.err


def test_options_of_every_command_stand_before_or_after_the_verb(gpupolicy, files: Path, store: Path) -> None:
    policy = ("--policy", files / "policy.yaml")
    before = gpupolicy("--store", store, "--format=json", "--at", "2026-03-02", "fairshare", *policy)
    after = gpupolicy("fairshare", *policy, "--at=2026-03-02", "--format", "json", "--store", store)

    assert before.code == 0
    assert before.out == after.out


def test_loading_a_file_again_says_that_nothing_is_new(gpupolicy, files: Path, store: Path) -> None:
    again = gpupolicy(
        "ingest",
        "table",
        files / "jobs.csv",
        "--cluster",
        "c",
        "--store",
        store,
        "--at",
        "2026-03-02",
        "--format",
        "json",
    )

    (file,) = again.json["files"]
    assert file["loaded"] == {"new": 0, "changed": 0, "unchanged": 4}
    assert file["rows"]["accepted"] == 4
    assert "nothing new" in again.err


def test_sound_policy_files_are_told_so(gpupolicy, files: Path) -> None:
    told = gpupolicy("budget", "check", files / "policy.yaml", "--format", "json")

    (row,) = told.json["rows"]
    assert row == {"file": str(files / "policy.yaml"), "quarter": "2026Q1", "nodes": 5, "leaves": 3}
