"""A clock that somebody else sets: a file with the time, and processes that go by it.

`python -m collectors.demo.clock FILE MODULE ARGS...` runs a module as `python -m MODULE ARGS...` would, in
the folder of the file and at the time that the file says. All of Python's clocks that tell the date follow
it, and so does the clock of an SQLite record that the process opens; what measures how long something takes
goes on as it does. Between two settings time passes as usual.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any

import sqlalchemy as sa
import time_machine

POLL_S = 0.02
DAY_S, EPOCH_IN_DAYS = 86_400.0, 2_440_587.5


class Clock:
    """The file, for whoever sets it."""

    def __init__(self, path: Path, now: datetime) -> None:
        self.path = path
        self.set(now)

    def set(self, now: datetime) -> None:
        """At once, so that no half a number is read."""
        self.now = now
        new = self.path.with_suffix(".new")
        new.write_text(str(now.timestamp()))
        new.rename(self.path)


def follow(path: Path, *, tick: bool) -> None:
    """Have this process go by the file from now on; without `tick` time stands still until it is set."""
    traveller = time_machine.travel(float(path.read_text()), tick=tick).start()
    Thread(target=_follow, args=(path, traveller), name="memtrend-clock", daemon=True).start()


def _follow(path: Path, traveller: time_machine.Traveller) -> None:
    seen = path.read_text()
    while True:
        time.sleep(POLL_S)
        if (said := path.read_text()) != seen:
            seen = said
            traveller.move_to(float(said))


def follow_in_records() -> None:
    """Have SQLite's `julianday('now')`, by which the record tells the time, go by this process's clock."""
    sa.event.listen(sa.Engine, "connect", _tell_the_time)


def _tell_the_time(connection: Any, _record: object) -> None:
    connection.create_function("julianday", 1, lambda _now: time.time() / DAY_S + EPOCH_IN_DAYS)


def main() -> None:
    file, module = Path(sys.argv[1]), sys.argv[2]
    os.chdir(file.parent)
    follow_in_records()
    follow(file, tick=True)
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
