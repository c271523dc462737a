"""What a run that began now would be held against, which runs a gate let pass, and the baseline as a file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.baselines import RECENT, Baseline, Decision, Night, baseline
from store.database import Database
from store.portable import LOST, NONE, PASSED, Carried
from store.queries.changes import side
from store.queries.common import is_whole
from store.queries.operation import clock
from store.queries.policy import quarantines, retired_names
from store.queries.runs import run
from store.queries.verdicts import (
    AnswerRow,
    Series,
    answers_of,
    decisions_of,
    earlier,
    nights_of,
    select_nights,
)

GATE = "gate"
"""Trigger of the runs that a gate makes."""
_PINNED = ("pin", "hold")


def baseline_now(db: Database, suite: str, backend: str) -> Baseline:
    """What a run of the suite on the backend would be held against if it began now, on the system of the
    newest whole run. Of a series without a whole run: nothing."""
    at = clock(db)
    with db.read() as connection:
        return _baseline(connection, _next(connection, suite, backend, Night(0, at, True)))


def _next(connection: Connection, suite: str, backend: str, night: Night) -> Series | None:
    """The series with a night that no run has made yet."""
    whole = select_nights().where(m.suite.c.name == suite, m.backend.c.name == backend, is_whole())
    rows = connection.execute(whole).all()
    if not rows:
        return None
    (newest,) = nights_of(connection, rows[-1:])
    number = max(row.id for row in rows) + 1
    upcoming = night._replace(run_id=number, system=newest.system)
    return Series(rows[-1].suite_id, suite, rows[-1].backend_id, backend, upcoming)


def _baseline(connection: Connection, series: Series | None) -> Baseline:
    if series is None:
        return Baseline((), (), (), (), False, 0, None, ())
    decisions = decisions_of(connection, series.suite_id, series.backend_id)
    return baseline(series.night, earlier(connection, series), decisions)


def baseline_decisions(db: Database, suite: str, backend: str) -> list[Decision]:
    """What people decided about the baseline of a series, oldest first."""
    with db.read() as connection:
        ids = connection.execute(
            sa.select(m.suite.c.id, m.backend.c.id)
            .join_from(m.suite, m.backend, sa.true())
            .where(m.suite.c.name == suite, m.backend.c.name == backend)
        ).first()
        return decisions_of(connection, *ids) if ids else []


# Which runs a gate let pass


def green_runs(db: Database, suite: str, backend: str, branch: str) -> list[int]:
    """The newest whole runs of commits on the branch that passed a gate, oldest first; at most as many as a
    baseline takes. The branch is what `meta` says, else git."""
    with db.read() as connection:
        rows = connection.execute(_gated(suite, backend)).all()
    runs = {row.id: row for row in rows if _branch(row) == branch}
    passed = {row.id: row.content["gate"]["passed"] for row in rows if "gate" in (row.content or {})}
    revisions = {_revision(row) for row in runs.values() if passed.get(row.id)} - {""}
    green = [id for id, row in runs.items() if passed.get(id, _revision(row) in revisions)]
    return green[-RECENT:]


def _gated(suite: str, backend: str) -> sa.Select[Any]:
    """Each whole run with each of its verdicts, the newest last."""
    return (
        sa.select(m.run.c.id, m.run.c.meta, m.environment.c.content.label("environment"), m.verdict.c.content)
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .outerjoin(m.environment, m.environment.c.id == m.run.c.environment_id)
        .outerjoin(m.verdict, m.verdict.c.run_id == m.run.c.id)
        .where(m.suite.c.name == suite, m.backend.c.name == backend, is_whole())
        .order_by(m.run.c.started_at, m.run.c.id, m.verdict.c.id)
    )


def _branch(row: sa.Row[Any]) -> str:
    return str(row.meta.get("branch") or _git(row).get("branch", ""))


def _revision(row: sa.Row[Any]) -> str:
    """ "" for work that is not committed, which no other run can be known to be of."""
    return "" if _git(row).get("changed") else str(_git(row).get("revision", ""))


def _git(row: sa.Row[Any]) -> Mapping[str, Any]:
    git: Mapping[str, Any] = (row.environment or {}).get("git") or {}
    return git


# As a file


def carried_baseline(db: Database, suite: str, backend: str) -> Carried | None:
    """The baseline as it stands now, fit to travel; None where there is none."""
    at = clock(db)
    with db.read() as connection:
        series = _next(connection, suite, backend, Night(0, at, True))
        found = _baseline(connection, series)
        ids = sorted({*found.history, *found.anchor})
        if series is None or not ids:
            return None
        nights = tuple(one for one in earlier(connection, series) if one.run_id in ids)
        answers = answers_of(connection, ids)
        cases = _cases(connection, {answer.case_id for answer in answers})
        until = quarantines(connection, series.suite_id)
        retired = frozenset(retired_names(connection, series.suite_id))
    newest = run(db, nights[-1].run_id)
    assert newest is not None, "a night of a baseline is a run of the record"
    return Carried(
        suite,
        newest.suite_version,
        backend,
        {name: told for name, told in side(db, newest).items() if name != "meta"},
        tuple(cases.values()),
        nights,
        _rows(nights, list(cases), answers),
        tuple(one for one in (found.decision,) if one and one.action in _PINNED),
        until,
        retired,
    )


def _cases(connection: Connection, ids: Collection[int]) -> dict[int, tuple[str, str]]:
    """Id -> name and hash, by name."""
    case = m.case.c
    query = sa.select(case.id, case.name, case.hash).where(case.id.in_(ids)).order_by(case.name, case.id)
    return {id: (name, digest) for id, name, digest in connection.execute(query)}


def _rows(
    nights: Sequence[Night], columns: Sequence[int], answers: Sequence[AnswerRow]
) -> tuple[tuple[str, ...], ...]:
    """A row of marks for each trial that counts: the first of a night, all of one that primed."""
    told: dict[tuple[int, int], dict[int, str]] = {}
    for one in answers:
        mark = NONE if one.value is None else PASSED if one.value else LOST
        told.setdefault((one.run_id, one.trial), {})[one.case_id] = mark
    return tuple(
        tuple(
            "".join(found.get(column, NONE) for column in columns)
            for (run_id, trial), found in sorted(told.items())
            if run_id == night.run_id and (trial == 1 or night.primed)
        )
        for night in nights
    )
