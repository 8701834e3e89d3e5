"""The scheduling contract: how long a workload is protected, and what class of workload it is."""

from __future__ import annotations

from dataclasses import dataclass

DEBUG_MAX_GPUS = 8
DEBUG_MAX_S = 15 * 60
SMALL_MAX_GPUS = 8
INTERACTIVE_PARTITION = "interactive"


@dataclass(frozen=True, slots=True)
class Contract:
    """The shortest occupancy that makes progress, and whether the work can go on after a requeue."""

    minimum_runtime_s: int
    is_resumable: bool = True

    @property
    def is_free(self) -> bool:
        """Minimum runtime zero: charged to nobody, protected from nothing."""
        return self.minimum_runtime_s == 0


def protected_s(contract: Contract, *, cap_s: int) -> int:
    """Seconds from a start during which the workload cannot be preempted."""
    return min(contract.minimum_runtime_s, cap_s)


def workload_class(gpus: int, contract: Contract, *, is_interactive: bool = False) -> str:
    """free, interactive, debug, small or large: the first that fits, as in the glossary."""
    if contract.is_free:
        return "free"
    if is_interactive:
        return "interactive"
    if gpus <= DEBUG_MAX_GPUS and contract.minimum_runtime_s <= DEBUG_MAX_S:
        return "debug"
    return "small" if gpus <= SMALL_MAX_GPUS else "large"
