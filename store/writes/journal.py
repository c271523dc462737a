"""What was told beside the answers of a run."""

from __future__ import annotations

from store import models as m
from store.database import Database
from store.hiding import redacted

LONGEST = 64 * 1024
"""Characters kept of a journal: its beginning and its end."""


def keep_journal(db: Database, run_id: int, text: str) -> None:
    """Keep it with the run, in place of what was kept, without secrets."""
    kept = _shortened(redacted(text))
    with db.write() as connection:
        connection.execute(m.journal.delete().where(m.journal.c.run_id == run_id))
        connection.execute(m.journal.insert().values(run_id=run_id, text=kept))


_CONTROLS = {
    code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}
"""What a terminal would obey."""


def _shortened(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode().translate(_CONTROLS)
    half = LONGEST // 2
    return clean if len(clean) <= LONGEST else f"{clean[:half]}\n[...]\n{clean[-half:]}"
