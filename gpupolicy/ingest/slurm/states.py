"""The states of a job as Slurm names and numbers them."""

from __future__ import annotations

# In the order of their numbers in Slurm's database; a job is in one of them, whatever flags are set beside it.
BASE_STATES = (
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
    "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
)  # fmt: skip
# In the order of their bits, from 2^8 on.
FLAG_STATES = (
    "LAUNCH_FAILED", "UPDATE_DB", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESIZING", "CONFIGURING",
    "COMPLETING", "STOPPED", "RECONFIG_FAIL", "POWER_UP_NODE", "REVOKED", "REQUEUE_FED", "RESV_DEL_HOLD",
    "SIGNALING", "STAGE_OUT", "EXPEDITING",
)  # fmt: skip
FIRST_FLAG_BIT = 8

ENDED = frozenset({
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "TIMEOUT",
})  # fmt: skip
RAN = frozenset({"COMPLETED", "COMPLETING", "OUT_OF_MEMORY", "RUNNING", "SUSPENDED", "TIMEOUT"})
KNOWN_STATES = frozenset({*BASE_STATES, *FLAG_STATES})


def state_name(number: int) -> str | None:
    """The name of a state as a number: the base state, or the lowest flag of a job that has none but flags.

    So a run that was requeued, or ended by a change of its size, stands in the database; None for no state at all.
    """
    base, flags = number & 0xFF, number >> FIRST_FLAG_BIT
    if base == 0 and flags:
        bit = (flags & -flags).bit_length() - 1
        return FLAG_STATES[bit] if bit < len(FLAG_STATES) else None
    return BASE_STATES[base] if base < len(BASE_STATES) else None
