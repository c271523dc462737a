"""What closing a run takes: its figures, its verdict, and the transaction that writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session

from benchmarks.figures.times import Times, seconds, timed
from store import models as m
from store import queries, writes
from store.database import Database
from store.evidence import drift_rollups, entry
from store.models.runs import RollupRow
from store.records import CaseOutcome, NewRun, ScenarioOutcome
from store.rollups import roll_up
from store.verdicts import judge

TRIGGER = "benchmark"
A_SCENARIO = 10


def measured(db: Database, suite: str, times: int) -> tuple[Times, tuple[str, float]]:
    """As `conclude` of the runner does it; beside it, the same rows of rollups alone as objects. The runs are
    taken out of the record afterwards."""
    with _open_runs(db, suite, times + 3) as runs:
        waiting = iter(runs)
        found = timed(lambda: _conclude(db, next(waiting)), times)
        rows = _rows(db, runs[0])
        return found, ("its rollups alone, as objects", seconds(lambda: _as_objects(db, next(waiting), rows)))


def _conclude(db: Database, run_id: int) -> None:
    rollups = roll_up(queries.case_scores(db, run_id), queries.scenario_stats(db, run_id))
    record = queries.verdict_record(db, run_id, closing=run_id)
    assert record is not None
    verdict = judge(record)
    rollups += drift_rollups(verdict)
    writes.close_run(db, run_id, "whole", rollups, token=1, verdict=entry(run_id, verdict))


@contextmanager
def _open_runs(db: Database, suite: str, count: int) -> Iterator[list[int]]:
    """Runs of all cases of the suite, all asked, about to be closed."""
    _take_out(db)  # what a benchmark that was killed left behind
    before = queries.runs(db, suites=[suite], statuses=["whole"], limit=1)[0]
    with db.read() as connection:
        like = connection.execute(sa.select(m.run).where(m.run.c.id == before.id)).one()
    outcomes = list(_outcomes(queries.run_cases(db, before.id)))
    new = NewRun(
        like.suite_version_id, like.backend_id, like.environment_id, TRIGGER, 1,
        before.cases_total, len(outcomes), before.scorer,
    )  # fmt: skip
    try:
        yield [_asked(db, new, outcomes) for _ in range(count)]
    finally:
        _take_out(db)


def _asked(db: Database, new: NewRun, outcomes: Sequence[ScenarioOutcome]) -> int:
    run_id = writes.open_run(db, new)
    for outcome in outcomes:
        writes.save_scenario(db, run_id, outcome, 1)
    return run_id


def _outcomes(cases: Sequence[queries.CaseRow]) -> Iterator[ScenarioOutcome]:
    for first in range(0, len(cases), A_SCENARIO):
        asked = tuple(
            CaseOutcome(case.case, 1, "ok", case.failure, case.latency_ms, 1, 5, case.scores)
            for case in cases[first : first + A_SCENARIO]
        )
        yield ScenarioOutcome(f"scenario-{first}", 1, "ok", 4, 310.0, 4.0, cases=asked)


def _rows(db: Database, run_id: int) -> list[dict[str, Any]]:
    with db.read() as connection:
        found = connection.execute(sa.select(m.rollup).where(m.rollup.c.run_id == run_id))
        return [dict(row) for row in found.mappings()]


def _as_objects(db: Database, run_id: int, rows: Sequence[dict[str, Any]]) -> None:
    with db.write() as connection, Session(connection) as session:
        session.add_all([RollupRow(**{**row, "run_id": run_id}) for row in rows])
        session.flush()


def _take_out(db: Database) -> None:
    run_ids = sa.select(m.run.c.id).where(m.run.c.trigger == TRIGGER)
    results = sa.select(m.case_result.c.id).where(m.case_result.c.run_id.in_(run_ids))
    with db.write() as connection:
        for table in (m.score, m.detail):
            connection.execute(table.delete().where(table.c.case_result_id.in_(results)))
        for table in (m.rollup, m.case_result, m.scenario_result, m.verdict, m.spent):
            connection.execute(table.delete().where(table.c.run_id.in_(run_ids)))
        connection.execute(m.run.delete().where(m.run.c.trigger == TRIGGER))
