"""The collector: the process that runs the schedules and what dashboard, API and command line ask for.

Three threads of its own: the main one rereads the configuration and takes requests, a pulse says that it
lives, and one worker runs everything, one run after the other. What fails becomes an event, or the answer
to a request; the collector goes on.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from collectors import envs, policy
from collectors.calibration import calibrate
from collectors.calls import describe
from collectors.configured import load_suite, register_all, suite_names, suite_owner
from collectors.lint.noting import note
from collectors.pairs import (
    NOT_BEGUN,
    Asked,
    Done,
    Pair,
    pairs_without_whole,
    run_pair,
    scheduled_pairs,
    told,
    unknown_names,
)
from collectors.process import complain, quiet_retries, say, stop_on_signals
from collectors.pulse import Pulse
from collectors.reload import SettingsFile
from collectors.schedule import (
    DAYS_AHEAD,
    Fired,
    Worker,
    make_scheduler,
    next_fire,
    set_schedules,
    upcoming,
)
from collectors.suite import SuiteError
from store import queries, writes
from store.database import Database, open_database
from store.errors import StoreError
from store.hiding import redacted
from store.records import RequestRow
from store.sections import time_of
from store.settings import Settings, SettingsError

LOG = logging.getLogger("memtrend.collector")
SOURCE = "collector"

POLL_S = 0.5
STOP_S = 9.0
"""How long a stop waits for the run in flight to checkpoint: 10 s are promised."""
BUSY_WAIT_S = 600.0
"""How long a run waits for a backend that a run of another process holds."""
RENEW = timedelta(days=1)
"""How often the fire times ahead are written anew."""
NEVER = datetime.min.replace(tzinfo=UTC)

How = Callable[[Settings, Database, Pair, Asked, threading.Event], Done]
"""What is done with a pair: run it, or calibrate it."""


class RunRequest(BaseModel):
    """The payload of a request of kind `run`."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    suite: str
    backend: str
    trials: int = Field(1, ge=1)
    tag: str = ""
    meta: dict[str, str] = {}


def main(*, first_runs: bool = False) -> int:
    """`memtrend collect`: collect until a signal. Returns the exit code: 0 after TERM, 130 after INT."""
    quiet_retries()
    with stop_on_signals() as stop:
        return collect(stop=stop.asked, first_runs=first_runs) or stop.exit_code


def collect(
    *,
    stop: threading.Event,
    first_runs: bool = False,
    say: Callable[[str], None] = say,
) -> int:
    """Collect until `stop`. Returns 0, or 1 when another collector took over.

    `first_runs`: begin with every (suite, backend) that has no whole run, and `say` a line for each.
    Raises `SettingsError` and `SuiteError` for what is configured wrongly, `StoreError` when the record
    cannot be opened, `CollectorBusy` while another collector has it."""
    file = SettingsFile()
    url = file.settings.database.url.get_secret_value()
    with closing(open_database(url)) as db, Pulse(db, stop) as pulse:
        if not stop.is_set():
            Collector(db, file, stop, say).work(first_runs=first_runs)
        return 1 if pulse.lost else 0


