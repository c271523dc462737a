"""A record to look at: two suites, five backends and two floors over many nights, written by `store.writes`
alone. What happens in it is made up, and made to be seen: an upgrade that breaks three cases for good, a slow
leak, a flaky case, nights without a whole run, and text that tries to be markup.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import time_machine

from store import queries, writes
from store.database import Database
from store.evidence import Verdict, drift_rollups, entry
from store.metrics import METRICS
from store.records import (
    CaseOutcome,
    CaseRecord,
    FindingRecord,
    LintRecord,
    NewControl,
    NewRun,
    Rollup,
    ScenarioOutcome,
    SuiteRecord,
)
from store.stats.intervals import wilson
from store.verdicts import judge
from tests.dashboard.facts import BACKGROUND, HOSTILE
from tests.dashboard.questions import contract, golden

METRIC_NAMES = ("pass", "recall@k", "precision@k", "mrr", "unwanted", "unwanted_first")


class Backend(NamedTuple):
    """`skill` is the share of cases that it can answer."""

    name: str
    type: str
    skill: float
    ms: float


BACKENDS = (
    Backend("keyword", "keyword", 0.71, 2.1),
    Backend("dense", "dense", 0.80, 6.4),
    Backend("hybrid", "hybrid", 0.94, 8.9),
    Backend("nothing", "nothing", 0.10, 0.1),
    Backend("everything", "everything", 0.27, 0.4),
    Backend("mem0", "mem0", 0.96, 212.0),
    Backend("notes", "ourteam.memory:Notes", 0.92, 41.0),
)


CONTROL = Backend("mem0-control", "mem0", 0.96, 205.0)
"""The frozen release that runs beside mem0 on golden, and keeps what the newer one broke."""
RELEASE = "mem0ai==2.0.0"


class World(NamedTuple):
    """What the seed was made of, for tests to ask about."""

    nights: list[datetime]
    broken: list[str]
    leaking: list[str]
    flaky: str
    invalid_run: int
    running: int | None


# Outcomes -------------------------------------------------------------------------------------------------


def _scores(passed: bool, rank: int | None, dice: random.Random) -> dict[str, float]:
    unwanted = 0.0 if passed else dice.choice((0.0, 0.2, 0.2, 0.4))
    return {
        "pass": float(passed),
        "recall@k": float(rank is not None),
        "precision@k": 0.2 if rank else 0.0,
        "mrr": 1 / rank if rank else 0.0,
        "unwanted": unwanted,
        "unwanted_first": float(not passed and unwanted > 0.2),
        "returned_tokens": float(dice.randint(40, 75)),
    }


def _outcome(
    case: CaseRecord, backend: Backend, passed: bool, dice: random.Random, told: bool
) -> CaseOutcome:
    rank = dice.choice((1, 1, 1, 2)) if passed else dice.choice((None, None, 3, 4))
    failure = (
        None
        if passed
        else ("stale fact first" if rank else dice.choice(("not stored", "stored but not returned")))
    )
    return CaseOutcome(
        case.name, 1, "ok", failure, backend.ms * dice.uniform(0.8, 1.6), 1 + (dice.random() < 0.02), 5,
        _scores(passed, rank, dice), _detail(case, rank, passed) if told else None,
    )  # fmt: skip


def _detail(case: CaseRecord, rank: int | None, passed: bool) -> dict[str, Any]:
    planted = [memory for step in case.story["steps"] for memory in step.get("plant", ())]
    texts: list[dict[str, Any]] = [
        {"id": f"b{i}", "text": text} for i, text in enumerate(BACKGROUND, start=1)
    ]
    if rank:
        texts.insert(rank - 1, {"id": "w2", "text": planted[1]["text"], "wanted": True})
    texts.insert(0 if not passed else 3, {"id": "w1", "text": planted[0]["text"], "unwanted": True})
    hits = [hit | {"score": round(0.84 - 0.06 * place, 2)} for place, hit in enumerate(texts[:5])]
    return {"hits": hits} | ({} if passed else {"diagnosis": _diagnosis(rank)})


def _diagnosis(rank: int | None) -> dict[str, Any]:
    return {
        "legs": {"keyword": 1, "vector": 7}, "counts": {"keyword": 168, "vector": 168}, "planted": 168,
        "deep_rank": rank or 8, "stored": {"w2": True}, "calls": 5, "ms": 61.0, "error": None,
    }  # fmt: skip


def _error(case: CaseRecord) -> CaseOutcome:
    return CaseOutcome(case.name, 1, "error", attempts=3, detail={"error": "HTTP 429: too many requests"})


def _rollups(suite: SuiteRecord, outcomes: Sequence[CaseOutcome]) -> list[Rollup]:
    tags = {case.name: case.tags for case in suite.cases}
    groups: dict[str, list[CaseOutcome]] = {"": list(outcomes)}
    for outcome in outcomes:
        for tag in tags[outcome.case]:
            groups.setdefault(tag, []).append(outcome)
    return [row for tag, group in groups.items() for row in _rolled(tag, group)]


def _rolled(tag: str, outcomes: Sequence[CaseOutcome]) -> Iterator[Rollup]:
    answered = [outcome for outcome in outcomes if outcome.status == "ok"]
    for metric in (*METRIC_NAMES, "returned_tokens"):
        yield _rollup(metric, tag, [outcome.scores[metric] for outcome in answered])
    yield _rollup("recall_ms", tag, [outcome.latency_ms or 0.0 for outcome in answered])
    yield _rollup("error_rate", tag, [float(outcome.status == "error") for outcome in outcomes])


def _rollup(metric: str, tag: str, values: Sequence[float]) -> Rollup:
    n = len(values)
    mean = sum(values) / n if n else 0.0
    if METRICS[metric].kind == "share":
        found = wilson(sum(values), n)
        return Rollup(metric, tag, n, mean, found.low, found.high)
    spread = (sum((value - mean) ** 2 for value in values) / max(n - 1, 1)) ** 0.5 / max(n, 1) ** 0.5
    return Rollup(metric, tag, n, mean, mean - 2 * spread, mean + 2 * spread)


# Nights ---------------------------------------------------------------------------------------------------


class Fate:
    """Which case passes on which backend in which night."""

    def __init__(self, suite: SuiteRecord, nights: int, backends: Sequence[Backend] = BACKENDS) -> None:
        self.names = [case.name for case in suite.cases]
        self.upgrade, self.leak = nights * 2 // 3, nights // 2
        able = {
            b.name: {name for name in self.names if _dice(b.name, name).random() < b.skill} for b in backends
        }
        strong = [name for name in self.names if name in able["mem0"] and name in able["notes"]]
        self.broken, self.leaking, self.flaky = (
            strong[:3],
            strong[4:10],
            strong[11] if len(strong) > 11 else strong[-1],
        )
        self.able = able

    def passes(self, backend: Backend, case: str, night: int, look: int = 0) -> bool:
        dice = _dice(backend.name, case, night, *([look] if look else []))
        if case == self.flaky and backend.type not in ("nothing", "everything"):
            return dice.random() < 0.6
        if backend.name == "mem0" and case in self.broken:
            return night < self.upgrade
        if backend.name == "notes" and case in self.leaking:
            return night < self.leak + 4 * self.leaking.index(case)
        slip = dice.random() < (0.012 if backend.skill > 0.5 else 0)
        return (case in self.able[backend.name.removesuffix("-control")]) != slip


def _dice(*seed: object) -> random.Random:
    return random.Random("/".join(map(str, seed)))


def environment(backend: Backend, night: int, nights: int) -> dict[str, Any]:
    """Packages that move on some nights: mem0's own on the night when its cases break."""
    packages = {"numpy": f"2.4.{night // 20}", "pydantic": f"2.14.{night // 27}", "streamlit": "1.67.0"}
    own: dict[str, list[str]] = {}
    if backend.name == "mem0":
        packages["mem0ai"] = "2.2.1" if night >= nights * 2 // 3 else "2.1.0"
        own["mem0ai"] = ["pydantic"]
    return {
        "python": "3.11.7",
        "os": "Linux 6.1",
        "embedder": {"name": "wordllama", "hash": "7d1f"},
        "packages": packages,
        "of_backend": own,
    }


