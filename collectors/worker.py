"""One thread that does one thing after the other."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread


class Worker:
    """Tasks one after the other, in the order in which they came, on a daemon thread: a backend that hangs
    does not keep the process from ending. What a task raises goes to `on_error`."""

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._on_error = on_error
        self._idle = Event()
        Thread(target=self._work, name="memtrend-worker", daemon=True).start()

    def put(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def finish(self, timeout_s: float) -> bool:
        """Take no more, and wait until what was taken is done. False when it is not within `timeout_s`."""
        self._tasks.put(None)
        return self._idle.wait(timeout_s)

    def _work(self) -> None:
        while task := self._tasks.get():
            try:
                task()
            except Exception as error:  # noqa: BLE001  one task's failure must not take the next ones along
                self._on_error(error)
        self._idle.set()
