"""What the record refused to take and must not forget."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from store.errors import DatabaseError, InvalidWrite, StoreError


class Owed:
    """Writes in the order in which they were refused: the disk was full, say. The worker adds, the main
    thread pays. `tell` says to a person what can never be written."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._writes: deque[Callable[[], object]] = deque()
        self._tell = tell

    def add(self, write: Callable[[], object]) -> None:
        self._writes.append(write)

    def pay(self) -> None:
        """Write them. Raises `DatabaseError` while the record still refuses; then nothing is forgotten. What
        is at fault itself is told and dropped: it would keep all else from being written, for ever."""
        while self._writes:
            try:
                self._writes[0]()
            except InvalidWrite as error:
                self._tell(f"what was owed to the record can never be written, and is dropped: {error}")
            except DatabaseError:
                raise
            except StoreError:  # settled by somebody else meanwhile
                pass
            self._writes.popleft()
