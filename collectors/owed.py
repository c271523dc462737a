"""What the record refused to take and must not forget."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from store.errors import DatabaseError, StoreError


class Owed:
    """Writes in the order in which they were refused: the disk was full, say. The worker adds, the main
    thread pays."""

    def __init__(self) -> None:
        self._writes: deque[Callable[[], object]] = deque()

    def add(self, write: Callable[[], object]) -> None:
        self._writes.append(write)

    def pay(self) -> None:
        """Write them. Raises `DatabaseError` while the record still refuses; then nothing is forgotten."""
        while self._writes:
            try:
                self._writes[0]()
            except DatabaseError:
                raise
            except StoreError:  # settled by somebody else meanwhile
                pass
            self._writes.popleft()
