"""What is too old goes, a run at a time; runs, verdicts, rollups and decisions never do."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database, upsert
from store.queries.retention import What
from store.writes.common import changed, now


def remove(db: Database, run_id: int, what: What, after: str) -> None:
    """Take the texts of a run (answers, journal), or its results with them, in one short transaction that
    also notes it, and after how long it was."""
    with db.write() as connection:
        _delete_details(connection, run_id)
        if what == "results":
            _delete_results(connection, run_id)
        for gone in {"details", what}:
            note = upsert(m.removal).values(run_id=run_id, what=gone, after=after, at=now())
            connection.execute(note.on_conflict_do_nothing())
        changed(connection)


def _delete_details(connection: Connection, run_id: int) -> None:
    connection.execute(m.detail.delete().where(m.detail.c.case_result_id.in_(_results(run_id))))
    connection.execute(m.journal.delete().where(m.journal.c.run_id == run_id))


def _delete_results(connection: Connection, run_id: int) -> None:
    connection.execute(m.score.delete().where(m.score.c.case_result_id.in_(_results(run_id))))
    for table in (m.case_result, m.scenario_result):
        connection.execute(table.delete().where(table.c.run_id == run_id))


def _results(run_id: int) -> sa.Select[tuple[int]]:
    return sa.select(m.case_result.c.id).where(m.case_result.c.run_id == run_id)
