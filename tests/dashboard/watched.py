"""What a seeded record lacks for Health: fires of schedules and what became of them, a standing index whose
legs are counted, backends held against themselves, requests, leases, events.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import time_machine

from store import queries, writes
from store.database import Database
from store.queries import CALIBRATION, RunRow
from store.records import CaseOutcome, CaseRecord, NewRun, Rollup, ScenarioOutcome, SuiteRecord
from tests.dashboard.facts import HOSTILE
from tests.dashboard.seed import BACKENDS, environment

INDEX = SuiteRecord(
    "ourindex", "index_health", "own", "v1", 0,
    tuple(CaseRecord(name, name, "how many?") for name in ("legs-agree", "count-keyword", "count-vector")),
)  # fmt: skip
LEADER = 1


def watch(db: Database, nights: Sequence[datetime], *, hostile: bool = True) -> None:
    """Add it to a seeded record of these nights. What is told of last night is that a run does not count, of
    a night two weeks ago that a schedule was missed."""
    runs = [run for run in reversed(queries.runs(db, limit=None)) if run.trigger == "nightly"]
    of = [[run for run in runs if night.date() == run.started_at.date()] for night in nights]
    _expect(db, "nightly", [*nights, *(nights[-1] + timedelta(days=day) for day in range(1, 9))])
    for night, made in zip(nights, of, strict=True):
        _fire(db, "nightly", night, [run.id for run in made], _state(made), late=night == nights[-9])
    for night in nights[-30:]:
        count_index(db, night, 168 - 9 * (night >= nights[-3]))
    _calibrate(db, [night + timedelta(hours=8) for night in nights[-26::7]])
    _ask(db)
    _tell(db, nights, hostile)
    assert writes.acquire_lease(db, "collector", "here-4026531836:4711", 3600) == LEADER


def _state(made: Sequence[RunRow]) -> str:
    return "done" if all(run.status == "whole" for run in made) else "failed"


def _expect(db: Database, schedule: str, times: Sequence[datetime]) -> None:
    with time_machine.travel(times[0] - timedelta(days=1), tick=False):
        writes.write_expected(db, schedule, times, times[-1])


def _fire(
    db: Database, schedule: str, at: datetime, run_ids: Sequence[int], state: str, *, late: bool = False
) -> None:
    reason = "a run is not whole" if state == "failed" else None
    with time_machine.travel(at + timedelta(hours=3 * late, seconds=5), tick=False):
        assert writes.claim_fire(db, schedule, at, LEADER)
        writes.start_fire(db, schedule, at, LEADER)
    with time_machine.travel(at + timedelta(hours=3 * late + 1), tick=False):
        writes.note_runs(db, schedule, at, run_ids, LEADER)
        writes.finish_fire(db, schedule, at, state, reason, LEADER)


def count_index(
    db: Database, at: datetime, keyword: int, vector: int = 168, expected: int | None = 168
) -> int:
    """A run that counts the legs of an index."""
    counted = {"keyword": keyword, "vector": vector}
    census = {"counted": counted, "expected": dict.fromkeys(counted, expected) if expected else {}}
    outcomes = tuple(
        CaseOutcome(case.name, 1, "ok", None, 2.0, 1, None, {"pass": float(keyword == vector),
                    "leg_count": float(min(counted.values()))}, {"census": census})
        for case in INDEX.cases
    )  # fmt: skip
    with time_machine.travel(at + timedelta(minutes=50), tick=False):
        backend = writes.register_backend(db, "hybrid", "hybrid", {})
        version = writes.register_suite(db, INDEX)
        place = writes.register_environment(db, environment(BACKENDS[2], 0, 1))
        run = writes.open_run(db, NewRun(version, backend, place, "nightly", 1, 3, 1, "1"))
        writes.save_scenario(
            db, run, ScenarioOutcome("standing", 1, "ok", 0, None, None, 0, 0, 0.0, 1, None, outcomes), 1
        )
        rows = [Rollup("leg_count", "", 3, float(keyword), None, None), Rollup("pass", "", 3, 1.0, 0.4, 1.0)]
        writes.close_run(db, run, "whole", rows, token=1)
    return run


def _calibrate(db: Database, times: Sequence[datetime]) -> None:
    """Four Sundays; the collector slept over the third one."""
    _expect(db, "noise", times)
    for number, at in enumerate(times):
        if number == 2:
            with time_machine.travel(at + timedelta(hours=9), tick=False):
                writes.pass_over(db, "noise", [at], "missed", "no collector ran", LEADER)
            continue
        made = [calibrate(db, name, at, number % 2) for name in ("hybrid", "mem0")]
        _fire(db, "noise", at, made, "done")


def calibrate(db: Database, backend: str, at: datetime, differing: int, false: float = 0.0) -> int:
    """The second run of a calibration on golden, of which so many cases came out otherwise."""
    with time_machine.travel(at, tick=False):
        row = next(one for one in queries.backends(db) if one.name == backend)
        backend_id = writes.register_backend(db, row.name, row.type, {})
        version = writes.register_suite(db, _golden(db))
        new = NewRun(version, backend_id, None, "noise", 1, 29, 1, "1", subset=CALIBRATION)
        run = writes.open_run(db, new)
        rows = [
            Rollup("noise_floor", "", 29, differing / 29, 0.0, 0.2),
            Rollup("false_verdict", "", 1, false, None, None),
        ]
        writes.close_run(db, run, "whole", rows, token=1)
    return run


def _golden(db: Database) -> SuiteRecord:
    """As it is known."""
    suite = next(one for one in queries.suites(db) if one.name == "golden")
    cases = tuple(
        CaseRecord(case.name, case.hash, case.query, case.k, case.tags, case.critical)
        for case in queries.suite_cases(db, "golden")
    )
    return SuiteRecord("golden", suite.kind, suite.origin, suite.version, suite.plants, cases)


def _ask(db: Database) -> None:
    done = writes.add_request(db, "run", {"suite": "contract", "backend": "hybrid"}, author="deploy")
    assert writes.claim_request(db, LEADER)
    writes.finish_request(db, done, [1], leader=LEADER)
    writes.add_request(db, "run", {"suite": "golden", "backend": "mem0"}, author="deploy")


def _tell(db: Database, nights: Sequence[datetime], hostile: bool) -> None:
    told = (
        (nights[-9], "info", "collector", "the changed configuration is in force"),
        (nights[-5], "warning", "collector", "suite golden: 2 cases are gone without a word"),
        (nights[-1], "error", "schedule:nightly", "contract on notes: HTTP 429 from the provider"),
    )
    for at, level, source, message in told:
        with time_machine.travel(at, tick=False):
            writes.add_event(db, level, source, message)
    if hostile:
        with time_machine.travel(nights[-2], tick=False):
            writes.add_event(db, "error", "collector", HOSTILE)
