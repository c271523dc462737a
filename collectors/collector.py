"""The collector: the process that runs the schedules and what dashboard, API and command line ask for.

Threads of its own: the main one rereads the configuration and takes fires and requests, a pulse says that it
lives, one worker runs everything, one run after the other, and a sender for each channel tells of alerts.
What fails becomes an event, or the answer to a request; the collector goes on.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from pydantic import ValidationError

from collectors import envs, policy
from collectors.alerting import Alerting
from collectors.budget import Allowance, allowance
from collectors.configured import load_suite, register_all, suite_names, suite_owner, undrillable
from collectors.dead_man import DeadMan
from collectors.drill import prove
from collectors.ending import for_log, running_long
from collectors.fires import Fires
from collectors.lint.noting import note
from collectors.looks import looking_at
from collectors.owed import Owed
from collectors.pairs import (
    NOT_BEGUN,
    Asked,
    Done,
    How,
    Pair,
    pairs_without_whole,
    run_pair,
    unknown_names,
)
from collectors.process import quiet_retries, stop_on_signals
from collectors.pulse import Pulse
from collectors.reload import SettingsFile
from collectors.requested import LookRequest, ProofRequest, RunRequest
from collectors.resume import go_on
from collectors.sending import Sending
from collectors.suite import SuiteError
from collectors.waiting import Waiting
from collectors.worker import Worker
from store import health_words, logs, queries, retention, writes
from store.database import Database, open_database
from store.errors import DatabaseError, RecordReplaced, StoreError
from store.queries import RunRow
from store.records import RequestRow
from store.sections import time_of
from store.settings import Settings, SettingsError

LOG = logs.get("collector")
SOURCE = health_words.COLLECTOR
REQUEST = "request"
"""The meta of a run that was asked for: by which request."""
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
        self.fires = Fires(
            db, leader, self.worker, lambda: self.settings, self.stop.is_set, self._run_scheduled
        )
        self.alerting = Alerting(db, leader)
        self.dead_man = DeadMan(db)
        self.sending = Sending(db)
        self._waiting = Waiting[int](self.allowance)  # ids of requests
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
        for request in queries.requests(self.db, ["claimed"], limit=None):
            self._take_back(request, cut_short)
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
        self._waiting.release()
        while not self.stop.is_set() and (request := self._claimed()):
            self._take(request)
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

    # Requests

    def allowance(self) -> Allowance:
        return allowance(self.settings.limits.money_per_day)

    def _take_back(self, request: RequestRow, cut_short: Sequence[int]) -> None:
        """What a collector that died had taken waits for its turn again, to be gone on with where it was
        begun; unless too many have died over it. A drill has failed by that."""
        if request.kind == "proof":
            return self._finish(request, [], writes.DIED)
        begun = self._begun(request)
        run_ids = [begun.id] if begun else []
        if begun and begun.id in cut_short:
            died = 1 + len(queries.events(self.db, levels=["warning"], source=_name(request)))
            if died >= writes.MAX_DEATHS:
                told = f"{died} collectors died over it; memtrend run --resume goes on with what was begun"
                return self._finish(request, run_ids, told)
            told = "the collector that ran it died; it is gone on with"
            writes.add_event(self.db, "warning", _name(request), told, begun.id)
        self._put_back(request, run_ids, None)

    def _claimed(self) -> RequestRow | None:
        return writes.claim_request(self.db, self.leader, self._waiting.all())

    def _take(self, request: RequestRow) -> None:
        """Refuse at once; a run waits for its turn."""
        try:
            self.worker.put(partial(self._answer, request, self._asked(request)))
        except (ValidationError, TypeError, StoreError) as error:
            self._finish(request, [], _plain(error))

    def _asked(self, request: RequestRow) -> Callable[[], None]:
        """What is to be done for it."""
        if request.kind == "look":
            return partial(self._look_asked, request, self._run_named(request))
        if request.kind == "proof":
            return partial(self._proof_asked, request, self._drilled(request))
        if request.kind != "run":
            raise StoreError(f"unknown kind of request {request.kind!r}; known: run, look, proof")
        asked = RunRequest(**request.payload)
        self._refuse_unknown(Pair(asked.suite, asked.backend))
        return partial(self._run_asked, request, asked)

    def _run_named(self, request: RequestRow) -> RunRow:
        asked = LookRequest(**request.payload)
        row = queries.run(self.db, asked.run)
        if row is None:
            raise StoreError(f"no run {asked.run} is in the record")
        return row

    def _drilled(self, request: RequestRow) -> Pair:
        pair = Pair(**ProofRequest(**request.payload).model_dump())
        self._refuse_unknown(pair)
        if problem := undrillable(self.settings, pair.backend):
            raise StoreError(problem)
        return pair

    def _refuse_unknown(self, pair: Pair) -> None:
        if problem := unknown_names(self.settings, pair):
            raise StoreError(problem)

    def _answer(self, request: RequestRow, answer: Callable[[], None]) -> None:
        """What it came to and the record refused is found out again, once it does not: a run that was made
        for it is known by it, and not made a second time."""
        try:
            answer()
        except DatabaseError as error:
            self._owed.add(partial(self._put_back, request, request.run_ids, str(error)))
            raise

    def _run_asked(self, request: RequestRow, asked: RunRequest) -> None:
        if self.stop.is_set():
            return self._put_back(request, request.run_ids, None)
        begun, allowed = self._begun(request), self.allowance()
        if begun and begun.is_over:
            return self._finish(request, [begun.id], None)
        done = self._run_for(request, asked, begun)
        run_ids = [run.id] if (run := self._begun(request)) else []
        if done.waits:
            self._waiting.add(request.id, allowed)
            return self._put_back(request, run_ids, str(done.problem))
        problem = _unanswered(done)
        if problem and self.stop.is_set():
            return self._put_back(request, run_ids, None)
        self._finish(request, run_ids, problem)

    def _run_for(self, request: RequestRow, asked: RunRequest, begun: RunRow | None) -> Done:
        meta = {**asked.meta, REQUEST: _name(request)}
        way = Asked(_trigger(request), asked.trials, asked.tag, meta=meta, wait_s=self.busy_wait_s)
        with logs.bound(request=request.id):
            how = partial(go_on, begun) if begun else run_pair
            return self._run(Pair(asked.suite, asked.backend), way, how)

    def _begun(self, request: RequestRow) -> RunRow | None:
        """The newest run that was made for a request so far: neither a collector that died nor a record that
        refused may have come to noting it."""
        suites, backends = ([str(request.payload.get(key))] for key in ("suite", "backend"))
        asked_by, name = [_trigger(request)], _name(request)
        found = queries.runs(
            self.db, suites=suites, backends=backends, triggers=asked_by, text=name, limit=None
        )
        rows = [row for row in found if row.meta.get(REQUEST) == name]
        rows += queries.runs(self.db, ids=request.run_ids, limit=None)
        return max(rows, key=lambda row: row.id, default=None)

    def _put_back(self, request: RequestRow, run_ids: Sequence[int], reason: str | None) -> None:
        writes.put_back_request(self.db, request.id, run_ids, reason, self.leader)

    def _look_asked(self, request: RequestRow, row: RunRow) -> None:
        """Of one that cannot be taken the alert tells."""
        done = self._once(request, Pair(row.suite, row.backend), "look", looking_at(row.id))
        if done and done.problem:
            self.alerting.not_looked(row.id, done.problem)
        if done:
            self._finish(request, [done.outcome.run_id] if done.outcome else [], done.problem)

    def _proof_asked(self, request: RequestRow, pair: Pair) -> None:
        if done := self._once(request, pair, "drill", prove):
            self._finish(request, [], done.problem)

    def _once(self, request: RequestRow, pair: Pair, trigger: str, how: How) -> Done | None:
        """What it came to. None: it waits for the day's money, or a stop ended it and the next collector does
        it."""
        allowed, way = self.allowance(), Asked(trigger, wait_s=self.busy_wait_s)
        with logs.bound(request=request.id):
            done = self._run(pair, way, how)
        if done.waits:
            self._waiting.add(request.id, allowed)
        if done.waits or self.stop.is_set():
            self._put_back(request, [], str(done.problem))
            return None
        return done

    def _finish(self, request: RequestRow, run_ids: Sequence[int], error: str | None) -> None:
        writes.finish_request(self.db, request.id, run_ids, error, self.leader)

    # Runs

    def _first_run(self, pair: Pair) -> None:
        allowed = self.allowance()
        if not self.stop.is_set():
            done = self._run_and_note(pair, Asked(FIRST, wait_s=self.busy_wait_s), self._first(pair))
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

    def _run_scheduled(self, pair: Pair, asked: Asked, how: How) -> Done:
        return self._run_and_note(pair, asked._replace(wait_s=self.busy_wait_s), how)

    def _run_and_note(self, pair: Pair, asked: Asked, how: How = run_pair) -> Done:
        done = self._run(pair, asked, how)
        if done.problem and (done.outcome or not done.waits):  # of one that did not begin an event tells
            run_id = done.outcome.run_id if done.outcome else None
            writes.add_event(self.db, _level(done), asked.trigger, f"{pair}: {done.problem}", run_id)
        return done

    def _run(self, pair: Pair, asked: Asked, how: How = run_pair) -> Done:
        """Each run has a stop of its own, since a cancel sets it; `_end` passes the collector's on."""
        self._run_stop = threading.Event()
        if self.stop.is_set():
            return Done(pair, None, NOT_BEGUN)
        return how(self.settings, self.db, pair, asked, self._run_stop)

    def _failed(self, error: Exception) -> None:
        """A task of the worker raised: only the record can be why."""
        LOG.error("a task failed", exc_info=error)


def _name(request: RequestRow) -> str:
    """As the API calls it."""
    return f"request-{request.id}"


def _trigger(request: RequestRow) -> str:
    return f"request:{request.author}"


def _level(done: Done) -> str:
    """What a person stopped is no problem; what lost its lease may be one."""
    outcome = done.outcome
    if done.problem == NOT_BEGUN or (outcome and outcome.reason in ("stopped", "cancelled")):
        return "info"
    return "warning" if outcome and outcome.status == "interrupted" else "error"


def _unanswered(done: Done) -> str | None:
    """Why a request failed. A run that ended, however, speaks for itself, and so does a cancelled one."""
    if done.outcome and (done.outcome.status != "interrupted" or done.outcome.reason == "cancelled"):
        return None
    return done.problem


def _plain(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
    return str(error)


if __name__ == "__main__":  # what `memtrend up` starts
    with running_long():
        code = main(first_runs=True)
    sys.exit(code)
