"""What the cases came to: of one run, of one case over the runs, and for scoring and export."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.dialects.sql import FirstHit, plain_rows
from store.metrics import METRIC_NAMES, METRICS
from store.queries.common import suite_id
from store.queries.runs import RunFilter, RunRow, runs
from store.queries.series import SeriesRun, recent_runs
from store.queries.suites import suites

if TYPE_CHECKING:
    from store import rollups

PASS = METRICS["pass"].id

Only = Literal["all", "lost", "errors", "skipped"]


class CaseRow(NamedTuple):
    """A case of a run, its trials folded. `passed`: in more than half of the trials that could be judged,
    None where none could. `status`: error where any trial failed, skipped where all were. `failure` (None
    of a case that passed) and `first_hit` (the text that came back first) are of the first trial that has
    one; `latency_ms` and `scores` are means over the trials, `attempts` their sum."""

    case_id: int
    case: str
    tags: list[str]
    critical: bool
    query: str
    status: str
    passed: bool | None
    failure: str | None
    latency_ms: float | None
    attempts: int
    returned_n: int | None
    trials: int
    passes: int
    first_hit: str | None
    scores: dict[str, float]


class CaseResult(NamedTuple):
    """A case in one trial, with what came back."""

    result_id: int
    trial: int
    status: str
    failure: str | None
    latency_ms: float | None
    attempts: int
    returned_n: int | None
    scores: dict[str, float]
    detail: dict[str, Any]


class HistoryPoint(NamedTuple):
    """A case in one whole run. `passes` of `trials`; `hash` tells whether it was the same question."""

    run_id: int
    backend: str
    started_at: datetime
    status: str
    passes: int
    trials: int
    failure: str | None
    hash: str


class FlakyCase(NamedTuple):
    """A case that passed in some of a backend's last runs and not in others; `recent`, oldest first."""

    case: str
    backend: str
    passes: int
    runs: int
    recent: list[bool]


class StoredAnswer(NamedTuple):
    case_result_id: int
    case: str
    hash: str
    trial: int
    status: str
    story: dict[str, Any]
    detail: dict[str, Any]


class _Result(NamedTuple):
    """A result with its case, before folding."""

    id: int
    case_id: int
    case: str
    hash: str
    tags: list[str]
    critical: bool
    query: str
    trial: int
    status: str
    failure: str | None
    latency_ms: float | None
    attempts: int
    returned_n: int | None


def run_cases(db: Database, run_id: int, *, only: Only = "all", with_hits: bool = True) -> list[CaseRow]:
    """The cases of a run in the order in which the suite got them. only: lost (judged and not passed),
    errors, skipped. Without hits `first_hit` is None: they are half of the work."""
    with db.read() as connection:
        results = _results(connection, run_id)
        scores = _scores(connection, run_id)
        hits = _first_hits(connection, run_id) if with_hits else {}
    folded = [
        _fold(list(group), scores, hits) for _, group in groupby(results, lambda result: result.case_id)
    ]
    return [row for row in folded if _is(row, only)]


def _is(row: CaseRow, only: Only) -> bool:
    kept = {
        "all": True,
        "lost": row.passed is False,
        "errors": row.status == "error",
        "skipped": row.status == "skipped",
    }
    return kept[only]


def _results(connection: Connection, run_id: int) -> list[_Result]:
    """By case, then by trial."""
    result, case = m.case_result.c, m.case.c
    query = (
        sa.select(
            result.id, case.id, case.name, case.hash, case.tags, case.critical, case.query,
            *(result[name] for name in _Result._fields[7:]),
        )
        .join(m.case, case.id == result.case_id)
        .where(result.run_id == run_id)
        .order_by(case.id, result.trial)
    )  # fmt: skip
    return [_Result(*row) for row in connection.execute(query).all()]


