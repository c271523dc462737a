"""How long a call took, without what is not the backend's: the embedder's time, and a pipe's.

Stdlib only: a worker times its calls with this too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Timed(NamedTuple):
    """What a call returned, and its time in ms without what was spent apart."""

    value: Any
    ms: float


class _Meter:
    """The seconds spent apart during one call; `took_ms` is its time where that was measured elsewhere."""

    def __init__(self) -> None:
        self.apart_s = 0.0
        self.took_ms: float | None = None


_own = threading.local()
_open: list[_Meter] = []
_lock = threading.Lock()


def timed(call: Callable[[], Any]) -> Timed:
    """Make the call. Raises what it raises."""
    meter = _Meter()
    before, _own.meter = getattr(_own, "meter", None), meter
    with _lock:
        _open.append(meter)
    try:
        started = time.perf_counter()
        value = call()
        elapsed = time.perf_counter() - started
    finally:
        _own.meter = before
        with _lock:
            _open.remove(meter)
    own_ms = max(elapsed - meter.apart_s, 0.0) * 1000
    return Timed(value, own_ms if meter.took_ms is None else meter.took_ms)


@contextmanager
def apart() -> Iterator[None]:
    """What runs within is not the backend's, and is left out of the time of the call it happens in."""
    started = time.perf_counter()
    try:
        yield
    finally:
        meter = getattr(_own, "meter", None) or _only_one()
        if meter is not None:
            meter.apart_s += time.perf_counter() - started


def took(ms: float) -> None:
    """The call that this thread is making takes so long: its time was taken where it was made."""
    meter = getattr(_own, "meter", None)
    if meter is not None:
        meter.took_ms = ms


def _only_one() -> _Meter | None:
    """The call in flight, for a thread that the backend started itself; of several nobody knows whose."""
    with _lock:
        return _open[0] if len(_open) == 1 else None
