"""Which runs there are, how they go, and what they came to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypedDict, Unpack

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.columns import LARGEST
from store.database import Database
from store.metrics import METRIC_NAMES
from store.queries.common import Rolled, is_whole, shown_status


class RunRow(NamedTuple):
    """A run. `status`: running, whole, invalid, void or interrupted; `subset` '' is the whole suite;
    `metrics` are over all cases, by name, and there are none before the run is closed. `cancelled`:
    someone asked it to stop. `scorer`: the version of the scorers that its scores are of. `control_of`: the
    run beside which this one was made as its control, None for any other."""

    id: int
    suite: str
    suite_version: str
    kind: str
    origin: str
    backend: str
    status: str
    reason: str | None
    trigger: str
    subset: str
    trials: int
    meta: dict[str, Any]
    started_at: datetime
    finished_at: datetime | None
    cases_total: int
    cases_done: int
    errors: int
    environment_id: int | None
    metrics: dict[str, Rolled]
    cancelled: bool = False
    scorer: str = ""
    control_of: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is to be gone on with: it has ended, or a person cancelled it."""
        return self.cancelled or self.status not in ("interrupted", "running")


class TagRow(NamedTuple):
    """One metric over the cases of one tag."""

    tag: str
    metric: str
    n: int
    mean: float
    low: float | None
    high: float | None


class RunFilter(TypedDict, total=False):
    """Which runs: those that fit all that is given; None is as if not given. `text` looks into suite,
    backend, trigger, subset, reason and meta, or is a run's id; `since` is of the start."""

    suites: Sequence[str] | None
    backends: Sequence[str] | None
    statuses: Sequence[str] | None
    triggers: Sequence[str] | None
    text: str | None
    since: datetime | None
    ids: Iterable[int] | None


def runs(
    db: Database, *, limit: int | None = 20, offset: int = 0, **chosen: Unpack[RunFilter]
) -> list[RunRow]:
    """Runs by every filter given, newest first; `limit` None is all."""
    with db.read() as connection:
        return select_runs(connection, _conditions(chosen), limit, offset)


def count_runs(db: Database, **chosen: Unpack[RunFilter]) -> int:
    """How many runs `runs` has to give."""
    with db.read() as connection:
        query = _from_runs(sa.func.count()).where(*_conditions(chosen))
        count: int = connection.execute(query).scalar_one()
        return count


def run(db: Database, run_id: int) -> RunRow | None:
    return next(iter(runs(db, ids=[run_id])), None) if run_id <= LARGEST else None


def progress(db: Database) -> list[RunRow]:
    """The runs that are going on, newest first; a control goes on with its run."""
    with db.read() as connection:
        return select_runs(connection, [shown_status() == "running", m.control.c.run_id.is_(None)])


def is_cancelled(db: Database, run_id: int) -> bool:
    """Whether someone asked the run to stop."""
    with db.read() as connection:
        return bool(connection.execute(sa.select(m.run.c.cancel).where(m.run.c.id == run_id)).scalar())


def runs_scored_otherwise(db: Database, scorer_version: str) -> list[int]:
    """Ids of ended runs with results whose scores are of another scorer version, oldest first."""
    scorer = sa.select(m.scorer.c.version).where(m.scorer.c.id == m.run.c.scorer_id).scalar_subquery()
    ended = m.run.c.status.in_(["whole", "invalid"])
    with db.read() as connection:
        found = sa.select(m.run.c.id).where(ended, scorer != scorer_version).order_by(m.run.c.id)
        return list(connection.execute(found).scalars())


def previous_run(db: Database, run_id: int) -> RunRow | None:
    """The last whole run of the same suite and backend before this one."""
    this = sa.select(m.run.c.suite_id, m.run.c.backend_id, m.run.c.started_at).where(m.run.c.id == run_id)
    with db.read() as connection:
        run = connection.execute(this).first()
        if run is None:
            return None
        same = (m.run.c.suite_id == run.suite_id, m.run.c.backend_id == run.backend_id, is_whole())
        earlier = sa.tuple_(m.run.c.started_at, m.run.c.id) < sa.tuple_(
            sa.literal(run.started_at, m.run.c.started_at.type), sa.literal(run_id)
        )
        return next(iter(select_runs(connection, (*same, earlier), 1)), None)