def _scores(connection: Connection, run_id: int, case_id: int | None = None) -> dict[int, dict[str, float]]:
    """Result id -> value by metric, of the scorer that the run goes by."""
    score, result = m.score.c, m.case_result.c
    query = (
        sa.select(score.case_result_id, score.metric_id, score.value)
        .select_from(m.case_result)
        .join(m.run, m.run.c.id == result.run_id)
        .join(m.score, sa.and_(score.case_result_id == result.id, score.scorer_id == m.run.c.scorer_id))
        .where(result.run_id == run_id)
    )
    if case_id is not None:
        query = query.where(result.case_id == case_id)
    scores: dict[int, dict[str, float]] = defaultdict(dict)
    for result_id, metric, value in plain_rows(connection, query):
        scores[result_id][METRIC_NAMES[metric]] = value
    return scores


def _first_hits(connection: Connection, run_id: int) -> dict[int, str]:
    """Result id -> text of the hit that came first, taken out by the database: the rest may be megabytes."""
    text = FirstHit(m.detail.c.content).label("text")
    query = (
        sa.select(m.detail.c.case_result_id, text)
        .join(m.case_result, m.case_result.c.id == m.detail.c.case_result_id)
        .where(m.case_result.c.run_id == run_id, text.is_not(None))
    )
    return dict(plain_rows(connection, query))


def _fold(
    trials: Sequence[_Result], scores: Mapping[int, Mapping[str, float]], hits: Mapping[int, str]
) -> CaseRow:
    first = trials[0]
    found = [scores.get(trial.id, {}) for trial in trials]
    judged = [values["pass"] for values in found if "pass" in values]
    passes = sum(value > 0.5 for value in judged)
    passed = 2 * passes > len(judged) if judged else None
    return CaseRow(
        case_id=first.case_id,
        case=first.case,
        tags=first.tags,
        critical=first.critical,
        query=first.query,
        status=_folded_status([trial.status for trial in trials]),
        passed=passed,
        failure=None if passed else _first(trial.failure for trial in trials),
        latency_ms=_mean([trial.latency_ms for trial in trials if trial.latency_ms is not None]),
        attempts=sum(trial.attempts for trial in trials),
        returned_n=_first(trial.returned_n for trial in trials),
        trials=len(trials),
        passes=passes,
        first_hit=_first(hits.get(trial.id) for trial in trials),
        scores=_mean_scores(found),
    )


def _folded_status(statuses: Sequence[str]) -> str:
    if "error" in statuses:
        return "error"
    return "ok" if "ok" in statuses else "skipped"


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _mean_scores(trials: Sequence[Mapping[str, float]]) -> dict[str, float]:
    if len(trials) == 1:
        return dict(trials[0])
    collected: dict[str, list[float]] = defaultdict(list)
    for scores in trials:
        for name, value in scores.items():
            collected[name].append(value)
    return {name: sum(values) / len(values) for name, values in collected.items()}


def case_results(db: Database, case_id: int, run_id: int) -> list[CaseResult]:
    """A case in each trial of a run, with what came back."""
    result = m.case_result.c
    columns = [result[name] for name in CaseResult._fields[1:7]]
    query = (
        sa.select(result.id, *columns, m.detail.c.content)
        .outerjoin(m.detail, m.detail.c.case_result_id == result.id)
        .where(result.run_id == run_id, result.case_id == case_id)
        .order_by(result.trial)
    )
    with db.read() as connection:
        scores = _scores(connection, run_id, case_id)
        rows = connection.execute(query).all()
    return [CaseResult(*row[:7], dict(scores.get(row.id, {})), row.content or {}) for row in rows]


