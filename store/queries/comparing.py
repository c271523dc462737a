"""May the candidate replace what runs now: what two sets of runs answered, side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.changes import Changes, changes
from store.database import Database
from store.dialects.sql import FirstHit, plain_rows
from store.metrics import METRIC_NAMES, METRICS
from store.queries.changes import NothingToCompare, marks_between, side
from store.queries.common import suite_id
from store.queries.operation import clock
from store.queries.policy import quarantined_cases
from store.queries.runs import RunRow, select_runs
from store.queries.sides import environments, own_packages
from store.queries.suites import suites
from store.queries.verdicts import AnswerRow, AskedCase, answers_of

if TYPE_CHECKING:
    from store.comparisons import Comparison, Foresight, Turned

REFERENCES = {"nothing": "floor", "everything": "floor", "dense": "dense", "belief": "ceiling"}
"""Types of backends that are lines to read other rates by."""
HIT_METRICS = tuple(metric.id for metric in METRICS.values() if metric.source == "hits")


Value = tuple[int, int, int, float]
"""Run, case, trial, value: of a metric there are tens of thousands, which names would make slow."""


class ResultRow(NamedTuple):
    """`passed`: None for an error and for what does not apply to the backend."""

    run_id: int
    case_id: int
    trial: int
    passed: float | None
    status: str
    failure: str | None
    latency_ms: float | None
    returned_n: int | None


class PlayedRow(NamedTuple):
    """What a scenario took that ended well, in one trial of a run."""

    run_id: int
    trial: int
    scenario: str
    plants: int
    plant_ms: float | None
    ingest_tokens: int
    money: float


class ReferenceRow(NamedTuple):
    """The newest whole run of a backend to read rates by; `answers`: case id -> 1 or 0."""

    name: str
    kind: str
    run_id: int
    answers: Mapping[int, float]


class ComparisonRecord(NamedTuple):
    """All that a comparison is reached from. `suite`: name, version, kind, origin; `cases`: asked on either
    side; `queries`: case id -> what it asks; `results` and `played` of all runs of both, `values` likewise by
    metric; `releases`: version of each side's own package, '' for none; `changes`: None where an environment
    was not kept."""

    suite: tuple[str, str, str, str]
    a: tuple[RunRow, ...]
    b: tuple[RunRow, ...]
    names: tuple[str, str]
    cases: tuple[AskedCase, ...]
    queries: Mapping[int, str]
    results: list[ResultRow]
    values: Mapping[str, Sequence[Value]]
    played: list[PlayedRow]
    references: tuple[ReferenceRow, ...]
    releases: tuple[str, str]
    changes: Changes | None


def comparison(
    db: Database,
    suite: str,
    a: Sequence[int],
    b: Sequence[int],
    *,
    margin: float = 0.03,
    names: tuple[str, str] = ("", ""),
    with_texts: bool = False,
) -> Comparison:
    """Of the runs `a`, in use, and `b`, the candidate, as `side_runs` finds them. `margin`: the largest loss
    of the pass rate that is acceptable, a share; `names`: what the sides are called, by default their
    backends; with texts, each case that turned has what came back first. Raises `NothingToCompare`."""
    from store.comparing import compared  # numpy and scipy: half a second that no other query needs

    found = compared(comparison_record(db, suite, a, b, names), margin)
    of = next(row for row in suites(db) if row.name == suite)
    found = found._replace(licence=of.licence, citation=of.citation, with_texts=with_texts)
    if not with_texts:
        return found
    turned = {one.case_id for one in (*found.lost, *found.gained)}
    hits = first_hits(db, turned, {*a, *b})
    return found._replace(lost=_with_hits(found.lost, hits), gained=_with_hits(found.gained, hits))


def _with_hits(rows: Sequence[Turned], hits: Mapping[tuple[int, int], str]) -> tuple[Turned, ...]:
    return tuple(
        row._replace(a_hit=hits.get((row.a_run, row.case_id)), b_hit=hits.get((row.b_run, row.case_id)))
        for row in rows
    )


def foresight(
    db: Database,
    suite: str,
    a: Sequence[int],
    b: Sequence[int],
    margin: float,
    cases: int | None = None,
    clusters: int | None = None,
) -> Foresight:
    """What such a comparison could show, from the runs there are; without any on a side, of `cases` cases in
    so many `clusters`, None where each stands for itself."""
    from store.comparing import foreseen, foreseen_of

    if a and b:
        return foreseen_of(comparison_record(db, suite, a, b), margin)
    return foreseen(cases or 0, margin, clusters=clusters)


def comparison_record(
    db: Database, suite: str, a: Sequence[int], b: Sequence[int], names: tuple[str, str] = ("", "")
) -> ComparisonRecord:
    now = clock(db)
    with db.read() as connection:
        sides = _runs(connection, suite, a), _runs(connection, suite, b)
        run_ids = {row.id for rows in sides for row in rows}
        number = suite_id(connection, suite)
        results = _results(connection, run_ids)
        cases, asked = _cases(connection, run_ids, quarantined_cases(connection, number or 0, now))
        values, played = _values(connection, run_ids), _played(connection, run_ids)
        references = _references(connection, suite, [rows[-1].backend for rows in sides])
    newest = sides[0][-1], sides[1][-1]
    known = environments(db, newest)
    releases = [_release(known.get(row.environment_id, {})) for row in newest]
    told = newest[1]
    return ComparisonRecord(
        (suite, told.suite_version, told.kind, told.origin), *sides,
        (names[0] or newest[0].backend, names[1] or newest[1].backend),
        cases, asked, results, values, played, references,
        (releases[0], releases[1]), _differing(db, *newest),
    )  # fmt: skip


def _runs(connection: Connection, suite: str, ids: Sequence[int]) -> tuple[RunRow, ...]:
    rows = select_runs(connection, [m.run.c.id.in_(list(ids)), m.suite.c.name == suite])
    if not rows:
        raise NothingToCompare(f"no whole run of {suite} on one side; memtrend runs --suite {suite}")
    return tuple(sorted(rows, key=lambda row: (row.started_at, row.id)))


def _release(environment: dict[str, Any]) -> str:
    own = own_packages(environment)
    return own[0][1] if len(own) == 1 else ", ".join(f"{name} {version}" for name, version in own)


def _differing(db: Database, old: RunRow, new: RunRow) -> Changes | None:
    if None in (old.environment_id, new.environment_id):
        return None
    apart = {"meta": None}  # what a person keeps with a run explains no difference between two systems
    return changes(side(db, old) | apart, side(db, new) | apart, marks_between(db, old, new))


def _results(connection: Connection, run_ids: Collection[int]) -> list[ResultRow]:
    result = m.case_result.c
    query = sa.select(
        result.run_id, result.case_id, result.trial, result.status, result.failure, result.latency_ms,
        result.returned_n,
    ).where(result.run_id.in_(run_ids))  # fmt: skip
    passed = {row[:3]: row.value for row in answers_of(connection, run_ids)}
    return [
        ResultRow(run_id, case_id, trial, passed[run_id, case_id, trial], status, failure, latency, returned)
        for run_id, case_id, trial, status, failure, latency, returned in plain_rows(connection, query)
    ]


def _cases(
    connection: Connection, run_ids: Collection[int], quarantined: Collection[str]
) -> tuple[tuple[AskedCase, ...], dict[int, str]]:
    """By name, and what is asked in each."""
    case = m.case.c
    asked = sa.select(m.case_result.c.case_id).where(m.case_result.c.run_id.in_(run_ids))
    columns = (case.id, case.name, case.tags, case.critical, case.cluster, case.hash, case.query)
    rows = connection.execute(sa.select(*columns).where(case.id.in_(asked)).order_by(case.name)).all()
    cases = tuple(
        AskedCase(
            row.id, row.name, tuple(row.tags), row.critical, row.cluster, row.name in quarantined, row.hash
        )
        for row in rows
    )
    return cases, {row.id: row.query for row in rows}


def _values(connection: Connection, run_ids: Collection[int]) -> dict[str, list[Value]]:
    result, score = m.case_result.c, m.score.c
    query = (
        sa.select(score.metric_id, result.run_id, result.case_id, result.trial, score.value)
        .join(m.run, m.run.c.id == result.run_id)
        .join(m.score, sa.and_(score.case_result_id == result.id, score.scorer_id == m.run.c.scorer_id))
        .where(result.run_id.in_(run_ids), score.metric_id.in_(HIT_METRICS))
    )
    found: dict[str, list[Value]] = defaultdict(list)
    for metric, *value in plain_rows(connection, query):
        found[METRIC_NAMES[metric]].append((value[0], value[1], value[2], value[3]))
    return found


def _played(connection: Connection, run_ids: Collection[int]) -> list[PlayedRow]:
    done = m.scenario_result.c
    query = sa.select(*(done[name] for name in PlayedRow._fields)).where(
        done.run_id.in_(run_ids), done.status == "ok"
    )
    return [PlayedRow(*row) for row in plain_rows(connection, query)]


def _references(connection: Connection, suite: str, sides: Sequence[str]) -> tuple[ReferenceRow, ...]:
    """Of each type the newest whole run; a backend that is compared itself is no line beside it."""
    rows = select_runs(
        connection,
        [
            m.suite.c.name == suite,
            m.backend.c.type.in_(REFERENCES),
            m.backend.c.name.not_in(sides),
            m.run.c.id.in_(_newest_of_each()),
        ],
    )
    types = _types(connection, [row.backend for row in rows])
    newest = {types[row.backend]: row for row in reversed(rows)}
    answers = answers_of(connection, {row.id for row in newest.values()})
    return tuple(
        ReferenceRow(newest[type].backend, kind, newest[type].id, _of_run(answers, newest[type].id))
        for type, kind in REFERENCES.items()
        if type in newest
    )


def _newest_of_each() -> sa.Select[Any]:
    whole = sa.and_(m.run.c.status == "whole", m.run.c.subset == "")
    return sa.select(sa.func.max(m.run.c.id)).where(whole).group_by(m.run.c.suite_id, m.run.c.backend_id)


def _types(connection: Connection, names: Sequence[str]) -> dict[str, str]:
    query = sa.select(m.backend.c.name, m.backend.c.type).where(m.backend.c.name.in_(names))
    return dict(plain_rows(connection, query))


def _of_run(answers: Sequence[AnswerRow], run_id: int) -> dict[int, float]:
    """Case id -> passed, by the first trial."""
    return {
        row.case_id: row.value
        for row in answers
        if row.run_id == run_id and row.trial == 1 and row.value is not None
    }


def first_hits(
    db: Database, case_ids: Collection[int], run_ids: Collection[int]
) -> dict[tuple[int, int], str]:
    """(run, case) -> the text that came back first, in the first trial that has one."""
    result, text = m.case_result.c, FirstHit(m.detail.c.content).label("text")
    query = (
        sa.select(result.run_id, result.case_id, text)
        .join(m.detail, m.detail.c.case_result_id == result.id)
        .where(result.run_id.in_(run_ids), result.case_id.in_(case_ids), text.is_not(None))
        .order_by(result.run_id, result.case_id, result.trial.desc())
    )
    with db.read() as connection:
        return {(run_id, case_id): found for run_id, case_id, found in plain_rows(connection, query)}


def failure_kinds(results: Sequence[ResultRow]) -> dict[int, str]:
    """By case: the kind that most of its losses have."""
    kinds: dict[int, Counter[str]] = {}
    for row in results:
        if row.failure:
            kinds.setdefault(row.case_id, Counter())[row.failure] += 1
    return {case_id: counted.most_common(1)[0][0] for case_id, counted in kinds.items()}
