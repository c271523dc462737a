"""How it went over time: trends, what changed meanwhile, and where everything stands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.dialects.sql import plain_rows
from store.metrics import METRIC_NAMES, METRICS
from store.queries.common import Rolled, is_of_a_control, is_whole, metric_id, shown_status, suite_id
from store.queries.runs import CHANGES, RunRow, select_runs

OVERVIEW_POINTS = 45


class SeriesRun(NamedTuple):
    """A whole run, as the points of a chart share it."""

    id: int
    suite_id: int
    backend_id: int
    backend: str
    started_at: datetime
    environment_id: int | None
    suite_version: str
    scorer_id: int


class TrendPoint(NamedTuple):
    """One metric of one whole run."""

    run: SeriesRun
    metric: str
    n: int
    mean: float
    low: float | None
    high: float | None

    @property
    def run_id(self) -> int:
        return self.run.id

    @property
    def backend(self) -> str:
        return self.run.backend

    @property
    def started_at(self) -> datetime:
        return self.run.started_at


class EnvironmentChange(NamedTuple):
    """What a whole run's environment has that the one before had not: (name, old, new), names dotted
    (`packages.numpy`), None where there was or is nothing."""

    backend: str
    run_id: int
    at: datetime
    changes: list[tuple[str, Any, Any]]


class MarkRow(NamedTuple):
    id: int
    at: datetime
    text: str
    kind: str
    author: str
    meta: dict[str, Any]


class OverviewRow(NamedTuple):
    """Where one suite on one backend stands. `latest`: the newest run that has ended, whatever its status;
    `points`: pass rates of the last whole runs, oldest first. Runs of a part of the suite, and of controls,
    do not count."""

    suite: str
    kind: str
    origin: str
    backend: str
    latest: RunRow | None
    last_whole: RunRow | None
    points: list[TrendPoint]
    running: RunRow | None


def trend(
    db: Database,
    suite: str,
    metric: str,
    *,
    tag: str = "",
    backends: Sequence[str] | None = None,
    since: datetime | None = None,
) -> list[TrendPoint]:
    """One metric over the whole runs of a suite, oldest first. `tag` '' is over all cases."""
    return trends(db, suite, [metric], tag=tag, backends=backends, since=since)


def trends(
    db: Database,
    suite: str,
    metrics: Sequence[str],
    *,
    tag: str = "",
    backends: Sequence[str] | None = None,
    since: datetime | None = None,
) -> list[TrendPoint]:
    """The same for several metrics at once, oldest first."""
    wanted = [metric_id(name) for name in metrics]
    with db.read() as connection:
        series = whole_runs(db, connection, suite_id(connection, suite), backends, since)
        return _points(connection, series, wanted, tag)


def whole_runs(
    db: Database,
    connection: Connection,
    suite: int | None,
    backends: Sequence[str] | None,
    since: datetime | None,
) -> dict[int, SeriesRun]:
    """The whole runs of a suite by id, oldest first."""
    return {
        run.id: run
        for run in _known_runs(db, connection, suite)
        if (backends is None or run.backend in backends) and (since is None or run.started_at >= since)
    }


def recent_runs(
    db: Database, connection: Connection, suite: int | None, limit: int, *, controls: bool = True
) -> dict[int, SeriesRun]:
    """The last whole runs of each backend by id, oldest first."""
    left_out = set() if controls else set(connection.execute(sa.select(m.control.c.control_id)).scalars())
    left: dict[str, int] = defaultdict(lambda: limit)
    found = []
    for run in reversed(_known_runs(db, connection, suite)):
        if left[run.backend] and run.id not in left_out:
            left[run.backend] -= 1
            found.append(run)
    return {run.id: run for run in reversed(found)}


def _known_runs(db: Database, connection: Connection, suite: int | None) -> list[SeriesRun]:
    """Read once for each state of the record: a page asks for them half a dozen times, and of a year of
    nights they are thousands."""
    version = connection.execute(CHANGES).scalar()
    kept, runs = db.whole_runs.get(suite, (None, []))
    if kept is None or kept != version:
        runs = [SeriesRun(*row) for row in connection.execute(_select_whole(suite)).all()]
        db.whole_runs[suite] = (version, runs)
    return runs


def _select_whole(suite: int | None) -> sa.Select[Any]:
    return (
        sa.select(
            m.run.c.id, m.run.c.suite_id, m.run.c.backend_id, m.backend.c.name, m.run.c.started_at,
            m.run.c.environment_id, m.suite_version.c.version, m.run.c.scorer_id,
        )
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .join(m.suite_version, m.suite_version.c.id == m.run.c.suite_version_id)
        .where(m.run.c.suite_id == suite, is_whole())
        .order_by(m.run.c.started_at, m.run.c.id)
    )  # fmt: skip


def _points(
    connection: Connection, series: Mapping[int, SeriesRun], metrics: Sequence[int], tag: str
) -> list[TrendPoint]:
    """Ranges of the rollup's key. The runs are joined here, since joining a year in SQL takes far longer."""
    rolled = m.rollup.c
    query = sa.select(
        rolled.run_id, rolled.scorer_id, rolled.metric_id, rolled.n, rolled.mean, rolled.low, rolled.high
    ).where(
        rolled.backend_id.in_({run.backend_id for run in series.values()}),
        rolled.suite_id.in_({run.suite_id for run in series.values()}),
        rolled.metric_id.in_(metrics),
        rolled.tag == tag,
        rolled.run_id >= min(series, default=0),
    )
    found = {run.id: (run, run.scorer_id, list[TrendPoint]()) for run in series.values()}
    names = {number: METRIC_NAMES[number] for number in metrics}
    make = tuple.__new__  # of tens of thousands, in half the time of naming the fields
    for run_id, scorer, metric, n, mean, low, high in plain_rows(connection, query):
        of = found.get(run_id)
        if of is not None and of[1] == scorer:
            of[2].append(make(TrendPoint, (of[0], names[metric], n, mean, low, high)))
    return [point for _, _, points in found.values() for point in points]


