"""What was decided about suites and their cases, and what standing indexes should hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.queries.common import suite_id
from store.queries.operation import clock
from store.queries.results import outcomes_in_force
from store.queries.suites import hashes_in_force, is_whole_suite, version_reasons

TRIAL_RUNS = 5
"""A new case gates nothing before it came out the same in so many whole runs of a backend in a row."""
WINDOW = 60
"""Whole runs of a backend in which such a stretch is looked for."""
FLOORS = ("nothing", "everything")

Standing = Literal["gating", "trial", "quarantine", "expired", "retired"]


class CaseStanding(NamedTuple):
    """How a case counts. gating: its loss is news | trial: new, shown but not gating | quarantine: the same,
    by decision, until `expires` | expired: a quarantine that ended; it gates again | retired: no longer
    asked. `reason`, `owner`, `author`, `at` are of the decision; `stretch` is the longest row of equal
    outcomes in whole runs of a backend."""

    case: str
    standing: Standing
    stretch: int
    owner: str = ""
    reason: str = ""
    expires: datetime | None = None
    author: str = ""
    at: datetime | None = None

    @property
    def gates(self) -> bool:
        return self.standing in ("gating", "expired")


class LogRow(NamedTuple):
    """Something that happened to a suite. what: version, reason (an earlier one of a version, which another
    took the place of), quarantine, released or retired; `subject` is the version or the case; `reason` and
    `author` are "" where nobody gave a reason."""

    at: datetime
    what: str
    subject: str
    reason: str
    author: str
    owner: str = ""
    expires: datetime | None = None


class ExpectedCount(NamedTuple):
    """How many memories a leg should hold, and who said so."""

    leg: str
    expected: int
    source: str
    author: str
    at: datetime


def case_standings(db: Database, suite: str, backend: str | None = None) -> list[CaseStanding]:
    """How every case in force counts, by name, then the retired ones. `backend`: on this one alone, as a gate
    asks; else a case is on trial until it has been stable on some backend that is no floor."""
    now = clock(db)
    with db.read() as connection:
        decided = _latest(connection, suite_id(connection, suite))
        names = hashes_in_force(connection, suite)
        stretches = _stretches(db, connection, suite, backend)
    retired = {name: row for name, row in decided.items() if row.state == "retired"}
    muted = {
        name: row for name, row in decided.items() if name not in retired
    }  # asked all the same: it counts
    return [_standing(name, stretches.get(name, 0), muted.get(name), now) for name in sorted(names)] + [
        _standing(name, 0, decided[name], now) for name in sorted(retired.keys() - names.keys())
    ]


def _standing(case: str, stretch: int, decided: sa.Row[Any] | None, now: datetime) -> CaseStanding:
    tried: Standing = "gating" if stretch >= TRIAL_RUNS else "trial"
    if decided is None or decided.state == "released":
        return CaseStanding(case, tried, stretch)
    ended = decided.state == "quarantine" and decided.expires <= now
    standing: Standing = "expired" if ended else decided.state
    told = (decided.owner, decided.reason, decided.expires, decided.author, decided.at)
    return CaseStanding(case, standing, stretch, *told)


def quarantined_cases(connection: Connection, suite_id: int, now: datetime) -> set[str]:
    """The cases whose loss is no news now, by decision."""
    return {name for name, until in quarantines(connection, suite_id).items() if until > now}


def quarantines(connection: Connection, suite_id: int) -> dict[str, datetime]:
    """Case -> the end of its quarantine, be it over."""
    return {
        name: row.expires for name, row in _latest(connection, suite_id).items() if row.state == "quarantine"
    }


def retired_names(connection: Connection, suite_id: int) -> set[str]:
    """The cases that are no longer asked, by decision."""
    return {name for name, row in _latest(connection, suite_id).items() if row.state == "retired"}


def _latest(connection: Connection, suite_id: int | None) -> dict[str, sa.Row[Any]]:
    """Case -> the decision in force."""
    state = m.case_state.c
    query = sa.select(m.case_state).where(state.suite_id == suite_id).order_by(state.id)
    return {row.name: row for row in connection.execute(query)}


def _stretches(db: Database, connection: Connection, suite: str, backend: str | None) -> Mapping[str, int]:
    """Case -> its longest row of equal outcomes on a backend."""
    kinds = {row.name: row.type for row in connection.execute(sa.select(m.backend.c.name, m.backend.c.type))}
    longest: dict[str, int] = defaultdict(int)
    for (case, on), outcomes in outcomes_in_force(db, connection, suite, WINDOW).items():
        if on == backend or (backend is None and kinds[on] not in FLOORS):
            longest[case] = max(longest[case], *(sum(1 for _ in group) for _, group in groupby(outcomes)))
    return longest


def deleted_cases(db: Database, suite: str, asked: Collection[str]) -> list[str]:
    """Cases that were asked once, are not among those `asked` now, and were never retired."""
    query = sa.select(m.case.c.name).join(m.suite, m.suite.c.id == m.case.c.suite_id)
    with db.read() as connection:
        known = set(connection.execute(query.where(m.suite.c.name == suite)).scalars())
        decided = _latest(connection, suite_id(connection, suite))
    gone = known - set(asked)
    return sorted(name for name in gone if name not in decided or decided[name].state != "retired")


def retired_cases(db: Database, suite: str) -> list[str]:
    """Cases that were retired and not released since, whether or not they are still asked."""
    with db.read() as connection:
        decided = _latest(connection, suite_id(connection, suite))
    return sorted(name for name, row in decided.items() if row.state == "retired")


def suite_log(db: Database, suite: str) -> list[LogRow]:
    """Versions of a suite with their reasons and what was decided about its cases, newest first."""
    with db.read() as connection:
        id = suite_id(connection, suite)
        rows = [*_versions(connection, id), *_decided(connection, id)]
    return sorted(rows, key=lambda row: row.at, reverse=True)


def _versions(connection: Connection, suite: int | None) -> Sequence[LogRow]:
    version = m.suite_version.c
    query = sa.select(version.id, version.version, version.created_at).where(
        version.suite_id == suite, is_whole_suite()
    )
    rows = connection.execute(query).all()
    reasons = version_reasons(connection, [row.id for row in rows])
    told = [LogRow(row.created_at, "version", row.version, *reasons.get(row.id, ("", ""))) for row in rows]
    return [*told, *_overruled(connection, {row.id: row.version for row in rows})]


def _overruled(connection: Connection, versions: Mapping[int, str]) -> Iterator[LogRow]:
    """Reasons that another one took the place of."""
    change = m.suite_change.c
    query = sa.select(m.suite_change).where(change.suite_version_id.in_(versions)).order_by(change.id)
    for version_id, said in groupby(sorted(connection.execute(query), key=_of_version), key=_of_version):
        for row in list(said)[:-1]:
            yield LogRow(row.at, "reason", versions[version_id], row.reason, row.author)


def _of_version(row: sa.Row[tuple[object, ...]]) -> int:
    version_id: int = row.suite_version_id
    return version_id


def _decided(connection: Connection, suite: int | None) -> Sequence[LogRow]:
    state = m.case_state.c
    columns = (state.at, state.state, state.name, state.reason, state.author, state.owner, state.expires)
    return [LogRow(*row) for row in connection.execute(sa.select(*columns).where(state.suite_id == suite))]


def expected_counts(db: Database, suite: str, backend: str) -> dict[str, int]:
    """Leg -> memories that it should hold, of the standing index that the suite reads in this backend."""
    return {row.leg: row.expected for row in expectations(db, suite, backend)}


def expectations(db: Database, suite: str, backend: str) -> list[ExpectedCount]:
    """The same, with who said so and when."""
    row = m.expected_count.c
    query = (
        sa.select(row.leg, row.expected, row.source, row.author, row.at)
        .join(m.suite, m.suite.c.id == row.suite_id)
        .join(m.backend, m.backend.c.id == row.backend_id)
        .where(m.suite.c.name == suite, m.backend.c.name == backend)
        .order_by(row.id)
    )
    with db.read() as connection:
        latest = {found.leg: ExpectedCount(*found) for found in connection.execute(query)}
    return sorted(latest.values())
