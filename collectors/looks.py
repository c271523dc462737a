"""One look more at a run: its questions in fresh trials, held against the same baseline."""

from __future__ import annotations

import threading

from collectors import runner
from collectors.configured import plan
from collectors.pairs import Asked, Done, How, Pair, Todo, attempted, run_todo
from collectors.plans import RunPlan, look_at
from store import queries
from store.database import Database
from store.errors import StoreError
from store.evidence import Verdict
from store.settings import Settings


def take_look(db: Database, settings: Settings, run_id: int) -> Verdict:
    """Raises `StoreError` where the run cannot be asked again: it is no whole run, its suite has changed, or
    the look itself did not end whole."""
    outcome = runner.run(planned_look(db, settings, run_id), db, stop=threading.Event())
    if outcome.verdict is None:
        raise StoreError(f"the look (run {outcome.run_id}) is {outcome.status}: {outcome.reason}")
    return outcome.verdict


def planned_look(db: Database, settings: Settings, run_id: int) -> RunPlan:
    """Raises `StoreError` where the run cannot be asked again."""
    row = queries.run(db, run_id)
    if row is None or row.status != "whole" or row.subset:
        raise StoreError(f"run {run_id} is no whole run of a whole suite: there is nothing to look at again")
    if row.backend not in settings.backends:
        raise StoreError(
            f"run {run_id}: {row.backend} is no backend that is configured, so nobody can ask it"
        )
    again = plan(settings, row.suite, row.backend, meta=row.meta)
    if again.suite.version != row.suite_version:
        raise StoreError(f"run {run_id}: suite {row.suite} has changed since; run it anew")
    return look_at(again, run_id)


def looking_at(run_id: int) -> How:
    """What a collector does with the pair of a run that it is to ask once more."""

    def look(settings: Settings, db: Database, pair: Pair, asked: Asked, stop: threading.Event) -> Done:
        def attempt() -> Done:
            return run_todo(Todo(planned_look(db, settings, run_id)), db, stop, wait_s=asked.wait_s)

        return attempted(settings, pair, attempt)

    return look
