"""What changed between two runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from store.changes import Changes, changes, moved_among
from store.database import Database
from store.errors import StoreError
from store.queries.runs import RunRow, environment, run
from store.queries.series import MarkRow, marks
from store.queries.verdicts import newest_worse, series_verdicts


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
    harmless = moved_among(side(db, row) for row in in_order)
    found = changes(side(db, old), side(db, new), _marks_between(db, old, new), harmless)
    return RunChanges(old, new, found)


def changes_since(db: Database, before: Mapping[str, Any], after: int) -> Changes:
    """The same, from what a run ran on that is not in the record; its meta is not asked for."""
    now = {name: told for name, told in side(db, _known(db, after)).items() if name != "meta"}
    return changes(before, now)


class Turn(NamedTuple):
    """The last good run of a series, the first bad one after it, and the good ones before."""

    before: int
    after: int
    good: tuple[int, ...]


def turn(db: Database, suite: str | None = None, backend: str | None = None) -> Turn:
    """Where the newest series that went bad did so. Raises `NothingToCompare` where none did."""
    with db.read() as connection:
        bad = newest_worse(connection, suite, backend)
    if bad is None:
        raise NothingToCompare("no run was found worse; name two runs")
    rows = series_verdicts(db, bad.suite, bad.backend)
    at = max(place for place, row in enumerate(rows) if row.run_id == bad.run_id)
    while at and rows[at - 1].verdict == "worse":
        at -= 1
    good = tuple(row.run_id for row in rows[:at] if row.accepted)
    if not good:
        raise NothingToCompare(f"run {bad.run_id} was found worse, and no good run stands before it")
    return Turn(good[-1], rows[at].run_id, good)


def _known(db: Database, run_id: int) -> RunRow:
    found = run(db, run_id)
    if found is None:
        raise NothingToCompare(f"no run {run_id}; memtrend runs lists them")
    return found


def side(db: Database, row: RunRow) -> dict[str, Any]:
    """What a run ran on, as `store.changes` compares it."""
    if row.environment_id is None:
        raise NothingToCompare(f"run {row.id} is {row.status}: what it ran on is not recorded")
    own = {"suite": f"{row.suite} {row.suite_version}", "scorer": row.scorer, "meta": row.meta}
    return {**environment(db, row.environment_id), **own}


def _marks_between(db: Database, one: RunRow, other: RunRow) -> list[MarkRow]:
    first, last = sorted([one.started_at, other.started_at])
    return [mark for mark in marks(db, since=first) if first < mark.at <= last]
