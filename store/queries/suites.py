"""What is asked, and of whom: suites with their versions and cases, and backends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.queries.common import suite_id
from store.queries.controls import controls


class SuiteRow(NamedTuple):
    """A suite as it stands. `since` is when its version was first seen; `versions` counts them all."""

    name: str
    kind: str
    origin: str
    version: str
    cases: int
    plants: int
    since: datetime
    versions: int
    owner: str
    licence: str = ""
    citation: str = ""


class SuiteVersion(NamedTuple):
    """A version, and how many of its cases the one before had not, had besides, or had with another hash.
    `reason` and `author` say why it came to be; "" where nobody said."""

    version: str
    created_at: datetime
    cases: int
    added: int
    removed: int
    changed: int
    reason: str = ""
    author: str = ""


class TagCount(NamedTuple):
    tag: str
    cases: int


class CaseVersion(NamedTuple):
    """A case as it was asked from `since` on."""

    case_id: int
    name: str
    hash: str
    query: str
    k: int
    tags: list[str]
    critical: bool
    cluster: str | None
    source: str
    story: dict[str, Any]
    suite: str
    since: datetime


class BackendRow(NamedTuple):
    """`order` counts from 0 in order of first appearance: what colours hang on. `control_of`: the backend
    that it is the frozen control of, "" for one of the team's own."""

    id: int
    name: str
    type: str
    owner: str
    order: int
    control_of: str = ""


def suites(db: Database) -> list[SuiteRow]:
    """Every suite known, in order of first appearance."""
    versions = m.suite_version.alias()
    count = sa.select(sa.func.count()).where(versions.c.suite_id == m.suite.c.id).scalar_subquery()
    query = (
        sa.select(
            m.suite.c.name, m.suite.c.kind, m.suite.c.origin, m.suite.c.version, m.suite_version.c.cases,
            m.suite_version.c.plants, m.suite_version.c.created_at, count, m.suite.c.owner,
            m.suite.c.licence, m.suite.c.citation,
        )
        .join(m.suite_version, _in_force())
        .order_by(m.suite.c.id)
    )  # fmt: skip
    with db.read() as connection:
        return [SuiteRow(*row) for row in connection.execute(query)]


def _in_force() -> sa.ColumnElement[bool]:
    version = m.suite_version.c
    return sa.and_(version.suite_id == m.suite.c.id, version.version == m.suite.c.version)


def suite_versions(db: Database, name: str) -> list[SuiteVersion]:
    """The versions of a suite in order of first appearance, newest first."""
    version = m.suite_version.c
    with db.read() as connection:
        query = (
            sa.select(m.suite_version)
            .where(version.suite_id == suite_id(connection, name), is_whole_suite())
            .order_by(version.id)
        )
        rows = list(connection.execute(query))
        hashes = _hashes(connection, [row.id for row in rows])
        reasons = version_reasons(connection, [row.id for row in rows])
    first: Mapping[str, str] = {}
    steps = pairwise([first, *(hashes[row.id] for row in rows)])
    told = [
        SuiteVersion(
            row.version, row.created_at, row.cases, *_compared(old, new), *reasons.get(row.id, ("", ""))
        )
        for row, (old, new) in zip(rows, steps, strict=True)
    ]
    return told[::-1]


def is_whole_suite() -> sa.ColumnElement[bool]:
    """Versions that are not just a part of a suite, run by itself once."""
    of_it = sa.exists().where(m.run.c.suite_version_id == m.suite_version.c.id)
    return sa.or_(~of_it, of_it.where(m.run.c.subset == ""))


def _hashes(connection: Connection, version_ids: list[int]) -> dict[int, dict[str, str]]:
    """Version id -> case name -> hash."""
    belongs = m.suite_version_case.c
    query = (
        sa.select(belongs.suite_version_id, m.case.c.name, m.case.c.hash)
        .join(m.case, m.case.c.id == belongs.case_id)
        .where(belongs.suite_version_id.in_(version_ids))
    )
    hashes: dict[int, dict[str, str]] = defaultdict(dict)
    for version, name, hash_ in connection.execute(query):
        hashes[version][name] = hash_
    return hashes


