"""All that the report of a run is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from store.database import Database
from store.queries.alerts import AlertRow, alerts
from store.queries.changes import NothingToCompare, RunChanges, changes_between, changes_to
from store.queries.results import CaseRow, run_cases, stored_answers
from store.queries.retention import removals
from store.queries.runs import RunRow, TagRow, environment, previous_run, run, run_tags
from store.queries.said import VerdictRow, verdict
from store.queries.series import MarkRow, TrendPoint, marks, trend
from store.queries.suites import SuiteRow, suites

NIGHTS = 45
"""Whole runs of the series that a report draws, the one that it is of among them."""


class RunReport(NamedTuple):
    """`said`: None where nothing was said of the run; `before`: the whole run before it, `old` its cases by
    name; `since_before`: what changed between the two, `at_turn`: where the series went bad, each None where
    that is not known; `points`: pass rates of the series up to the run, oldest first; `marks` since the first
    of them; `errors`: what went wrong, of each answer that was an error: memory texts may stand in it, so it
    is empty unless they were asked for, as are the questions and hits of `cases`."""

    run: RunRow
    suite: SuiteRow
    said: VerdictRow | None
    before: RunRow | None
    cases: tuple[CaseRow, ...]
    old: Mapping[str, CaseRow]
    tags: tuple[TagRow, ...]
    ran_on: Mapping[str, Any]
    since_before: RunChanges | None
    at_turn: RunChanges | None
    points: tuple[TrendPoint, ...]
    marks: tuple[MarkRow, ...]
    alerts: tuple[AlertRow, ...]
    removed: Mapping[str, str]
    errors: tuple[str, ...] = ()
    with_texts: bool = False


def run_report(db: Database, run_id: int, *, with_texts: bool = False) -> RunReport | None:
    """None for a run that is not in the record."""
    row = run(db, run_id)
    if row is None:
        return None
    before, said, points = previous_run(db, run_id), verdict(db, run_id), _points(db, row)
    return RunReport(
        row,
        next(one for one in suites(db) if one.name == row.suite),
        said,
        before,
        tuple(_cases(db, run_id, with_texts)),
        {one.case: one for one in _cases(db, before.id, False)} if before else {},
        tuple(one for one in run_tags(db, run_id) if one.metric == "pass"),
        environment(db, row.environment_id) if row.environment_id is not None else {},
        _since(db, before, row),
        _at_turn(db, said),
        tuple(points),
        tuple(mark for mark in marks(db, since=points[0].started_at) if mark.at <= row.started_at)
        if points
        else (),
        tuple(alerts(db, run_id=run_id)),
        removals(db, run_id),
        tuple(one.detail["error"] for one in stored_answers(db, run_id) if one.detail.get("error"))
        if with_texts
        else (),
        with_texts,
    )


def _cases(db: Database, run_id: int, with_texts: bool) -> list[CaseRow]:
    rows = run_cases(db, run_id, with_hits=with_texts)
    return rows if with_texts else [row._replace(query="") for row in rows]


def _points(db: Database, row: RunRow) -> list[TrendPoint]:
    """Up to the run, which is among them only where it is whole."""
    found = trend(db, row.suite, "pass", backends=[row.backend])
    return [one for one in found if (one.started_at, one.run_id) <= (row.started_at, row.id)][-NIGHTS:]


def _since(db: Database, before: RunRow | None, row: RunRow) -> RunChanges | None:
    try:
        return changes_between(db, before.id, row.id) if before else None
    except NothingToCompare:
        return None


def _at_turn(db: Database, said: VerdictRow | None) -> RunChanges | None:
    """Nothing is suspected where nothing is wrong."""
    if said is None or said.verdict == "unchanged":
        return None
    try:
        return changes_to(db, said.run_id)
    except NothingToCompare:
        return None
