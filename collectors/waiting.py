"""What waits for the day's money, until the day or the limit is another."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from collectors.budget import Allowance

T = TypeVar("T")


class Waiting(Generic[T]):
    """Things in the order in which they came, each with the allowance that was not enough for it. The worker
    adds, the main thread takes out."""

    def __init__(self, allowance: Callable[[], Allowance]) -> None:
        self.allowance = allowance
        self._held: list[tuple[Allowance, T]] = []
        self._lock = Lock()

    def add(self, thing: T, under: Allowance) -> None:
        """`under`: the allowance of before it was tried, since a day may end meanwhile."""
        with self._lock:
            self._held.append((under, thing))

    def all(self) -> list[T]:
        with self._lock:
            return [thing for _, thing in self._held]

    def release(self) -> list[T]:
        """Take out what may be tried again."""
        now = self.allowance()
        with self._lock:
            released = [thing for under, thing in self._held if under != now]
            self._held = [held for held in self._held if held[0] == now]
        return released
