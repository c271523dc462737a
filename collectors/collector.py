"""The collector: the process that runs the schedules and what dashboard, API and command line ask for.

Threads of its own: the main one rereads the configuration and takes fires and requests, a pulse says that it
lives, one worker runs everything, one run after the other, and a sender for each channel tells of alerts.
What fails becomes an event, or the answer to a request; the collector goes on.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from collectors import envs, policy
from collectors.alerting import Alerting
from collectors.answering import Answering
from collectors.budget import Allowance, allowance
from collectors.configured import load_suite, register_all, suite_names, suite_owner
from collectors.dead_man import DeadMan
from collectors.ending import for_log, running_long
from collectors.fires import Fires
from collectors.lint.noting import note
from collectors.owed import Owed
from collectors.pairs import NOT_BEGUN, Asked, Done, How, Pair, pairs_without_whole, run_pair
from collectors.process import quiet_retries, stop_on_signals
from collectors.pulse import Pulse
from collectors.reload import SettingsFile
from collectors.resume import go_on
from collectors.sending import Sending
from collectors.suite import SuiteError
from collectors.waiting import Waiting
from collectors.worker import Worker
from store import health_words, logs, queries, retention, writes
from store.database import Database, open_database
from store.errors import RecordReplaced, StoreError
from store.sections import time_of
from store.settings import Settings, SettingsError

LOG = logs.get("collector")
SOURCE = health_words.COLLECTOR
FIRST = "first"
"""The trigger of the runs with which `memtrend up` begins."""

POLL_S = 0.5
STOP_S = 9.0
"""How long a stop waits for the run in flight to checkpoint: 10 s are promised."""
BUSY_WAIT_S = 600.0
"""How long a run waits for a backend that a run of another process holds."""
RENEW = timedelta(days=1)
"""How often the fire times ahead are written anew."""
NEVER = datetime.min.replace(tzinfo=UTC)


class Refusal(NamedTuple):
    """Since when the record cannot be written, and why."""

    since: datetime
    reason: str


def main(*, first_runs: bool = False, stand_by: bool = False) -> int:
    """`memtrend collect`: collect until a signal. Returns the exit code: 0 after TERM, 130 after INT."""
    quiet_retries()
    with stop_on_signals() as stop:
        return collect(stop=stop.asked, first_runs=first_runs, stand_by=stand_by) or stop.exit_code


def collect(
    *,
    stop: threading.Event,
    first_runs: bool = False,
    stand_by: bool = False,
) -> int:
    """Collect until `stop`. Returns 0, or 1 when another collector took over.

    `first_runs`: begin with every (suite, backend) that has no whole run.
    `stand_by`: while another collector leads, wait to take over. Raises `SettingsError` and `SuiteError` for
    what is configured wrongly, `StoreError` when the record cannot be opened, `CollectorBusy` while another
    collector has it."""
    file = SettingsFile()
    logs.begin(file.settings.log)
    url = file.settings.database.url.get_secret_value()
    with closing(open_database(url)) as db, Pulse(db, stop, stand_by=stand_by) as pulse:
        if not stop.is_set():
            LOG.info("the collector leads")
            Collector(db, file, stop, pulse.token).work(first_runs=first_runs)
        LOG.info("the collector ends")
        return 1 if pulse.lost else 0


class Collector:
    """What a collector does between taking its lease, whose token is `leader`, and giving it back."""

    def __init__(
        self,
        db: Database,
        file: SettingsFile,
        stop: threading.Event,
        leader: int,
        busy_wait_s: float = BUSY_WAIT_S,
    ) -> None:
        self.db, self.file, self.stop, self.leader = db, file, stop, leader
        self.busy_wait_s = busy_wait_s
        self.worker = Worker(self._failed)
        self.alerting = Alerting(db, leader)
        in_force, stopping = lambda: self.settings, stop.is_set
        self.fires = Fires(db, leader, self.worker, in_force, stopping, self._run_and_note)
        self.answering = Answering(db, leader, self.worker, in_force, stopping, self._run, self.alerting)
        self.dead_man = DeadMan(db)
        self.sending = Sending(db)
        self._first_waiting = Waiting[Pair](self.allowance)
        self._run_stop = threading.Event()
        self._written_ahead = NEVER
        self._told: set[str] = set()
        self._owed = Owed(partial(writes.add_event, db, "error", SOURCE))
        self._refusal: Refusal | None = None

    @property
    def settings(self) -> Settings:
        return self.file.settings

    def work(self, *, first_runs: bool = False) -> None:
        self._begin()
        if first_runs:
            for pair in pairs_without_whole(self.db, self.settings):
                self.worker.put(partial(self._first_run, pair))
        self.worker.put(self._lint)
        while not self.stop.wait(POLL_S):
            try:
                self._tick()
                self._accepted()
                self.dead_man.tick(self.settings.alerts.dead_man_url)
            except RecordReplaced:  # all that this one knows is of another record
                raise
            except writes.Deposed:  # the pulse sees it at its next beat, and stops this one
                LOG.warning("another collector leads")
                self.stop.wait()
            except StoreError as error:  # the disk is full or the file locked: it may not be for ever
                self._refused(error)
        self._end()

    def _refused(self, error: StoreError) -> None:
        """Told once: it may last for days."""
        if self._refusal is None:
            LOG.error("the record refuses", reason=str(error))
            self._refusal = Refusal(datetime.now(UTC), str(error))

    def _accepted(self) -> None:
        if self._refusal is not None:
            told = f"nothing could be recorded since {self._refusal.since:%Y-%m-%d %H:%M:%S} UTC: "
            writes.add_event(self.db, "error", SOURCE, told + self._refusal.reason)
            LOG.info("the record can be written again")
            self._refusal = None

    def _begin(self) -> None:
        register_all(self.db, self.settings)
        if kind := self.db.dialect.shared_by():
            told = f"the record lies on a network file system ({kind}): memtrend doctor says why it must not"
            self._complain([told])
        cut_short = writes.interrupt_stale_runs(self.db)
        writes.take_back_from_the_dead(self.db, self.leader)
        self.answering.take_back(cut_short)
        self._follow_schedules()

    def _end(self) -> None:
        self._run_stop.set()
        if not self.worker.finish(STOP_S):
            message = (
                f"a backend did not let go within {STOP_S:.0f} s; its run is left behind, and can be resumed"
            )
            writes.add_event(self.db, "warning", SOURCE, message)
        self.fires.end()
        self.sending.end()
        self.dead_man.end()

    def _tick(self) -> None:
        self._reread()
        self._owed.pay()
        now = datetime.now(UTC)
        self.fires.take(now)
        if abs(now - self._written_ahead) > RENEW:
            self._follow_schedules()
        for pair in self._first_waiting.release():
            self.worker.put(partial(self._first_run, pair))
        self.answering.take()
        self.sending.follow(self.settings.channels)
        self.alerting.tick(self.settings, now)

    # Configuration

    def _reread(self) -> None:
        """What is broken does not come into force, and is told once."""
        try:
            settings = self.file.reread()
            if settings is None:
                return
            register_all(self.db, settings)
        except (SettingsError, SuiteError) as error:
            message = f"{health_words.BROKEN}, so the former stays in force: {error}"
            self._owed.add(partial(writes.add_event, self.db, "error", SOURCE, message))
            LOG.error("the changed configuration is broken, so the former stays in force", why=for_log(error))
            return
        except StoreError:
            self.file.read_again()
            raise
        self._put_in_force(settings)

    def _put_in_force(self, settings: Settings) -> None:
        moved = settings.database.url != self.settings.database.url
        self.file.settings = settings
        logs.begin(settings.log)
        LOG.info("the changed configuration is in force")
        self._follow_schedules()
        self.worker.put(self._lint)
        later = "; database.url is followed from the next start on" if moved else ""
        writes.add_event(self.db, "info", SOURCE, f"{health_words.IN_FORCE}{later}")

    def _follow_schedules(self) -> None:
        self._written_ahead = NEVER  # should writing fail now, the next tick does it
        now = datetime.now(UTC)
        self.fires.expect(now)
        self._written_ahead = now
        self.worker.put(self._clean_environments)  # as often, and when nothing runs
        self.worker.put(self._prune)

    def _clean_environments(self) -> None:
        of = self.settings.environments
        for name in envs.clean(time_of(of.keep), of.directory):
            told = f"environment {name} was not used for {of.keep}: removed"
            writes.add_event(self.db, "info", SOURCE, told)

    def _prune(self) -> None:
        """A run at a time, so that a stop need not wait; what is left is removed the next day."""
        if told := retention.told(retention.prune(self.db, self.settings.retention, self.stop)):
            writes.add_event(self.db, "info", SOURCE, told)

    # Runs

    def allowance(self) -> Allowance:
        return allowance(self.settings.limits.money_per_day)

    def _first_run(self, pair: Pair) -> None:
        allowed = self.allowance()
        if not self.stop.is_set():
            done = self._run_and_note(pair, Asked(FIRST), self._first(pair))
            if done.waits:
                self._first_waiting.add(pair, allowed)

    def _first(self, pair: Pair) -> How:
        """What an earlier start did not finish is gone on with."""
        last = queries.runs(self.db, suites=[pair.suite], backends=[pair.backend], triggers=[FIRST], limit=1)
        unfinished = [row for row in last if row.status == "interrupted" and not row.cancelled]
        return partial(go_on, unfinished[0]) if unfinished else run_pair

    def _lint(self) -> None:
        """What is wrong with the suites in force, for the Suites page, and what nobody accounted for."""
        for name in suite_names(self.settings):
            if not self.stop.is_set():
                self._complain(self._complaints(name))

    def _complaints(self, suite: str) -> list[str]:
        try:
            note(self.db, load_suite(self.settings, suite), suite_owner(self.settings, suite))
            return policy.complaints(self.db, self.settings, [suite])
        except SuiteError as error:
            return [f"suite {suite} cannot be loaded: {error}"]

    def _complain(self, lines: Sequence[str]) -> None:
        """Each once: they stand until somebody acts."""
        for line in lines:
            if line not in self._told:
                self._told.add(line)
                writes.add_event(self.db, "warning", SOURCE, line)

    def _run_and_note(self, pair: Pair, asked: Asked, how: How) -> Done:
        done = self._run(pair, asked, how)
        if done.problem and (done.outcome or not done.waits):  # of one that did not begin an event tells
            run_id = done.outcome.run_id if done.outcome else None
            writes.add_event(self.db, _level(done), asked.trigger, f"{pair}: {done.problem}", run_id)
        return done

    def _run(self, pair: Pair, asked: Asked, how: How) -> Done:
        """Each run has a stop of its own, since a cancel sets it; `_end` passes the collector's on."""
        self._run_stop = threading.Event()
        if self.stop.is_set():
            return Done(pair, None, NOT_BEGUN)
        patient = asked._replace(wait_s=self.busy_wait_s)
        return how(self.settings, self.db, pair, patient, self._run_stop)

    def _failed(self, error: Exception) -> None:
        """A task of the worker raised: only the record can be why."""
        LOG.error("a task failed", exc_info=error)


def _level(done: Done) -> str:
    """What a person stopped is no problem; what lost its lease may be one."""
    outcome = done.outcome
    if done.problem == NOT_BEGUN or (outcome and outcome.reason in ("stopped", "cancelled")):
        return "info"
    return "warning" if outcome and outcome.status == "interrupted" else "error"


if __name__ == "__main__":  # what `memtrend up` starts
    with running_long():
        code = main(first_runs=True)
    sys.exit(code)
