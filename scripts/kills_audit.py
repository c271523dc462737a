"""What a record must say whatever was killed: nothing lost that was stored, nothing there twice."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from scripts.kills_world import BACKENDS

STORED = {
    "scenario": "SELECT run_id, scenario, trial, status FROM scenario_result",
    "case": "SELECT run_id, case_id, trial, status, failure, returned_n FROM case_result",
    "score": "SELECT case_result_id, metric_id, scorer_id, value FROM score",
    "detail": "SELECT case_result_id, content FROM detail",
    "whole run": "SELECT id, finished_at, cases_done, errors_done FROM run WHERE status = 'whole'",
    "rollup": "SELECT r.* FROM rollup AS r JOIN run ON run.id = r.run_id WHERE run.status = 'whole'",
    "fire": "SELECT schedule, scheduled_for FROM fire WHERE due <= datetime('now')",
    "ended fire": "SELECT schedule, scheduled_for, state FROM fire WHERE finished_at IS NOT NULL",
}
"""What stays once it is there."""
TWICE = {
    "run of one fire": "SELECT trigger, json_extract(meta, '$.scheduled_for'), suite_id, backend_id FROM run"
    " WHERE trigger LIKE 'schedule:%' GROUP BY 1, 2, 3, 4 HAVING count(*) > 1",
    "run of one request": "SELECT json_extract(meta, '$.request') FROM run WHERE trigger LIKE 'request:%'"
    " GROUP BY 1 HAVING count(*) > 1",
    "run of two": "SELECT value FROM (SELECT run_ids FROM fire UNION ALL SELECT run_ids FROM request),"
    " json_each(run_ids) GROUP BY 1 HAVING count(*) > 1",
}
"""What no constraint of the record forbids."""
NAMED = "SELECT run_id, trial, name FROM case_result JOIN 'case' AS asked ON asked.id = case_id"
"""The results of cases. Each case of the suite is a scenario, which has its name."""
WRONG = {
    "a whole run lacks cases or has too many": "SELECT id, cases_total FROM run WHERE status = 'whole' AND"
    " cases_total != (SELECT count(*) FROM case_result WHERE run_id = run.id)",
    "a run counts other cases than it has": "SELECT id, cases_done FROM run WHERE"
    " cases_done != (SELECT count(*) FROM case_result WHERE run_id = run.id)",
    "a case lies in no scenario": f"SELECT run_id, name FROM ({NAMED}) AS c WHERE NOT EXISTS (SELECT 1 FROM"
    " scenario_result AS s WHERE s.run_id = c.run_id AND s.trial = c.trial AND s.scenario = c.name)",
    "a scenario has no case": "SELECT run_id, scenario FROM scenario_result AS s WHERE NOT EXISTS (SELECT 1"
    f" FROM ({NAMED}) AS c WHERE c.run_id = s.run_id AND c.trial = s.trial AND c.name = s.scenario)",
    "a fire is done and a run of it is not whole": "SELECT schedule, scheduled_for FROM fire,"
    " json_each(run_ids) JOIN run ON run.id = value WHERE fire.state = 'done' AND run.status != 'whole'",
    "a fire is done and has no run": "SELECT schedule, scheduled_for FROM fire WHERE state = 'done' AND"
    " json_array_length(run_ids) != 1",
    "a fire says no reason": "SELECT schedule, scheduled_for, state FROM fire WHERE reason IS NULL AND"
    " state IN ('failed', 'skipped', 'missed')",
    "a run says no reason": "SELECT id, status FROM run WHERE reason IS NULL AND"
    " status IN ('interrupted', 'invalid', 'void')",
}
UNSETTLED = {
    "a fire is not accounted for": "SELECT schedule, scheduled_for, state FROM fire WHERE"
    " due <= datetime('now') AND state IN ('expected', 'claimed')",
    "a run says that it is running": "SELECT id FROM run WHERE status = 'running'",
    "a lease is held": "SELECT name, owner FROM lease WHERE expires > unixepoch('now')",
    "a request has not ended with one whole run": "SELECT id, state, error FROM request WHERE"
    " state != 'done' OR (SELECT count(*) FROM json_each(run_ids) JOIN run ON run.id = value AND"
    " run.status = 'whole' AND json_extract(meta, '$.request') = 'request-' || request.id) != 1"
    " OR json_array_length(run_ids) != 1",
    "a whole run of a fire is not told by it": "SELECT id FROM run WHERE trigger LIKE 'schedule:%' AND"
    " status = 'whole' AND id NOT IN (SELECT value FROM fire, json_each(run_ids))",
}


class InFlight(NamedTuple):
    run_id: int
    backend: str
    done: int
    total: int


class Record:
    """The record read as a file, past memtrend's own code."""

    def __init__(self, home: Path) -> None:
        self.path = home / "record.db"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=60)) as connection:
            return connection.execute(query).fetchall()

    def stored(self) -> dict[str, set[tuple[Any, ...]]]:
        return {what: set(self.rows(query)) for what, query in STORED.items()}

    def in_flight(self) -> list[InFlight]:
        query = (
            "SELECT run.id, backend.name, cases_done, cases_total FROM run JOIN backend ON"
            " backend.id = backend_id WHERE status = 'running'"
        )
        return [InFlight(*row) for row in self.rows(query)]

    def of_the_dead(self) -> bool:
        """Whether a fire is still in the hands of a leader that leads no more."""
        query = "SELECT 1 FROM fire JOIN lease ON lease.name = 'collector' WHERE state = 'claimed' AND"
        return bool(self.rows(f"{query} fire.token != lease.token"))

    def status(self, run_id: int) -> str:
        return str(self.rows(f"SELECT status FROM run WHERE id = {run_id:d}")[0][0])

    def count(self, table: str, column: str = "state") -> dict[str, int]:
        return dict(self.rows(f"SELECT {column}, count(*) FROM {table} GROUP BY 1"))  # type: ignore[arg-type]