def case_history(db: Database, suite: str, name: str, limit_runs: int = 60) -> list[HistoryPoint]:
    """A case in the last `limit_runs` whole runs of each backend, oldest first, under every hash it had."""
    result, case = m.case_result.c, m.case.c
    with db.read() as connection:
        suite_ = suite_id(connection, suite)
        asked = sa.select(case.id, case.hash).where(case.suite_id == suite_, case.name == name)
        hashes = dict(plain_rows(connection, asked))
        recent = recent_runs(db, connection, suite_, limit_runs)
        query = (
            sa.select(
                result.run_id, result.case_id, result.trial, result.status, result.failure,
                m.score.c.scorer_id, m.score.c.value,
            )
            .outerjoin(m.score, _is_pass())
            .where(result.case_id.in_(hashes), result.run_id >= min(recent, default=0))
        )  # fmt: skip
        trials: dict[int, dict[int, _Trial]] = {run_id: {} for run_id in recent}
        for run_id, case_id, trial, status, failure, scorer, value in plain_rows(connection, query):
            if run_id in recent:
                told = value if scorer == recent[run_id].scorer_id else None
                if told is not None or trial not in trials[run_id]:
                    trials[run_id][trial] = _Trial(trial, case_id, status, failure, told)
    return [
        _history_point(recent[run_id], sorted(own.values(), key=lambda one: one.trial), hashes)
        for run_id, own in trials.items()
        if own
    ]


class _Trial(NamedTuple):
    """`value`: of the scorer in force, None where it judged nothing."""

    trial: int
    case_id: int
    status: str
    failure: str | None
    value: float | None


def _history_point(run: SeriesRun, trials: Sequence[_Trial], hashes: Mapping[int, str]) -> HistoryPoint:
    passes = sum(one.value is not None and one.value > 0.5 for one in trials)
    return HistoryPoint(
        run.id, run.backend, run.started_at, _folded_status([one.status for one in trials]),
        passes, len(trials), _first(one.failure for one in trials), hashes[trials[0].case_id],
    )  # fmt: skip


def _is_pass() -> sa.ColumnElement[bool]:
    return sa.and_(m.score.c.case_result_id == m.case_result.c.id, m.score.c.metric_id == PASS)


def flaky_cases(db: Database, suite: str, last: int = 30) -> list[FlakyCase]:
    """The cases in force with mixed outcomes over the last whole runs of a backend, most mixed first.
    A run counts as passed when more than half of its trials are."""
    with db.read() as connection:
        outcomes = outcomes_in_force(db, connection, suite, last)
    found = [
        FlakyCase(case, backend, sum(recent), len(recent), recent)
        for (case, backend), recent in outcomes.items()
        if 0 < sum(recent) < len(recent)
    ]
    return sorted(found, key=lambda row: (abs(2 * row.passes - row.runs) / row.runs, row.case, row.backend))


def outcomes_in_force(
    db: Database, connection: Connection, suite: str, last: int
) -> dict[tuple[str, str], list[bool]]:
    """Of the cases in force: (case, backend) -> passed or not, oldest run first. Without controls: what one
    does is to be compared with, and says nothing of the suite. A run at a time, each a range of an index."""
    result = m.case_result.c
    run_id, scorer = (sa.bindparam(name, type_=sa.Integer) for name in ("run_id", "scorer"))
    query = (
        sa.select(result.case_id, sa.func.avg(m.score.c.value) > 0.5)
        .join(m.score, sa.and_(_is_pass(), m.score.c.scorer_id == scorer))
        .where(result.run_id == run_id)
        .group_by(result.case_id)
    )
    names = _names_in_force(connection, suite)
    outcomes: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for run in recent_runs(db, connection, suite_id(connection, suite), last, controls=False).values():
        for case_id, passed in plain_rows(connection, query, run_id=run.id, scorer=run.scorer_id):
            if case_id in names:
                outcomes[names[case_id], run.backend].append(bool(passed))
    return outcomes


def _names_in_force(connection: Connection, suite: str) -> dict[int, str]:
    """Id -> name of the cases in force."""
    belongs, version = m.suite_version_case.c, m.suite_version.c
    query = (
        sa.select(m.case.c.id, m.case.c.name)
        .join(m.suite_version_case, belongs.case_id == m.case.c.id)
        .join(m.suite_version, version.id == belongs.suite_version_id)
        .join(m.suite, sa.and_(m.suite.c.id == version.suite_id, m.suite.c.version == version.version))
        .where(m.suite.c.name == suite)
    )
    return dict(plain_rows(connection, query))