class Collector:
    """What a collector does between taking its lease and giving it back."""

    def __init__(
        self,
        db: Database,
        file: SettingsFile,
        stop: threading.Event,
        say: Callable[[str], None] = say,
        busy_wait_s: float = BUSY_WAIT_S,
    ) -> None:
        self.db, self.file, self.stop, self.say = db, file, stop, say
        self.busy_wait_s = busy_wait_s
        self.worker = Worker(self._failed)
        self.scheduler = make_scheduler(self.worker, self._fired)
        self._run_stop = threading.Event()
        self._written_ahead = NEVER
        self._told: set[str] = set()

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
            except StoreError as error:  # the disk is full or the file locked: it may not be for ever
                LOG.error("memtrend collect: %s", error)
        self._end()

    def _begin(self) -> None:
        register_all(self.db, self.settings)
        writes.interrupt_stale_runs(self.db)
        for request in queries.requests(self.db, ["claimed"], limit=1000):
            writes.finish_request(
                self.db, request.id, request.run_ids, "the collector that took it died; ask again"
            )
        self._follow_schedules()
        self.scheduler.start()

    def _end(self) -> None:
        self.scheduler.shutdown(wait=False)
        self._run_stop.set()
        if not self.worker.finish(STOP_S):
            message = (
                f"a backend did not let go within {STOP_S:.0f} s; its run is left behind, and can be resumed"
            )
            writes.add_event(self.db, "warning", SOURCE, message)

    def _tick(self) -> None:
        self._reread()
        if datetime.now(UTC) - self._written_ahead > RENEW:
            self._write_ahead()
        while not self.stop.is_set() and (request := writes.claim_request(self.db)):
            self._take(request)

    # Configuration

    def _reread(self) -> None:
        """What is broken does not come into force, and is told once."""
        try:
            settings = self.file.reread()
            if settings is None:
                return
            register_all(self.db, settings)
        except (SettingsError, SuiteError) as error:
            message = f"the configuration was changed but is broken, so the former stays in force: {error}"
            writes.add_event(self.db, "error", SOURCE, message)
            return
        except StoreError:
            self.file.read_again()
            raise
        self._put_in_force(settings)

    def _put_in_force(self, settings: Settings) -> None:
        moved = settings.database.url != self.settings.database.url
        self.file.settings = settings
        self._follow_schedules()
        self.worker.put(self._lint)
        later = "; database.url is followed from the next start on" if moved else ""
        writes.add_event(self.db, "info", SOURCE, f"the changed configuration is in force{later}")

    def _follow_schedules(self) -> None:
        set_schedules(self.scheduler, self.settings.schedules, self.fire)
        self._written_ahead = NEVER  # should writing fail now, the next tick does it
        self._write_ahead()

    def _write_ahead(self) -> None:
        now = datetime.now(UTC)
        until = now + timedelta(days=DAYS_AHEAD)
        for name, section in self.settings.schedules.items():
            writes.write_expected(self.db, name, upcoming(section, now), until)
            writes.record_schedule(self.db, name, next_fire(section, now), section.enabled)
        for known in queries.schedules(self.db):
            if known.name not in self.settings.schedules:
                writes.write_expected(self.db, known.name, [], until)
                writes.record_schedule(self.db, known.name, None, enabled=False)
        self._written_ahead = now
        self.worker.put(self._clean_environments)  # as often, and when nothing runs

    def _clean_environments(self) -> None:
        of = self.settings.environments
        for name in envs.clean(time_of(of.keep), of.directory):
            told = f"environment {name} was not used for {of.keep}: removed"
            writes.add_event(self.db, "info", SOURCE, told)

    # Schedules

    def fire(self, name: str) -> None:
        """Run what a schedule names, one run after the other."""
        section = self.settings.schedules.get(name)
        if section is None:  # removed while it waited for its turn
            return
        asked = Asked(f"schedule:{name}", section.trials, wait_s=self.busy_wait_s)
        how = calibrate if section.kind == "calibration" else run_pair
        for pair in scheduled_pairs(self.settings, section):
            self._run_and_note(pair, asked, how)
        self._lint()

    def _fired(self, fired: Fired) -> None:
        try:
            self._record(fired)
        except StoreError as error:  # told on stderr, since it cannot be written down
            LOG.error("schedule %s: %s", fired.schedule, error)

    def _record(self, fired: Fired) -> None:
        if fired.problem:
            writes.add_event(self.db, "error", f"schedule:{fired.schedule}", fired.problem)
            return
        writes.record_fire(self.db, fired.schedule, fired.at)
        if section := self.settings.schedules.get(fired.schedule):
            coming = next_fire(section, datetime.now(UTC))
            writes.record_schedule(self.db, fired.schedule, coming, section.enabled)

    # Requests

    def _take(self, request: RequestRow) -> None:
        """Refuse at once; a run waits for its turn."""
        try:
            if request.kind != "run":
                raise StoreError(f"unknown kind of request {request.kind!r}; known: run")
            asked = RunRequest(**request.payload)
            self._refuse_unknown(asked)
            self.worker.put(partial(self._answer, request, asked))
        except (ValidationError, TypeError, StoreError) as error:
            writes.finish_request(self.db, request.id, [], _plain(error))

    def _refuse_unknown(self, asked: RunRequest) -> None:
        if problem := unknown_names(self.settings, Pair(asked.suite, asked.backend)):
            raise StoreError(problem)

    def _answer(self, request: RequestRow, asked: RunRequest) -> None:
        how = Asked(f"request:{request.author}", asked.trials, asked.tag, asked.meta, self.busy_wait_s)
        done = self._run(Pair(asked.suite, asked.backend), how)
        writes.finish_request(
            self.db, request.id, [done.outcome.run_id] if done.outcome else [], _unanswered(done)
        )

    # Runs

    def _first_run(self, pair: Pair) -> None:
        if not self.stop.is_set():
            done = self._run_and_note(pair, Asked("first", wait_s=self.busy_wait_s))
            self.say(told(self.db, done))

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

    def _run_and_note(self, pair: Pair, asked: Asked, how: How = run_pair) -> Done:
        done = self._run(pair, asked, how)
        if done.problem:
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
        LOG.error("memtrend collect: %s", describe(error))


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


def _as_child() -> int:
    """What `memtrend up` starts."""
    try:
        return main(first_runs=True)
    except (SettingsError, SuiteError, StoreError) as error:
        complain(f"memtrend: {redacted(str(error))}")
        return 1


if __name__ == "__main__":
    sys.exit(_as_child())
