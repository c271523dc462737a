"""Which sides of a comparison a person may choose from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.queries.common import suite_id
from store.queries.series import MarkRow, marks
from store.queries.sides import COMPARED, own_packages

NEWEST_RUNS, NEWEST_DAYS, NEWEST_MARKS, NEWEST_RELEASES = 5, 5, 3, 6
"""That are offered of each backend; older ones can be named by hand."""

Kind = Literal["newest", "release", "before", "after", "day", "run"]


class SideChoice(NamedTuple):
    """`text` names it, as `store.sides` reads it; `what`: a release, a mark's text, a day or a run's id;
    `at`: when it was, None of a backend and a release."""

    text: str
    kind: Kind
    backend: str
    what: str = ""
    at: datetime | None = None


class _Run(NamedTuple):
    id: int
    backend: str
    started_at: datetime
    finished_at: datetime
    environment_id: int | None


def side_choices(db: Database, suite: str) -> list[SideChoice]:
    """What has whole runs of the suite: every backend, in order of first appearance, then of each its
    releases where it has had several, what lies before and after the newest marks, days and runs, the newest
    first."""
    with db.read() as connection:
        rows = _whole(connection, suite)
        releases = _releases(connection, rows)
    by_backend: dict[str, list[_Run]] = defaultdict(list)
    for row in rows:
        by_backend[row.backend].append(row)
    dated = marks(db)
    narrower = [one for name, own in by_backend.items() for one in _narrower(name, own, releases, dated)]
    return [*(SideChoice(name, "newest", name) for name in by_backend), *narrower]


def _whole(connection: Connection, suite: str) -> list[_Run]:
    """By backend in order of first appearance, the newest first."""
    query = (
        sa.select(
            m.run.c.id, m.backend.c.name, m.run.c.started_at, m.run.c.finished_at, m.run.c.environment_id
        )
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(
            m.run.c.suite_id == suite_id(connection, suite),
            m.run.c.status == "whole",
            m.run.c.finished_at.is_not(None),
            m.run.c.subset.in_(["", COMPARED]),
        )
        .order_by(m.backend.c.id, m.run.c.started_at.desc(), m.run.c.id.desc())
    )
    return [_Run(*row) for row in connection.execute(query)]


def _releases(connection: Connection, rows: Sequence[_Run]) -> Mapping[int | None, str]:
    """By environment: the version of the backend's own package, "" where it has none or several."""
    ids = {row.environment_id for row in rows} - {None}
    query = sa.select(m.environment.c.id, m.environment.c.content).where(m.environment.c.id.in_(ids))
    return {row.id: _release(row.content) for row in connection.execute(query)}


def _release(content: dict[str, Any]) -> str:
    own = own_packages(content)
    return own[0][1] if len(own) == 1 else ""


def _narrower(
    name: str, rows: Sequence[_Run], releases: Mapping[int | None, str], dated: Sequence[MarkRow]
) -> Iterator[SideChoice]:
    if not set(name) & set("@<>"):  # of a release that was compared, more behind its name reads otherwise
        yield from _dated(name, rows, releases, dated)
    for row in rows[:NEWEST_RUNS]:
        yield SideChoice(str(row.id), "run", name, str(row.id), row.started_at)


def _dated(
    name: str, rows: Sequence[_Run], releases: Mapping[int | None, str], dated: Sequence[MarkRow]
) -> Iterator[SideChoice]:
    known = list(dict.fromkeys(filter(None, (releases.get(row.environment_id, "") for row in rows))))
    if len(known) > 1:
        yield from (SideChoice(f"{name}@{one}", "release", name, one) for one in known[:NEWEST_RELEASES])
    for mark in _passed(rows, dated):
        yield SideChoice(f"{name}<{mark.text}", "before", name, mark.text, mark.at)
        yield SideChoice(f"{name}>{mark.text}", "after", name, mark.text, mark.at)
    days = {f"{row.started_at:%Y-%m-%d}": row.started_at for row in reversed(rows)}
    for day in sorted(days, reverse=True)[:NEWEST_DAYS]:
        yield SideChoice(f"{name}@{day}", "day", name, day, days[day])


def _passed(rows: Sequence[_Run], dated: Sequence[MarkRow]) -> list[MarkRow]:
    """The newest marks with runs on either side, each text once: the newest one of a text is meant."""
    last, first = rows[0].started_at, min(row.finished_at for row in rows)
    newest = {mark.text: mark for mark in dated}
    passed = [mark for mark in newest.values() if first <= mark.at <= last]
    return sorted(passed, key=lambda mark: mark.at, reverse=True)[:NEWEST_MARKS]
