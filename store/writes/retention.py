"""What is too old goes, a run at a time; runs, verdicts, rollups and decisions never do."""

from __future__ import annotations

from store import models as m
from store.database import Database, upsert
from store.queries.retention import What, left
from store.writes.common import changed, now

BATCH = 500
"""Results of which something is removed in one transaction, so that no writer waits long."""


def remove(db: Database, run_id: int, what: What, after: str) -> None:
    """Take the texts of a run (answers, journal), or its results with them, in short transactions. The first
    notes it, and after how long it was; of what is left when that is all, `removable` names the run again."""
    with db.write() as connection:
        for gone in {"details", what}:
            note = upsert(m.removal).values(run_id=run_id, what=gone, after=after, at=now())
            connection.execute(note.on_conflict_do_nothing())
        connection.execute(m.journal.delete().where(m.journal.c.run_id == run_id))
        if what == "results":
            connection.execute(m.scenario_result.delete().where(m.scenario_result.c.run_id == run_id))
        changed(connection)
    while _remove_some(db, run_id, what):
        pass


def _remove_some(db: Database, run_id: int, what: What) -> bool:
    """Whether there was anything left to remove."""
    with db.write() as connection:
        ids = connection.execute(left(what, run_id).limit(BATCH)).scalars().all()
        tables = [(m.detail, m.detail.c.case_result_id)]
        if what == "results":
            tables += [(m.score, m.score.c.case_result_id), (m.case_result, m.case_result.c.id)]
        for table, of in tables:
            connection.execute(table.delete().where(of.in_(ids)))
    return bool(ids)
