"""A drill: a fault is put into a backend, and must be detected, confirmed and delivered as any other would.

The suite is played by the same runner, judged by the same verdict and seen by the same detection, in a record
of its own that is gone afterwards: no night of the team's, no chart and no figure ever sees it. The alert,
its messages and the receipt stand in the team's record, marked as a drill. Looks are taken at once: a drill
does not wait for hours as a true suspicion does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collectors import detection, runner
from collectors.alerting import route
from collectors.backends.faulty import FAULTS
from collectors.calls import Stopped
from collectors.configured import plan
from collectors.lease import BackendLease, InstanceBusy
from collectors.mutants import with_fault
from collectors.pairs import RETRY_S, Asked, Done, Pair, attempted
from collectors.plans import Progress, RunLimits, RunPlan
from collectors.rounds import Report
from collectors.scratch import scratch
from store import logs, queries, writes
from store.alert_life import MACHINE, STANDING_STATES, Facts, Turned, advance, close
from store.database import Database, open_database
from store.hiding import redacted
from store.settings import Settings
from store.sightings import Sighting

NAME = "@drill"
"""What the backend of a drill is called, as no backend that is configured may be."""
FAULT = "question-mark"
"""Half of a suite's questions and more are lost by it, while all that an adapter is checked for holds."""
FALLS = frozenset({"regression", "critical"})
"""Kinds of alerts that the fault must be seen as: a bar that was broken before proves nothing."""
PATIENCE_S = 60.0
"""How long a message may take: the first attempts of every channel are made by then."""
POLL_S = 0.1
NOT_PROVEN = "stopped before the drill was over; it proves nothing"
OVER = "the drill is over"
LEFT = "the drill that it is of was not finished"


class Unproven(Exception):
    """The drill came no further. Says why."""


@dataclass(slots=True)
class Receipt:
    """Seconds from the start until the fault was detected, confirmed, and delivered to every channel that
    takes drills; None for what it did not come to, and `error` says why. `seconds`: all of it."""

    detected: float | None = None
    confirmed: float | None = None
    delivered: float | None = None
    seconds: float = 0.0
    error: str | None = None


def drill_channels(settings: Settings) -> list[str]:
    return [name for name, channel in settings.channels.items() if channel.drills]


