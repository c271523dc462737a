"""Which cases a backend loses now, and how each of them fared before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.broken import BEFORE, broke, is_told
from store.database import Database
from store.dialects.sql import plain_rows
from store.metrics import METRICS
from store.queries.common import suite_id
from store.queries.series import SeriesRun, whole_runs

PASS = METRICS["pass"].id


class Outcome(NamedTuple):
    """A case in one whole run: `passes` of the trials that were judged; none where there was no answer."""

    run_id: int
    at: datetime
    passes: int
    judged: int


class LostCase(NamedTuple):
    """A case that broke on a backend: it had passed, and in the newest whole runs it does not. All its
    outcomes, oldest first."""

    case: str
    backend: str
    outcomes: list[Outcome]


STEP = 2 * BEFORE
"""Newest runs that are read first: they tell of most cases whether they broke. Then twice as many, and so
on."""


def lost_cases(
    db: Database, suite: str, *, backends: Sequence[str] | None = None, since: datetime | None = None
) -> list[LostCase]:
    """The cases in force that broke, by the newest whole run of each backend. `since` is of the runs looked
    at. Only what may have broken is read, from its newest run back, and only what did is read whole: all
    results may be a million."""
    runs: dict[str, dict[int, SeriesRun]] = defaultdict(dict)
    with db.read() as connection:
        for run in whole_runs(db, connection, suite_id(connection, suite), backends, since).values():
            runs[run.backend][run.id] = run
        return [case for series in runs.values() for case in _lost(connection, series)]


def _lost(connection: Connection, runs: Mapping[int, SeriesRun]) -> Iterator[LostCase]:
    """Of one backend; `runs` by id, oldest first."""
    newest = list(runs.values())[-1]
    names = _names(connection, newest)
    broken = sorted(_broke(connection, list(names), runs))
    for case_id, tallies in _tallies(connection, broken, runs).items():
        outcomes = [
            Outcome(run_id, run.started_at, *tallies[run_id])
            for run_id, run in runs.items()
            if run_id in tallies
        ]
        yield LostCase(names[case_id], newest.backend, outcomes)


def _broke(connection: Connection, case_ids: Sequence[int], runs: Mapping[int, SeriesRun]) -> set[int]:
    """Of these cases, those that broke."""
    open_, ids = {case_id: list[bool]() for case_id in case_ids}, list(runs)
    broken, step = set[int](), STEP
    while open_ and ids:
        part, ids = {id: runs[id] for id in ids[-step:]}, ids[:-step]
        for case_id, tallies in _tallies(connection, list(open_), part).items():
            told = (tallies[run_id] for run_id in part if run_id in tallies)
            open_[case_id] = [2 * passes > judged for passes, judged in told if judged] + open_[case_id]
        decided = [case_id for case_id, outcomes in open_.items() if not ids or is_told(outcomes)]
        broken |= {case_id for case_id in decided if broke(open_.pop(case_id))}
        step *= 2
    return broken


def _tallies(
    connection: Connection, case_ids: Sequence[int], runs: Mapping[int, SeriesRun]
) -> dict[int, dict[int, list[int]]]:
    """Case -> run that asked it -> trials passed, and trials judged by the scorer that is in force there."""
    found: dict[int, dict[int, list[int]]] = {case_id: {} for case_id in case_ids}
    for case_id, run_id, scorer_id, value in plain_rows(connection, _values(case_ids, list(runs))):
        tally = found[case_id].setdefault(run_id, [0, 0])
        if scorer_id == runs[run_id].scorer_id:
            tally[0] += value > 0.5
            tally[1] += 1
    return found


def _names(connection: Connection, newest: SeriesRun) -> dict[int, str]:
    """Id -> name of the cases not passed. An error is no pass; who was not asked lost nothing."""
    result, belongs, version = m.case_result.c, m.suite_version_case.c, m.suite_version.c
    in_force = (
        sa.select(belongs.case_id)
        .join(m.suite_version, version.id == belongs.suite_version_id)
        .join(m.suite, sa.and_(m.suite.c.id == version.suite_id, m.suite.c.version == version.version))
        .where(m.suite.c.id == newest.suite_id)
    )
    query = (
        sa.select(m.case.c.id, m.case.c.name)
        .join(m.case_result, result.case_id == m.case.c.id)
        .outerjoin(m.score, sa.and_(_is_pass(), m.score.c.scorer_id == newest.scorer_id))
        .where(result.run_id == newest.id, result.status != "skipped", m.case.c.id.in_(in_force))
        .group_by(m.case.c.id)
        .having(sa.func.coalesce(sa.func.avg(m.score.c.value), 0.0) <= 0.5)
    )
    return {row.id: row.name for row in connection.execute(query)}


def _values(case_ids: Sequence[int], run_ids: Sequence[int]) -> sa.Select[tuple[int, int, int, float]]:
    """A row a trial and scorer."""
    result = m.case_result.c
    return (
        sa.select(result.case_id, result.run_id, m.score.c.scorer_id, m.score.c.value)
        .outerjoin(m.score, _is_pass())
        .where(result.run_id.in_(run_ids), result.case_id.in_(case_ids))
    )


def _is_pass() -> sa.ColumnElement[bool]:
    return sa.and_(m.score.c.case_result_id == m.case_result.c.id, m.score.c.metric_id == PASS)
