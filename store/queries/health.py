"""How the monitor itself does: what its runs took, what standing indexes hold, what the record is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import REVISIONS, Database
from store.metrics import METRICS
from store.queries.common import is_of_a_control, is_whole, shown_status


class RunState(NamedTuple):
    """A run as a calendar needs it. `status` as in `RunRow`."""

    run_id: int
    suite: str
    backend: str
    status: str


class RunPace(NamedTuple):
    """What the newest whole run of a suite on a backend took. `seconds` from its start to its end; `busy_ms`
    for which the backend was kept at work, by what: planting, settling, asking, diagnosing. Scenarios run
    beside each other, so `busy_ms` may come to more than `seconds`."""

    run_id: int
    suite: str
    backend: str
    started_at: datetime
    seconds: float
    scenarios: int
    plant_ms: float
    settle_ms: float
    recall_ms: float
    diagnosis_ms: float

    @property
    def busy_ms(self) -> float:
        return self.plant_ms + self.settle_ms + self.recall_ms + self.diagnosis_ms


class IndexCount(NamedTuple):
    """What a leg held in one run. `expected` None: nobody but the index knows how many it should hold."""

    suite: str
    backend: str
    leg: str
    run_id: int
    at: datetime
    counted: int
    expected: int | None


class RecordFacts(NamedTuple):
    """What keeps the record: name and version of the `server`, the schema's revision, bytes."""

    server: str
    revision: str
    size: int


def run_states(db: Database, run_ids: Collection[int]) -> list[RunState]:
    """These runs in the order of their ids; ids of no run are passed over."""
    query = (
        sa.select(m.run.c.id, m.suite.c.name, m.backend.c.name.label("backend"), shown_status())
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(m.run.c.id.in_(sorted(run_ids)))
        .order_by(m.run.c.id)
    )
    with db.read() as connection:
        return [RunState(*row) for row in connection.execute(query)]


def run_paces(db: Database) -> list[RunPace]:
    """Of the newest whole run of every suite on every backend but controls, the longest one first."""
    with db.read() as connection:
        runs = _newest_whole(connection)
        ids = [row.id for row in runs]
        scenarios = _scenarios(connection, ids)
        asked, diagnosed = _asked(connection, ids), _diagnosed(connection, ids)
    paces = [
        RunPace(
            row.id, row.suite, row.backend, row.started_at,
            (row.finished_at - row.started_at).total_seconds(), *scenarios.get(row.id, (0, 0.0, 0.0)),
            asked.get(row.id, 0.0), diagnosed.get(row.id, 0.0),
        )
        for row in runs
    ]  # fmt: skip
    return sorted(paces, key=lambda pace: -pace.seconds)


def _newest_whole(connection: Connection) -> Sequence[sa.Row[Any, Any, Any, Any, Any]]:
    newest = (
        sa.select(sa.func.max(m.run.c.id))
        .where(is_whole(), ~is_of_a_control())
        .group_by(m.run.c.suite_id, m.run.c.backend_id)
    )
    query = (
        sa.select(
            m.run.c.id, m.suite.c.name.label("suite"), m.backend.c.name.label("backend"),
            m.run.c.started_at, m.run.c.finished_at,
        )
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(m.run.c.id.in_(newest))
    )  # fmt: skip
    return connection.execute(query).all()


def _scenarios(connection: Connection, run_ids: Sequence[int]) -> dict[int, tuple[int, float, float]]:
    """Run -> scenarios, ms of planting, ms of settling."""
    done = m.scenario_result.c
    sums = (sa.func.coalesce(sa.func.sum(column), 0.0) for column in (done.plant_ms, done.settle_ms))
    query = sa.select(done.run_id, sa.func.count(), *sums).where(done.run_id.in_(run_ids))
    found = connection.execute(query.group_by(done.run_id))
    return {run_id: (n, float(plant), float(settle)) for run_id, n, plant, settle in found}


def _asked(connection: Connection, run_ids: Sequence[int]) -> dict[int, float]:
    """Run -> ms of the recalls that answered."""
    result = m.case_result.c
    spent = sa.func.coalesce(sa.func.sum(result.latency_ms), 0.0)
    query = sa.select(result.run_id, spent).where(result.run_id.in_(run_ids)).group_by(result.run_id)
    return {run_id: float(ms) for run_id, ms in connection.execute(query)}


def _diagnosed(connection: Connection, run_ids: Sequence[int]) -> dict[int, float]:
    """Run -> ms that its lost cases were looked into for."""
    spent: dict[int, float] = {}
    lost = (m.case_result.c.run_id.in_(run_ids), m.case_result.c.failure.is_not(None))
    for run_id, content in connection.execute(_details(*lost)):
        found = (content.get("diagnosis") or {}).get("ms") or 0.0
        spent[run_id] = spent.get(run_id, 0.0) + float(found)
    return spent


def _details(*where: sa.ColumnElement[bool]) -> sa.Select[tuple[int, dict[str, Any]]]:
    return (
        sa.select(m.case_result.c.run_id, m.detail.c.content)
        .join(m.detail, m.detail.c.case_result_id == m.case_result.c.id)
        .where(*where)
        .order_by(m.case_result.c.id)
    )


def index_counts(db: Database, since: datetime) -> list[IndexCount]:
    """What whole runs counted in the legs of their backends since then, oldest first, one row a leg and
    run."""
    rolled = m.rollup.c
    counting = sa.exists().where(
        rolled.backend_id == m.run.c.backend_id, rolled.suite_id == m.run.c.suite_id,
        rolled.metric_id == METRICS["leg_count"].id, rolled.tag == "", rolled.run_id == m.run.c.id,
    )  # fmt: skip
    query = (
        sa.select(m.run.c.id, m.suite.c.name, m.backend.c.name.label("backend"), m.run.c.started_at)
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(is_whole(), ~is_of_a_control(), m.run.c.started_at >= since, counting)
        .order_by(m.run.c.started_at, m.run.c.id)
    )
    with db.read() as connection:
        runs = connection.execute(query).all()
        counted_in = censuses(connection, [row.id for row in runs])
    return [
        IndexCount(row.name, row.backend, leg, row.id, row.started_at, counted, expected)
        for row in runs
        for leg, (counted, expected) in sorted(counted_in.get(row.id, {}).items())
    ]


def censuses(connection: Connection, run_ids: Sequence[int]) -> dict[int, dict[str, tuple[int, int | None]]]:
    """Run -> leg -> counted and expected, as its cases that count tell it; the last one of a leg stands."""
    scored = sa.exists().where(
        m.score.c.case_result_id == m.case_result.c.id, m.score.c.metric_id == METRICS["leg_count"].id
    )
    found: dict[int, dict[str, tuple[int, int | None]]] = {}
    for run_id, content in connection.execute(_details(m.case_result.c.run_id.in_(run_ids), scored)):
        census = content.get("census") or {}
        expected = census.get("expected", {})
        counts = {leg: (int(n), expected.get(leg)) for leg, n in census.get("counted", {}).items()}
        found.setdefault(run_id, {}).update(counts)
    return found


def record_facts(db: Database) -> RecordFacts:
    """What keeps the record, and how large it has become."""
    with db.read() as connection:
        return RecordFacts(db.dialect.server(connection), REVISIONS[-1], db.dialect.size(connection))
