"""Runs from their beginning to their end, with every result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from store import models as m
from store.columns import LARGEST, to_json
from store.database import Database, insert_rows, is_double
from store.errors import StoreError
from store.metrics import METRICS
from store.records import (
    CaseOutcome,
    CaseStatus,
    ClosedStatus,
    NewRun,
    Rollup,
    ScenarioOutcome,
    VerdictEntry,
)
from store.writes.common import PROJECT, changed, insert, insert_event, known_scorer, now
from store.writes.spending import spend
from store.writes.verdicts import insert_verdict

Scores = Mapping[str, float]


class LeaseLost(StoreError):
    """The run may not write any more: another process has taken it or its backend over, or it is closed."""


def open_run(db: Database, new: NewRun) -> int:
    """Begin a run under the token of its backend's lease, and return its id. Raises `LeaseLost` once another
    has the lease, `StoreError` for a night of a backend whose name is that of a control: the series is the
    control's."""
    with db.write() as connection:
        refuse_controls_name(connection, new)
        return insert_run(connection, new)


def refuse_controls_name(connection: Connection, new: NewRun) -> None:
    """A look at a control is no night, and is let through."""
    query = (
        sa.select(m.backend.c.name, m.control.c.run_id)
        .join(m.run, m.run.c.backend_id == m.backend.c.id)
        .join(m.control, m.control.c.control_id == m.run.c.id)
        .where(m.backend.c.id == new.backend_id)
    )
    found = connection.execute(query.order_by(m.control.c.run_id.desc()).limit(1)).first()
    if found and not new.subset:
        raise StoreError(
            f"backend {found.name} has the name of a control, that of run {found.run_id}, which has a series "
            "of its own; give the backend another name"
        )


def _refuse_without_lease(connection: Connection, backend_id: int, token: int) -> None:
    """Raises `LeaseLost` unless `token` is that of the backend's lease, where there ever was one."""
    of_it = sa.select(m.lease.c.token).join(m.backend, m.lease.c.name == m.BACKEND_LEASE + m.backend.c.name)
    held = connection.execute(of_it.where(m.backend.c.id == backend_id)).scalar()
    if held is not None and held != token:
        raise LeaseLost("the backend was taken over by another process before this run began")


def insert_run(connection: Connection, new: NewRun) -> int:
    version = m.suite_version.c
    suite_id = connection.execute(
        sa.select(version.suite_id).where(version.id == new.suite_version_id)
    ).scalar()
    if suite_id is None:
        raise StoreError(
            f"suite version {new.suite_version_id} is not in the record; register the suite first"
        )
    _refuse_without_lease(connection, new.backend_id, new.token)
    scorer = known_scorer(connection, new.scorer_version)
    changed(connection)
    return insert(connection, m.run, **_run_row(new, suite_id, scorer))


def _run_row(new: NewRun, suite_id: int, scorer_id: int) -> dict[str, Any]:
    copied = (
        "suite_version_id",
        "backend_id",
        "environment_id",
        "owner",
        "trigger",
        "subset",
        "trials",
        "meta",
    )
    counted = ("token", "cases_total", "scenarios_total")
    return {
        **{name: getattr(new, name) for name in copied + counted},
        "suite_id": suite_id,
        "scorer_id": scorer_id,
        "project": PROJECT,
        "status": "running",
        "detected": False,
        "cancel": False,
        "cases_done": 0,
        "errors_done": 0,
        "started_at": now(),
    }


_WRITABLE = (
    sa.select(
        m.run.c.status,
        m.run.c.token,
        m.run.c.suite_id,
        m.run.c.backend_id,
        m.run.c.suite_version_id,
        m.run.c.scorer_id,
        m.lease.c.token.label("lease_token"),
    )
    .select_from(m.run)
    .join(m.backend, m.backend.c.id == m.run.c.backend_id)
    .outerjoin(m.lease, m.lease.c.name == m.BACKEND_LEASE + m.backend.c.name)
    .where(m.run.c.id == sa.bindparam("run_id"))
)


