"""Every error raised on purpose, and the exit code it ends a command with.

GpuPolicyError
├── InvalidInput (2)          what was given cannot be used
│   ├── InvalidPolicy         a policy file breaks rules: every fault, with line and path
│   ├── UnreadableLog         a usage file is refused whole: names the file and the reason
│   ├── UnknownNode           no such node in the budget tree
│   ├── NothingMeasured       no usage or no capacity where some is needed
│   └── UnsafeExport          a name or number must not reach a scheduler
├── CheckFailed (1)           the answer is no
└── EnvironmentTrouble (3)    what is around us is not as needed
    ├── StoreMissing          no store where one is to be read
    ├── StoreBusy             another process is writing the store
    ├── StoreTooNew           a later gpupolicy wrote the store
    └── ReportFailed          a notebook stopped in the middle: names the copy that was kept
"""

from __future__ import annotations

from collections.abc import Sequence


class GpuPolicyError(Exception):
    """Base of all errors raised on purpose; its text is fit for a user's eyes."""

    exit_code = 1


class CheckFailed(GpuPolicyError):
    exit_code = 1


class InvalidInput(GpuPolicyError):
    exit_code = 2


class InvalidPolicy(InvalidInput):
    """All faults of one policy file, each a line of the message."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


class UnreadableLog(InvalidInput):
    pass


class UnknownNode(InvalidInput):
    pass


class NothingMeasured(InvalidInput):
    pass


class UnsafeExport(InvalidInput):
    """Names or numbers that a scheduler would misread, all of them at once."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


class EnvironmentTrouble(GpuPolicyError):
    exit_code = 3


class StoreMissing(EnvironmentTrouble):
    pass


class StoreBusy(EnvironmentTrouble):
    pass


class StoreTooNew(EnvironmentTrouble):
    pass


class ReportFailed(EnvironmentTrouble):
    pass
