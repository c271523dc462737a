"""A baseline that came as a file: its nights as runs of the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.baselines import Night
from store.database import Database, insert_rows
from store.metrics import METRICS
from store.portable import Carried, CarriedAnswer
from store.queries.verdicts import PRIME
from store.writes.common import PROJECT, changed, insert, insert_event, known_scorer

PASS = METRICS["pass"].id
IMPORT = "import"
"""Trigger of the runs that came in a file."""


class Imported(NamedTuple):
    """`nights` that are new to the record; `known` ones were there already; `cases` of the file, and of them
    those that the suite does not ask as they were asked (`unknown`); `decisions` that were taken over: none
    into a series that has some of its own."""

    nights: int
    known: int
    cases: int
    unknown: int
    decisions: int


class _Home(NamedTuple):
    """Where the nights belong. `cases`: (name, hash) -> id."""

    suite_id: int
    suite_version_id: int
    backend_id: int
    environment_id: int
    owner: str
    cases: Mapping[tuple[str, str], int]


def import_baseline(
    db: Database, carried: Carried, suite_version_id: int, backend_id: int, environment_id: int, author: str
) -> Imported:
    """Make the nights runs of the suite's version on the backend, as the file dates them; a night that is in
    the record is not taken twice. Answers to a case that the suite does not know are left out."""
    with db.write() as connection:
        home = _home(connection, suite_version_id, backend_id, environment_id)
        there = _there(connection, home)
        fresh = [night for night in carried.nights if night.at not in there]
        ids = dict(there) | {night.at: _insert_night(connection, home, carried, night) for night in fresh}
        by_number = {night.run_id: ids[night.at] for night in carried.nights}
        decided = _keep_decisions(connection, home, carried, by_number) if fresh else 0
        if fresh:
            said = f"{author} imported {len(fresh)} nights of {carried.suite} on {carried.backend}"
            insert_event(connection, "info", "baseline", said, None)
            changed(connection)
    unknown = sum(case not in home.cases for case in carried.cases)
    return Imported(len(fresh), len(carried.nights) - len(fresh), len(carried.cases), unknown, decided)


def _home(connection: Connection, suite_version_id: int, backend_id: int, environment_id: int) -> _Home:
    version, case = m.suite_version.c, m.case.c
    suite_id = connection.execute(
        sa.select(version.suite_id).where(version.id == suite_version_id)
    ).scalar_one()
    owner = connection.execute(sa.select(m.backend.c.owner).where(m.backend.c.id == backend_id)).scalar_one()
    rows = connection.execute(sa.select(case.name, case.hash, case.id).where(case.suite_id == suite_id))
    cases = {(name, digest): id for name, digest, id in rows}
    return _Home(suite_id, suite_version_id, backend_id, environment_id, owner, cases)


def _there(connection: Connection, home: _Home) -> dict[Any, int]:
    """Start -> run, of those in the record."""
    run = m.run.c
    query = sa.select(run.started_at, run.id).where(
        run.suite_id == home.suite_id, run.backend_id == home.backend_id, run.subset == ""
    )
    return {row.started_at: row.id for row in connection.execute(query)}


def _insert_night(connection: Connection, home: _Home, carried: Carried, night: Night) -> int:
    found = [one for one in carried.answers if one.run_id == night.run_id]
    answers = [one for one in found if (one.name, one.hash) in home.cases]
    scorer_id = known_scorer(connection, dict(night.system).get("scorer", ""))
    run_id = insert(connection, m.run, **_run_row(home, carried, night, answers), scorer_id=scorer_id)
    first = connection.execute(
        sa.select(sa.func.coalesce(sa.func.max(m.case_result.c.id), 0) + 1)
    ).scalar_one()
    columns = ("id", "run_id", "case_id", "trial", "status", "attempts")
    insert_rows(connection, m.case_result, columns, _results(home, run_id, answers, first))
    scores = [(first + number, PASS, scorer_id, one.value) for number, one in enumerate(answers)]
    insert_rows(connection, m.score, ("case_result_id", "metric_id", "scorer_id", "value"), scores)
    if answers:
        connection.execute(m.rollup.insert(), _rollup(home, run_id, scorer_id, answers))
    return run_id


def _run_row(home: _Home, carried: Carried, night: Night, answers: Sequence[CarriedAnswer]) -> dict[str, Any]:
    return {
        **{name: getattr(home, name) for name in ("suite_id", "suite_version_id", "backend_id")},
        "environment_id": home.environment_id,
        "owner": home.owner,
        "project": PROJECT,
        "status": "whole",
        "reason": None,
        "token": 0,
        "cancel": False,
        "subset": "",
        "trigger": PRIME if night.primed else IMPORT,
        "trials": max((one.trial for one in answers), default=1),
        "meta": {"imported": carried.hash[:12]},
        "cases_total": len(answers),
        "cases_done": len(answers),
        "errors_done": 0,
        "scenarios_total": 0,
        "started_at": night.at,
        "finished_at": night.at,
    }


def _results(
    home: _Home, run_id: int, answers: Sequence[CarriedAnswer], first: int
) -> Iterator[tuple[Any, ...]]:
    for id, one in enumerate(answers, first):
        yield id, run_id, home.cases[one.name, one.hash], one.trial, "ok", 1


def _rollup(home: _Home, run_id: int, scorer_id: int, answers: Sequence[CarriedAnswer]) -> dict[str, Any]:
    """The pass rate, so that the night is a point of its series: each case's trials averaged first."""
    from store.stats.intervals import wilson  # numpy: 0.2 s that no other write needs

    told: dict[str, list[float]] = {}
    for one in answers:
        told.setdefault(one.name, []).append(one.value)
    passed = sum(sum(values) / len(values) for values in told.values())
    interval = wilson(passed, len(told))
    return {
        "backend_id": home.backend_id,
        "suite_id": home.suite_id,
        "metric_id": PASS,
        "tag": "",
        "run_id": run_id,
        "scorer_id": scorer_id,
        "n": len(told),
        "mean": passed / len(told),
        "low": interval.low,
        "high": interval.high,
    }


def _keep_decisions(
    connection: Connection, home: _Home, carried: Carried, by_number: Mapping[int, int]
) -> int:
    """What was decided here was decided about this record, and by whoever knows it: it is not overruled by
    what came in a file, whichever is the later. How many were kept."""
    made, series = m.baseline_change.c, {"suite_id": home.suite_id, "backend_id": home.backend_id}
    own = sa.select(made.id).where(made.suite_id == home.suite_id, made.backend_id == home.backend_id)
    if connection.execute(own.limit(1)).first():
        return 0
    for one in carried.decisions:
        told = {"action": one.action, "run_ids": [by_number[number] for number in one.run_ids]}
        insert(
            connection, m.baseline_change, at=one.at, reason=one.reason, author=one.author, **series, **told
        )
    return len(carried.decisions)
