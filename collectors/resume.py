"""Going on with a run that was interrupted: what is missing of the same questions, to the same system."""

from __future__ import annotations

import threading
from dataclasses import replace

from collectors.configured import plan, suite_names
from collectors.pairs import Asked, Done, Pair, Todo, attempted, run_pair, run_todo
from collectors.plans import Outdated, RunPlan, look_at
from collectors.sampling import Sample, sampled
from collectors.scorers import SCORER_VERSION
from store import queries
from store.database import Database
from store.settings import Settings


def go_on(
    row: queries.RunRow, settings: Settings, db: Database, pair: Pair, asked: Asked, stop: threading.Event
) -> Done:
    """Finish the run of a pair that was begun, whatever happens; or make another one where what was begun
    cannot be finished any more. `stop` is this run's alone."""

    def attempt() -> Done:
        try:
            return run_todo(resumed(settings, row), db, stop, wait_s=asked.wait_s)
        except Outdated:
            return run_pair(settings, db, pair, asked, stop)

    return attempted(settings, pair, attempt)


def resumed(settings: Settings, row: queries.RunRow) -> Todo:
    """What is missing of a run. Raises `Outdated`, since half of each would be no run."""
    if row.backend not in settings.backends or row.suite not in suite_names(settings):
        raise Outdated(f"run {row.id}: {row.suite} on {row.backend} is not configured any more")
    again = _planned_again(settings, row)
    if row.scorer != SCORER_VERSION:
        raise Outdated(
            f"run {row.id}: its first half was scored by version {row.scorer}, today's scorers are version "
            f"{SCORER_VERSION}: start a new run"
        )
    if again.suite.version != row.suite_version:
        raise Outdated(
            f"run {row.id}: suite {row.suite} has changed since ({row.suite_version} then, "
            f"{again.suite.version} now); half of each would be no run: start a new one"
        )
    return Todo(again, row.id)


def _planned_again(settings: Settings, row: queries.RunRow) -> RunPlan:
    """A look that was interrupted goes on as a look, and a sample with the cases that were drawn."""
    sample = Sample.of(row.subset)
    looks_at = queries.looked_at(row.trigger) if row.subset == queries.CONFIRM else None
    again = plan(
        settings,
        row.suite,
        row.backend,
        trials=row.trials,
        tag="" if looks_at or sample else row.subset,
        meta=row.meta,
        trigger=row.trigger,
    )
    if sample:
        return sampled(again, sample)
    return replace(look_at(again, looks_at), trials=row.trials) if looks_at else again
