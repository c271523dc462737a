"""Is it worse: what a verdict is reached from, and what was decided about baselines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.baselines import Baseline, Decision, Night, baseline
from store.columns import UtcDateTime
from store.database import Database
from store.dialects.sql import plain_rows
from store.metrics import METRIC_NAMES, METRICS
from store.portable import Against, Carried
from store.queries.common import is_whole
from store.queries.controls import ControlRecord, control_record
from store.queries.operation import clock
from store.queries.policy import quarantined_cases, retired_names

CONFIRM, CALIBRATION = "@confirm", "@calibration"
"""What a run was for that is no night of its series, in place of the tag that narrowed the suite."""
PRIME = "prime"
"""Trigger of a run whose every trial counts in a baseline."""
PASS = METRICS["pass"].id
SCORED = tuple(METRICS[name].id for name in ("ndcg@k", "returned_tokens"))
MEASURED = ("recall_ms", "returned_n")
SPENT = ("ingest_tokens", "money")
"""Metrics that are held against the baseline beside the pass rate: from scores, from the result rows, and of
a scenario, which plants for all of its cases."""


class AskedCase(NamedTuple):
    """A case of the run. `quarantined`: a person decided that its loss is no news."""

    id: int
    name: str
    tags: tuple[str, ...]
    critical: bool
    cluster: str | None
    quarantined: bool
    hash: str = ""


class AnswerRow(NamedTuple):
    """`value`: 1 for passed, 0 for lost, None for an error and for what does not apply."""

    run_id: int
    case_id: int
    trial: int
    value: float | None


class ValueRow(NamedTuple):
    """`case_id`: for what a scenario spent, its number instead."""

    run_id: int
    case_id: int
    trial: int
    metric: str
    value: float


class PassRate(NamedTuple):
    """Cases passed of cases asked in a whole run."""

    run_id: int
    passed: float
    asked: int


class VerdictRecord(NamedTuple):
    """All that a verdict of a run is reached from. `looks`: the runs that asked again, oldest first;
    `answers`: of the run, its looks and its baseline; `dense`: case id -> 1 or 0, of the newest whole run of
    a plain vector store on the suite, None where there is none; `series`: the pass rates of all whole runs
    up to this one, since the baseline began; `reported`: runs at which an earlier verdict saw a slow leak;
    `missing`: cases answered in the recent nights, asked no more, and not retired; `control`: of the frozen
    release that ran beside it, None where none did."""

    run_id: int
    suite: str
    backend: str
    cases: tuple[AskedCase, ...]
    looks: tuple[int, ...]
    baseline: Baseline
    answers: list[AnswerRow]
    values: list[ValueRow]
    dense: Mapping[int, float] | None
    series: list[PassRate]
    reported: frozenset[int]
    missing: tuple[str, ...] = ()
    control: ControlRecord | None = None


def verdict_record(
    db: Database, run_id: int, *, closing: int | None = None, against: Against | None = None
) -> VerdictRecord | None:
    """None for a run that is not in the record, or not over the whole suite. `closing`: a look whose answers
    are all in, and which is about to end; `against`: what the run is held against in place of its baseline,
    and then of that alone, without a look at the series."""
    now = clock(db)
    with db.read() as connection:
        run = series_of(connection, run_id)
        if run is None:
            return None
        carried = against.carried if against else None
        held_against = baseline(
            run.night,
            carried.nights if carried else earlier(connection, run),
            against.decisions if against else decisions_of(connection, run.suite_id, run.backend_id),
        )
        record = record_of(connection, run, held_against, now, _looks(connection, run_id, closing))
        if against:
            record = record._replace(series=[], reported=frozenset())
        recent = held_against.recent
        before = carried.answered(recent) if carried else _answered(connection, record.answers, recent)
        gone = before - {case.name for case in record.cases} - retired_names(connection, run.suite_id)
    record = record._replace(missing=tuple(sorted(gone)))
    return _with_carried(record, carried, now) if carried else record


def record_of(
    connection: Connection, run: Series, held_against: Baseline, now: datetime, looks: tuple[int, ...] = ()
) -> VerdictRecord:
    run_id = run.night.run_id
    wanted = {run_id, *looks, *held_against.history, *held_against.anchor}
    quarantined = quarantined_cases(connection, run.suite_id, now)
    return VerdictRecord(
        run_id,
        run.suite,
        run.backend,
        _cases(connection, run_id, quarantined),
        looks,
        held_against,
        answers_of(connection, wanted),
        _values(connection, {run_id, *looks, *held_against.recent}),
        _dense(connection, run),
        _series(connection, run, held_against),
        _reported(connection, run),
        control=control_record(connection, run_id, quarantined),
    )


def _with_carried(record: VerdictRecord, carried: Carried, now: datetime) -> VerdictRecord:
    """With answers and decisions that came from elsewhere. A case of another hash is another question; other
    metrics than passes do not travel."""
    ids = {(case.name, case.hash): case.id for case in record.cases}
    told = [
        AnswerRow(one.run_id, ids[one.name, one.hash], one.trial, one.value)
        for one in carried.answers
        if (one.name, one.hash) in ids
    ]
    apart = carried.quarantined_at(now)
    return record._replace(
        cases=tuple(
            case._replace(quarantined=case.quarantined or case.name in apart) for case in record.cases
        ),
        answers=record.answers + told,
        values=[],
        missing=tuple(name for name in record.missing if name not in carried.retired),
    )


def _answered(connection: Connection, answers: Iterable[AnswerRow], run_ids: Collection[int]) -> set[str]:
    """Names of the cases that were answered in these runs."""
    ids = {row.case_id for row in answers if row.run_id in run_ids and row.value is not None}
    return set(connection.execute(sa.select(m.case.c.name).where(m.case.c.id.in_(ids))).scalars())


def run_baseline(db: Database, run_id: int) -> Baseline | None:
    """What a run is held against as baselines stand now; None for a run that has none."""
    with db.read() as connection:
        run = series_of(connection, run_id)
        if run is None:
            return None
        decisions = decisions_of(connection, run.suite_id, run.backend_id)
        return baseline(run.night, earlier(connection, run), decisions)


class Series(NamedTuple):
    suite_id: int
    suite: str
    backend_id: int
    backend: str
    night: Night


def series_of(connection: Connection, run_id: int, subset: str = "") -> Series | None:
    query = select_nights().where(m.run.c.id == run_id, m.run.c.subset == subset)
    row = connection.execute(query).first()
    if row is None:
        return None
    return Series(row.suite_id, row.suite, row.backend_id, row.backend, *nights_of(connection, [row]))


def select_nights() -> sa.Select[Any]:
    said = m.verdict.alias("said")
    last = sa.select(sa.func.max(said.c.id)).where(said.c.run_id == m.run.c.id).scalar_subquery()
    return (
        sa.select(
            m.run.c.id, m.run.c.started_at, m.run.c.trigger, m.run.c.suite_id, m.run.c.backend_id,
            m.suite.c.name.label("suite"), m.backend.c.name.label("backend"),
            m.scorer.c.version.label("scorer"), m.run.c.environment_id,
            m.verdict.c.accepted,
        )
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .join(m.scorer, m.scorer.c.id == m.run.c.scorer_id)
        .outerjoin(m.verdict, m.verdict.c.id == last)
        .order_by(m.run.c.started_at, m.run.c.id)
    )  # fmt: skip


def nights_of(connection: Connection, rows: Sequence[sa.Row[Any]]) -> list[Night]:
    """Of rows of `select_nights`. A run without a verdict, made before there were any, may stand in a
    baseline."""
    embedders = _embedders(connection, {row.environment_id for row in rows})
    return [
        Night(
            row.id,
            row.started_at,
            accepted=row.accepted is not False,
            system=(("scorer", row.scorer), *embedders.get(row.environment_id, [])),
            primed=row.trigger == PRIME,
        )
        for row in rows
    ]


def _embedders(connection: Connection, ids: set[int | None]) -> dict[int, list[tuple[str, str]]]:
    """By environment, of which a year of nights has a few dozen."""
    query = sa.select(m.environment.c.id, m.environment.c.content).where(m.environment.c.id.in_(ids - {None}))
    known = {row.id: (row.content.get("backend") or {}).get("embedder") for row in connection.execute(query)}
    return {id: [("embedder", str(embedder))] if embedder else [] for id, embedder in known.items()}


def earlier(connection: Connection, run: Series) -> list[Night]:
    query = select_nights().where(
        m.run.c.suite_id == run.suite_id,
        m.run.c.backend_id == run.backend_id,
        is_whole(),
        _before(run.night),
    )
    return nights_of(connection, connection.execute(query).all())


def _before(night: Night) -> sa.ColumnElement[bool]:
    at = sa.bindparam("at", night.at, UtcDateTime)
    return sa.tuple_(m.run.c.started_at, m.run.c.id) < sa.tuple_(at, night.run_id)


def decisions_of(connection: Connection, suite_id: int, backend_id: int) -> list[Decision]:
    made = m.baseline_change.c
    query = (
        sa.select(made.action, made.run_ids, made.reason, made.author, made.at)
        .where(made.suite_id == suite_id, made.backend_id == backend_id)
        .order_by(made.id)
    )
    rows = connection.execute(query)
    return [Decision(row.action, tuple(row.run_ids), row.reason, row.author, row.at) for row in rows]


def _looks(connection: Connection, run_id: int, closing: int | None) -> tuple[int, ...]:
    query = sa.select(m.run.c.id).where(
        m.run.c.subset == CONFIRM,
        m.run.c.trigger == look_trigger(run_id),
        sa.or_(m.run.c.status == "whole", m.run.c.id == closing),
    )
    return tuple(connection.execute(query.order_by(m.run.c.id)).scalars())


def look_trigger(run_id: int | str) -> str:
    """The trigger of the runs that ask again what `run_id` asked."""
    return f"confirm:{run_id}"


def looked_at(trigger: str) -> int:
    """The run that a run of this trigger asks again."""
    return int(trigger.removeprefix(look_trigger("")))


def _cases(connection: Connection, run_id: int, quarantined: Collection[str]) -> tuple[AskedCase, ...]:
    case = m.case.c
    asked = sa.select(m.case_result.c.case_id).where(m.case_result.c.run_id == run_id)
    columns = (case.id, case.name, case.tags, case.critical, case.cluster, case.hash)
    query = sa.select(*columns).where(case.id.in_(asked))
    return tuple(
        AskedCase(
            row.id, row.name, tuple(row.tags), row.critical, row.cluster, row.name in quarantined, row.hash
        )
        for row in connection.execute(query.order_by(case.name))
    )


def answers_of(connection: Connection, run_ids: Collection[int]) -> list[AnswerRow]:
    """By the scorer in force of each run."""
    result, score = m.case_result.c, m.score.c
    query = (
        sa.select(result.run_id, result.case_id, result.trial, score.value)
        .join(m.run, m.run.c.id == result.run_id)
        .outerjoin(
            m.score,
            sa.and_(
                score.case_result_id == result.id,
                score.metric_id == PASS,
                score.scorer_id == m.run.c.scorer_id,
            ),
        )
        .where(result.run_id.in_(run_ids))
    )
    return [
        AnswerRow(run_id, case_id, trial, None if value is None else float(value > 0.5))
        for run_id, case_id, trial, value in plain_rows(connection, query)
    ]


def _values(connection: Connection, run_ids: Collection[int]) -> list[ValueRow]:
    result, score = m.case_result.c, m.score.c
    scored = (
        sa.select(result.run_id, result.case_id, result.trial, score.metric_id, score.value)
        .join(m.run, m.run.c.id == result.run_id)
        .join(m.score, sa.and_(score.case_result_id == result.id, score.scorer_id == m.run.c.scorer_id))
        .where(result.run_id.in_(run_ids), score.metric_id.in_(SCORED))
    )
    rows = [
        ValueRow(run_id, case_id, trial, METRIC_NAMES[metric], value)
        for run_id, case_id, trial, metric, value in plain_rows(connection, scored)
    ]
    measured = sa.select(
        result.run_id, result.case_id, result.trial, result.latency_ms, result.returned_n
    ).where(result.run_id.in_(run_ids), result.status == "ok")
    for run_id, case_id, trial, *found in plain_rows(connection, measured):
        told = zip(MEASURED, found, strict=True)
        rows += [ValueRow(run_id, case_id, trial, name, float(v)) for name, v in told if v is not None]
    return rows + _spent(connection, run_ids)


def _spent(connection: Connection, run_ids: Collection[int]) -> list[ValueRow]:
    """Model tokens for a memory, and money for planting and asking, where there was any. In an order of its
    own: by it scenarios are numbered, and what is drawn by chance goes by the numbers."""
    played, numbers = m.scenario_result.c, dict[str, int]()
    tokens = played.ingest_tokens * 1.0 / sa.func.nullif(played.plants, 0)
    done = sa.and_(played.run_id.in_(run_ids), played.status == "ok")
    query = sa.select(played.run_id, played.scenario, played.trial, tokens, played.money).where(done)
    costly = sa.or_(played.ingest_tokens > 0, played.money > 0)
    rows = []
    in_order = query.where(costly).order_by(played.run_id, played.scenario, played.trial)
    for run_id, scenario, trial, *found in connection.execute(in_order):
        number = numbers.setdefault(scenario, len(numbers))
        told = zip(SPENT, found, strict=True)
        rows += [ValueRow(run_id, number, trial, name, float(v)) for name, v in told if v]
    return rows


def _dense(connection: Connection, run: Series) -> Mapping[int, float] | None:
    newest = (
        sa.select(m.run.c.id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(m.run.c.suite_id == run.suite_id, m.backend.c.type == "dense", is_whole())
        .where(m.run.c.backend_id != run.backend_id)
        .order_by(m.run.c.started_at.desc(), m.run.c.id.desc())
        .limit(1)
    )
    run_id = connection.execute(newest).scalar()
    if run_id is None:
        return None
    return {row.case_id: row.value for row in answers_of(connection, [run_id]) if row.value is not None}


def _series(connection: Connection, run: Series, held_against: Baseline) -> list[PassRate]:
    """The run's own rate is not among them when it has no rollup yet: it is closing."""
    rolled, left_out = m.rollup.c, {one.run_id for one in held_against.left_out if _is_apart(one.why)}
    query = (
        sa.select(m.run.c.id, rolled.mean, rolled.n)
        .join(m.run, sa.and_(m.run.c.id == rolled.run_id, m.run.c.scorer_id == rolled.scorer_id))
        .where(rolled.backend_id == run.backend_id, rolled.suite_id == run.suite_id)
        .where(rolled.metric_id == PASS, rolled.tag == "", is_whole(), _before(run.night))
        .order_by(m.run.c.started_at, m.run.c.id)
    )
    rows = connection.execute(query).all()
    return [PassRate(row.id, row.mean * row.n, row.n) for row in rows if row.id not in left_out]


def _is_apart(why: str) -> bool:
    """A run that was worse is a point of the series; one of another system or time is not."""
    return not why.startswith("not accepted")


def _reported(connection: Connection, run: Series) -> frozenset[int]:
    earlier = sa.select(m.verdict.c.content).join(m.run, m.run.c.id == m.verdict.c.run_id)
    query = earlier.where(
        m.run.c.suite_id == run.suite_id,
        m.run.c.backend_id == run.backend_id,
        m.verdict.c.stage == "leak",
        m.run.c.id != run.night.run_id,
    )
    found = (row.content.get("leak") for row in connection.execute(query))
    return frozenset(leak["first_bad"] for leak in found if leak)
