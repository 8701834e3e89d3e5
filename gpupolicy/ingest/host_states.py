"""Slurm's words for the state of a host, and what they take away."""

from __future__ import annotations

import re

_DOWN = frozenset({"DOWN", "ERROR", "FAIL", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "UNKNOWN"})
_DRAIN = frozenset({"DRAIN", "DRAINED", "DRAINING", "DRNG", "FAILING", "FAILG"})
_BUSY = frozenset({
    "ALLOC", "ALLOCATED", "COMP", "COMPLETING", "DRAINING", "DRNG", "FAILING", "FAILG", "MIX", "MIXED",
})  # fmt: skip
_MAINTENANCE = frozenset({"MAINT", "MAINTENANCE"})
_UP = frozenset({
    "ALLOC", "ALLOCATED", "BLOCKED", "CLOUD", "COMP", "COMPLETING", "DYNAMIC_NORM", "IDLE", "MIX", "MIXED",
    "NOT_RESPONDING", "NO_RESPOND", "PERFCTRS", "PLANNED", "PLND", "POWERING_UP", "POWER_UP", "REBOOT",
    "REBOOT_ISSUED", "REBOOT_REQUESTED", "RESERVED", "RESUME", "RESV", "UNDRAIN", "UP",
})  # fmt: skip
_MARKS = "*~#!%$@^-"
_RESERVED = "$"  # marks a host in a reservation for maintenance


def outage_state(text: str) -> str | None:
    """down, drained, maintenance or draining of a Slurm state such as `MIXED+DRAIN` or `DOWN*+DRAIN` (case ca-02).

    "up" if the host can be used; None if a word is unknown. What is down stays so whatever else it is; who
    drains still works until nobody is left, and a plain DRAIN says that nobody is (case ca-03).
    """
    told = {word.strip() for word in re.split(r"[+\s]", text.upper()) if word.strip(_MARKS + " ")}
    words = {word.rstrip(_MARKS) for word in told} | {"MAINT" for word in told if _RESERVED in word}
    if not words or not words <= _DOWN | _DRAIN | _BUSY | _MAINTENANCE | _UP:
        return None
    if words & _DOWN:
        return "down"
    if words & _DRAIN:
        return "draining" if words & _BUSY else "drained"
    return "maintenance" if words & _MAINTENANCE else "up"
