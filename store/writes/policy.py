"""What people decide about suites: reasons of versions, states of cases, what an index should hold."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.errors import StoreError
from store.hiding import redacted
from store.writes.common import changed, insert, now

LONGEST_QUARANTINE = timedelta(days=90)
"""Whoever still cannot mend a case by then says so again."""

NOTHING_TO_DO = {"released": "neither in quarantine nor retired", "retired": "retired already"}

Decision = Literal["quarantine", "released", "retired"]


def explain_version(db: Database, suite: str, version: str, reason: str, author: str) -> None:
    """Say why a version of a suite came to be. Nothing said before is lost; the last reason stands."""
    _refuse_blank("reason", reason)
    known = m.suite_version.c
    with db.write() as connection:
        found = sa.select(known.id).where(
            known.suite_id == _id(connection, m.suite, suite), known.version == version
        )
        version_id = connection.execute(found).scalar()
        if version_id is None:
            raise StoreError(
                f"suite {suite} has no version {version} in the record; memtrend suite log lists them"
            )
        changed(connection)
        insert(
            connection, m.suite_change, suite_version_id=version_id, reason=reason, author=author, at=now()
        )


def decide_case(
    db: Database,
    suite: str,
    case: str,
    state: Decision,
    *,
    reason: str,
    author: str,
    owner: str = "",
    expires: datetime | None = None,
) -> None:
    """Put a case in quarantine (with owner and end), release it, or retire it. Raises `StoreError` where the
    case is not known, or the reason, owner or end is missing: nothing of this is done in silence."""
    _refuse_blank("reason", reason)
    if state == "quarantine":
        _refuse_blank("owner", owner)
        if expires is None or not now() < expires <= now() + LONGEST_QUARANTINE:
            raise StoreError(
                f"case {case}: a quarantine needs an end that lies ahead, in at most "
                f"{LONGEST_QUARANTINE.days} days"
            )
    row = {"state": state, "owner": owner, "reason": reason, "expires": expires, "author": author}
    with db.write() as connection:
        suite_id = _id(connection, m.suite, suite)
        _refuse_unknown_case(connection, suite_id, suite, case)
        _refuse_idle(state, case, _state(connection, suite_id, case))
        changed(connection)
        insert(connection, m.case_state, suite_id=suite_id, name=case, at=now(), **row)


def _refuse_blank(what: str, text: str) -> None:
    if not text.strip():
        raise StoreError(f"a change of a suite needs a {what}: say it in a few words")


def _state(connection: Connection, suite_id: int, case: str) -> str:
    """What was decided last about a case; "released" where nothing was."""
    state = m.case_state.c
    last = (
        sa.select(state.state).where(state.suite_id == suite_id, state.name == case).order_by(state.id.desc())
    )
    return connection.execute(last.limit(1)).scalar() or "released"


def _refuse_idle(wanted: Decision, case: str, now: str) -> None:
    """A decision that changes nothing, or that would undo another one in silence."""
    if wanted == now != "quarantine":
        raise StoreError(f"case {case} is {NOTHING_TO_DO[wanted]}")
    if (now, wanted) == ("retired", "quarantine"):
        raise StoreError(f"case {case} is retired: release it first, if it is to be asked again")


def _refuse_unknown_case(connection: Connection, suite_id: int, suite: str, case: str) -> None:
    known = sa.select(m.case.c.id).where(m.case.c.suite_id == suite_id, m.case.c.name == case)
    if connection.execute(known).first() is None:
        raise StoreError(f"suite {suite} never had a case {case!r}; memtrend suite diff lists what it has")


def expect_counts(
    db: Database, suite: str, backend: str, counts: Mapping[str, int], source: str, author: str
) -> None:
    """Say how many memories each leg of a standing index should hold, and who knows. Earlier expectations
    stay as history."""
    with db.write() as connection:
        place = {
            "suite_id": _id(connection, m.suite, suite),
            "backend_id": _id(connection, m.backend, backend),
        }
        for leg, expected in counts.items():
            told = {
                "leg": leg,
                "expected": expected,
                "source": redacted(source),
                "author": author,
                "at": now(),
            }
            insert(connection, m.expected_count, **place, **told)
        changed(connection)


def _id(connection: Connection, table: sa.Table, name: str) -> int:
    found = connection.execute(sa.select(table.c.id).where(table.c.name == name)).scalar()
    if found is None:
        raise StoreError(f"{table.name} {name} is not in the record yet; run it once")
    return int(found)
