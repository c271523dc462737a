"""Fires of schedules: expected ahead of time, taken once they are due, and run one after the other.

The record is the scheduler: whoever leads asks it what is due and not taken, at a start as at any other
moment, so a machine that slept, a collector that died and a clock that jumped are all the same case.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from typing import NamedTuple

from collectors.budget import Allowance, allowance
from collectors.calibration import calibrate
from collectors.drill import prove
from collectors.owed import Owed
from collectors.pairs import Asked, Done, How, Pair, came_to, run_pair, scheduled_pairs
from collectors.plans import RunOutcome
from collectors.resume import go_on
from collectors.sampling import Sample
from collectors.schedule import DAYS_AHEAD, next_fire, upcoming
from collectors.waiting import Waiting
from collectors.worker import Worker
from store import health_words, logs, queries, writes
from store.changes import SCHEDULED_FOR
from store.cron import GRACE
from store.database import Database
from store.errors import DatabaseError, StoreError
from store.queries import DueRow, RunRow
from store.sections import ScheduleSection, time_of
from store.settings import Settings

LOG = logs.get("collector")
Run = Callable[[Pair, Asked, How], Done]
"""Runs a pair and notes what went wrong."""
HOW: Mapping[str, How] = {"run": run_pair, "calibration": calibrate, "proof": prove}
AT_WORK = "the last fire is still at work; let it fire less often, or give it less to do"
SHORT_OF_MONEY = "the last fire still waits for the day's money"
GONE = "the schedule is not in force any more"


class PassedOver(NamedTuple):
    """Why a fire is not run. state: skipped or missed."""

    state: writes.PassedOver
    reason: str


class Fires:
    """What the leader does about schedules. `leader` is its fencing token; `settings` gives what is in
    force, `stopping` whether to begin nothing more."""

    def __init__(
        self,
        db: Database,
        leader: int,
        worker: Worker,
        settings: Callable[[], Settings],
        stopping: Callable[[], bool],
        run: Run,
    ) -> None:
        self.db, self.leader, self.worker = db, leader, worker
        self.settings, self.stopping, self.run = settings, stopping, run
        self._at_work: list[str] = []
        self._waiting = Waiting[DueRow](self.allowance)
        self._owed = Owed(partial(writes.add_event, db, "error", health_words.COLLECTOR))

    def expect(self, now: datetime) -> None:
        """Write down what should fire in the next 40 days, by the schedules in force and no others."""
        schedules, until = self.settings().schedules, now + timedelta(days=DAYS_AHEAD)
        for name, section in schedules.items():
            times, jitter = upcoming(section, now), time_of(section.jitter)
            writes.write_expected(self.db, name, times, until, jitter, since=now, leader=self.leader)
            self._record(name, next_fire(section, now), enabled=section.enabled)
        for known in queries.schedules(self.db):
            if known.name not in schedules:
                writes.write_expected(self.db, known.name, [], until, leader=self.leader)
                self._record(known.name, None, enabled=False)

    def _record(self, name: str, following: datetime | None, *, enabled: bool) -> None:
        writes.record_schedule(self.db, name, following, enabled, leader=self.leader)

    def take(self, now: datetime) -> None:
        """Take what is due. Of several fires of a schedule the newest is run, at most; before it the newest
        of those that a collector had begun is gone on with. Raises `writes.Deposed` once another collector
        leads."""
        self._owed.pay()
        self._release()
        at_work = dict.fromkeys(self._at_work, AT_WORK)
        at_work |= {fire.schedule: SHORT_OF_MONEY for fire in self._waiting.all()}
        for (name, _), due in groupby(queries.due_fires(self.db, now), key=_alike):
            self._take(name, list(due), now, at_work)

    def allowance(self) -> Allowance:
        return allowance(self.settings().limits.money_per_day)

    def _release(self) -> None:
        """Go on with what waited for another day's money."""
        for fire in self._waiting.release():
            self._put(fire)

    def _put(self, fire: DueRow) -> None:
        self._at_work.append(fire.schedule)
        self.worker.put(partial(self._work, fire))

    def end(self) -> None:
        """Leave what waits for the day's money to the next leader, who takes back what cannot be written."""
        for fire in self._waiting.all():
            with suppress(StoreError):
                writes.give_back(self.db, *fire[:2], self.leader)

    def _take(self, name: str, due: Sequence[DueRow], now: datetime, at_work: Mapping[str, str]) -> None:
        section, newest = self._in_force(name), due[-1]
        if section is None:
            return self._pass_over(due, PassedOver("skipped", GONE))
        if over := _passed_over(section, newest, now, at_work):
            return self._pass_over(due, over)
        if older := due[:-1]:
            made_up = f"no collector ran; that of {newest.scheduled_for:%Y-%m-%d %H:%M} UTC makes up for it"
            self._pass_over(older, PassedOver("missed", made_up))
        if writes.claim_fire(self.db, name, newest.scheduled_for, self.leader):
            self._put(newest)  # before all else that may fail: what is claimed and not at work is lost
            self._record(name, next_fire(section, now), enabled=section.enabled)

    def _in_force(self, name: str) -> ScheduleSection | None:
        section = self.settings().schedules.get(name)
        return section if section and section.enabled else None

    def _pass_over(self, fires: Sequence[DueRow], over: PassedOver) -> None:
        times = [fire.scheduled_for for fire in fires]
        writes.pass_over(self.db, fires[0].schedule, times, *over, self.leader)
        level = logging.ERROR if over.state == "missed" else logging.WARNING
        LOG.log(level, f"a fire was {over.state}", schedule=fires[0].schedule, reason=over.reason)

    # On the worker

    def _work(self, fire: DueRow) -> None:
        """What it came to and the record refused is found out again, once it does not: the fire is given
        back, and gone on with."""
        try:
            with logs.bound(schedule=fire.schedule):
                self._begin(fire, datetime.now(UTC))
        except DatabaseError:
            self._owed.add(partial(writes.give_back, self.db, *fire[:2], self.leader))
            raise
        finally:
            self._at_work.remove(fire.schedule)

    def _begin(self, fire: DueRow, now: datetime) -> None:
        section = self._in_force(fire.schedule)
        if self.stopping():
            return writes.give_back(self.db, *fire[:2], self.leader)
        if section is None:
            return writes.finish_fire(self.db, *fire[:2], "skipped", GONE, self.leader)
        if not fire.begun and (over := _after_window(section, fire, now)):
            return writes.finish_fire(self.db, *fire[:2], *over, self.leader)
        late = now > fire.due + GRACE and not fire.begun
        writes.start_fire(self.db, *fire[:2], self.leader, late=late)
        allowed, ended = self.allowance(), self._run_pairs(section, fire)
        problems = [f"{done.pair}: {done.problem}" for done in ended if done.problem]
        if problems and self.stopping():
            return writes.give_back(self.db, *fire[:2], self.leader)
        if any(done.waits for done in ended):
            return self._hold(fire, ended, allowed)
        state: writes.Closed = "failed" if problems else "done"
        writes.finish_fire(self.db, *fire[:2], state, _summed_up(problems), self.leader)

    def _hold(self, fire: DueRow, ended: Sequence[Done], allowed: Allowance) -> None:
        """The day's money is not enough for all of it: what is missing waits, and holds up no other. It waits
        once that is written: refused, the fire is given back, and would hold up itself."""
        begun = any(done.outcome for done in ended)
        reason = next(f"{done.pair}: {done.problem}" for done in ended if done.waits)
        writes.hold_fire(self.db, *fire[:2], reason, self.leader, begun=begun)
        self._waiting.add(fire._replace(begun=begun), allowed)

    def _run_pairs(self, section: ScheduleSection, fire: DueRow) -> list[Done]:
        how = HOW[section.kind]
        asked, run_ids, ended = asked_of(section, fire), list[int](), list[Done]()
        begun = self._begun(fire, asked)
        for pair in scheduled_pairs(self.settings(), section):
            done = self._run_pair(pair, asked, how, begun.get(pair))
            if done.outcome:
                run_ids.append(done.outcome.run_id)
                writes.note_runs(self.db, *fire[:2], run_ids, self.leader)
            ended.append(done)
        return ended

    def _run_pair(self, pair: Pair, asked: Asked, how: How, begun: RunRow | None) -> Done:
        """A run that has ended counts, and what a person cancelled stays so."""
        if begun is None:
            return self.run(pair, asked, how)
        if begun.is_over:
            return came_to(pair, RunOutcome(begun.id, begun.status, begun.reason))
        return self.run(pair, asked, how if begun.subset == queries.CALIBRATION else partial(go_on, begun))

    def _begun(self, fire: DueRow, asked: Asked) -> dict[Pair, RunRow]:
        """The newest run of each pair that the fire has made so far: a collector that died may not have come
        to noting it."""
        if not fire.begun:
            return {}
        found = queries.runs(self.db, triggers=[asked.trigger], since=fire.scheduled_for, limit=None)
        rows = [row for row in found if row.meta == asked.meta]
        rows += queries.runs(self.db, ids=fire.run_ids, limit=None)
        return {Pair(row.suite, row.backend): row for row in sorted(rows, key=lambda row: row.id)}


