"""A small real store for the faces: three weeks of March 2026 on two clusters, loaded by the real warehouse."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from small_store import at, load

POLICY = """\
quarter: 2026Q1
tree:
  name: lab
  owner: Grace Chen
  children:
    - name: language
      share: 60%
      owner: "Ada </script><script>alert(1)</script>"
      children:
        - {name: pretraining, share: 60%, owner: Bo}
        - {name: evaluation, share: 40%}
    - name: vision
      share: 40%
      children:
        - {name: video, share: 70%}
        - {name: robotics, share: 25%}
        - {name: '<img src=x onerror="document.title=1">', share: 1%}
"""
HOSTS = [
    {"cluster": "h100", "host": "*", "gpus": 64, "gpu_type": "h100", "valid_from": at(1)},
    {"cluster": "b200", "host": "*", "gpus": 16, "gpu_type": "b200", "valid_from": at(1)},
]
DAYS = 21


def make_store(folder: Path) -> tuple[Path, Path]:
    """The store and the policy file. Robotics waits every day; a stranger's account is in no node; names are evil."""
    store, policy = folder / "store", folder / "2026Q1.yaml"
    load(store, list(_runs()), hosts=HOSTS, observed_until=at(1 + DAYS))
    policy.write_text(POLICY, encoding="utf-8")
    return store, policy


def _runs() -> Iterator[dict[str, Any]]:
    for day in range(1, DAYS + 1):
        yield _run(day, "pretraining", gpus=16 + day, hours=20, waits_h=1)
        yield _run(day, "evaluation", gpus=14, hours=24)
        yield _run(day, "evaluation", gpus=4, hours=6, is_charged=False, cluster="b200")
        yield _run(day, "video", gpus=20, hours=22)
        yield _run(day, "robotics", gpus=8, hours=18, waits_h=5, cluster="b200")
    yield _run(3, "stranger", gpus=2, hours=12, cluster="b200")


def _run(
    day: int,
    account: str,
    *,
    gpus: int,
    hours: int,
    waits_h: int = 0,
    is_charged: bool = True,
    cluster: str = "h100",
) -> dict[str, Any]:
    submitted = at(day)
    started = submitted + timedelta(hours=waits_h)
    return {
        "cluster": cluster,
        "workload_id": f"{account}-{day}-{gpus}",
        "account": account,
        "gpus": gpus,
        "submitted_at": submitted,
        "eligible_at": submitted,
        "started_at": started,
        "ended_at": started + timedelta(hours=hours - waits_h),
        "is_charged": is_charged,
        "utilization_ratio": 0.7 if cluster == "h100" else None,
    }
