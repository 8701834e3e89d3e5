"""Who stands where in the queue: charged GPU time in the sliding lookback, through the package's own rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from gpupolicy.domain import Policy, balances, queue_order

RERANK_S = 300  # like Slurm's PriorityCalcPeriod


class Standing:
    """Charged GPU-seconds of every leaf and available ones of all hosts, and the order that follows from them."""

    def __init__(self, policy: Policy) -> None:
        self.tree = policy.tree
        self.leaves = policy.tree.leaves()
        self._above = [[place.path for place in self.tree.path_to(leaf.path)] for leaf in self.leaves]
        self._number = {leaf.path: number for number, leaf in enumerate(self.leaves)}
        self._charged = [0] * len(self.leaves)
        self._held = [0] * len(self.leaves)
        self._since = [0] * len(self.leaves)
        self._available = 0
        self._gpus = 0
        self._gpus_since = 0
        self._window: deque[tuple[int, list[int]]] = deque(maxlen=policy.lookback_h * 3600 // RERANK_S + 1)
        self.order = list(range(len(self.leaves)))
        self.ranks = list(self.order)

    def holds(self, leaf: int, gpus: int, *, at: int) -> None:
        """A leaf is charged for so many more GPUs from now on; fewer if negative."""
        self._charged[leaf] += self._held[leaf] * (at - self._since[leaf])
        self._held[leaf] += gpus
        self._since[leaf] = at

    def available(self, gpus: int, *, at: int) -> None:
        """So many more GPUs can run work from now on; fewer if negative."""
        self._available += self._gpus * (at - self._gpus_since)
        self._gpus += gpus
        self._gpus_since = at

    def rerank(self, at: int) -> None:
        """Sort the leaves anew; to be called every RERANK_S seconds."""
        self.available(0, at=at)
        for leaf in range(len(self.leaves)):
            self.holds(leaf, 0, at=at)
        self._window.append((self._available, list(self._charged)))
        available_before, charged_before = self._window[0]
        in_window = [now - before for now, before in zip(self._charged, charged_before, strict=True)]
        by_path = balances(self.tree, self._rolled_up(in_window), self._available - available_before)
        self.order = [self._number[place.path] for place in queue_order(self.tree, by_path)]
        for rank, leaf in enumerate(self.order):
            self.ranks[leaf] = rank

    def _rolled_up(self, in_window: Sequence[int]) -> dict[str, int]:
        charged: dict[str, int] = {}
        for gpu_s, paths in zip(in_window, self._above, strict=True):
            for path in paths:
                charged[path] = charged.get(path, 0) + gpu_s
        return charged
