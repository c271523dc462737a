"""When suites run: the cron lines of the configuration become fire times.

Times are UTC. Weekdays are named (`mon`, `sat,sun`, `mon-fri`): APScheduler counts them from Monday and
cron from Sunday, so a digit would mean another day than the reader thinks.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple

from apscheduler.events import (
    EVENT_JOB_ERROR,
    EVENT_JOB_MAX_INSTANCES,
    EVENT_JOB_MISSED,
    EVENT_JOB_SUBMITTED,
    SchedulerEvent,
)
from apscheduler.executors.base import BaseExecutor, run_job
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from store.cron import cron_problem
from store.sections import ScheduleSection
from store.settings import SettingsError

DAYS_AHEAD = 40
"""How far ahead fire times are written down: what reads them notices a collector that died for a month."""


class ScheduleError(SettingsError):
    """A schedule that cannot be followed. The message says which, what is wrong, and what to write."""


# Fire times


def cron_trigger(cron: str) -> CronTrigger:
    """The trigger of a cron line of five fields, in UTC; where day of month and weekday are both given, both
    must hold. Raises `ScheduleError` for a line that is malformed, counts weekdays, or never fires."""
    if problem := cron_problem(cron):
        raise ScheduleError(f"cron: {problem}")
    try:
        trigger = CronTrigger.from_crontab(cron, timezone=UTC)
    except ValueError as error:
        raise ScheduleError("cron: a step reaches beyond its field, as */70 would in minutes") from error
    if trigger.get_next_fire_time(None, datetime.now(UTC)) is None:
        raise ScheduleError("cron: it never fires, since no month that it names has that day")
    return trigger


def check_schedules(schedules: Mapping[str, ScheduleSection]) -> None:
    """Raises `ScheduleError` naming the first schedule that cannot be followed."""
    for name, section in schedules.items():
        try:
            cron_trigger(section.cron)
        except ScheduleError as error:
            raise ScheduleError(f"schedules.{name}: {error}") from error


def upcoming(section: ScheduleSection, now: datetime, days: int = DAYS_AHEAD) -> list[datetime]:
    """Every fire time after `now` and up to `days` days later, ascending; none of a disabled schedule."""
    if not section.enabled:
        return []
    until = now + timedelta(days=days)
    return list(takewhile(lambda time: time <= until, _fire_times(cron_trigger(section.cron), now)))


def next_fire(section: ScheduleSection, now: datetime) -> datetime | None:
    """The first fire time after `now`; None for a disabled schedule."""
    return next(_fire_times(cron_trigger(section.cron), now), None) if section.enabled else None


def _fire_times(trigger: CronTrigger, now: datetime) -> Iterator[datetime]:
    after = now + timedelta(microseconds=1)
    while (time := trigger.get_next_fire_time(None, after)) is not None:
        yield time
        after = time + timedelta(microseconds=1)


# The scheduler


class Worker:
    """Tasks one after the other, in the order in which they came, on a daemon thread: a backend that hangs
    does not keep the process from ending. What a task raises goes to `on_error`."""

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._on_error = on_error
        self._idle = Event()
        Thread(target=self._work, name="memtrend-worker", daemon=True).start()

    def put(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def finish(self, timeout_s: float) -> bool:
        """Take no more, and wait until what was taken is done. False when it is not within `timeout_s`."""
        self._tasks.put(None)
        return self._idle.wait(timeout_s)

    def _work(self) -> None:
        while task := self._tasks.get():
            try:
                task()
            except Exception as error:  # noqa: BLE001  one task's failure must not take the next ones along
                self._on_error(error)
        self._idle.set()


class WorkerExecutor(BaseExecutor):  # type: ignore[misc]  # APScheduler has no types
    """Lets the scheduler's jobs run on a worker that others use, too."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:
        self._worker.put(partial(self._run, job, run_times))

    def _run(self, job: Any, run_times: list[datetime]) -> None:
        try:
            events = run_job(job, "default", run_times, self._logger.name)
        except BaseException:  # noqa: BLE001  as APScheduler's own executors do: the count of instances must fall
            self._run_job_error(job.id, *sys.exc_info()[1:])
        else:
            self._run_job_success(job.id, events)


class Fired(NamedTuple):
    """A schedule's time came. `problem` is None when its work was taken on."""

    schedule: str
    at: datetime
    problem: str | None = None


def make_scheduler(worker: Worker, on_fired: Callable[[Fired], None]) -> BackgroundScheduler:
    """A scheduler in UTC, not yet started and empty. A fire that comes late (a suspended machine) is made up
    for once; one whose predecessor still runs is skipped and told."""
    logging.getLogger("apscheduler").setLevel(logging.CRITICAL)  # what it would log is told to `on_fired`
    scheduler = BackgroundScheduler(
        timezone=UTC,
        jobstores={"default": MemoryJobStore()},
        executors={"default": WorkerExecutor(worker)},
        job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
    )
    scheduler.add_listener(
        lambda event: on_fired(_fired(event)),
        EVENT_JOB_SUBMITTED | EVENT_JOB_ERROR | EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES,
    )
    return scheduler


def _fired(event: SchedulerEvent) -> Fired:
    if event.code == EVENT_JOB_SUBMITTED:
        return Fired(event.job_id, event.scheduled_run_times[-1])
    if event.code == EVENT_JOB_MAX_INSTANCES:
        skipped = (
            "skipped, since its last fire is still at work; let it fire less often, or give it less to do"
        )
        return Fired(event.job_id, event.scheduled_run_times[-1], skipped)
    problem = "missed" if event.code == EVENT_JOB_MISSED else f"failed: {event.exception}"
    return Fired(event.job_id, event.scheduled_run_time, problem)


def set_schedules(
    scheduler: BackgroundScheduler, schedules: Mapping[str, ScheduleSection], fire: Callable[[str], None]
) -> None:
    """Let the scheduler follow these schedules and no others; `fire` is called with the schedule's name."""
    scheduler.remove_all_jobs()
    for name, section in schedules.items():
        if section.enabled:
            scheduler.add_job(fire, cron_trigger(section.cron), args=[name], id=name)