def run_tags(db: Database, run_id: int) -> list[TagRow]:
    """The run's metrics by tag of its cases, without those over all cases."""
    rolled = m.rollup.c
    query = (
        sa.select(rolled.tag, rolled.metric_id, rolled.n, rolled.mean, rolled.low, rolled.high)
        .join(m.run, sa.and_(m.run.c.id == rolled.run_id, m.run.c.scorer_id == rolled.scorer_id))
        .where(rolled.run_id == run_id, rolled.tag != "")
        .order_by(rolled.tag, rolled.metric_id)
    )
    with db.read() as connection:
        return [TagRow(tag, METRIC_NAMES[metric], *rest) for tag, metric, *rest in connection.execute(query)]


def environment(db: Database, environment_id: int) -> dict[str, Any]:
    """The fingerprint of an environment, {} for an unknown id."""
    content = sa.select(m.environment.c.content).where(m.environment.c.id == environment_id)
    with db.read() as connection:
        found: dict[str, Any] | None = connection.execute(content).scalar()
        return found or {}


def data_version(db: Database) -> str:
    """A key that changes whenever a run begins or ends, or a suite, backend or mark changes. Cheap."""
    with db.read() as connection:
        return str(connection.execute(CHANGES).scalar() or 0)


CHANGES = sa.select(m.change.c.n).where(m.change.c.name == "record")


def select_runs(
    connection: Connection, where: Iterable[sa.ColumnElement[bool]], limit: int | None = None, offset: int = 0
) -> list[RunRow]:
    """Runs by condition, newest first, with their metrics."""
    run = m.run.c
    query = _from_runs(
        *(run[name] for name in RunRow._fields if name in run and name != "status"),
        m.suite.c.name.label("suite"),
        m.suite_version.c.version.label("suite_version"),
        m.suite.c.kind,
        m.suite.c.origin,
        m.backend.c.name.label("backend"),
        shown_status().label("status"),
        run.errors_done.label("errors"),
        run.cancel.label("cancelled"),
        m.scorer.c.version.label("scorer"),
        m.control.c.run_id.label("control_of"),
    )
    query = query.where(*where).order_by(run.started_at.desc(), run.id.desc()).limit(limit).offset(offset)
    rows = connection.execute(query).mappings().all()
    metrics = _metrics(connection, [row["id"] for row in rows])
    return [RunRow(**{**row, "metrics": metrics.get(row["id"], {})}) for row in rows]


def _from_runs(*columns: Any) -> sa.Select[Any]:
    return (
        sa.select(*columns)
        .select_from(m.run)
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.suite_version, m.suite_version.c.id == m.run.c.suite_version_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .join(m.scorer, m.scorer.c.id == m.run.c.scorer_id)
        .outerjoin(m.control, m.control.c.control_id == m.run.c.id)
    )


def _metrics(connection: Connection, run_ids: Sequence[int]) -> dict[int, dict[str, Rolled]]:
    rolled = m.rollup.c
    query = (
        sa.select(rolled.run_id, rolled.metric_id, rolled.mean, rolled.low, rolled.high, rolled.n)
        .join(m.run, sa.and_(m.run.c.id == rolled.run_id, m.run.c.scorer_id == rolled.scorer_id))
        .where(rolled.run_id.in_(run_ids), rolled.tag == "")
    )
    metrics: dict[int, dict[str, Rolled]] = defaultdict(dict)
    for run_id, metric, *values in connection.execute(query):
        metrics[run_id][METRIC_NAMES[metric]] = Rolled(*values)
    return metrics


def _conditions(chosen: RunFilter) -> list[sa.ColumnElement[bool]]:
    wanted = (
        (m.suite.c.name, chosen.get("suites")),
        (m.backend.c.name, chosen.get("backends")),
        (shown_status(), chosen.get("statuses")),
        (m.run.c.trigger, chosen.get("triggers")),
        (m.run.c.id, chosen.get("ids")),
    )
    where: list[sa.ColumnElement[bool]] = [
        column.in_(list(values)) for column, values in wanted if values is not None
    ]
    if since := chosen.get("since"):
        where.append(m.run.c.started_at >= since)
    if text := chosen.get("text"):
        where.append(_mentions(text))
    return where


def _mentions(text: str) -> sa.ColumnElement[bool]:
    places = (m.suite.c.name, m.backend.c.name, m.run.c.trigger, m.run.c.subset, m.run.c.reason, m.run.c.meta)
    found = [sa.type_coerce(place, sa.Text).icontains(text, autoescape=True) for place in places]
    return sa.or_(sa.cast(m.run.c.id, sa.Text) == text.strip().lstrip("#"), *found)