def _writable_run(connection: Connection, run_id: int, token: int) -> Any:
    """The run, if whoever holds `token` may still write to it; else raises `LeaseLost`."""
    run = connection.execute(_WRITABLE, {"run_id": run_id}).first()
    if run is None:
        raise StoreError(f"run {run_id} is not in the record")
    if run.status != "running":
        raise LeaseLost(f"run {run_id} is {run.status} and takes no more results; start another run")
    if run.token != token or (run.lease_token is not None and run.lease_token != token):
        raise LeaseLost(f"run {run_id} has been taken over by another process; this one stops writing to it")
    return run


_SCENARIO_DONE = (
    m.run.update()
    .where(m.run.c.id == sa.bindparam("run_id"))
    .values(
        cases_done=m.run.c.cases_done + sa.bindparam("cases"),
        errors_done=m.run.c.errors_done + sa.bindparam("errors"),
    )
)
_CASE_COLUMNS = (
    "id",
    "run_id",
    "case_id",
    "trial",
    "status",
    "failure",
    "latency_ms",
    "attempts",
    "returned_n",
)
_SCORE_COLUMNS = ("case_result_id", "metric_id", "scorer_id", "value")
# The write lock is held, so no one else takes these ids.
_NEXT_RESULT_ID = sa.select(sa.func.coalesce(sa.func.max(m.case_result.c.id), 0) + 1)


def save_scenario(db: Database, run_id: int, outcome: ScenarioOutcome, token: int) -> None:
    """Store a scenario with its cases, scores and details, all of it or nothing.

    Raises `LeaseLost` when the run was closed or taken over, `StoreError` for what is stored already, for
    a case that the suite lacks, and for a score that is no finite number of a known metric."""
    details = _detail_texts(outcome.cases)
    with db.write() as connection:
        run = _writable_run(connection, run_id, token)
        ids = _case_ids(db, connection, run.suite_version_id)
        first = connection.execute(_NEXT_RESULT_ID).scalar_one()
        with _refusing_doubles(run_id, outcome):
            _insert_scenario(connection, run_id, outcome)
            results = _case_results(run_id, ids, outcome.cases, first)
            insert_rows(connection, m.case_result, _CASE_COLUMNS, results)
        scores = _scores(((first + i, case.scores) for i, case in enumerate(outcome.cases)), run.scorer_id)
        insert_rows(connection, m.score, _SCORE_COLUMNS, scores)
        texts = [(first + position, text) for position, text in details]
        insert_rows(connection, m.detail, ("case_result_id", "content"), texts)
        errors = sum(case.status == "error" for case in outcome.cases)
        connection.execute(_SCENARIO_DONE, {"run_id": run_id, "cases": len(outcome.cases), "errors": errors})
        spend(connection, run_id, outcome.money)


@contextmanager
def _refusing_doubles(run_id: int, outcome: ScenarioOutcome) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        if not is_double(error):
            raise
        raise StoreError(
            f"run {run_id}: scenario {outcome.scenario!r}, trial {outcome.trial}, or one of its cases is "
            "stored already; nothing was stored twice"
        ) from error


_SCENARIO_COLUMNS = (
    "trial", "scenario", "status", "plants", "plant_ms", "settle_ms",
    "ingest_calls", "ingest_tokens", "money", "attempts", "error",
)  # fmt: skip


def _insert_scenario(connection: Connection, run_id: int, outcome: ScenarioOutcome) -> None:
    values = tuple(getattr(outcome, column) for column in _SCENARIO_COLUMNS)
    insert_rows(connection, m.scenario_result, ("run_id", *_SCENARIO_COLUMNS), [(run_id, *values)])


def _case_ids(db: Database, connection: Connection, suite_version_id: int) -> dict[str, int]:
    if suite_version_id not in db.case_ids:
        belongs = m.suite_version_case.c
        rows = connection.execute(
            sa.select(m.case.c.name, m.case.c.id)
            .join(m.suite_version_case, belongs.case_id == m.case.c.id)
            .where(belongs.suite_version_id == suite_version_id)
        )
        db.case_ids[suite_version_id] = {row.name: row.id for row in rows}
    return db.case_ids[suite_version_id]


