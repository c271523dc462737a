"""Four processes write to one record for WRITERS_SECONDS (2; 60 before a release)."""

from __future__ import annotations

import os
import time
from multiprocessing.queues import Queue

import pytest

from store import queries, writes
from store.database import Database, open_database
from tests.store.processes import PROCESSES
from tests.store.seeding import Seed, outcome, scenario

SECONDS = float(os.environ.get("WRITERS_SECONDS", "2"))
CASES = ("a", "b", "c", "d")


def _write_for(url: str, run_id: int, token: int, name: str, seconds: float, done: Queue[int]) -> None:
    db = open_database(url)
    trial = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until or trial == 0:
        trial += 1
        cases = [outcome(case, trial=trial) for case in CASES]
        writes.save_scenario(db, run_id, scenario(cases, "s1", trial), token)
        writes.add_mark(db, f"{name} {trial}")
        writes.beat(db, name, os.getpid(), "host")
    done.put(trial)


@pytest.mark.timeout(SECONDS + 120)
def test_four_writers_lose_nothing(db: Database, url: str, seed: Seed, count: object) -> None:
    """Four processes that write all the time never find the database locked, and every row is there."""
    version = seed.suite()
    done: Queue[int] = PROCESSES.Queue()
    writers = []
    for name in ("w1", "w2", "w3", "w4"):
        run_id, token = seed.open(version, name)
        writers.append(PROCESSES.Process(target=_write_for, args=(url, run_id, token, name, SECONDS, done)))
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(SECONDS + 90)
    assert [writer.exitcode for writer in writers] == [0] * 4
    trials = [done.get(timeout=5) for _ in writers]
    runs = queries.runs(db)
    assert sorted(run.cases_done for run in runs) == sorted(trial * len(CASES) for trial in trials)
    assert [len(queries.marks(db)), *(count(table) for table in ("case_result", "score"))] == [  # type: ignore[operator]
        sum(trials), 4 * sum(trials), 8 * sum(trials),
    ]  # fmt: skip
    assert len(queries.heartbeats(db)) == 4
