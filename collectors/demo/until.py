"""Waiting for what processes do that we have started."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02


def until(
    condition: Callable[[], T],
    what: str,
    within_s: float,
    tend: Callable[[], object],
    said: Callable[[], str],
) -> T:
    """What `condition` returns once that is true; `tend` is called meanwhile, again and again. Raises
    TimeoutError after `within_s` seconds, with the end of what was `said`."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        tend()
        time.sleep(POLL_S)
    raise TimeoutError(f"not within {within_s:.0f} s: {what}\n{said()[-2000:]}")