def _case_results(
    run_id: int, ids: Mapping[str, int], cases: Sequence[CaseOutcome], first: int
) -> Iterator[tuple[Any, ...]]:
    for result_id, case in enumerate(cases, first):
        if case.case not in ids:
            raise StoreError(
                f"run {run_id}: case {case.case!r} is not in the suite's version; register it first"
            )
        yield (
            result_id, run_id, ids[case.case], case.trial, case.status, case.failure,
            case.latency_ms, case.attempts, case.returned_n,
        )  # fmt: skip


def _scores(scored: Iterable[tuple[int, Scores]], scorer_id: int) -> Iterator[tuple[int, int, int, float]]:
    for result_id, scores in scored:
        for name, value in scores.items():
            if name not in METRICS:
                raise StoreError(f"unknown metric {name!r}; known: {', '.join(METRICS)}")
            if not isfinite(value):
                raise StoreError(f"metric {name!r} is {value}; leave out what does not apply")
            yield result_id, METRICS[name].id, scorer_id, value


def _detail_texts(cases: Sequence[CaseOutcome]) -> list[tuple[int, str]]:
    """(position, JSON text) of the cases that have details."""
    texts = []
    for position, case in enumerate(cases):
        if case.detail is not None:
            try:
                texts.append((position, to_json(case.detail)))
            except (TypeError, ValueError) as error:
                raise StoreError(f"the detail of case {case.case!r} is not JSON: {error}") from error
    return texts


def close_run(
    db: Database,
    run_id: int,
    status: ClosedStatus,
    rollups: Sequence[Rollup],
    reason: str | None = None,
    *,
    token: int,
    verdict: VerdictEntry | None = None,
) -> None:
    """End a run: its rollups, status, time of ending and verdict (its own, or of the run that it took a look
    at) in one transaction. Raises `LeaseLost`."""
    with db.write() as connection:
        run = _writable_run(connection, run_id, token)
        _insert_rollups(connection, run_id, run.suite_id, run.backend_id, run.scorer_id, rollups)
        values = {"status": status, "reason": reason, "finished_at": now()}
        connection.execute(m.run.update().where(m.run.c.id == run_id).values(**values))
        if verdict:
            insert_verdict(connection, verdict)
        changed(connection)


def _insert_rollups(
    connection: Connection,
    run_id: int,
    suite_id: int,
    backend_id: int,
    scorer_id: int,
    rollups: Sequence[Rollup],
) -> None:
    series = {"run_id": run_id, "suite_id": suite_id, "backend_id": backend_id, "scorer_id": scorer_id}
    rows = [
        {**series, "metric_id": METRICS[rollup.metric].id}
        | {name: getattr(rollup, name) for name in ("tag", "n", "mean", "low", "high")}
        for rollup in rollups
    ]
    if rows:
        connection.execute(m.rollup.insert(), rows)


def reopen_run(db: Database, run_id: int, token: int) -> None:
    """Go on with an interrupted run under a new token; what it stored stays. Raises `LeaseLost` once another
    has the lease of its backend, `StoreError` for a run that is going on or has ended otherwise."""
    interrupted = sa.or_(m.run.c.status == "interrupted", _is_stale())
    with db.write() as connection:
        touched = connection.execute(
            m.run.update()
            .where(m.run.c.id == run_id, interrupted)
            .values(status="running", token=token, cancel=False, reason=None, finished_at=None)
        )
        if touched.rowcount != 1:
            raise StoreError(
                f"run {run_id} is not interrupted, so there is nothing to resume; start another run"
            )
        _writable_run(connection, run_id, token)
        connection.execute(m.rollup.delete().where(m.rollup.c.run_id == run_id))
        changed(connection)


def _is_stale() -> sa.ColumnElement[bool]:
    return sa.and_(m.run.c.status == "running", ~m.run_is_live())


def interrupt_stale_runs(db: Database) -> list[int]:
    """Mark the runs whose process has died as interrupted, and return their ids."""
    reason = "the process that ran it ended or lost its lease"
    with db.write() as connection:
        stale = m.run.update().where(_is_stale()).values(status="interrupted", reason=reason)
        ids = sorted(connection.execute(stale.returning(m.run.c.id)).scalars())
        if ids:
            changed(connection)
        return ids