class Drill:
    """One drill on a pair. `route` is asked who is told; whoever delivers must be at work meanwhile. `fault`
    "" puts none in; `wait_s`: how long to wait for a backend that a run holds."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        pair: Pair,
        route: writes.Route,
        stop: threading.Event,
        *,
        fault: str = FAULT,
        wait_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.db, self.settings, self.pair, self.route, self.stop = db, settings, pair, route, stop
        self.fault, self.wait_s, self.clock = fault, wait_s, clock
        self.receipt = Receipt()
        self._started = clock()

    def run(self) -> Receipt:
        """Raises `InstanceBusy` while a run has the backend, and `Stopped`, with nothing kept, when it was
        stopped; all else is in the receipt."""
        with self._alone():
            self._started = self.clock()
            channels = ", ".join(drill_channels(self.settings))
            proof_id = writes.begin_proof(self.db, *self.pair, self.fault, channels)
            self._close(LEFT)
            with logs.bound(drill=proof_id):
                self.receipt.error = self._error()
            alert_id, self.receipt.seconds = self._close(OVER), self._seconds()
            if self.stop.is_set():
                writes.call_off_proof(self.db, proof_id)
                raise Stopped(NOT_PROVEN)
            told = self.receipt
            times = (told.detected, told.confirmed, told.delivered)
            writes.finish_proof(self.db, proof_id, alert_id, *times, told.error)
        return told

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One drill at a time, and none beside a run of the backend."""
        give_up = time.monotonic() + self.wait_s
        with ExitStack() as held:
            for name in (NAME, self.pair.backend):
                while True:
                    try:
                        held.enter_context(BackendLease(self.db, name, self.stop))
                        break
                    except InstanceBusy:
                        if time.monotonic() >= give_up or self.stop.wait(RETRY_S):
                            raise
            yield

    def _error(self) -> str | None:
        """In words that may leave the machine: a drill that fails is an alert."""
        try:
            self._prove()
        except Exception as error:  # noqa: BLE001  whatever breaks the path is what the drill is for
            said = str(error) if isinstance(error, Unproven) else logs.words_of(error)
            return redacted(said or type(error).__name__)
        return None

    def _prove(self) -> None:
        if not drill_channels(self.settings):
            raise Unproven("no channel takes drills; give one drills = true")
        turned = self._told(*self._seen())
        self._await_delivery(next(one.incident.id for one in turned if one.incident.id is not None))
        self.receipt.delivered = self._seconds()

    def _seconds(self) -> float:
        return self.clock() - self._started

    # Measured, in a record of its own

    def _seen(self) -> tuple[list[Sighting], Facts]:
        with (
            scratch() as (folder, _),
            closing(open_database(f"sqlite:///{folder / 'drill.db'}")) as record,
        ):
            return self._measured(record, self._plan(folder / "store"))

    def _plan(self, store: Path) -> RunPlan:
        """No store, no money, no control and no name of the team's."""
        planned = plan(self.settings, *self.pair, trigger="drill")
        if planned.suite.standing:
            raise Unproven(f"suite {self.pair.suite} reads a standing index, into which no fault is put")
        backend = replace(planned.backend, name=NAME, directory=store)
        limits = RunLimits(planned.limits.timeout_s, max_diagnoses=planned.limits.max_diagnoses)
        return replace(planned, backend=backend, control=None, limits=limits)

    def _measured(self, record: Database, healthy: RunPlan) -> tuple[list[Sighting], Facts]:
        """A night without the fault, which is all that answers which repeat are held against, and one with
        it."""
        self._ran(record, healthy)
        broken = replace(healthy, backend=with_fault(healthy.backend, self.fault)) if self.fault else healthy
        run_id = self._ran(record, broken, self._looked_again())
        found = detection.seen_in(record, self.settings, run_id)
        assert found is not None, "alerts are for whole runs of whole suites"
        seen = [one for one in found[0] if one.standing != "clear" and one.key.kind in FALLS]
        if not seen:
            raise Unproven(f"not detected: {self._what}, and {self.pair.suite} is no worse than before")
        self._detected()
        if not any(one.standing == "sure" for one in seen):
            raise Unproven(f"not confirmed: {self._what}, and the looks do not agree that it is worse")
        self.receipt.confirmed = self._seconds()
        return seen, found[1]

    def _ran(self, record: Database, planned: RunPlan, report: Report = lambda progress: None) -> int:
        outcome = runner.run(planned, record, on_progress=report, stop=self.stop)
        if outcome.status != "whole":
            why = "its adapter is broken" if outcome.status == "void" else outcome.reason
            raise Unproven(f"the drill's run on {self.pair.backend} is {outcome.status}: {why}")
        return outcome.run_id

    def _looked_again(self) -> Report:
        """A look is taken for nothing but a suspicion: it is where that was seen first."""
        runs: set[int] = set()

        def report(progress: Progress) -> None:
            runs.add(progress.run_id)
            if len(runs) > 1:
                self._detected()

        return report

    def _detected(self) -> None:
        if self.receipt.detected is None:
            self.receipt.detected = self._seconds()

    @property
    def _what(self) -> str:
        if not self.fault:
            return f"no fault was put into {self.pair.backend}"
        return f"a fault was put into {self.pair.backend} ({FAULTS[self.fault].meaning})"

    # Told, in the team's

    def _told(self, seen: Sequence[Sighting], known_of: Facts) -> list[Turned]:
        """What is known of the run, but for its id, which is of the other record."""
        facts = known_of._replace(
            at=datetime.now(UTC),
            run_id=None,
            last_good_run_id=None,
            suspects=[self._suspect()],
            suspect=NAME,
            drill=True,
        )
        return writes.turn_alerts(self.db, lambda known: advance(known, seen, facts), self.route)

    def _suspect(self) -> Mapping[str, Any]:
        told = f"for a drill {self._what}"
        names = {"name": self.fault, "old": None, "new": self.fault, "kind": "drill"}
        return {**names, "moved_before": False, "sentence": told}

    def _await_delivery(self, alert_id: int) -> None:
        give_up = self.clock() + PATIENCE_S
        while True:
            sent = queries.deliveries(self.db, alert_id=alert_id)
            off = queries.disabled_channels(self.db)
            waiting = [one for one in sent if one.state in ("queued", "claimed") and one.channel not in off]
            if not waiting or self.clock() > give_up or self.stop.wait(POLL_S):
                why = {one.channel: one.error or one.state for one in sent if one.state != "sent"}
                why |= {name: f"disabled: {one.reason}" for name, one in off.items()}
                return self._refuse_undelivered({one.channel for one in sent if one.state == "sent"}, why)

    def _refuse_undelivered(self, took: Collection[str], why: Mapping[str, str]) -> None:
        missing = [name for name in drill_channels(self.settings) if name not in took]
        if missing:
            told = [f"{name} ({why.get(name, 'was not told')})" for name in missing]
            raise Unproven(f"not delivered to channel {', '.join(told)}")

    def _close(self, reason: str) -> int | None:
        """What stands of drills, this one's or one's that was killed. Nobody is told."""
        ids = [row.id for row in queries.alerts(self.db, states=STANDING_STATES, drills=True)]
        for alert_id in ids:
            writes.act_on_alert(
                self.db, alert_id, lambda it: close(it, "resolved", MACHINE, reason), writes.nobody
            )
        return ids[0] if ids else None


def prove(settings: Settings, db: Database, pair: Pair, asked: Asked, stop: threading.Event) -> Done:
    """A drill on a pair, and what came of it, whatever happens."""

    def attempt() -> Done:
        drill = Drill(db, settings, pair, route(settings), stop, wait_s=asked.wait_s)
        return Done(pair, None, drill.run().error)

    return attempted(settings, pair, attempt)
