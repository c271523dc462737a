"""A record in which a chart has to bear much: twenty backends on five suites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import time_machine

from store import writes
from store.database import Database
from store.evidence import Verdict
from store.records import SuiteRecord
from tests.dashboard.questions import contract
from tests.dashboard.seed import BACKENDS, Backend, Fate, Teller

CROWD = (
    *BACKENDS,
    *(Backend(f"candidate-{number:02}", "ourteam.memory:Notes", 0.6 + 0.025 * number, 20.0 + 9 * number)
      for number in range(1, 16)),
)  # fmt: skip
"""Twenty, and the two floors."""
SUITES = ("golden", "contract", "recipes", "support", "travel")


class _Crowd(Teller):
    """Judges the last night of golden alone, and what mem0 and notes lose there: judging takes time."""

    def __init__(self, db: Database, nights: int) -> None:
        super().__init__(db, nights, 20, hostile=False)
        self.suites = {"golden": self.golden()} | {
            name: replace(contract(14), name=name, version=f"{name}-1") for name in SUITES[1:]
        }
        self.fate = {name: Fate(suite, nights, CROWD) for name, suite in self.suites.items()}

    def once_a_night(self, at: datetime, number: int, suites: Sequence[str]) -> None:
        for minute, (name, backend) in enumerate((name, backend) for name in suites for backend in CROWD):
            with time_machine.travel(at + timedelta(minutes=minute), tick=False):
                self.run(self.suites[name], backend, number)

    def judged(
        self, run_id: int, suite: SuiteRecord, backend: Backend, night: int, closing: int | None = None
    ) -> Verdict | None:
        told = backend.name in ("mem0", "notes") or night == self.nights - 1
        return (
            super().judged(run_id, suite, backend, night, closing)
            if told and suite.name == "golden"
            else None
        )


def crowd(db: Database, nights: int = 15) -> None:
    """Fill an empty record: golden every night, the other suites on the last three."""
    last = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    teller = _Crowd(db, nights)
    for number in range(nights):
        at = last - timedelta(days=nights - 1 - number)
        teller.once_a_night(at, number, SUITES if number >= nights - 3 else SUITES[:1])
    writes.beat(db, "collector", 4711, "here")
