"""What `memtrend run` does: plan, run one after the other with progress on the terminal, sum up."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from collectors.calls import Stopped
from collectors.configured import plan, suite_names
from collectors.lease import release_those_of_the_dead
from collectors.runner import Progress, RunOutcome, RunPlan, run
from collectors.scorers import SCORER_VERSION
from store import queries
from store.database import Database
from store.errors import StoreError
from store.settings import Settings

PLAIN_EVERY_S = 5.0


class Todo(NamedTuple):
    plan: RunPlan
    resume: int | None = None


class Stop:
    """Asked for, it ends the run going on and those to come, while a cancel ends a run alone."""

    def __init__(self) -> None:
        self.asked = False
        self._run = threading.Event()

    def ask(self) -> None:
        self.asked = True
        self._run.set()

    def of_the_next_run(self) -> threading.Event:
        self._run = threading.Event()
        if self.asked:
            self._run.set()
        return self._run


def planned(
    settings: Settings,
    suites: Sequence[str],
    backends: Sequence[str],
    *,
    trials: int = 1,
    tag: str = "",
    meta: Mapping[str, str] | None = None,
    trigger: str = "cli",
) -> list[Todo]:
    """Every suite on every backend."""
    return [
        Todo(plan(settings, suite, backend, trials=trials, tag=tag, meta=meta, trigger=trigger))
        for suite in suites
        for backend in backends
    ]


def interrupted(
    db: Database,
    settings: Settings,
    run_ids: Sequence[int] = (),
    suites: Sequence[str] | None = None,
    backends: Sequence[str] | None = None,
) -> list[Todo]:
    """The interrupted runs asked for, or the newest of each suite and backend. Raises `StoreError` when
    there is none, or when its suite has changed since."""
    release_those_of_the_dead(db)
    rows = queries.runs(
        db, suites=suites, backends=backends, statuses=["interrupted"], ids=run_ids or None, limit=1000
    )
    newest = {(row.suite, row.backend): row for row in reversed(rows)}
    if not newest:
        which = f"run {run_ids[0]} is not interrupted" if run_ids else "no run is interrupted"
        raise StoreError(f"{which}: nothing to resume; memtrend runs lists them")
    return [_resumed(settings, row) for row in newest.values()]


def _resumed(settings: Settings, row: queries.RunRow) -> Todo:
    if row.backend not in settings.backends or row.suite not in suite_names(settings):
        raise StoreError(f"run {row.id}: {row.suite} on {row.backend} is not configured any more")
    again = plan(
        settings,
        row.suite,
        row.backend,
        trials=row.trials,
        tag=row.subset,
        meta=row.meta,
        trigger=row.trigger,
    )
    if row.scorer != SCORER_VERSION:
        raise StoreError(
            f"run {row.id}: its first half was scored by version {row.scorer}, today's scorers are version "
            f"{SCORER_VERSION}: start a new run"
        )
    if again.suite.version != row.suite_version:
        raise StoreError(
            f"run {row.id}: suite {row.suite} has changed since ({row.suite_version} then, "
            f"{again.suite.version} now); half of each would be no run: start a new one"
        )
    return Todo(again, row.id)


def run_all(db: Database, todo: Sequence[Todo], stop: Stop) -> list[RunOutcome]:
    """One after the other, until `stop` is asked for. Raises `InstanceBusy`."""
    outcomes = []
    with progress() as show:
        for one in todo:
            if stop.asked:
                break
            try:
                event = stop.of_the_next_run()
                outcome = run(one.plan, db, on_progress=show, stop=event, resume=one.resume)
            except Stopped:
                if stop.asked:  # before it began, so there is nothing to tell
                    break
                raise
            outcomes.append(outcome)
            show.end(outcome, summary(db, outcome))
    return outcomes


def summary(db: Database, outcome: RunOutcome) -> str:
    """One line about a run that has ended."""
    row = queries.run(db, outcome.run_id)
    assert row is not None, "a run that has just ended is in the record"
    head = f"run {row.id}  {row.suite} on {row.backend}: {outcome.status}"
    rolled = row.metrics.get("pass")
    if outcome.reason or rolled is None:
        return f"{head}" + (f" ({outcome.reason})" if outcome.reason else "")
    span = f"{100 * (rolled.low or 0):.1f} to {100 * (rolled.high or 0):.1f}"
    return f"{head}, {100 * rolled.mean:.1f} % pass ({span}, n {rolled.n})"


def exit_code(outcomes: Sequence[RunOutcome], stopped: bool) -> int:
    if stopped:
        return 130
    return 0 if outcomes and all(outcome.status == "whole" for outcome in outcomes) else 1


# Progress


class Display(Protocol):
    def __call__(self, progress: Progress) -> None: ...
    def end(self, outcome: RunOutcome, text: str) -> None: ...


@contextmanager
def progress() -> Iterator[Display]:
    """A bar on a terminal, else plain lines; on stderr either way."""
    if not sys.stderr.isatty():
        yield PlainDisplay()
        return
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        yield BarDisplay(bar)


class BarDisplay:
    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.task: TaskID | None = None

    def __call__(self, progress: Progress) -> None:
        if self.task is None:
            title = f"{progress.suite} on {progress.backend}"
            self.task = self.bar.add_task(title, total=progress.total, completed=progress.done, rate="")
        errors = f"  {progress.errors} errors" if progress.errors else ""
        rate = f"{self.bar.tasks[-1].speed or 0:.0f} cases/s{errors}"
        self.bar.update(self.task, completed=progress.done, rate=rate)

    def end(self, outcome: RunOutcome, text: str) -> None:
        if self.task is not None:
            self.bar.remove_task(self.task)
            self.task = None
        self.bar.console.print(text, highlight=False, markup=False)


class PlainDisplay:
    """At most a line each few seconds, and one at the end of a run."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
        self.said = self.started = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.done == 0:
            self.started = self.said = now
        if now - self.said > PLAIN_EVERY_S and 0 < progress.done < progress.total:
            self.said = now
            rate = progress.done / (now - self.started)
            left = (progress.total - progress.done) / rate
            where = f"{progress.suite} on {progress.backend}: {progress.done}/{progress.total} cases"
            self.console.print(f"{where}, {rate:.1f} a second, {left:.0f} s left")

    def end(self, outcome: RunOutcome, text: str) -> None:
        self.console.print(text)
