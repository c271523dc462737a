"""What is said of runs, and what people decide about the baselines that they are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.baselines import Action
from store.database import Database
from store.errors import StoreError
from store.records import VerdictEntry
from store.writes.common import changed, insert, insert_event, now


def record_verdict(db: Database, entry: VerdictEntry) -> None:
    """Say again what is to be said of a run that has ended. What was said before stays in the record."""
    with db.write() as connection:
        insert_verdict(connection, entry)
        changed(connection)


def insert_verdict(connection: Connection, entry: VerdictEntry) -> None:
    """Within the transaction that closes the run, or one of its looks."""
    insert(connection, m.verdict, at=now(), **entry._asdict())


def decide_in(
    connection: Connection, suite: str, backend: str, action: Action, run_ids: Sequence[int], reason: str,
    author: str,
) -> None:  # fmt: skip
    """Keep a decision about a baseline, within a transaction. Raises `StoreError` for a run that is no whole
    run of this suite on this backend."""
    series = _series(connection, suite, backend)
    _refuse_foreign(connection, series, suite, backend, run_ids)
    told = {"action": action, "run_ids": list(run_ids), "reason": reason, "author": author}
    insert(connection, m.baseline_change, at=now(), **series, **told)
    which = f" (run {', '.join(map(str, run_ids))})" if run_ids else ""
    said = f"{author}: baseline of {suite} on {backend}: {action}{which}: {reason}"
    insert_event(connection, "info", "baseline", said, run_ids[-1] if run_ids else None)
    changed(connection)


def _series(connection: Connection, suite: str, backend: str) -> Mapping[str, Any]:
    ids = connection.execute(
        sa.select(m.suite.c.id, m.backend.c.id)
        .join_from(m.suite, m.backend, sa.true())
        .where(m.suite.c.name == suite, m.backend.c.name == backend)
    ).first()
    if ids is None:
        raise StoreError(f"{suite} on {backend} is not in the record yet; run it once")
    return {"suite_id": ids[0], "backend_id": ids[1]}


def _refuse_foreign(
    connection: Connection, series: Mapping[str, Any], suite: str, backend: str, run_ids: Sequence[int]
) -> None:
    of_it = sa.select(m.run.c.id).where(
        m.run.c.suite_id == series["suite_id"],
        m.run.c.backend_id == series["backend_id"],
        m.run.c.status == "whole",
        m.run.c.subset == "",
    )
    known = set(connection.execute(of_it.where(m.run.c.id.in_(list(run_ids)))).scalars())
    if foreign := [run_id for run_id in run_ids if run_id not in known]:
        raise StoreError(
            f"run {foreign[0]} is no whole run of {suite} on {backend}; memtrend runs lists them"
        )
