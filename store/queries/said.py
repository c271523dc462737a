"""Is it worse: what was said of runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.queries.common import is_of_a_control


class VerdictRow(NamedTuple):
    """What was said of a run, after its last look. `content` is the evidence, as JSON values."""

    run_id: int
    suite: str
    backend: str
    started_at: datetime
    looks: int
    verdict: str
    stage: str
    provisional: bool
    accepted: bool
    content: dict[str, Any]
    at: datetime


def verdicts(db: Database, run_ids: Sequence[int]) -> dict[int, VerdictRow]:
    """By run: the verdict in force. Runs without one are left out."""
    with db.read() as connection:
        return {row.run_id: row for row in _verdicts(connection, m.verdict.c.run_id.in_(list(run_ids)))}


def verdict(db: Database, run_id: int) -> VerdictRow | None:
    return verdicts(db, [run_id]).get(run_id)


def worse_runs(db: Database, suite: str) -> set[int]:
    """The runs of a suite that the verdict in force calls worse. Of a year of nights, the evidence of all
    would take too long to read."""
    said, later = m.verdict.c, m.verdict.alias("later")
    overruled = sa.exists().where(later.c.run_id == said.run_id, later.c.id > said.id)
    query = (
        sa.select(said.run_id)
        .join(m.run, m.run.c.id == said.run_id)
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .where(m.suite.c.name == suite, said.verdict == "worse", ~overruled)
    )
    with db.read() as connection:
        return set(connection.execute(query).scalars())


def verdict_looks(db: Database, run_id: int) -> list[VerdictRow]:
    """Every verdict of a run, after each of its looks, oldest first."""
    with db.read() as connection:
        return _verdicts(connection, m.verdict.c.run_id == run_id)


def newest_worse(connection: Connection, suite: str | None, backend: str | None) -> VerdictRow | None:
    """The newest run whose verdict in force is worse, of a suite or backend, or of all but controls."""
    said = m.verdict.alias("later")
    overruled = sa.exists().where(said.c.run_id == m.verdict.c.run_id, said.c.id > m.verdict.c.id)
    where = [m.verdict.c.verdict == "worse", ~overruled]
    where += [m.suite.c.name == suite] if suite else []
    where += [m.backend.c.name == backend] if backend else [~is_of_a_control()]
    found = _verdicts(connection, *where)
    return max(found, key=lambda row: (row.started_at, row.run_id), default=None)


def series_verdicts(db: Database, suite: str, backend: str, limit: int = 400) -> list[VerdictRow]:
    """The verdicts in force of a series, oldest first: the newest `limit` of them."""
    newest: dict[int, VerdictRow] = {}
    with db.read() as connection:
        for row in _verdicts(connection, m.suite.c.name == suite, m.backend.c.name == backend):
            newest[row.run_id] = row
    return sorted(newest.values(), key=lambda row: (row.started_at, row.run_id))[-limit:]


def _verdicts(connection: Connection, *where: sa.ColumnElement[bool]) -> list[VerdictRow]:
    """Oldest first, so that the last one of a run is the one in force."""
    said = m.verdict.c
    query = (
        sa.select(
            said.run_id, m.suite.c.name, m.backend.c.name, m.run.c.started_at, said.looks, said.verdict,
            said.stage, said.provisional, said.accepted, said.content, said.at,
        )
        .join(m.run, m.run.c.id == said.run_id)
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(*where)
        .order_by(said.id)
    )  # fmt: skip
    return [VerdictRow(*row) for row in connection.execute(query)]