def version_reasons(connection: Connection, version_ids: list[int]) -> dict[int, tuple[str, str]]:
    """Version id -> reason and author; of several, the last ones."""
    why = m.suite_change.c
    query = sa.select(why.suite_version_id, why.reason, why.author).where(
        why.suite_version_id.in_(version_ids)
    )
    return {id: (reason, author) for id, reason, author in connection.execute(query.order_by(why.id))}


def hashes_in_force(connection: Connection, suite: str) -> dict[str, str]:
    """Case -> hash, of the version in force."""
    query = sa.select(m.suite_version.c.id).join(m.suite, _in_force()).where(m.suite.c.name == suite)
    version = connection.execute(query).scalar()
    return {} if version is None else _hashes(connection, [version])[version]


def case_hashes(db: Database, suite: str, version: str) -> dict[str, str]:
    """Case -> hash, of a version; empty for one that is not known."""
    query = (
        sa.select(m.suite_version.c.id)
        .join(m.suite, m.suite.c.id == m.suite_version.c.suite_id)
        .where(m.suite.c.name == suite, m.suite_version.c.version == version)
    )
    with db.read() as connection:
        found = connection.execute(query).scalar()
        return {} if found is None else _hashes(connection, [found])[found]


def _compared(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[int, int, int]:
    changed = sum(old[name] != new[name] for name in old.keys() & new.keys())
    return len(new.keys() - old.keys()), len(old.keys() - new.keys()), changed


def suite_tags(db: Database, name: str) -> list[TagCount]:
    """Tags of the cases in force, most cases first."""
    counts = Counter(tag for case in suite_cases(db, name) for tag in case.tags)
    return [
        TagCount(tag, cases) for tag, cases in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def suite_cases(db: Database, name: str) -> list[CaseVersion]:
    """The cases in force, by name."""
    belongs = m.suite_version_case.c
    query = (
        _select_cases()
        .join(m.suite_version_case, belongs.case_id == m.case.c.id)
        .join(m.suite_version, sa.and_(m.suite_version.c.id == belongs.suite_version_id, _in_force()))
        .where(m.suite.c.name == name)
        .order_by(m.case.c.name)
    )  # fmt: skip
    with db.read() as connection:
        return [CaseVersion(*row) for row in connection.execute(query)]


def case(db: Database, suite: str, name: str) -> list[CaseVersion]:
    """All that was ever asked under this name, the one in the newest version of the suite first."""
    belongs = m.suite_version_case.c
    newest = sa.select(sa.func.max(belongs.suite_version_id)).where(belongs.case_id == m.case.c.id)
    query = _select_cases().where(m.suite.c.name == suite, m.case.c.name == name)
    with db.read() as connection:
        rows = connection.execute(query.order_by(newest.scalar_subquery().desc()))
        return [CaseVersion(*row) for row in rows]


def _select_cases() -> sa.Select[Any]:
    columns = [m.case.c[name] for name in CaseVersion._fields if name not in ("case_id", "suite", "since")]
    return sa.select(m.case.c.id, *columns, m.suite.c.name, m.case.c.created_at).join(
        m.suite, m.suite.c.id == m.case.c.suite_id
    )


def backends(db: Database) -> list[BackendRow]:
    """Every backend known, in order of first appearance."""
    backend = m.backend.c
    query = sa.select(backend.id, backend.name, backend.type, backend.owner).order_by(backend.id)
    of = {row.name: row.backend for row in controls(db)}
    with db.read() as connection:
        rows = connection.execute(query).all()
    return [BackendRow(*row, order, of.get(row.name, "")) for order, row in enumerate(rows)]
