"""Which runs a side of a comparison is made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.columns import to_json
from store.database import Database
from store.queries.changes import NothingToCompare
from store.queries.runs import RunRow, select_runs
from store.queries.series import MarkRow, marks
from store.sides import Side

COMPARED = "@compare"
"""Subset of the runs that a comparison made: they are no nights of their series, and nothing is said of
them."""
COMPARED_WITH = "compared_with"
"""In the meta of such a run: what the other side was called."""
MOST_TRIALS = 10
"""Of each case, that a side is made of at most."""
FEW = 5
"""Marks that are named to who asked for an unknown one."""


class UnknownMark(NothingToCompare):
    """What a side lies before or after is neither a mark nor a day."""

    code = 2


def side_runs(db: Database, suite: str, side: Side) -> list[RunRow]:
    """The whole runs that a side names, oldest first: of one suite version and one system (packages of the
    backend, what it tells of itself, its configuration, the scorers), the newest one that fits; at most as
    many as give `MOST_TRIALS` trials, but all that were named by hand. Raises `NothingToCompare`."""
    found = _named(db, suite, side) if side.run_ids else _of_backend(db, suite, side)
    known = _systems(db, found)
    alike = [row for row in found if known[row.id] == known[found[0].id]]
    if side.run_ids:  # what a person named, stands as it was named
        _refuse_unlike(found, alike)
        return sorted(alike, key=_in_order)
    return sorted(_enough(alike), key=_in_order)


def _in_order(row: RunRow) -> tuple[datetime, int]:
    return row.started_at, row.id


def _refuse_unlike(named: Sequence[RunRow], alike: Sequence[RunRow]) -> None:
    if unlike := sorted({row.id for row in named} - {row.id for row in alike}):
        others = ", ".join(map(str, unlike))
        raise NothingToCompare(
            f"a side is of one suite version, scorer and system, and {others} and {named[0].id} are not: "
            f"memtrend diff {unlike[0]} {named[0].id} says what differs"
        )


def _named(db: Database, suite: str, side: Side) -> list[RunRow]:
    with db.read() as connection:
        found = {row.id: row for row in select_runs(connection, [m.run.c.id.in_(side.run_ids)])}
    for run_id in side.run_ids:
        row = found.get(run_id)
        if row is None:
            raise NothingToCompare(f"no run {run_id}; memtrend runs lists them")
        if row.suite != suite:
            raise NothingToCompare(f"run {run_id} is of {row.suite}, not of {suite}")
        if row.status != "whole" or row.subset not in ("", COMPARED):
            what = f"a part of {suite}" if row.subset not in ("", COMPARED) else row.status
            raise NothingToCompare(f"run {run_id} is {what}: only whole runs are compared")
    backends = sorted({row.backend for row in found.values()})
    if len(backends) > 1:
        raise NothingToCompare(f"a side is of one backend, not of {' and '.join(backends)}")
    return sorted(found.values(), key=lambda row: row.id, reverse=True)


def _of_backend(db: Database, suite: str, side: Side) -> list[RunRow]:
    """The one that decides on the system comes first. A backend of just this name, as a release that was
    compared has one, comes before what the name may mean besides."""
    with db.read() as connection:
        if side.relation == "at" and (rows := _whole(connection, suite, side.text)):
            return rows
        rows = _whole(connection, suite, side.backend)
    fitting = list(_fitting(db, side, rows))
    if not fitting:
        raise NothingToCompare(_missing(suite, side, rows))
    return fitting


def _whole(connection: Connection, suite: str, backend: str) -> list[RunRow]:
    """Newest first."""
    return select_runs(
        connection,
        [
            m.suite.c.name == suite,
            m.backend.c.name == backend,
            m.run.c.status == "whole",
            m.run.c.finished_at.is_not(None),
            m.run.c.subset.in_(["", COMPARED]),
        ],
    )


def _fitting(db: Database, side: Side, rows: Sequence[RunRow]) -> Iterable[RunRow]:
    if side.relation == "newest":
        return rows
    if side.relation == "at" and (released := _of_release(db, rows, side.what)):
        return released  # also where a mark says the same: it may have outlasted the release
    start, end = _time(db, side)
    if start is None:
        return []
    if side.relation == "before":
        return [row for row in rows if (row.finished_at or row.started_at) <= start]
    if side.relation == "after":
        return [row for row in reversed(rows) if row.started_at >= end]
    return [row for row in rows if start <= row.started_at < end]


_LATE = datetime.max.replace(tzinfo=UTC)


def _time(db: Database, side: Side) -> tuple[datetime | None, datetime]:
    """From when to when what the side names lasted; None for what is no day and no mark. Of a mark that is
    gone past, both are its moment."""
    if side.since and side.until:
        return _midnight(side.since), _midnight(side.until + timedelta(days=1))
    every = marks(db)
    named = [mark for mark in every if mark.text == side.what]
    if not named:
        if side.relation != "at":
            raise UnknownMark(_unknown_mark(side, every))
        return None, _LATE
    at = named[-1].at
    if side.relation != "at":
        return at, at
    return at, min((mark.at for mark in every if mark.at > at), default=_LATE)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _unknown_mark(side: Side, every: Sequence[MarkRow]) -> str:
    newest = ", ".join(repr(mark.text) for mark in every[-FEW:])
    return f"{side.what!r} is no mark and no day; " + (f"the newest marks: {newest}" if newest else "no mark")


def _of_release(db: Database, rows: Sequence[RunRow], what: str) -> list[RunRow]:
    known = environments(db, rows)
    return [row for row in rows if what in _releases(known.get(row.environment_id, {}))]


def _releases(environment: dict[str, Any]) -> Iterator[str]:
    """All by which a release may be named."""
    for name, version in own_packages(environment):
        yield from (version, f"{name} {version}", f"{name}=={version}")


def own_packages(environment: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, version) of the packages that are the backend."""
    installed = environment.get("packages", {})
    return [(name, installed[name]) for name in environment.get("of_backend", {}) if name in installed]


