"""What the package answers to a field case: one function an area, each using public names only."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from gpupolicy import assets, cycle
from gpupolicy.domain import BudgetTree, Hour, Node, delivery, largest_remainder, whole_shares
from gpupolicy.errors import UnsafeExport
from gpupolicy.ingest import load_mapping, read_capacity, read_table
from gpupolicy.policyfiles import load_policy
from gpupolicy.schedulers import slurm

LOADED_AT = datetime(2026, 12, 1, tzinfo=UTC)

Answer = dict[str, Any]


class NotAnswered(Exception):
    """A kind of case that the package does not answer yet."""


def fairshare(folder: Path, expected: Mapping[str, Any], scratch: Path) -> Answer:
    if "owed_gpu_hours" in expected and not (folder / "capacity.csv").exists():
        return _owed_of_hours(folder)
    if not (folder / "capacity.csv").exists():
        raise NotAnswered(f"{expected['id']} needs more than jobs and a capacity")
    params = expected["params"]
    shares = params.get("shares") or json.loads((folder / "tree.json").read_text())["shares"]
    policy = _write_policy(scratch / "policy.yaml", shares, params["window_start"])
    store = _load_jobs(folder, scratch / "store", params)
    return _of_window(store, policy, params, sorted(shares))


def export(folder: Path, expected: Mapping[str, Any], scratch: Path) -> Answer:  # noqa: ARG001 - all areas alike
    given = json.loads((folder / "input.json").read_text())
    answers = {"EX-01": _names, "EX-02": _share_numbers, "EX-03": _collisions}
    if expected["id"] not in answers:
        raise NotAnswered(f"{expected['id']} is for another target")
    return answers[expected["id"]](given)


def budget(folder: Path, expected: Mapping[str, Any], scratch: Path) -> Answer:
    if expected["id"] not in {"BU-01", "BU-06"}:
        raise NotAnswered(f"{expected['id']} needs the ledger")
    given = json.loads((folder / "input.json").read_text())
    if expected["id"] == "BU-01":
        return {
            "percent": {name: _percents(weights) for name, weights in given.items()},
            "order_of_input_matters": any(
                _percents(dict(reversed(weights.items()))) != _percents(weights) for weights in given.values()
            ),
        }
    return _claims(given["shares"], folder / "capacity.csv", expected["params"]["quarter"], scratch)


ANSWERS: Mapping[str, Callable[[Path, Mapping[str, Any], Path], Answer]] = {
    "fairshare": fairshare,
    "export": export,
    "budget": budget,
}


# Fair share: from jobs, or from hours that are given


def _owed_of_hours(folder: Path) -> Answer:
    of_team: defaultdict[str, list[Hour]] = defaultdict(list)
    for row in csv.DictReader((folder / "input.csv").read_text().splitlines()):
        hour = Hour(Fraction(row["allocated"]), demand=int(row["demand"]), charged=int(row["delivered"]))
        of_team[row["team"]].append(hour)
    sums = {team: delivery(hours) for team, hours in of_team.items()}
    owed = sum((one.owed for one in sums.values()), Fraction(0))
    within = sum((one.delivered_of_owed for one in sums.values()), Fraction(0))
    return {
        "owed_gpu_hours": {team: float(one.owed) for team, one in sums.items()},
        "delivered_gpu_hours": {team: float(one.delivered) for team, one in sums.items()},
        "delivered_of_owed_gpu_hours": {team: float(one.delivered_of_owed) for team, one in sums.items()},
        "ratio_delivered_of_owed": {team: _float(one.strict_ratio) for team, one in sums.items()},
        "ratio_raw": {team: _float(one.raw_ratio) for team, one in sums.items()},
        "all_teams": {"owed": float(owed), "delivered_of_owed": float(within), "ratio": float(within / owed)},
    }


def _of_window(store: Path, policy: Path, params: Mapping[str, Any], accounts: list[str]) -> Answer:
    starts_at, ends_at = _moment(params["window_start"]), _moment(params["window_end"])
    whole = cycle.review(store, policy, starts_at=starts_at, ends_at=ends_at)
    of_account = {
        name: cycle.review(store, policy, node=f"org/{name}", starts_at=starts_at, ends_at=ends_at).hourly
        for name in accounts
    }
    nodes = {row["name"]: row for row in whole.nodes.to_dicts()}
    standing = cycle.fair_share(store, policy, at=ends_at)
    ranked = {row["path"].rsplit("/", 1)[-1]: row for row in standing.nodes.to_dicts()}
    return {
        "capacity_gpu_hours": whole.pyramid["available_gpu_h"][-1],
        "gpu_hours_by_account": {name: nodes[name]["delivered_gpu_h"] for name in accounts},
        "allocated_gpu_hours": {name: nodes[name]["entitled_gpu_h"] for name in accounts},
        "occupancy_over_allocated": {name: ranked[name]["balance"] for name in accounts},
        "order_most_under_served_first": [path.removeprefix("org/") for path in standing.queue],
        "level_fs": {name: ranked[name]["level_fair_share"] for name in accounts},
        "hourly_demand": {name: hourly["demand_gpus"].to_list() for name, hourly in of_account.items()},
        "hourly_owed": {name: hourly["owed_gpus"].to_list() for name, hourly in of_account.items()},
        "hourly_delivered": {name: hourly["delivered_gpus"].to_list() for name, hourly in of_account.items()},
        "owed_gpu_hours": {name: nodes[name]["owed_gpu_h"] for name in accounts},
        "delivered_of_owed_gpu_hours": {name: nodes[name]["delivered_of_owed_gpu_h"] for name in accounts},
        "ratio_delivered_of_owed": {name: nodes[name]["strict_ratio"] for name in accounts},
    }


def _load_jobs(folder: Path, store: Path, params: Mapping[str, Any]) -> Path:
    cutoff = _moment(params["cutoff"])
    mapping = load_mapping(assets.MAPPINGS / "generic.yaml")
    jobs = read_table(folder / "input.csv", mapping, cluster="c", observed_until=cutoff)
    size = read_capacity(folder / "capacity.csv", cluster="c", observed_until=cutoff)
    for reading in (size, jobs):
        cycle.ingest(store, reading, loaded_at=LOADED_AT)
    return store


def _write_policy(path: Path, shares: Mapping[str, float], moment: str) -> Path:
    quarter = f"{moment[:4]}Q{(int(moment[5:7]) + 2) // 3}"
    children = [{"name": name, "share": share} for name, share in shares.items()]
    path.write_text(yaml.safe_dump({"quarter": quarter, "tree": {"name": "org", "children": children}}))
    return path


# Export to Slurm


def _names(names: list[str]) -> Answer:
    outcome = {name: _name_outcome(name) for name in names}
    root = Node("org", children=tuple(Node(name, Fraction(1, len(names))) for name in names))
    tree = BudgetTree(root)
    try:
        slurm.associations(tree, whole_shares(tree, 100))
        nothing_exported = False
    except UnsafeExport:
        nothing_exported = True
    return {"outcome": outcome, "nothing_exported_if_any_rejected": nothing_exported}


def _name_outcome(name: str) -> str:
    try:
        kept = slurm.slurm_name(name)
    except UnsafeExport:
        return "rejected"
    return "accepted" if kept == name else f"accepted_as:{kept}"


def _share_numbers(given: Mapping[str, Any]) -> Answer:
    weights = {name: Fraction(str(weight)) for name, weight in given["weights"].items()}
    return {
        "fairshare": largest_remainder(weights, given["scale"]),
        "raw_outcome": {raw: _share_outcome(raw) for raw in given["raw_values"]},
        "sibling_sum_below": slurm.SIBLINGS_BELOW,
    }


def _share_outcome(raw: str) -> str:
    try:
        number = slurm.slurm_share(raw)
    except UnsafeExport as unsafe:
        return "rejected:" + str(unsafe).removeprefix(f"share {raw}: ").split(";")[0].split(" ")[0]
    return "accepted" if number else "accepted:starves"


def _collisions(given: Mapping[str, list[str]]) -> Answer:
    paths = given["nodes"]
    tree = _tree(dict.fromkeys(["org", *paths], "1/8"))
    try:
        slurm.associations(tree, whole_shares(tree, 100))
    except UnsafeExport as unsafe:
        (fault,) = unsafe.faults
        reason, told = fault.split(": ", 1)
        colliding = told.split(" would ")[0].split(" and ")
        return {"target": "slurm", "outcome": "rejected", "reason": reason, "colliding": colliding}
    return {"target": "slurm", "outcome": "accepted"}


# Budgets


def _percents(weights: Mapping[str, float]) -> dict[str, int]:
    return largest_remainder({name: Fraction(str(weight)) for name, weight in weights.items()}, 100)


def _claims(shares: Mapping[str, float], capacity: Path, quarter: str, scratch: Path) -> Answer:
    policy = scratch / "policy.yaml"
    policy.write_text(yaml.safe_dump({"quarter": quarter, "tree": _nested(shares, "org")}))
    store = scratch / "store"
    cycle.ingest(store, read_capacity(capacity, cluster="c"), loaded_at=LOADED_AT)
    in_force = load_policy(policy)
    frame = cycle.budget(in_force, available_gpu_ns=cycle.quarter_capacity_gpu_ns(store, in_force))
    return {
        "absolute_share": dict(frame.select("path", "entitlement").iter_rows()),
        "budget_gpu_hours": dict(frame.select("path", "entitled_gpu_h").iter_rows()),
    }


def _nested(shares: Mapping[str, float], path: str) -> dict[str, Any]:
    below = [one for one in shares if one.rpartition("/")[0] == path]
    node = {"name": path.rsplit("/", 1)[-1], "share": shares[path]}
    return {**node, "children": [_nested(shares, one) for one in below]}


def _tree(shares: Mapping[str, str]) -> BudgetTree:
    def node(path: str) -> Node:
        below = tuple(node(one) for one in shares if one.rpartition("/")[0] == path)
        return Node(path.rsplit("/", 1)[-1], Fraction(shares[path]), below)

    return BudgetTree(node("org"))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
