"""What `memtrend run` does: plan, run one after the other with progress on the terminal, sum up."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from collectors.arguments import BAD, NO_ANSWER, USAGE
from collectors.configured import plan
from collectors.lease import release_those_of_the_dead
from collectors.pairs import Done, Todo, not_begun, run_todo, told
from collectors.plans import Outdated, Progress
from collectors.process import INTERRUPTED, Stop
from collectors.resume import resumed
from store import comparison_words, queries
from store.database import Database
from store.errors import StoreError
from store.settings import Settings

PLAIN_EVERY_S = 5.0


class NothingToResume(StoreError):
    """No run that was asked for is interrupted."""


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
    """The interrupted runs asked for, or the newest of each suite and backend. Raises
    `NothingToResume`, and `StoreError` when its suite has changed since."""
    release_those_of_the_dead(db)
    rows = queries.runs(
        db, suites=suites, backends=backends, statuses=["interrupted"], ids=run_ids or None, limit=1000
    )
    if run_ids:
        _refuse_compared(rows)
    rows = [
        row for row in rows if row.subset not in (queries.CALIBRATION, queries.COMPARED)
    ]  # half tells nothing
    controls = {one.name for one in queries.controls(db)}
    if run_ids:
        _refuse_controls(db, [row for row in rows if row.backend in controls])
    rows = [row for row in rows if row.backend not in controls]  # they go on with their runs
    newest = {(row.suite, row.backend): row for row in reversed(rows)}
    if not newest:
        which = f"run {run_ids[0]} is not interrupted" if run_ids else "no run is interrupted"
        raise NothingToResume(f"{which}: nothing to resume; memtrend runs lists them")
    return [resumed(settings, row) for row in newest.values()]


def _refuse_compared(rows: Sequence[queries.RunRow]) -> None:
    for row in rows:
        if row.subset == queries.COMPARED:
            raise NothingToResume(
                f"run {row.id} is a side of a comparison, which goes on with it when it is asked for again: "
                + comparison_words.again(row)
            )


def _refuse_controls(db: Database, rows: Sequence[queries.RunRow]) -> None:
    for row in rows:
        if row.control_of is None:
            raise NothingToResume(f"run {row.id} is a look at a control, and is not gone on with")
        own = queries.run(db, row.control_of)
        if own and own.status != "interrupted":
            raise NothingToResume(
                f"run {row.id} is the control of run {own.id}, which is {own.status}: it stays as it is"
            )
        raise NothingToResume(
            f"run {row.id} is the control of run {row.control_of}, which takes it along: "
            f"memtrend run --resume {row.control_of}"
        )


def run_all(db: Database, todo: Sequence[Todo], stop: Stop) -> list[Done]:
    """One after the other, until `stop` is asked for; each is told as it ends."""
    ended = []
    with progress() as show:
        for one in todo:
            if stop.asked.is_set():
                break
            done = _done(one, db, stop, show)
            if done.outcome is None and stop.asked.is_set():  # before it began, so there is nothing to tell
                break
            ended.append(done)
            show.end(told(db, done))
    return ended


def _done(one: Todo, db: Database, stop: Stop, show: Display) -> Done:
    """What cannot be finished any more is told, and keeps nothing else from it."""
    try:
        return run_todo(one, db, stop.of_the_next_run(), on_progress=show)
    except Outdated as error:
        return not_begun(one.pair, error)


def exit_code(ended: Sequence[Done], stop: Stop) -> int:
    if stop.asked.is_set():
        return INTERRUPTED
    if not ended:
        return BAD
    codes = {done.code for done in ended if done.problem}
    return next((code for code in (BAD, USAGE, NO_ANSWER) if code in codes), BAD if codes else 0)


# Progress


class Display(Protocol):
    def __call__(self, progress: Progress) -> None: ...
    def end(self, text: str) -> None: ...


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

    def end(self, text: str) -> None:
        if self.task is not None:
            self.bar.remove_task(self.task)
            self.task = None
        self.bar.console.print(text, highlight=False, markup=False)


class PlainDisplay:
    """At most a line each few seconds, and one at the end of a run."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
        self.first: Progress | None = None
        self.said = self.started = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if self.first is None:  # of a resumed run: what was answered before is no work of ours
            self.first, self.started, self.said = progress, now, now
        if now - self.said > PLAIN_EVERY_S and self.first.done < progress.done < progress.total:
            self.said = now
            rate = (progress.done - self.first.done) / (now - self.started)
            left = (progress.total - progress.done) / rate
            where = f"{progress.suite} on {progress.backend}: {progress.done}/{progress.total} cases"
            self.console.print(f"{where}, {rate:.1f} a second, {left:.0f} s left")

    def end(self, text: str) -> None:
        self.first = None
        self.console.print(text)