class Teller:
    """Writes nights of runs."""

    def __init__(self, db: Database, nights: int, cases: int, hostile: bool, control: bool = False) -> None:
        self.db, self.nights, self.cases, self.hostile, self.control = db, nights, cases, hostile, control
        self.fate = {suite.name: Fate(suite, nights) for suite in (self.golden(), contract(14))}
        self.known: dict[str, int] = {}

    def golden(self, edited: bool = True) -> SuiteRecord:
        return golden(self.cases, edited=edited, hostile=self.hostile)

    def night(self, number: int, at: datetime) -> list[int]:
        edited = number >= self.nights // 3
        suites = self.golden(edited), contract(14)
        ids = []
        for minute, (suite, backend) in enumerate((s, b) for s in suites for b in BACKENDS):
            with time_machine.travel(at + timedelta(minutes=3 * minute), tick=False):
                ids.append(self.run(suite, backend, number))
        return ids

    def open(
        self, suite: SuiteRecord, backend: Backend, night: int, token: int = 1, trigger: str = "nightly",
        subset: str = "", trials: int = 1,
    ) -> int:  # fmt: skip
        return writes.open_run(self.db, self.new(suite, backend, night, token, trigger, subset, trials))

    def new(
        self, suite: SuiteRecord, backend: Backend, night: int, token: int, trigger: str, subset: str,
        trials: int,
    ) -> NewRun:  # fmt: skip
        version = self.once(suite.version, lambda: writes.register_suite(self.db, suite))
        row = self.once(
            backend.name, lambda: writes.register_backend(self.db, backend.name, backend.type, {})
        )
        content = environment(backend, night, self.nights)
        place = self.once(str(content), lambda: writes.register_environment(self.db, content))
        asked = len(suite.cases) * trials
        return NewRun(version, row, place, trigger, token, asked, 3, "1", subset=subset, trials=trials)

    def once(self, name: str, register: Callable[[], int]) -> int:
        """Registering again what has not changed is half of all the writing."""
        if name not in self.known:
            self.known[name] = register()
        return self.known[name]

    def run(self, suite: SuiteRecord, backend: Backend, night: int) -> int:
        if self.control and (suite.name, backend.name) == ("golden", "mem0"):
            new = self.new(suite, backend, night, 1, "nightly", "", 1)
            frozen = NewControl(CONTROL.name, CONTROL.type, {}, RELEASE, new.environment_id, 1)
            run_id, control_id = writes.open_pair(self.db, new, frozen)
            self.end(control_id, suite, CONTROL, night)
        else:
            run_id = self.open(suite, backend, night)
        return self.end(run_id, suite, backend, night)

    def end(self, run_id: int, suite: SuiteRecord, backend: Backend, night: int) -> int:
        status, reason = self.ending(suite.name, backend.name, night)
        outcomes = self.outcomes(suite, backend, night, status)
        if outcomes:
            writes.save_scenario(self.db, run_id, _scenario(outcomes), 1)
        rollups = _rollups(suite, outcomes) if status == "whole" else []
        with time_machine.travel(datetime.now(UTC) + timedelta(seconds=100), tick=False):
            verdict = self.judged(run_id, suite, backend, night) if status == "whole" else None
            rollups += drift_rollups(verdict) if verdict else []
            said = entry(run_id, verdict) if verdict else None
            writes.close_run(self.db, run_id, status, rollups, reason, token=1, verdict=said)
            if verdict and verdict.wants_a_look:
                self.look(run_id, suite, backend, night)
        return run_id

    def judged(
        self, run_id: int, suite: SuiteRecord, backend: Backend, night: int, closing: int | None = None
    ) -> Verdict | None:
        """Judging takes time: from the upgrade on where it brings news, elsewhere the last nights."""
        if backend.name in ("mem0", "mem0-control", "notes") and suite.name == "golden":
            first = self.fate["golden"].upgrade
        else:
            first = self.nights - (3 if suite.name == "golden" and backend.skill > 0.5 else 1)
        if night < first:
            return None
        record = queries.verdict_record(self.db, run_id, closing=closing or run_id)
        assert record is not None
        return judge(record)

    def look(self, run_id: int, suite: SuiteRecord, backend: Backend, night: int, first: int = 1) -> None:
        """Three trials more, as the runner takes them at once, and hours later where that bore it out: here
        on the nights that are looked at most."""
        trigger, trials = queries.look_trigger(run_id), range(first, first + 3)
        look = self.open(suite, backend, night, trigger=trigger, subset=queries.CONFIRM, trials=3)
        asked = [self.outcomes(suite, backend, night, "whole", trial) for trial in trials]
        for trial, outcomes in enumerate(asked, start=1):
            told = [replace(one, trial=trial) for one in outcomes]
            writes.save_scenario(self.db, look, _scenario(told, trial=trial), 1)
        with time_machine.travel(datetime.now(UTC) + timedelta(seconds=60), tick=False):
            verdict = self.judged(run_id, suite, backend, night, look)
            assert verdict is not None
            said = entry(run_id, verdict)
            writes.close_run(self.db, look, "whole", _rollups(suite, asked[0]), token=1, verdict=said)
        if verdict.stage == "suspected" and night in (self.fate["golden"].upgrade, self.nights - 1):
            with time_machine.travel(datetime.now(UTC) + timedelta(hours=1), tick=False):
                self.look(run_id, suite, backend, night, first + 3)

    def ending(self, suite: str, backend: str, night: int) -> tuple[Any, str | None]:
        if (suite, backend, night) == ("contract", "notes", self.nights - 1):
            return "invalid", "5 of 14 answers were errors (HTTP 429), more than the limit of 10 %"
        if (suite, backend, night) == ("golden", "dense", self.nights // 3):
            return "void", "recall returned NoneType, not Recall"
        if (suite, backend, night) == ("golden", "keyword", self.nights // 2):
            return "interrupted", "the process that ran it ended or lost its lease"
        return "whole", None

    def outcomes(
        self, suite: SuiteRecord, backend: Backend, night: int, status: str, look: int = 0
    ) -> list[CaseOutcome]:
        """`look` is the trial of a run that asks again, which passes or fails by itself."""
        if status == "void":
            return []
        cases = suite.cases[:20] if status == "interrupted" else suite.cases
        told = night >= self.nights - 3 or night == self.fate["golden"].upgrade - 1
        dice = _dice(suite.name, backend.name, night)
        fate = self.fate[suite.name]
        found = [
            _outcome(case, backend, fate.passes(backend, case.name, night, look), dice, told)
            for case in cases
        ]
        return [_error(case) for case in cases[:5]] + found[5:] if status == "invalid" else found


def _scenario(outcomes: Sequence[CaseOutcome], name: str = "software-0", trial: int = 1) -> ScenarioOutcome:
    return ScenarioOutcome(name, trial, "ok", 168, 310.0, 4.0, 0, 0, 0.0, 1, None, tuple(outcomes))


def seed(
    db: Database,
    *,
    nights: int = 60,
    cases: int = 40,
    end: datetime | None = None,
    running: bool = False,
    hostile: bool = True,
    control: bool = False,
) -> World:
    """Fill an empty record. The last night ends before `end` (now); `running` adds a run that is going on,
    `hostile` text that tries to be markup, `control` a frozen release beside mem0."""
    last = (end or datetime.now(UTC)).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    dates = [last - timedelta(days=nights - 1 - night) for night in range(nights)]
    teller = Teller(db, nights, cases, hostile, control)
    ids = [teller.night(number, at) for number, at in enumerate(dates)]
    _happenings(db, dates, hostile)
    fate = teller.fate["golden"]
    _decisions(db, fate.flaky, hostile)
    _lint(db, teller.golden(edited=True), hostile)
    under_way = _start_one(teller) if running else None
    return World(dates, fate.broken, fate.leaking, fate.flaky, ids[-1][-1], under_way)


def _happenings(db: Database, nights: Sequence[datetime], hostile: bool) -> None:
    third = len(nights) // 3
    writes.add_mark(db, "agent 4.12", nights[third] - timedelta(hours=9), "deploy")
    writes.add_mark(db, "mem0ai 2.1.0 → 2.2.1", nights[2 * third] - timedelta(hours=12), "upgrade")
    writes.add_mark(db, "RRF weights", nights[third // 2] - timedelta(hours=5), "intended")
    if hostile:
        writes.add_mark(db, "<b>odd</b> mark", nights[-4] - timedelta(hours=5), "mark")
    writes.record_schedule(db, "nightly", nights[-1] + timedelta(days=1), True)
    writes.write_expected(
        db,
        "nightly",
        [nights[-1] + timedelta(days=day) for day in range(1, 9)],
        nights[-1] + timedelta(days=9),
    )
    writes.beat(db, "collector", 4711, "here")


def _decisions(db: Database, flaky: str, hostile: bool) -> None:
    """What people said about the golden suite."""
    newest = queries.suite_versions(db, "golden")[0].version
    writes.explain_version(db, "golden", newest, "two ambiguous answers made plain", "priya")
    week = datetime.now(UTC) + timedelta(days=7)
    why = HOSTILE if hostile else "passes 55 % of nights"
    writes.decide_case(
        db, "golden", flaky, "quarantine", reason=why, author="priya", owner="jonas", expires=week
    )


def _lint(db: Database, golden: SuiteRecord, hostile: bool) -> None:
    """What lint found in the golden suite."""
    first = golden.cases[0].name
    version = writes.register_suite(db, golden)
    told = HOSTILE if hostile else "'\\b45\\b' also matches 'Software licences stay at 14 days' (licences)"
    hint = "Tighten the pattern."
    found = (
        FindingRecord("golden.jsonl", 412, first, "ambiguous", "error", told, hint),
        FindingRecord("golden.jsonl", 77, first, "secret", "warning", "looks like a key", hint),
    )
    writes.record_lint(
        db, version, LintRecord("1", found, asked=len(golden.cases), telling=len(golden.cases) - 5)
    )


def _start_one(teller: Teller) -> int:
    """A run that is going on, its lease held for an hour."""
    hybrid = next(backend for backend in BACKENDS if backend.name == "hybrid")
    token = writes.acquire_lease(teller.db, writes.backend_lease(hybrid.name), "seed", 3600)
    assert token is not None
    suite = teller.golden()
    run_id = teller.open(suite, hybrid, teller.nights - 1, token, "after deploy")
    done = teller.outcomes(suite, hybrid, teller.nights - 1, "interrupted")
    writes.save_scenario(teller.db, run_id, _scenario(done), token)
    return run_id
