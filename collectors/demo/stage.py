"""A folder with a record, a clock that only we set, a collector that is there or away, and commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import IO

from collectors.demo.clock import Clock
from collectors.demo.folder import RECORD
from collectors.demo.until import until
from collectors.supervise import PYTHON, Children
from store import queries, writes
from store.database import Database, open_database
from store.sections import ConfirmSection, time_of

WAIT_S = 300.0
"""No step takes longer, on however busy a machine."""
LOOK_AFTER = time_of(ConfirmSection().after)
CLOCK, SAID = "clock", "said.txt"


class CollectorEnded(Exception):
    """The collector ended by itself. The message says how."""


class Stage:
    """The collector ends with it, and what was needed to build alone is removed."""

    def __init__(self, folder: Path, start: datetime) -> None:
        self.folder, self.clock = folder, Clock(folder / CLOCK, start)
        self._open = ExitStack()
        self._said: IO[str] = self._open.enter_context((folder / SAID).open("a+"))
        self.db: Database = open_database(f"sqlite:///{folder / RECORD}")
        self._open.callback(self.db.close)
        self._collecting = ExitStack()
        self._children: Children | None = None
        # A checkout that the demo happens to lie in is none of the month's environment.
        self._environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop_collector()
        self._open.close()
        for name in (CLOCK, SAID):
            (self.folder / name).unlink()

    def start_collector(self) -> None:
        children = self._collecting.enter_context(Children(self._environment, self._said))
        children.start(
            "collector", "collectors.demo.clock", str(self.clock.path), "collectors.demo.collecting"
        )
        self._children = children
        self._until(self._is_led, "the collector leads")
        self._until(lambda: queries.next_due(self.db, self.clock.now), "the schedules are followed")

    def stop_collector(self) -> None:
        self._children = None
        self._collecting.close()

    def go_to(self, moment: datetime) -> None:
        """Let time pass until then, and the collector do all that is due."""
        self.clock.set(moment)
        self._until(self._is_done, "what is due is done")

    def run(self, *arguments: str, user: str = "") -> int:
        """`memtrend ARGUMENTS...` at the time of the clock, as a process. Returns its exit code."""
        command = [*PYTHON, "-m", "collectors.demo.clock", str(self.clock.path), "collectors.cli", *arguments]
        variables = {**self._environment, **({"LOGNAME": user} if user else {})}
        return subprocess.run(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said
        ).returncode

    def _is_led(self) -> bool:
        """Not `held`: that goes by the clock of this process."""
        return any(row.name == writes.LEADER_LEASE and not row.given_back for row in queries.leases(self.db))

    def _is_done(self) -> bool:
        """All that is due was run, looked at, and told. In the order in which one makes the next: what is
        asked first can become nothing that was asked already."""
        now = self.clock.now
        return not (
            queries.unfinished_fires(self.db, now)
            or any(now - owed.ended_at >= LOOK_AFTER for owed in queries.owed_looks(self.db))
            or queries.requests(self.db, states=["queued", "claimed"])
            or queries.undetected(self.db)
            or queries.has_unrouted(self.db)
            or queries.deliveries(self.db, states=["queued", "claimed"])
        )

    def _until(self, condition: Callable[[], object], what: str) -> None:
        until(condition, f"{self.clock.now:%Y-%m-%d %H:%M}: {what}", WAIT_S, self._tend, self._told)

    def _tend(self) -> None:
        if self._children and (ended := self._children.ended()):
            raise CollectorEnded(f"{ended}\n{self._told()[-2000:]}")

    def _told(self) -> str:
        return (self.folder / SAID).read_text(encoding="utf-8")
