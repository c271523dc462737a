"""Calibrations: one unchanged backend, asked twice in a row. How much does it waver, and would that alarm?"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from store import models as m
from store.baselines import baseline
from store.database import Database
from store.metrics import METRICS
from store.queries.operation import clock
from store.queries.verdicts import CALIBRATION, VerdictRecord, decisions_of, earlier, record_of, series_of


class CalibrationPoint(NamedTuple):
    """`run_id`: the second run; `noise_floor`: of `n` cases, the share that the two runs answered
    differently; `false_verdict`: 1 when the second looked changed at the first look, else 0; None where the
    first did too, so that the change was none of noise, and while the baseline was provisional."""

    run_id: int
    started_at: datetime
    n: int
    noise_floor: float
    false_verdict: float | None


def calibration_records(db: Database, first: int, second: int) -> tuple[VerdictRecord, VerdictRecord] | None:
    """What verdicts of the two runs of a calibration are reached from, each as if it were a new night: the
    second has the first for the newest night of its baseline. None where one of them is no such run."""
    now = clock(db)
    with db.read() as connection:
        runs = [series_of(connection, run_id, CALIBRATION) for run_id in (first, second)]
        one, other = runs
        if one is None or other is None:
            return None
        nights = earlier(connection, one)
        decisions = decisions_of(connection, one.suite_id, one.backend_id)
        before = baseline(one.night, nights, decisions)
        then = baseline(other.night, [*nights, one.night], decisions)
        return record_of(connection, one, before, now), record_of(connection, other, then, now)


def calibrations(db: Database, suite: str, backend: str) -> list[CalibrationPoint]:
    """Of a suite on a backend, oldest first."""
    floor, false = m.rollup.alias("floor"), m.rollup.alias("false")
    query = (
        sa.select(m.run.c.id, m.run.c.started_at, floor.c.n, floor.c.mean, false.c.mean.label("false"))
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .join(floor, _of_run(floor, "noise_floor"))
        .outerjoin(false, _of_run(false, "false_verdict"))
        .where(m.suite.c.name == suite, m.backend.c.name == backend, m.run.c.status == "whole")
        .order_by(m.run.c.started_at, m.run.c.id)
    )
    with db.read() as connection:
        return [CalibrationPoint(*row) for row in connection.execute(query)]


def _of_run(rolled: sa.FromClause, metric: str) -> sa.ColumnElement[bool]:
    return sa.and_(
        rolled.c.run_id == m.run.c.id,
        rolled.c.scorer_id == m.run.c.scorer_id,
        rolled.c.metric_id == METRICS[metric].id,
        rolled.c.tag == "",
    )
