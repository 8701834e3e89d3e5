"""What is in force: the tree of a quarter and the knobs of its scheduling contract."""

from __future__ import annotations

from dataclasses import dataclass

from gpupolicy.domain.quarter import Quarter
from gpupolicy.domain.tree import BudgetTree

DEFAULT_LOOKBACK_H = 7 * 24
DEFAULT_MINIMUM_RUNTIME_CAP_S = 8 * 3600


@dataclass(frozen=True, slots=True)
class Policy:
    """The budget tree of one quarter, the lookback and the cap on minimum runtimes."""

    quarter: Quarter
    tree: BudgetTree
    lookback_h: int = DEFAULT_LOOKBACK_H
    minimum_runtime_cap_s: int = DEFAULT_MINIMUM_RUNTIME_CAP_S
    decided_in: str | None = None
