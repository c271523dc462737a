"""How long a call takes: the first time, with nothing of its file in memory, and then many times."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Times(NamedTuple):
    """In ms. `first` is the call that read the file from the disk; the others are of the calls after it."""

    first: float
    median: float
    p95: float
    least: float

    @property
    def told(self) -> str:
        return (
            f"median {self.median:.1f} ms, 95 of 100 within {self.p95:.1f}, least {self.least:.1f}; "
            f"first from the disk {self.first:.1f}"
        )


def forget(path: Path | None) -> None:
    """Let the system give up what it holds of a file in memory."""
    if path is not None:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(call: Callable[[], Any], times: int, path: Path | None = None) -> Times:
    """`path`: the file that it reads, to be forgotten first; the second call warms up and is not counted."""
    forget(path)
    first, _ = seconds(call), seconds(call)
    found = sorted(1000 * seconds(call) for _ in range(times))
    p95 = found[min(len(found) - 1, round(0.95 * len(found)))]
    return Times(1000 * first, statistics.median(found), p95, found[0])


def seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def load() -> str:
    return "load average {:.1f}, {:.1f}, {:.1f}".format(*os.getloadavg())
