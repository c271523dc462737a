"""What runs are made of: suites with their cases, backends, environments."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.columns import to_json
from store.database import Database, insert_rows
from store.errors import StoreError
from store.records import CaseRecord, SuiteRecord
from store.writes.common import changed, insert, now, upsert_named


def register_suite(db: Database, record: SuiteRecord, *, in_force: bool = True) -> int:
    """Make the suite's version known, with the cases that are new, and return the version's id.
    Doing it again changes nothing, and no case is ever edited: an edited case is another case.

    in_force: False leaves another version in force, if there is one: the record is a part of the suite."""
    _refuse_doubled_cases(record)
    with db.write() as connection:
        suite_id = (not in_force and _known_suite(connection, record.name)) or _suite_id(connection, record)
        version = m.suite_version.c
        known = sa.select(version.id).where(version.suite_id == suite_id, version.version == record.version)
        version_id = connection.execute(known).scalar()
        return version_id or _insert_version(connection, suite_id, record)


def _refuse_doubled_cases(record: SuiteRecord) -> None:
    if len({case.name for case in record.cases}) < len(record.cases):
        raise StoreError(f"suite {record.name}: a case name occurs twice; names must be unique in a suite")


def _known_suite(connection: Connection, name: str) -> int | None:
    id_: int | None = connection.execute(sa.select(m.suite.c.id).where(m.suite.c.name == name)).scalar()
    return id_


def _suite_id(connection: Connection, record: SuiteRecord) -> int:
    told = ("kind", "origin", "version", "owner", "licence", "citation")
    values = {name: getattr(record, name) for name in told}
    return upsert_named(connection, m.suite, record.name, values)


def _insert_version(connection: Connection, suite_id: int, record: SuiteRecord) -> int:
    at = now()
    version_id = insert(
        connection,
        m.suite_version,
        suite_id=suite_id,
        version=record.version,
        cases=len(record.cases),
        plants=record.plants,
        created_at=at,
    )
    known = _known_cases(connection, suite_id)
    new = [case for case in record.cases if (case.name, case.hash) not in known]
    if new:
        connection.execute(m.case.insert(), [_case_row(case, suite_id, at) for case in new])
        known = _known_cases(connection, suite_id)
    ids = [(version_id, known[case.name, case.hash]) for case in record.cases]
    insert_rows(connection, m.suite_version_case, ("suite_version_id", "case_id"), ids)
    changed(connection)
    return version_id


def _known_cases(connection: Connection, suite_id: int) -> dict[tuple[str, str], int]:
    case = m.case.c
    rows = connection.execute(sa.select(case.name, case.hash, case.id).where(case.suite_id == suite_id))
    return {(name, hash_): id_ for name, hash_, id_ in rows}


def _case_row(case: CaseRecord, suite_id: int, at: datetime) -> dict[str, Any]:
    return {
        "suite_id": suite_id,
        "name": case.name,
        "hash": case.hash,
        "query": case.query,
        "k": case.k,
        "tags": list(case.tags),
        "critical": case.critical,
        "cluster": case.cluster,
        "source": case.source,
        "story": case.story,
        "created_at": at,
    }


def register_backend(
    db: Database, name: str, type: str, config: Mapping[str, Any], owner: str = "default"
) -> int:
    """Make a configured backend known and return its id. `config`, without secrets, is stored and shown."""
    with db.write() as connection:
        values = {"type": type, "config": dict(config), "owner": owner}
        return upsert_named(connection, m.backend, name, values)


def register_environment(db: Database, content: Mapping[str, Any]) -> int:
    """The id of the environment's row; equal environments are one row. `content` holds no secrets."""
    digest = hashlib.sha256(to_json(content).encode()).hexdigest()
    with db.write() as connection:
        known = connection.execute(
            sa.select(m.environment.c.id).where(m.environment.c.hash == digest)
        ).scalar()
        row = {"hash": digest, "content": content, "created_at": now()}
        return known or insert(connection, m.environment, **row)