def cancel_run(db: Database, run_id: int, author: str) -> None:
    """Ask the runner to stop before its next scenario. Raises `StoreError` for a run that has ended."""
    with db.write() as connection:
        known = min(run_id, LARGEST)  # a larger one is nobody's either
        asked = m.run.update().where(m.run.c.id == known, m.run.c.status == "running").values(cancel=True)
        if connection.execute(asked).rowcount != 1:
            raise StoreError(f"run {run_id} is not running, so there is nothing to cancel")
        insert_event(connection, "info", "run", f"{author} cancelled run {run_id}", run_id)


class Rejudged(NamedTuple):
    """What another scorer makes of a stored answer. `status`: ok, or error when it could not be judged, which
    has no scores and no `returned_n`; `failure` is None for a case that passes."""

    case_result_id: int
    status: CaseStatus
    failure: str | None
    returned_n: int | None
    scores: Scores
    detail: Mapping[str, Any]


def rescore(
    db: Database,
    run_id: int,
    scorer_version: str,
    judged: Iterable[Rejudged],
    rollups: Sequence[Rollup],
) -> None:
    """Give an ended run the scores and rollups of another scorer. Those of earlier scorers stay in the
    record; those of the same scorer are replaced. Status, failure and detail follow the new judgement, but
    a case that is lost again keeps the kind that the run gave it, since the run knew more."""
    computed = list(judged)
    with db.write() as connection:
        run = connection.execute(sa.select(m.run).where(m.run.c.id == run_id)).first()
        if run is None or run.status == "running":
            raise StoreError(
                f"run {run_id} has not ended or is not in the record; only ended runs are scored again"
            )
        scorer = known_scorer(connection, scorer_version)
        _forget_scores(connection, run_id, scorer)
        scores = ((one.case_result_id, one.scores) for one in computed)
        insert_rows(connection, m.score, _SCORE_COLUMNS, _scores(scores, scorer))
        _rejudge(connection, run_id, computed)
        _insert_rollups(connection, run_id, run.suite_id, run.backend_id, scorer, rollups)
        connection.execute(m.run.update().where(m.run.c.id == run_id).values(scorer_id=scorer))
        changed(connection)


_NOW, _KIND = (sa.bindparam(name, type_=sa.String) for name in ("now", "kind"))
_LOST = sa.and_(m.case_result.c.status == "ok", m.case_result.c.failure.is_not(None))
_LOST_AGAIN = sa.and_(_LOST, _NOW == "ok", _KIND.is_not(None))
_REJUDGED = (
    m.case_result.update()
    .where(m.case_result.c.id == sa.bindparam("result"))
    .values(
        status=_NOW,
        failure=sa.case((_LOST_AGAIN, m.case_result.c.failure), else_=_KIND),
        returned_n=sa.bindparam("returned"),
    )
)
_DETAIL = (
    m.detail.update()
    .where(m.detail.c.case_result_id == sa.bindparam("result"))
    .values(content=sa.bindparam("content"))
)


def _rejudge(connection: Connection, run_id: int, judged: Sequence[Rejudged]) -> None:
    if judged:
        named = ("result", "now", "kind", "returned")
        connection.execute(_REJUDGED, [dict(zip(named, one, strict=False)) for one in judged])
        connection.execute(_DETAIL, [{"result": one.case_result_id, "content": one.detail} for one in judged])
    result = m.case_result.c
    errors = sa.select(sa.func.count()).where(result.run_id == run_id, result.status == "error")
    values = {"errors_done": errors.scalar_subquery()}
    connection.execute(m.run.update().where(m.run.c.id == run_id).values(**values))


def _forget_scores(connection: Connection, run_id: int, scorer_id: int) -> None:
    results = sa.select(m.case_result.c.id).where(m.case_result.c.run_id == run_id)
    scored = m.score.c
    connection.execute(
        m.score.delete().where(scored.case_result_id.in_(results), scored.scorer_id == scorer_id)
    )
    connection.execute(
        m.rollup.delete().where(m.rollup.c.run_id == run_id, m.rollup.c.scorer_id == scorer_id)
    )
