"""What changed between two runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from store.changes import Changes, changes, moved_among
from store.database import Database
from store.errors import StoreError
from store.queries.results import run_cases
from store.queries.runs import RunRow, environment, run
from store.queries.said import newest_worse, series_verdicts
from store.queries.series import MarkRow, marks


class NothingToCompare(StoreError):
    """There is no such run, or what it ran on is not recorded."""


class RunChanges(NamedTuple):
    before: RunRow
    after: RunRow
    changes: Changes

    @property
    def is_of_one_suite(self) -> bool:
        return self.before.suite == self.after.suite


def changes_between(db: Database, before: int, after: int, good: Collection[int] = ()) -> RunChanges:
    """What differs between two runs, the marks between their starts among it. `good` are runs that nothing
    was wrong with: what changed from one of them to the next is suspected last. That the runs are of two
    suites is no change. Raises `NothingToCompare`."""
    old, new = _known(db, before), _known(db, after)
    in_order = sorted((_known(db, run_id) for run_id in good), key=lambda row: (row.started_at, row.id))
    harmless = moved_among(side(db, row) for row in in_order)
    asked = {} if old.suite == new.suite else {"suite": None}
    found = changes(side(db, old) | asked, side(db, new) | asked, marks_between(db, old, new), harmless)
    return RunChanges(old, new, found)


class Turned(NamedTuple):
    """Names of the cases that both runs were asked alike and judged, and that turned between them."""

    lost: list[str]
    gained: list[str]


def turned_between(db: Database, before: int, after: int) -> Turned:
    """Cases that passed in the one run and not in the other. A case that was edited is another one."""
    old = {row.case_id: row.passed for row in run_cases(db, before, with_hits=False)}
    rows = [
        row for row in run_cases(db, after, with_hits=False) if None not in (row.passed, old.get(row.case_id))
    ]
    turned = [row for row in rows if row.passed != old[row.case_id]]
    lost, gained = ([row.case for row in turned if row.passed is passed] for passed in (False, True))
    return Turned(lost, gained)


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
    return turn_of(db, bad.run_id)


def turn_of(db: Database, run_id: int) -> Turn:
    """Where the series of a run that is worse, or looks so, went bad: the first of the runs in a row that no
    baseline took in, or the run at which a slow leak began; and the baseline that it was held against. Raises
    `NothingToCompare` where there was none."""
    row = _known(db, run_id)
    rows = series_verdicts(db, row.suite, row.backend)
    places = {one.run_id: place for place, one in enumerate(rows)}
    if run_id not in places:
        raise NothingToCompare(f"nothing was said of run {run_id} yet; memtrend verdict {run_id}")
    at = places[run_id]
    if rows[at].stage == "leak":
        at = places.get(rows[at].content["leak"]["first_bad"], at)
    while at and not rows[at - 1].accepted:
        at -= 1
    good = tuple(id for id in rows[at].content["baseline"] if id > 0)  # of a file there are no runs here
    if not good:
        raise NothingToCompare(f"no good run stands before run {rows[at].run_id}")
    return Turn(good[-1], rows[at].run_id, good)


def changes_to(db: Database, run_id: int) -> RunChanges:
    """What changed where the series of this run went bad, the likeliest cause first."""
    return changes_between(db, *turn_of(db, run_id))


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


def marks_between(db: Database, one: RunRow, other: RunRow) -> list[MarkRow]:
    first, last = sorted([one.started_at, other.started_at])
    return [mark for mark in marks(db, since=first) if first < mark.at <= last]