def finished_scenarios(db: Database, run_id: int) -> set[tuple[str, int]]:
    """(scenario, trial) of all that is stored: what a resumed run need not do again."""
    done = m.scenario_result.c
    with db.read() as connection:
        rows = connection.execute(sa.select(done.scenario, done.trial).where(done.run_id == run_id))
        return {(scenario, trial) for scenario, trial in rows}


def case_scores(db: Database, run_id: int) -> list[rollups.CaseRow]:
    """Every result of a run, as the rollup takes them."""
    from store.rollups import CaseRow as Scored  # numpy: 0.2 s that no other query needs

    with db.read() as connection:
        results = _results(connection, run_id)
        scores = _scores(connection, run_id)
    return [
        Scored(
            row.case, row.tags, row.trial, row.status, row.latency_ms, row.attempts, row.returned_n,
            scores.get(row.id, {}),
        )
        for row in results
    ]  # fmt: skip


def scenario_stats(db: Database, run_id: int) -> list[rollups.ScenarioRow]:
    """What the scenarios of a run took that ended well, as the rollup takes them."""
    from store.rollups import ScenarioRow  # numpy: see `case_scores`

    done = m.scenario_result.c
    query = sa.select(*(done[name] for name in ScenarioRow._fields)).where(
        done.run_id == run_id, done.status == "ok", done.plant_ms.is_not(None)
    )
    with db.read() as connection:
        return [ScenarioRow(*row) for row in connection.execute(query)]


def stored_answers(db: Database, run_id: int) -> list[StoredAnswer]:
    """What came back in a run, raw: enough to score it again without asking a backend."""
    result, case = m.case_result.c, m.case.c
    query = (
        sa.select(
            result.id, case.name, case.hash, result.trial, result.status, case.story, m.detail.c.content
        )
        .join(m.case, case.id == result.case_id)
        .outerjoin(m.detail, m.detail.c.case_result_id == result.id)
        .where(result.run_id == run_id)
        .order_by(result.id)
    )
    with db.read() as connection:
        return [StoredAnswer(*row[:-1], row[-1] or {}) for row in connection.execute(query)]


SCORED = tuple(metric.name for metric in METRICS.values() if metric.source == "hits")
EXPORTED = (
    "run", "run_status", "suite", "suite_version", "backend", "started_at", "case", "case_hash", "trial",
    "tags", "status", "failure", "latency_ms", "attempts", "returned_n", *SCORED, "licence", "citation",
)  # fmt: skip
"""The keys of an exported row."""


def export_cases(db: Database, **chosen: Unpack[RunFilter]) -> Iterator[dict[str, Any]]:
    """One flat row a result of the runs chosen, without texts, newest run first, with the keys `EXPORTED`.
    `tags` are joined by `;`, metrics are None where they do not apply. One run is in memory at a time."""
    credits = {row.name: {"licence": row.licence, "citation": row.citation} for row in suites(db)}
    for run in runs(db, limit=None, **chosen):
        with db.read() as connection:
            results = _results(connection, run.id)
            scores = _scores(connection, run.id)
        for row in results:
            yield _exported(run, row, scores.get(row.id, {})) | credits[run.suite]


def _exported(run: RunRow, row: _Result, scores: Mapping[str, float]) -> dict[str, Any]:
    return {
        "run": run.id,
        "run_status": run.status,
        "suite": run.suite,
        "suite_version": run.suite_version,
        "backend": run.backend,
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "case": row.case,
        "case_hash": row.hash,
        "trial": row.trial,
        "tags": ";".join(row.tags),
        "status": row.status,
        "failure": row.failure,
        "latency_ms": row.latency_ms,
        "attempts": row.attempts,
        "returned_n": row.returned_n,
        **{name: scores.get(name) for name in SCORED},
    }
