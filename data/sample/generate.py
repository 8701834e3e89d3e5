"""Make the sample set from a seed: an honest event loop over an invented institute.

    python data/sample/generate.py --seed 7 --out data/sample

The same seed gives the same bytes. The budget is read from the policy in force, habits.py says what the teams
are like, and README.md beside this file tells their quarter.
"""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path

from events import Institute
from fairness import RERANK_S
from schedule import schedule_free, schedule_funded
from work import DAY
from write import Clock, write_capacity, write_logs

from gpupolicy.policyfiles import load_policy

POLICY = Path(__file__).resolve().parents[1] / "policies" / "in_force" / "2026Q3.yaml"
PASS_S = 30
BURN_IN_DAYS = 2  # so that the log does not begin with empty clusters
LOOKBACK_DAYS = 7  # the log begins one lookback before the quarter: its first balances are whole


def main() -> None:
    asked = _arguments()
    policy = load_policy(POLICY)
    before_s = (BURN_IN_DAYS + LOOKBACK_DAYS) * DAY
    whole_days = LOOKBACK_DAYS + policy.quarter.hours // 24
    until = (BURN_IN_DAYS + min(asked.days or whole_days, whole_days)) * DAY
    clock = Clock(policy.quarter.starts_at - timedelta(seconds=before_s), BURN_IN_DAYS * DAY)
    institute = Institute(policy, seed=asked.seed, quarter_starts=before_s, until=until)
    live(institute, clock=clock)
    rows = write_logs(institute, asked.out, clock=clock)
    write_capacity(institute, asked.out, clock=clock)
    print(", ".join(f"{cluster} {count:,} rows" for cluster, count in rows.items()), f"in {asked.out}")


def live(institute: Institute, *, clock: Clock) -> None:
    """From one schedulable moment to the next: every 30 s where something changed, all of it every 5 min."""
    for at in range(0, institute.until, PASS_S):
        institute.live_until(at)
        is_rerank = at % RERANK_S == 0
        if is_rerank:
            institute.standing.rerank(at)
        for pool in institute.pools.values():
            if is_rerank or pool.is_dirty:
                schedule_funded(institute, pool, at)
            if is_rerank:
                schedule_free(institute, pool, at)
        if at % DAY == 0:
            print(f"\r{clock.text(at)[:10]} {len(institute.runs):>7,} runs", end="", file=sys.stderr, flush=True)
    institute.live_until(institute.until)
    institute.take_stock()
    print(file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the sample set of an invented institute.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write into")
    parser.add_argument("--days", type=int, help="only so many days of the log (it begins 7 days before the quarter)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
