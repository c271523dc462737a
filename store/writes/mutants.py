"""What a version of a suite made of the faults put into a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from store import models as m
from store.database import Database
from store.records import MutantRecord
from store.writes.common import changed, now


def record_mutants(
    db: Database, suite_version_id: int, backend: str, mutants: Sequence[MutantRecord]
) -> None:
    """Keep what was found, in place of what an earlier proof of this version found."""
    beside = {"suite_version_id": suite_version_id, "backend": backend, "at": now()}
    rows = [beside | asdict(mutant) for mutant in mutants]
    with db.write() as connection:
        connection.execute(m.mutant.delete().where(m.mutant.c.suite_version_id == suite_version_id))
        if rows:
            connection.execute(m.mutant.insert(), rows)
        changed(connection)
