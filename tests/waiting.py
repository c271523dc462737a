"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02


def until(condition: Callable[[], T], what: str | Callable[[], str], within_s: float) -> T:
    """What `condition` returns once that is true. Fails after `within_s` seconds and says what did not come;
    `what` may be a call for what is known by then."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(POLL_S)
    raise AssertionError(f"not within {within_s:.0f} s: {what() if callable(what) else what}")
