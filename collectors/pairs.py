"""One suite on one backend: which pairs there are, and a run of one, whose failure ends no other's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from collectors import runner
from collectors.arguments import BAD, NO_ANSWER
from collectors.budget import OverBudget
from collectors.calls import Stopped
from collectors.configured import backend_names, plan, suite_names
from collectors.lease import InstanceBusy
from collectors.plans import Outdated, Progress, RunOutcome, RunPlan
from collectors.sampling import Sample, sampled
from store import logs, queries, verdict_words
from store.database import Database
from store.errors import StoreError
from store.evidence import plain
from store.hiding import redacted
from store.sections import ScheduleSection
from store.settings import Settings

RETRY_S = 1.0
NOT_BEGUN = "stopped before this run began; ask for it again"


class Pair(NamedTuple):
    suite: str
    backend: str

    def __str__(self) -> str:
        return f"{self.suite} on {self.backend}"


class Todo(NamedTuple):
    """A run to make, or the one to finish."""

    plan: RunPlan
    resume: int | None = None

    @property
    def pair(self) -> Pair:
        return Pair(self.plan.suite.name, self.plan.backend.name)


class Asked(NamedTuple):
    """How a pair is to be run. `wait_s`: how long to wait for a backend that another run holds; `sample`: the
    cases to draw, None for all."""

    trigger: str
    trials: int = 1
    tag: str = ""
    sample: Sample | None = None
    meta: Mapping[str, str] = {}
    wait_s: float = 0.0


class Done(NamedTuple):
    """What a pair came to: a run, whole when `problem` is None, or no run at all. `waits`: nothing is wrong
    but that the day's money is not enough for it, or for the rest of it. `code`: the exit code of a command
    that ends with this problem; `quotes`: the problem may be the words of an adapter, which may hold a text
    of a memory."""

    pair: Pair
    outcome: RunOutcome | None
    problem: str | None
    waits: bool = False
    code: int = BAD
    quotes: bool = False


How = Callable[[Settings, Database, Pair, Asked, threading.Event], Done]
"""What is done with a pair: run it, or calibrate it."""


def all_pairs(settings: Settings) -> list[Pair]:
    return [Pair(suite, backend) for suite in suite_names(settings) for backend in backend_names(settings)]


def scheduled_pairs(settings: Settings, section: ScheduleSection) -> list[Pair]:
    chosen = backend_names(settings) if "*" in section.backends else section.backends
    return [Pair(suite, backend) for suite in section.suites for backend in chosen]


def pairs_without_whole(db: Database, settings: Settings) -> list[Pair]:
    """The pairs that have no whole run yet: what a first start runs."""
    whole = {(row.suite, row.backend) for row in queries.overview(db) if row.last_whole}
    return [pair for pair in all_pairs(settings) if pair not in whole]


def unknown_names(settings: Settings, pair: Pair) -> str | None:
    """What is wrong with the names of a pair, None when both are known."""
    for what, name, known in (
        ("suite", pair.suite, suite_names(settings)),
        ("backend", pair.backend, backend_names(settings)),
    ):
        if name not in known:
            return f"unknown {what} {name!r}; known: {_listed(known)}"
    return None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def run_pair(settings: Settings, db: Database, pair: Pair, asked: Asked, stop: threading.Event) -> Done:
    """Run a pair and say what it came to, whatever happens. `stop` is this run's alone: a cancel sets it."""

    def attempt() -> Done:
        planned = plan(
            settings, *pair, trials=asked.trials, trigger=asked.trigger, tag=asked.tag, meta=asked.meta
        )
        if asked.sample:
            planned = sampled(planned, asked.sample)
        return run_todo(Todo(planned), db, stop, wait_s=asked.wait_s)

    return attempted(settings, pair, attempt)


def attempted(settings: Settings, pair: Pair, attempt: Callable[[], Done]) -> Done:
    """What an attempt at a pair came to, or why there was none."""
    if problem := unknown_names(settings, pair):
        return Done(pair, None, problem)
    try:
        return attempt()
    except Exception as error:  # noqa: BLE001  a suite, an adapter or the disk may fail in any way; the next pair must not
        return not_begun(pair, error)


def not_begun(pair: Pair, error: Exception) -> Done:
    """Why there is no run."""
    code = getattr(error, "code", BAD) if isinstance(error, StoreError) else BAD
    problem = redacted(str(error)) or type(error).__name__
    return Done(pair, None, problem, isinstance(error, OverBudget), code, logs.words_of(error) is None)


def run_todo(
    todo: Todo,
    db: Database,
    stop: threading.Event,
    *,
    wait_s: float = 0.0,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Done:
    """Run, and say what it came to: neither a backend in use nor a record that refuses ends more than this
    run. `stop` is this run's alone. Raises `Outdated` for one to finish that cannot be finished any more."""
    try:
        outcome = _run_when_free(todo, db, stop, wait_s, on_progress)
    except Stopped:
        return Done(todo.pair, None, NOT_BEGUN)
    except Outdated:
        raise
    except (InstanceBusy, StoreError) as error:
        return not_begun(todo.pair, error)
    return came_to(todo.pair, outcome)


def came_to(pair: Pair, outcome: RunOutcome) -> Done:
    """What is to be said of a run that has ended."""
    code, quotes = NO_ANSWER if outcome.waits else BAD, outcome.status == "void"
    return Done(pair, outcome, _problem(outcome), outcome.waits, code, quotes)


def _run_when_free(
    todo: Todo, db: Database, stop: threading.Event, wait_s: float, on_progress: Callable[[Progress], None]
) -> RunOutcome:
    give_up = time.monotonic() + wait_s
    while True:
        try:
            return runner.run(todo.plan, db, on_progress=on_progress, stop=stop, resume=todo.resume)
        except InstanceBusy:
            if time.monotonic() >= give_up or stop.wait(RETRY_S):
                raise


def _problem(outcome: RunOutcome) -> str | None:
    if outcome.status == "whole":
        return None
    way_out = "; go on with: memtrend run --resume" if outcome.status == "interrupted" else ""
    return f"{outcome.status}: {outcome.reason}{way_out}"


def told(db: Database, done: Done) -> str:
    """One line about what a pair came to, for a person."""
    if done.outcome is None:
        return f"{done.pair}: {done.problem}"
    return _summary(db, done.outcome)


def _summary(db: Database, outcome: RunOutcome) -> str:
    row = queries.run(db, outcome.run_id)
    assert row is not None, "a run that has just ended is in the record"
    head = f"run {row.id}  {row.suite} on {row.backend}: {outcome.status}"
    rolled = row.metrics.get("pass")
    if outcome.reason or rolled is None:
        return f"{head}" + (f" ({outcome.reason})" if outcome.reason else "")
    span = f"{100 * (rolled.low or 0):.1f} to {100 * (rolled.high or 0):.1f}"
    return f"{head}, {100 * rolled.mean:.1f} % pass ({span}, n {rolled.n}){_verdict(outcome)}"


def _verdict(outcome: RunOutcome) -> str:
    """What is news: nothing where nothing changed, or nothing can be told yet."""
    if outcome.verdict is None or outcome.verdict.verdict in ("unchanged", "cannot_tell"):
        return ""
    content = plain(outcome.verdict)
    said = f"; {verdict_words.badge(content).text.upper()}: {verdict_words.evidence(content)}"
    return " ".join(filter(None, [said, verdict_words.control(content)]))
