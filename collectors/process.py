"""Manners of a process that runs for long: how it is stopped, and how it speaks."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event, Thread

from store import logs
from store.sections import LogSection

INTERRUPTED = 130


class Stop:
    """Whether a signal asked the process to stop, and the exit code that answers it. It ends the run going on
    and those to come, while a cancel ends a run alone."""

    def __init__(self) -> None:
        self.asked = Event()
        self.exit_code = 0
        self._run = Event()

    def ask(self, exit_code: int = 0) -> None:
        self.exit_code = exit_code
        self.asked.set()
        self._run.set()

    def of_the_next_run(self) -> Event:
        self._run = Event()
        if self.asked.is_set():
            self._run.set()
        return self._run


@contextmanager
def stop_on_signals(once_more: str = "") -> Iterator[Stop]:
    """SIGINT and SIGTERM set `asked` and do nothing else; afterwards they mean what they did before. With a
    text `once_more`, which is told at the first signal, a second one is a KeyboardInterrupt."""
    stop = Stop()
    # A handler runs in the middle of whatever the main thread does, perhaps while it holds the event's own
    # lock: only a SimpleQueue may be used there.
    signals: SimpleQueue[int] = SimpleQueue()
    Thread(target=_heed, args=(signals, stop, once_more), name="memtrend-signals", daemon=True).start()
    received: list[int] = []

    def receive(number: int, _frame: object) -> None:
        if once_more and received:
            raise KeyboardInterrupt
        received.append(number)
        signals.put(number)

    former = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _heed(signals: SimpleQueue[int], stop: Stop, once_more: str) -> None:
    stop.ask(INTERRUPTED if signals.get() == signal.SIGINT else 0)
    if once_more:
        complain(once_more)


def say(line: str) -> None:
    """Of a process that runs for long: no text of a memory."""
    logs.get("process").info(line)


def complain(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def quiet_retries() -> None:
    """Keep stamina from telling each retry, with the error and all that is in it, on stderr: the last error
    is told, and without secrets."""
    import stamina.instrumentation

    stamina.instrumentation.set_on_retry_hooks([])


def quiet_libraries() -> None:
    """For a command: what a library logs or warns of may quote a key or a memory, so a person is told of
    its errors alone, and where they are in the code. What it prints stands on stderr, without secrets."""
    quiet_retries()
    logs.hide_on_stderr()
    logs.begin(LogSection(level="error", format="console"))
