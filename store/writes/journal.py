"""What was told beside the answers of a run."""

from __future__ import annotations

import sqlalchemy as sa

from store import models as m
from store.database import Database
from store.hiding import redacted

LONGEST = 64 * 1024
"""Characters kept of a journal: its beginning and its end."""


def add_to_journal(db: Database, run_id: int, text: str) -> None:
    """Keep it with the run, without secrets, after what was kept already."""
    with db.write() as connection:
        here = m.journal.c.run_id == run_id
        before: str | None = connection.execute(sa.select(m.journal.c.text).where(here)).scalar()
        kept = _shortened("\n".join(filter(None, [before, redacted(text)])))
        connection.execute(m.journal.delete().where(here))
        connection.execute(m.journal.insert().values(run_id=run_id, text=kept))


def _shortened(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    half = LONGEST // 2
    return clean if len(clean) <= LONGEST else f"{clean[:half]}\n[...]\n{clean[-half:]}"
