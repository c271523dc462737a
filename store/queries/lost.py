"""Which cases a backend loses now, and how each of them fared before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
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
    """A case that a backend passed and, in its newest whole run, did not; all its outcomes, oldest first."""

    case: str
    backend: str
    outcomes: list[Outcome]


def lost_cases(
    db: Database, suite: str, *, backends: Sequence[str] | None = None, since: datetime | None = None
) -> list[LostCase]:
    """The cases in force that each backend once passed and lost in its newest whole run. `since` is of the
    runs looked at. Only these are read: they are few, where all results may be a million."""
    runs: dict[str, dict[int, SeriesRun]] = defaultdict(dict)
    with db.read() as connection:
        for run in whole_runs(db, connection, suite_id(connection, suite), backends, since).values():
            runs[run.backend][run.id] = run
        return [case for series in runs.values() for case in _lost(connection, series)]


def _lost(connection: Connection, runs: Mapping[int, SeriesRun]) -> Iterator[LostCase]:
    """Of one backend; `runs` by id, oldest first."""
    newest = list(runs.values())[-1]
    names = _names(connection, newest)
    values: dict[int, dict[int, list[float]]] = defaultdict(dict)
    for case_id, run_id, scorer_id, value in plain_rows(connection, _values(list(names), list(runs))):
        run = runs.get(run_id)
        if run:
            own = values[case_id].setdefault(run_id, [])
            if scorer_id == run.scorer_id:
                own.append(value)
    for case_id, name in names.items():
        found = values[case_id]
        if any(value > 0.5 for own in found.values() for value in own):
            outcomes = [_outcome(run, found[run_id]) for run_id, run in runs.items() if run_id in found]
            yield LostCase(name, newest.backend, outcomes)


def _outcome(run: SeriesRun, values: Sequence[float]) -> Outcome:
    return Outcome(run.id, run.started_at, sum(value > 0.5 for value in values), len(values))


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
    """A row a trial and scorer. A run at a time, whose scores lie together: `+ 0` keeps the database from
    going by case, which leaps through all of the file. Who never passed is read too, since to ask that of the
    database first takes as long."""
    result = m.case_result.c
    return (
        sa.select(result.case_id, result.run_id, m.score.c.scorer_id, m.score.c.value)
        .outerjoin(m.score, _is_pass())
        .where(result.run_id.in_(run_ids), (result.case_id + 0).in_(case_ids))
    )


def _is_pass() -> sa.ColumnElement[bool]:
    return sa.and_(m.score.c.case_result_id == m.case_result.c.id, m.score.c.metric_id == PASS)