def asked_of(section: ScheduleSection, fire: DueRow) -> Asked:
    """How a fire's pairs are run: its time stands in each run, and is the seed of the cases drawn."""
    at = f"{fire.scheduled_for:%Y-%m-%dT%H:%MZ}"
    sample = Sample(str(section.subset), f"{fire.schedule} {at}") if section.subset else None
    trigger = f"schedule:{fire.schedule}"
    return Asked(trigger, section.trials, sample=sample, meta={SCHEDULED_FOR: at})


def _alike(fire: DueRow) -> tuple[str, bool]:
    """The schedule, and whether it was not begun."""
    return fire.schedule, not fire.begun


def _passed_over(
    section: ScheduleSection, fire: DueRow, now: datetime, at_work: Mapping[str, str]
) -> PassedOver | None:
    if busy := at_work.get(fire.schedule):
        return PassedOver("skipped", busy)
    if over := _after_window(section, fire, now):
        return over
    if section.catch_up == "none" and now > fire.due + GRACE:
        return PassedOver("missed", "no collector ran, and catch_up is none")
    return None


def _after_window(section: ScheduleSection, fire: DueRow, now: datetime) -> PassedOver | None:
    if section.window and now > fire.scheduled_for + time_of(section.window):
        return PassedOver("missed", f"it could not begin within its window of {section.window}")
    return None


def _summed_up(problems: Sequence[str]) -> str | None:
    """The first one, and how many more there are: each has an event of its own."""
    more = f"; and {len(problems) - 1} more" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else None
