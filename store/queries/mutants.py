"""What suites made of the faults put into a backend."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from store import models as m
from store.database import Database
from store.queries.lint import in_force


class MutantRow(NamedTuple):
    """One fault put into `backend`; `meaning` says what it does. `lost` counts cases that the backend passes
    without the fault; `kind` None: nothing was noticed."""

    backend: str
    fault: str
    meaning: str
    detected: bool
    lost: int
    critical_lost: int
    kind: str | None
    kind_right: bool
    at: datetime


def mutants(db: Database, suite: str) -> list[MutantRow]:
    """Of the version in force, in the order of the faults; none: they were never tried on it."""
    found = m.mutant.c
    columns = [found[name] for name in MutantRow._fields]
    query = sa.select(*columns).where(found.suite_version_id == in_force(suite)).order_by(found.id)
    with db.read() as connection:
        return [MutantRow(*row) for row in connection.execute(query)]