def _missing(suite: str, side: Side, rows: Sequence[RunRow]) -> str:
    if not rows:
        return (
            f"no whole run of {suite} on {side.backend}: "
            f"memtrend run --suite {suite} --backend {side.backend}"
        )
    if side.relation == "at":
        return f"no whole run of {suite} on {side.backend} is of {side.what!r}, a release, a day or a mark"
    return f"no whole run of {suite} on {side.backend} lies {side.relation} {side.what!r}"


def environments(db: Database, rows: Iterable[RunRow]) -> dict[int | None, dict[str, Any]]:
    """By id: what the runs ran on."""
    ids = {row.environment_id for row in rows} - {None}
    query = sa.select(m.environment.c.id, m.environment.c.content).where(m.environment.c.id.in_(ids))
    with db.read() as connection:
        return {row.id: row.content for row in connection.execute(query)}


def is_of_system(db: Database, row: RunRow, environment: Mapping[str, Any]) -> bool:
    """Whether the run ran on this system: packages of the backend, what it tells of itself, its
    configuration."""
    stored = environments(db, [row]).get(row.environment_id, {})
    return _system(stored) == _system(json.loads(to_json(environment)))


def _systems(db: Database, rows: Sequence[RunRow]) -> dict[int, tuple[Any, ...]]:
    """By run: what must be the same for two runs to be trials of one thing."""
    known = environments(db, rows)
    return {
        row.id: (row.suite_version, row.scorer, *_system(known.get(row.environment_id, {}))) for row in rows
    }


def _system(environment: dict[str, Any]) -> tuple[Any, ...]:
    installed, tree = environment.get("packages", {}), environment.get("of_backend", {})
    names = sorted({*tree, *(required for names in tree.values() for required in names)})
    versions = tuple((name, installed.get(name)) for name in names)
    return versions, environment.get("backend"), environment.get("config")


def _enough(rows: Sequence[RunRow]) -> Iterator[RunRow]:
    trials = 0
    for row in rows:
        if trials and trials + row.trials > MOST_TRIALS:
            return
        trials += row.trials
        yield row
