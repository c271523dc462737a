"""A record as large as years of nights make it: three suites, every night, on many backends.

Rows are those that the product writes, in the order in which it writes them: versions of suites with edited
cases, environments that move, results with scores, rollups by tag, texts of the last nights, verdicts, fires,
marks. They are inserted in bulk, a night a transaction. A verdict is reached as the runner reaches it for
the last night of each series, and stands for all nights before.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
import time_machine

from benchmarks.figures import answers
from benchmarks.figures.answers import SCORED, SCORED_IDS, Night
from collectors.environment import fingerprint
from store import models as m
from store import queries, writes
from store.columns import to_json
from store.database import Database, insert_rows
from store.evidence import entry
from store.records import CaseRecord, SuiteRecord
from store.verdicts import judge
from store.writes.common import insert, known_scorer

SHARES = {"golden": 200, "contract": 64, "mined": 650}
"""Cases of 914 a night; the last suite takes what is left."""
TAGS = ("dates", "numbers", "updates", "isolation", "forgetting", "multi-hop")
PLAIN = ("keyword", "dense", "hybrid", "nothing", "everything")
SKILLS = {"keyword": 0.71, "dense": 0.80, "nothing": 0.10, "everything": 0.27}
BROKEN = 3
"""Cases that an upgrade breaks for good, on every third backend."""
EDITED = 3
"""Cases that each new version of a suite asks otherwise."""
VERSIONS = 4
SAME_SYSTEM = 14
"""Nights between two changes of an environment."""
TOLD = 30
"""Nights at the end whose texts are kept."""
A_SCENARIO = 4
"""Cases."""
INVALID = 97
"""Every so many runs, a fifth of the calls fail."""
SCORER = "1"


class Size(NamedTuple):
    nights: int = 365
    backends: int = 15
    cases: int = 914

    @property
    def results(self) -> int:
        return self.nights * self.backends * self.cases


class Backend(NamedTuple):
    id: int
    name: str
    type: str
    skill: float


class Suite(NamedTuple):
    """A version of a suite: ids of its cases in order, and which of them each tag has."""

    id: int
    name: str
    version_id: int
    case_ids: list[int]
    tagged: list[tuple[str, np.ndarray]]


def make(db: Database, size: Size, end: datetime | None = None) -> None:
    """Fill an empty record. The last night is that before `end` (now)."""
    last = (end or datetime.now(UTC)).replace(hour=1, minute=0, second=0, microsecond=0)
    dates = [last - timedelta(days=size.nights - 1 - night) for night in range(size.nights)]
    backends = [_backend(db, number) for number in range(size.backends)]
    maker = _Maker(db, size, dates, backends)
    for night in range(size.nights):
        maker.night(night)
        if night % 30 == 0:
            print(f"night {night} of {size.nights}", file=sys.stderr)
    _verdicts(db, backends)
    _operation(db, dates)
    if db.dialect.url.get_backend_name() == "postgresql":
        with db.write() as connection:
            connection.exec_driver_sql("ANALYZE")  # as its daemon does, which the server of tests lacks


def _backend(db: Database, number: int) -> Backend:
    name = PLAIN[number] if number < len(PLAIN) else f"memory-{number - len(PLAIN) + 1:02}"
    type_ = name if number < len(PLAIN) else "ourteam.memory:Notes"
    skill = SKILLS.get(name, 0.88 + 0.1 * (number * 7 % 11) / 11)
    return Backend(writes.register_backend(db, name, type_, {"top": 5}), name, type_, skill)


def _suite(db: Database, name: str, cases: int, version: int) -> Suite:
    records = tuple(_case(name, number, version) for number in range(cases))
    record = SuiteRecord(name, "golden", "own", f"{zlib.crc32(name.encode()):08x}{version:08x}", 168, records)
    version_id = writes.register_suite(db, record)
    belongs = m.suite_version_case.c
    query = sa.select(m.case.c.name, m.case.c.id, m.case.c.suite_id).join(
        m.suite_version_case, belongs.case_id == m.case.c.id
    )
    with db.read() as connection:
        rows = connection.execute(query.where(belongs.suite_version_id == version_id)).all()
    ids = {row.name: row.id for row in rows}
    members = {tag: np.array([tag in case.tags for case in records]) for case in records for tag in case.tags}
    tagged = [("", np.ones(cases, dtype=bool)), *sorted(members.items())]
    return Suite(rows[0].suite_id, name, version_id, [ids[case.name] for case in records], tagged)


def _case(suite: str, number: int, version: int) -> CaseRecord:
    edits = sum(number // EDITED == of for of in range(1, version + 1))
    query = f"What did we settle about item {number} of {suite}{', as of now' * edits}?"
    planted = [
        {"id": f"w{i}", "text": f"Item {number} of {suite} is due on day {i}; {FILLER}", "role": "user"}
        for i in (1, 2)
    ]
    story = {"steps": [{"plant": [planted[0]]}, {"session": "s-2"}, {"plant": [planted[1]]}]}
    tags = (TAGS[number % len(TAGS)], *(("long",) if number % 4 == 0 else ()))
    return CaseRecord(
        f"item-{number:04}", f"{number:08x}{edits:08x}", query, tags=tags, critical=number % 10 == 0,
        cluster=f"{suite}-{number // A_SCENARIO}", source="made up", story=story,
    )  # fmt: skip


FILLER = "Noor said so in the meeting on Tuesday, and nobody had anything to add to it."


class _Maker:
    def __init__(
        self, db: Database, size: Size, dates: Sequence[datetime], backends: Sequence[Backend]
    ) -> None:
        self.db, self.size, self.dates, self.backends = db, size, dates, backends
        self.dice = np.random.default_rng(20260105)
        self.cases = _shares(size.cases)
        self.able = {
            (backend.name, suite): answers.able(backend.skill, cases, self.dice)
            for suite, cases in self.cases.items()
            for backend in backends
        }
        self.suites: dict[str, Suite] = {}
        self.environments: dict[str, int] = {}
        self.run_id, self.result_id = 0, 0
        self.scorer = 0
        self.content = fingerprint({}, {"type": "keyword"})

    def night(self, number: int) -> None:
        """All suites on all backends, one after the other."""
        self._move(number)
        with self.db.write() as connection:
            if not self.scorer:
                self.scorer = known_scorer(connection, SCORER)
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA cache_size=-400000")
            at = self.dates[number]
            for suite in self.suites.values():
                for backend in self.backends:
                    self._run(connection, number, at, suite, backend)
                    at += timedelta(seconds=90)

    def _move(self, number: int) -> None:
        """Suites and environments that are not the same from this night on."""
        with time_machine.travel(self.dates[number], tick=False):
            version, later = divmod(number, -(-self.size.nights // VERSIONS))
            if not later:
                self.suites = {name: _suite(self.db, name, n, version) for name, n in self.cases.items()}
            for place, backend in enumerate(self.backends):
                if (number + place) % SAME_SYSTEM == 0 or not number:
                    moved = {**self.content["packages"], "numpy": f"2.{number}.{place}"}
                    content = {**self.content, "packages": moved}
                    self.environments[backend.name] = writes.register_environment(self.db, content)
        if number == self.size.nights * 2 // 3:
            for place, backend in enumerate(self.backends):
                for suite in self.cases if place % 3 == 2 else ():
                    usually = self.able[backend.name, suite]
                    usually[np.flatnonzero(usually)[:BROKEN]] = False

    def _run(
        self, connection: sa.Connection, number: int, at: datetime, suite: Suite, backend: Backend
    ) -> None:
        invalid = (self.run_id + 1) % INVALID == 0
        scenarios = -(-len(suite.case_ids) // A_SCENARIO)
        usually = self.able[backend.name, suite.name]
        one = answers.night(usually, 4.0 + backend.id, scenarios, invalid, self.dice)
        self.run_id = insert(connection, m.run, **self._run_row(at, suite, backend, one))
        insert_rows(connection, m.scenario_result, _columns(m.scenario_result), _scenarios(self.run_id, one))
        ids = range(self.result_id + 1, self.result_id + 1 + len(usually))
        self.result_id = ids[-1]
        insert_rows(
            connection, m.case_result, _columns(m.case_result), _results(self.run_id, ids, suite, one)
        )
        insert_rows(connection, m.score, _columns(m.score), _scores(ids, one, self.scorer))
        if number >= self.size.nights - TOLD:
            insert_rows(connection, m.detail, _columns(m.detail), _details(ids, one))
        series = backend.id, suite.id
        known = number >= answers.FIRST_DRIFT and not invalid
        drift = float(one.passed.mean()) - backend.skill if known else None
        rows = (
            (*series, metric, tag, self.run_id, self.scorer, *values)
            for metric, tag, *values in answers.rollup(one, suite.tagged, drift)
        )
        insert_rows(connection, m.rollup, _columns(m.rollup), rows)

    def _run_row(self, at: datetime, suite: Suite, backend: Backend, one: Night) -> dict[str, Any]:
        errors, cases = int(one.failed.sum()), len(one.failed)
        reason = f"{errors} of {cases} answers were errors, over the limit of 10%" if errors else None
        return {
            "suite_id": suite.id, "suite_version_id": suite.version_id,
            "backend_id": backend.id, "environment_id": self.environments[backend.name],
            "project": "default", "owner": "default", "status": "invalid" if errors else "whole",
            "reason": reason, "trigger": "schedule:nightly", "subset": "", "trials": 1,
            "scorer_id": self.scorer, "meta": {}, "token": 1, "cancel": False, "cases_total": cases,
            "cases_done": cases, "errors_done": errors, "scenarios_total": len(one.plant_ms),
            "started_at": at, "finished_at": at + timedelta(seconds=80),
        }  # fmt: skip


def _shares(cases: int) -> dict[str, int]:
    *first, last = SHARES
    shares = {name: max(2, cases * SHARES[name] // sum(SHARES.values())) for name in first}
    return {**shares, last: cases - sum(shares.values())}


def _columns(table: sa.Table) -> tuple[str, ...]:
    """`scenario_result` numbers itself."""
    names = tuple(column.name for column in table.columns)
    return names[1:] if table is m.scenario_result else names


def _scenarios(run_id: int, one: Night) -> Iterator[tuple[Any, ...]]:
    for number, ms in enumerate(one.plant_ms.tolist()):
        yield run_id, 1, f"scenario-{number}", "ok", answers.PLANTS, ms, 4.0, 0, 0, 0.0, 1, None


def _results(run_id: int, ids: range, suite: Suite, one: Night) -> Iterator[tuple[Any, ...]]:
    told = zip(
        ids, suite.case_ids, one.failed.tolist(), one.passed.tolist(), one.latency_ms.tolist(),
        one.attempts.tolist(), strict=True,
    )  # fmt: skip
    for result_id, case_id, failed, passed, ms, attempts in told:
        if failed:
            yield result_id, run_id, case_id, 1, "error", None, None, attempts, None
        else:
            failure = None if passed else "stored but not returned"
            yield result_id, run_id, case_id, 1, "ok", failure, ms, attempts, 5


def _scores(ids: range, one: Night, scorer: int) -> Iterator[tuple[int, int, int, float]]:
    answered = np.array(ids)[~one.failed]
    results = np.repeat(answered, len(SCORED)).tolist()
    metrics = np.tile(SCORED_IDS, len(answered)).tolist()
    values = one.scores[~one.failed].ravel().tolist()
    return zip(results, metrics, [scorer] * len(values), values, strict=True)


_HITS = [{"id": f"b{i}", "text": f"{FILLER} {i}", "score": round(0.9 - i / 20, 2)} for i in range(5)]
_DIAGNOSIS = {
    "legs": {"keyword": 1, "vector": 7}, "counts": {"keyword": 168, "vector": 168}, "planted": 168,
    "deep_rank": 8, "stored": {"w2": True}, "calls": 5, "ms": 61.0, "error": None,
}  # fmt: skip
_PASSED, _LOST, _FAILED = (
    to_json(detail)
    for detail in (
        {"hits": [{**_HITS[0], "wanted": True}, *_HITS[1:]]},
        {"hits": _HITS, "diagnosis": _DIAGNOSIS},
        {"error": "HTTP 429: too many requests"},
    )
)


def _details(ids: range, one: Night) -> Iterator[tuple[int, str]]:
    for result_id, failed, passed in zip(ids, one.failed.tolist(), one.passed.tolist(), strict=True):
        yield result_id, _FAILED if failed else _PASSED if passed else _LOST


# What is said of runs, and what else happened --------------------------------------------------------------


def _verdicts(db: Database, backends: Sequence[Backend]) -> None:
    """By series: that of its last whole run, once for each of its runs."""
    names = {backend.id: backend.name for backend in backends}
    run = m.run.c
    query = sa.select(run.id, run.suite_id, run.backend_id, run.finished_at).where(run.status == "whole")
    with db.read() as connection:
        rows = connection.execute(query.order_by(run.id)).all()
    newest = {(row.suite_id, row.backend_id): row.id for row in rows if row.backend_id in names}
    said = {series: _judged(db, run_id) for series, run_id in newest.items()}
    told = [{"run_id": row.id, "at": row.finished_at, **said[row.suite_id, row.backend_id]} for row in rows]
    with db.write() as connection:
        connection.execute(m.verdict.insert(), told)


def _judged(db: Database, run_id: int) -> Mapping[str, Any]:
    record = queries.verdict_record(db, run_id)
    assert record is not None
    said = entry(run_id, judge(record))._asdict()
    return {name: said[name] for name in said if name != "run_id"}


def _operation(db: Database, dates: Sequence[datetime]) -> None:
    """A schedule that fired every night, marks, events, requests, and a collector that lives."""
    for number, at in enumerate(dates):
        if number % 7 == 0:
            writes.add_mark(db, f"agent 4.{number // 7}", at - timedelta(hours=9), "deploy")
        writes.add_event(db, "info", "collector", f"nightly: {number} nights done")
    writes.record_schedule(db, "nightly", dates[-1] + timedelta(days=1), True)
    ahead = [dates[-1] + timedelta(days=day) for day in range(1, 41)]
    writes.write_expected(db, "nightly", ahead, ahead[0])
    with db.write() as connection:
        connection.execute(m.fire.insert(), list(_fires(connection, dates)))
    writes.beat(db, "collector", 4711, "here")


def _fires(connection: sa.Connection, dates: Sequence[datetime]) -> Iterator[dict[str, Any]]:
    ids: dict[str, list[int]] = {}
    for run_id, at in connection.execute(sa.select(m.run.c.id, m.run.c.started_at)):
        ids.setdefault(at.date().isoformat(), []).append(run_id)
    for at in dates:
        done = dict.fromkeys(("scheduled_for", "due", "claimed_at", "started_at"), at)
        yield {
            **done, "schedule": "nightly", "state": "done", "token": 1, "run_ids": ids[at.date().isoformat()],
            "finished_at": at + timedelta(hours=1, minutes=10), "reason": None,
        }  # fmt: skip
