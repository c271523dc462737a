"""A/A calibration: the same suite on the same backend twice in a row, so that what differs is noise."""

from __future__ import annotations

import threading
from dataclasses import replace

from collectors.budget import refuse_beyond
from collectors.configured import plan
from collectors.pairs import Asked, Done, Pair, Todo, attempted, run_todo
from store import queries
from store.database import Database
from store.settings import Settings

TRIGGER = "calibration"


def calibrate(settings: Settings, db: Database, pair: Pair, asked: Asked, stop: threading.Event) -> Done:
    """Run a pair twice, and say what came of it, whatever happens: of the second run when the first is whole.
    Neither is a night of its series. Neither begins before the day's money is enough for both. `stop` is this
    calibration's alone."""

    def attempt() -> Done:
        planned = plan(settings, *pair, trigger=TRIGGER, meta=asked.meta)
        limits = replace(planned.limits, max_diagnoses=0)
        once = replace(planned, subset=queries.CALIBRATION, limits=limits)
        refuse_beyond(db, [once, once])
        first = run_todo(Todo(once), db, stop, wait_s=asked.wait_s)
        if first.problem or first.outcome is None:
            return _ended(first)
        again = replace(once, repeats=first.outcome.run_id)
        return _ended(run_todo(Todo(again), db, stop, wait_s=asked.wait_s))

    return attempted(settings, pair, attempt)


def _ended(done: Done) -> Done:
    """Half a calibration is not gone on with, and another one would be as dear: it waits for no money."""
    return done._replace(waits=False)
