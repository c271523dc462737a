"""How often someone may call."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable


class RateLimit:
    """A token bucket for each caller: `burst` calls at once, and `per_second` from then on. `clock` counts
    seconds. No more than `most` callers are remembered, those that called last."""

    def __init__(
        self,
        burst: int = 60,
        per_second: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        most: int = 1000,
    ) -> None:
        self.burst, self.per_second, self.clock, self.most = burst, per_second, clock, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Seconds until the caller may call; 0.0 is now, and counts as a call."""
        now = self.clock()
        left, since = self._buckets.pop(caller, (float(self.burst), now))
        left = min(self.burst, left + (now - since) * self.per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self.per_second
        self._buckets[caller] = (left if wait else left - 1, now)
        if len(self._buckets) > self.most:
            self._buckets.popitem(last=False)
        return wait