def measured_metrics(db: Database, suite: str) -> list[str]:
    """The metrics over all cases that the newest whole runs of a suite have, in the usual order."""
    with db.read() as connection:
        newest = recent_runs(db, connection, suite_id(connection, suite), 1, controls=False)
        query = sa.select(m.rollup.c.metric_id).where(
            m.rollup.c.run_id.in_(list(newest)), m.rollup.c.tag == ""
        )
        found = set(connection.execute(query.distinct()).scalars())
    return [name for name, metric in METRICS.items() if metric.id in found]


def environment_changes(
    db: Database, suite: str, backends: Sequence[str] | None = None, since: datetime | None = None
) -> list[EnvironmentChange]:
    """What changed in the environment from one whole run of a backend to its next, oldest first."""
    with db.read() as connection:
        series = whole_runs(db, connection, suite_id(connection, suite), backends, None)
        known = _environments(connection, {run.environment_id for run in series.values()})
    changes = list(_changes(series.values(), known))
    return [change for change in changes if since is None or change.at >= since]


def _environments(connection: Connection, ids: set[int | None]) -> dict[int | None, dict[str, Any]]:
    query = sa.select(m.environment.c.id, m.environment.c.content).where(m.environment.c.id.in_(ids - {None}))
    return {row.id: dict(_flat(row.content)) for row in connection.execute(query)}


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _changes(runs: Any, environments: Mapping[int | None, Mapping[str, Any]]) -> Iterator[EnvironmentChange]:
    last: dict[str, int | None] = {}
    for run in runs:
        before = last.get(run.backend)
        if run.environment_id is None:
            continue
        last[run.backend] = run.environment_id
        if before is not None and before != run.environment_id:
            differing = _difference(environments[before], environments[run.environment_id])
            yield EnvironmentChange(run.backend, run.id, run.started_at, differing)


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    names = sorted(old.keys() | new.keys())
    return [(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def marks(db: Database, since: datetime | None = None) -> list[MarkRow]:
    """Deploys, upgrades and intended changes, oldest first."""
    query = sa.select(*(m.mark.c[name] for name in MarkRow._fields)).order_by(m.mark.c.at, m.mark.c.id)
    with db.read() as connection:
        rows = connection.execute(query if since is None else query.where(m.mark.c.at >= since))
        return [MarkRow(*row) for row in rows]


def floors(db: Database, suite: str, metric: str, tag: str = "") -> dict[str, Rolled]:
    """By backend: the newest whole run of those that return nothing, or everything."""
    wanted = metric_id(metric)
    floor = sa.select(m.backend.c.name).where(m.backend.c.type.in_(["nothing", "everything"]))
    with db.read() as connection:
        names = list(connection.execute(floor).scalars())
        series = whole_runs(db, connection, suite_id(connection, suite), names, None)
        newest = {run.backend: run for run in series.values()}
        points = _points(connection, {run.id: run for run in newest.values()}, [wanted], tag)
    return {point.backend: Rolled(point.mean, point.low, point.high, point.n) for point in points}


def overview(db: Database) -> list[OverviewRow]:
    """Every (suite, backend) that has been run, by suite, then in order of the backends' first appearance."""
    with db.read() as connection:
        states = _states(connection)
        ids = {
            id_ for state in states.values() for id_ in (state.latest, state.last_whole, state.running) if id_
        }
        rows = {row.id: row for row in select_runs(connection, [m.run.c.id.in_(ids)])}
        points = {suite: _recent_points(db, connection, suite) for suite in {suite for suite, _ in states}}
    return [
        _overview_row(state, rows, points[suite].get(state.backend, []))
        for (suite, _), state in states.items()
    ]


class _State(NamedTuple):
    suite: str
    kind: str
    origin: str
    backend: str
    latest: int | None = None
    last_whole: int | None = None
    running: int | None = None


def _states(connection: Connection) -> dict[tuple[int, int], _State]:
    """By (suite id, backend id): the ids of the runs that say where it stands."""
    query = (
        sa.select(
            m.run.c.id, m.run.c.suite_id, m.run.c.backend_id, shown_status().label("status"),
            m.suite.c.name, m.suite.c.kind, m.suite.c.origin, m.backend.c.name.label("backend"),
        )
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(m.run.c.subset == "", ~is_of_a_control())
        .order_by(m.suite.c.id, m.backend.c.id, m.run.c.started_at, m.run.c.id)
    )  # fmt: skip
    states: dict[tuple[int, int], _State] = {}
    for run_id, suite, backend, status, *names in plain_rows(connection, query):
        state = states.get((suite, backend)) or _State(*names)
        states[suite, backend] = _with_run(state, run_id, status)
    return states


def _with_run(state: _State, run_id: int, status: str) -> _State:
    if status == "running":
        return state._replace(running=run_id)
    if status == "whole":
        return state._replace(latest=run_id, last_whole=run_id)
    return state._replace(latest=run_id)


def _recent_points(db: Database, connection: Connection, suite: int) -> dict[str, list[TrendPoint]]:
    by_backend: dict[str, list[SeriesRun]] = defaultdict(list)
    for run in whole_runs(db, connection, suite, None, None).values():
        by_backend[run.backend].append(run)
    recent = {run.id: run for runs in by_backend.values() for run in runs[-OVERVIEW_POINTS:]}
    points: dict[str, list[TrendPoint]] = defaultdict(list)
    for point in _points(connection, recent, [metric_id("pass")], ""):
        points[point.backend].append(point)
    return points


def _overview_row(state: _State, rows: Mapping[int, RunRow], points: list[TrendPoint]) -> OverviewRow:
    latest, last_whole, running = (
        rows.get(id_) if id_ else None for id_ in (state.latest, state.last_whole, state.running)
    )
    return OverviewRow(*state[:4], latest, last_whole, points, running)
