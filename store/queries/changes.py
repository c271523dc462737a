"""What changed between two runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from store.changes import Changes, changes, moved_among
from store.database import Database
from store.errors import StoreError
from store.queries.runs import RunRow, environment, run
from store.queries.series import MarkRow, marks


class NothingToCompare(StoreError):
    """There is no such run, or what it ran on is not recorded."""


class RunChanges(NamedTuple):
    before: RunRow
    after: RunRow
    changes: Changes


def changes_between(db: Database, before: int, after: int, good: Collection[int] = ()) -> RunChanges:
    """What differs between two runs, the marks between their starts among it. `good` are runs that nothing
    was wrong with: what changed from one of them to the next is suspected last. Raises
    `NothingToCompare`."""
    old, new = _known(db, before), _known(db, after)
    in_order = sorted((_known(db, run_id) for run_id in good), key=lambda row: (row.started_at, row.id))
    harmless = moved_among(_side(db, row) for row in in_order)
    found = changes(_side(db, old), _side(db, new), _marks_between(db, old, new), harmless)
    return RunChanges(old, new, found)


def _known(db: Database, run_id: int) -> RunRow:
    found = run(db, run_id)
    if found is None:
        raise NothingToCompare(f"no run {run_id}; memtrend runs lists them")
    return found


def _side(db: Database, row: RunRow) -> dict[str, Any]:
    if row.environment_id is None:
        raise NothingToCompare(f"run {row.id} is {row.status}: what it ran on is not recorded")
    own = {"suite": f"{row.suite} {row.suite_version}", "scorer": row.scorer, "meta": row.meta}
    return {**environment(db, row.environment_id), **own}


def _marks_between(db: Database, one: RunRow, other: RunRow) -> list[MarkRow]:
    first, last = sorted([one.started_at, other.started_at])
    return [mark for mark in marks(db, since=first) if first < mark.at <= last]
