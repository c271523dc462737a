"""What was told beside the answers of a run."""

from __future__ import annotations

import sqlalchemy as sa

from store import models as m
from store.database import Database


def journal(db: Database, run_id: int) -> str:
    """What the processes of the run's backend printed and what was refused them; "" where nothing was."""
    with db.read() as connection:
        found = connection.execute(sa.select(m.journal.c.text).where(m.journal.c.run_id == run_id)).scalar()
    return found or ""
