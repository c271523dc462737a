"""A/A calibration: the same suite on the same backend twice in a row, so that what differs is noise."""

from __future__ import annotations

import threading
from dataclasses import replace

from collectors.configured import plan
from collectors.pairs import Asked, Done, Pair, Todo, attempted, run_todo
from store import queries
from store.database import Database
from store.settings import Settings

TRIGGER = "calibration"


def calibrate(settings: Settings, db: Database, pair: Pair, asked: Asked, stop: threading.Event) -> Done:
    """Run a pair twice, and say what came of it, whatever happens: of the second run when the first is whole.
    Neither is a night of its series. `stop` is this calibration's alone."""

    def attempt() -> Done:
        planned = plan(settings, *pair, trigger=TRIGGER, meta=asked.meta)
        limits = replace(planned.limits, max_diagnoses=0)
        once = replace(planned, subset=queries.CALIBRATION, limits=limits)
        first = run_todo(Todo(once), db, stop, wait_s=asked.wait_s)
        if first.problem or first.outcome is None:
            return first
        again = replace(once, repeats=first.outcome.run_id)
        return run_todo(Todo(again), db, stop, wait_s=asked.wait_s)

    return attempted(settings, pair, attempt)
