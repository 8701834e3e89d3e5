"""Real traces through store and measures: the published reference figures come out, to a millionth."""

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from gpupolicy import assets, cycle
from gpupolicy.ingest import load_mapping, read_capacity, read_table

LOADED_AT = datetime(2026, 12, 1, tzinfo=UTC)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def theta(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], cycle.Review]:
    """ThetaGPU's jobs under equal shares for each of its 28 projects, on 24 slots, over the reference's span."""
    folder = tmp_path_factory.mktemp("theta")
    trace = shared / "traces" / "thetagpu-2023-early"
    reference = json.loads((trace / "reference.json").read_text())
    mapping, taken_at = load_mapping(assets.MAPPINGS / "thetagpu.yaml"), datetime(2023, 5, 2, tzinfo=UTC)
    reading = read_table(trace / "data_thetagpu.csv.gz", mapping, cluster="theta", observed_until=taken_at)
    (folder / "capacity.csv").write_text("gpus,valid_from,valid_to\n24,2022-01-01T00:00:00Z,\n")
    for one in (read_capacity(folder / "capacity.csv", cluster="theta"), reading):
        cycle.ingest(folder / "store", one, loaded_at=LOADED_AT)
    policy = folder / "policy.yaml"
    projects = reading.runs["account"].unique().sort().to_list()
    leaves = "".join(f"\n    - {{name: '{name}', share: 1/{len(projects)}}}" for name in projects)
    policy.write_text(f"quarter: 2023Q1\ntree:\n  name: theta\n  children:{leaves}\n")
    starts_at = datetime.fromtimestamp(reference["first_submit_s"] // 3600 * 3600, UTC)
    ends_at = starts_at + timedelta(hours=reference["hours_in_span"])
    return reference, cycle.review(folder / "store", policy, starts_at=starts_at, ends_at=ends_at)


def test_gpu_hours_in_all_and_of_each_project(theta: tuple[dict[str, object], cycle.Review]) -> None:
    reference, review = theta
    by_project = dict(review.nodes.select("name", "delivered_gpu_h").iter_rows())

    assert by_project["theta"] == pytest.approx(reference["gpu_hours"], rel=1e-6)
    for top in reference["gpu_hours_by_vc_top10"]:
        assert by_project[top["vc"]] == pytest.approx(top["gpu_hours"], rel=1e-6)


def test_delivered_of_owed_in_all_and_of_the_worst_project(theta: tuple[dict[str, object], cycle.Review]) -> None:
    reference, review = theta
    leaves = review.nodes.filter("is_leaf")

    delivered = leaves["delivered_of_owed_gpu_h"].sum() / leaves["owed_gpu_h"].sum()
    assert delivered == pytest.approx(reference["owed_equal_shares_delivered"], rel=1e-6)
    assert review.worst_ratio == pytest.approx(reference["owed_equal_shares_worst_vc"], rel=1e-6)
    assert review.teams_at_95 == reference["owed_equal_shares_vcs_at_95"]
    assert review.team_count == reference["n_vc"]


def test_occupancy_and_demand_over_capacity(theta: tuple[dict[str, object], cycle.Review]) -> None:
    reference, review = theta
    whole = review.pyramid.row(-1, named=True)

    assert whole["occupancy"] == pytest.approx(reference["occupancy_mean_unclipped"], rel=1e-6)
    assert whole["oversubscription"] == pytest.approx(reference["demand_capacity_ratio_mean"], rel=1e-6)


def test_hours_at_the_root_are_what_all_held(theta: tuple[dict[str, object], cycle.Review]) -> None:
    reference, review = theta

    assert review.hourly.height == reference["hours_in_span"]
    assert review.hourly["delivered_gpus"].sum() == pytest.approx(reference["gpu_hours"], rel=1e-6)
    assert Fraction(review.nodes["entitlement"][0]) == 1
