"""What the words mean: pure functions over frozen values, exact arithmetic, the standard library only."""

from gpupolicy.domain.balance import balance, balances, level_fair_share, queue_order
from gpupolicy.domain.contract import Contract, protected_s, workload_class
from gpupolicy.domain.owed import WELL_SERVED, Delivery, Hour, delivery, hours
from gpupolicy.domain.placing import Claimant, placements
from gpupolicy.domain.policy import Policy
from gpupolicy.domain.pyramid import Pyramid
from gpupolicy.domain.quarter import Quarter, parse_quarter, quarter_of
from gpupolicy.domain.rounding import largest_remainder
from gpupolicy.domain.span import Span, full_hour, lookback_span
from gpupolicy.domain.tree import BudgetTree, Node, Place, unassigned
from gpupolicy.domain.weights import (
    half_life_of_equal_mean_age_h,
    half_life_of_equal_weight_h,
    whole_shares,
)

__all__ = [
    "WELL_SERVED",
    "BudgetTree",
    "Claimant",
    "Contract",
    "Delivery",
    "Hour",
    "Node",
    "Place",
    "Policy",
    "Pyramid",
    "Quarter",
    "Span",
    "balance",
    "balances",
    "delivery",
    "full_hour",
    "half_life_of_equal_mean_age_h",
    "half_life_of_equal_weight_h",
    "hours",
    "largest_remainder",
    "level_fair_share",
    "lookback_span",
    "parse_quarter",
    "placements",
    "protected_s",
    "quarter_of",
    "queue_order",
    "unassigned",
    "whole_shares",
    "workload_class",
]
