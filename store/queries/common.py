"""What the queries have in common."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.errors import StoreError
from store.metrics import METRICS


class Rolled(NamedTuple):
    """One metric over `n` cases; `low` and `high` bound its interval, None where there is none."""

    mean: float
    low: float | None
    high: float | None
    n: int


def metric_id(name: str) -> int:
    if name not in METRICS:
        raise StoreError(f"unknown metric {name!r}; known: {', '.join(METRICS)}")
    return METRICS[name].id


def shown_status() -> sa.ColumnElement[str]:
    """The status as it is: a `running` run whose lease is gone was interrupted, whatever its row says."""
    died = sa.and_(m.run.c.status == "running", ~m.run_is_live())
    return sa.case((died, "interrupted"), else_=m.run.c.status)


def is_whole() -> sa.ColumnElement[bool]:
    """Runs that charts, baselines and verdicts may read: finished, in good order, over the whole suite."""
    return sa.and_(m.run.c.status == "whole", m.run.c.finished_at.is_not(None), m.run.c.subset == "")


def is_of_a_control(run_id: sa.ColumnElement[int] = m.run.c.id) -> sa.ColumnElement[bool]:
    """Whether a frozen release made the run, beside that of a backend: it is no backend of the team's."""
    return run_id.in_(sa.select(m.control.c.control_id))


def suite_id(connection: Connection, name: str) -> int | None:
    found: int | None = connection.execute(sa.select(m.suite.c.id).where(m.suite.c.name == name)).scalar()
    return found
