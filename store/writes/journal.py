"""What was told beside the answers of a run."""

from __future__ import annotations

from store import models as m
from store.database import Database
from store.hiding import redacted

LONGEST = 64 * 1024
"""Characters kept of a journal: its beginning and its end."""


def add_to_journal(db: Database, run_id: int, text: str) -> None:
    """Keep it with the run, without secrets, after what was kept already."""
    with db.write() as connection:
        found = connection.execute(m.journal.select().where(m.journal.c.run_id == run_id)).first()
        kept = _shortened("\n".join(filter(None, [found and found.text, redacted(text)])))
        if found:
            connection.execute(m.journal.update().where(m.journal.c.run_id == run_id).values(text=kept))
        else:
            connection.execute(m.journal.insert().values(run_id=run_id, text=kept))


def _shortened(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    half = LONGEST // 2
    return clean if len(clean) <= LONGEST else f"{clean[:half]}\n[...]\n{clean[-half:]}"
