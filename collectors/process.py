"""Manners of a process that runs for long: how it is stopped, and how it speaks."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event, Thread

INTERRUPTED = 130


class Stop:
    """Whether a signal asked the process to stop, and the exit code that answers it."""

    def __init__(self) -> None:
        self.asked = Event()
        self.exit_code = 0


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """SIGINT and SIGTERM set `asked` and do nothing else; afterwards they mean what they did before."""
    stop = Stop()
    # A handler runs in the middle of whatever the main thread does, perhaps while it holds the event's own
    # lock: only a SimpleQueue may be used there.
    signals: SimpleQueue[int] = SimpleQueue()
    Thread(target=_heed, args=(signals, stop), name="memtrend-signals", daemon=True).start()
    former = {
        number: signal.signal(number, lambda number, _frame: signals.put(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _heed(signals: SimpleQueue[int], stop: Stop) -> None:
    stop.exit_code = INTERRUPTED if signals.get() == signal.SIGINT else 0
    stop.asked.set()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def complain(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def quiet_retries() -> None:
    """Keep stamina from telling each retry, with the error and all that is in it, on stderr: the last error
    is told, and without secrets."""
    import stamina.instrumentation

    stamina.instrumentation.set_on_retry_hooks([])
