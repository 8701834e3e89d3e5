"""The plan's file, read by a real sacctmgr: it sets our shares, twice is once, and nothing else moves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpupolicy import cycle
from gpupolicy.policyfiles import parse_policy
from gpupolicy.recommend import recommend_slurm

pytestmark = pytest.mark.slurm

# the fixture's own tree (institute, three programs, five projects, six users) with other shares
POLICY = """
quarter: 2027Q1
tree:
  name: institute
  children:
    - name: language
      share: 45%
      children:
        - name: pretrain
          share: 2/3
          researchers: [{name: ada, share: 60%}, {name: ben, share: 40%}]
        - {name: posttrain, share: 1/3}
    - {name: vision, share: 35%, children: [{name: video, share: 50%}, {name: robots, share: 50%}]}
    - {name: climate, share: 20%, children: [{name: forecast, share: 100%}]}
"""


@pytest.fixture(scope="module")
def slurm(shared: Path) -> Iterator[dict[str, str]]:
    """The environment in which sacctmgr speaks to a fresh Slurm on loopback."""
    if os.geteuid() != 0:
        pytest.skip("a Slurm for tests needs root to start its daemons")
    started = subprocess.run([shared / "slurm" / "start"], capture_output=True, text=True, check=True, timeout=300)
    exports = dict(line.removeprefix("export ").split("=", 1) for line in started.stdout.splitlines() if "=" in line)
    environment = os.environ | {name: value.strip("'\"") for name, value in exports.items()}
    try:
        subprocess.run([shared / "slurm" / "seed"], env=environment, check=True, timeout=60, capture_output=True)
        yield environment
    finally:
        subprocess.run([shared / "slurm" / "stop"], env=environment, check=True, timeout=60, capture_output=True)


def sacctmgr(environment: dict[str, str], *arguments: str, answer: str = "") -> str:
    command = ["sacctmgr", *arguments]
    run = subprocess.run(command, env=environment, input=answer, capture_output=True, text=True, check=True, timeout=60)
    return run.stdout


def shares(environment: dict[str, str]) -> dict[tuple[str, str], str]:
    text = sacctmgr(environment, "-nP", "show", "assoc", "format=account,user,share")
    return {(account, user): share for account, user, share in (line.split("|") for line in text.splitlines())}


def test_the_planned_file_sets_every_share_and_nothing_else(slurm: dict[str, str], tmp_path: Path) -> None:
    policy = parse_policy(POLICY, name="policy")
    weights = recommend_slurm(policy, scale=1000)
    made_at = datetime(2026, 12, 1, tzinfo=UTC)
    file, *_ = cycle.plan_slurm(policy, weights, clusters=["testcluster"], out=tmp_path, made_at=made_at)
    before = shares(slurm)

    dry = sacctmgr(slurm, "load", f"file={file}", answer="n\n")
    assert "Changes Discarded" in dry
    assert shares(slurm) == before

    sacctmgr(slurm, "-i", "load", f"file={file}")
    planned = {
        (one.parent, one.name) if one.is_user else (one.name, ""): str(one.shares) for one in weights.associations
    }
    assert shares(slurm) == before | planned
    assert "Nothing new added" in sacctmgr(slurm, "-i", "load", f"file={file}")