def problems(record: Record, before: dict[str, set[tuple[Any, ...]]], workers: Counter[int]) -> Iterator[str]:
    """What is wrong at any moment. `before`: what was stored at an earlier one; `workers`: of which run how
    many were killed so far, each of which may have taken the answer along that it was about to give."""
    errors = record.rows("SELECT run_id, count(*) FROM case_result WHERE status = 'error' GROUP BY 1")
    if beyond := [(run_id, n) for run_id, n in errors if n > workers[run_id]]:
        yield f"errors by run: {_some(beyond)}"
    after = record.stored()
    for what, rows in before.items():
        if lost := rows - after[what]:
            yield f"lost: {what} {_some(lost)}"
    for what, query in TWICE.items():
        if twice := record.rows(query):
            yield f"twice: {what} {_some(twice)}"
    yield from _found(record, WRONG)
    if (said := record.rows("PRAGMA integrity_check")) != [("ok",)]:
        yield f"integrity: {_some(said)}"
    if broken := record.rows("PRAGMA foreign_key_check"):
        yield f"foreign keys: {_some(broken)}"


def unsettled(record: Record) -> Iterator[str]:
    """What is wrong once all was stopped."""
    yield from _found(record, UNSETTLED)


def left_on_disk(home: Path, record: Record) -> Iterator[str]:
    """Boxes in stores, and files that a dead process left. A run that is interrupted may have a box still,
    whose name says which run that is: whoever resumes it empties it."""
    for path in (home / "tmp").iterdir():
        yield f"left: {path.name}"
    store = home / BACKENDS[0] / "keyword.sqlite"
    if store.exists():
        with closing(sqlite3.connect(store)) as connection:
            for (namespace,) in connection.execute("SELECT DISTINCT namespace FROM box"):
                run = namespace.split("-")[1]
                if not run.isdigit() or record.status(int(run)) != "interrupted":
                    yield f"left: namespace {namespace}"


def _found(record: Record, wrong: dict[str, str]) -> Iterator[str]:
    for what, query in wrong.items():
        if rows := record.rows(query):
            yield f"{what}: {_some(rows)}"


def _some(rows: Sequence[Any] | set[Any]) -> str:
    return ", ".join(map(str, sorted(map(str, rows))[:5])) + (
        f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    )
