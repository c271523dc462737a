"""What was spent, and what a run will cost by what one like it did."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import sqlalchemy as sa

from store import models as m
from store.database import Database


def spent_on(db: Database, day: date, run_ids: Collection[int] | None = None) -> float:
    """USD that all runs, or these, spent on a day in UTC."""
    query = sa.select(sa.func.sum(m.spent.c.money)).where(m.spent.c.day == day.isoformat())
    if run_ids is not None:
        query = query.where(m.spent.c.run_id.in_(run_ids))
    with db.read() as connection:
        return float(connection.execute(query).scalar() or 0.0)


def cost_of_a_case(db: Database, suite: str, backend: str) -> float | None:
    """USD for each case of each trial, in the newest whole run of the suite on the backend, of a part of the
    suite too; None where there is none."""
    newest = (
        sa.select(m.run.c.id, m.run.c.cases_total)
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(m.suite.c.name == suite, m.backend.c.name == backend, m.run.c.status == "whole")
        .where(sa.exists().where(m.scenario_result.c.run_id == m.run.c.id))  # none of an imported baseline
        .order_by(m.run.c.started_at.desc(), m.run.c.id.desc())
        .limit(1)
    )
    with db.read() as connection:
        run = connection.execute(newest).first()
        if run is None or not run.cases_total:
            return None
        money = sa.select(sa.func.sum(m.scenario_result.c.money)).where(m.scenario_result.c.run_id == run.id)
        return float(connection.execute(money).scalar() or 0.0) / int(run.cases_total)
