"""Schedules: from cron lines to fire times, and what happens when a time comes."""

import threading
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from apscheduler.triggers.cron import CronTrigger

from collectors.schedule import (
    Fired,
    ScheduleError,
    Worker,
    check_schedules,
    cron_trigger,
    make_scheduler,
    next_fire,
    set_schedules,
    upcoming,
)

WEDNESDAY = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WAIT_S = 20.0


def section(cron: str = "0 3 * * *", enabled: bool = True):
    """A schedule as far as fire times go: not every cron line here gets through the settings."""
    return SimpleNamespace(cron=cron, enabled=enabled)


# Fire times


def test_a_nightly_schedule_is_written_ahead_for_forty_days():
    """Every night of the next 40 days is expected once, and nothing else."""
    times = upcoming(section(), WEDNESDAY)
    first = datetime(2026, 3, 5, 3, 0, tzinfo=UTC)
    assert times == [first + timedelta(days=day) for day in range(40)]


def test_bounds():
    """What fires this very moment is past; what fires at the end of the span still belongs to it."""
    at_three = WEDNESDAY.replace(hour=3)
    assert upcoming(section(), at_three, days=1) == [at_three + timedelta(days=1)]


@pytest.mark.parametrize(("number", "name"), list(enumerate(DAYS)))
def test_a_named_weekday_is_that_weekday(number, name):
    """`sun` is Sunday, whatever number a scheduler gives it."""
    times = upcoming(section(f"0 9 * * {name}"), WEDNESDAY)
    assert {time.weekday() for time in times} == {number}
    assert len(times) in (5, 6)


def test_ranges_and_lists_of_weekdays():
    """Workdays are Monday to Friday; a list is exactly its days."""
    assert {time.weekday() for time in upcoming(section("0 9 * * mon-fri"), WEDNESDAY)} == {0, 1, 2, 3, 4}
    assert {time.weekday() for time in upcoming(section("0 9 * * sat,sun"), WEDNESDAY)} == {5, 6}


@pytest.mark.parametrize("weekday", ["0", "7", "1-5", "sun,1", "*/2"])
def test_counted_weekdays_are_refused(weekday):
    """A digit would mean another day than in cron, so it is refused with the names to write instead."""
    with pytest.raises(ScheduleError, match="mon, tue, wed, thu, fri, sat, sun"):
        cron_trigger(f"0 9 * * {weekday}")


def test_the_trap_that_counted_weekdays_are_refused_for():
    """The library's 0 is Monday: should it ever become Sunday as in cron, the refusal can go."""
    assert (
        CronTrigger.from_crontab("0 9 * * 0", timezone=UTC).get_next_fire_time(None, WEDNESDAY).weekday() == 0
    )


@pytest.mark.parametrize(
    ("cron", "part"),
    [
        ("0 25 * * *", "hour: "),
        ("0 3 * * someday", "weekday: "),
        ("*/90 3 * * *", "a step reaches beyond its field"),
        ("0 3 * *", "4 fields instead of five"),
        ("@daily", "minute hour day month weekday"),
    ],
)
def test_a_malformed_line_says_where(cron, part):
    """The message names the field at fault and what may stand there, never what stood there."""
    with pytest.raises(ScheduleError, match=f"cron: .*{part}") as caught:
        cron_trigger(cron)
    assert not {"25", "someday", "*/90", "@daily"} & set(str(caught.value).replace(",", " ").split())


def test_a_schedule_that_never_fires_is_refused():
    """The 30th of February is noticed when it is written, not when a month without runs has passed."""
    with pytest.raises(ScheduleError, match="never fires"):
        cron_trigger("0 3 30 2 *")


def test_the_schedule_at_fault_is_named():
    """Of several schedules, the message names the one that cannot be followed."""
    with pytest.raises(ScheduleError, match=r"schedules\.weekly: "):
        check_schedules({"nightly": section(), "weekly": section("0 3 * * 6")})


def test_a_disabled_schedule_is_not_expected():
    """What will not run is not missed."""
    assert upcoming(section(enabled=False), WEDNESDAY) == []
    assert next_fire(section(enabled=False), WEDNESDAY) is None


def test_clock_changes_move_nothing(monkeypatch):
    """On a machine whose clocks change, a nightly run still comes once a day, at the same UTC."""
    monkeypatch.setattr("apscheduler.triggers.cron.get_localzone", lambda: ZoneInfo("Europe/Berlin"))
    times = upcoming(section("30 0 * * *"), datetime(2026, 10, 24, 12, tzinfo=UTC), days=3)
    assert times == [datetime(2026, 10, day, 0, 30, tzinfo=UTC) for day in (25, 26, 27)]


# The worker


class Told:
    """What was told, in order; waits for it."""

    def __init__(self):
        self.queue = SimpleQueue()

    def __call__(self, thing):
        self.queue.put(thing)

    def next(self):
        return self.queue.get(timeout=WAIT_S)

    def silent(self):
        try:
            return self.queue.get_nowait()
        except Empty:
            return None


def test_tasks_run_one_after_the_other_in_their_order():
    """A task begins when the one before it has ended, and one that raises takes no other along."""
    errors, order = Told(), []
    worker = Worker(errors)

    def fail():
        order.append("fails")
        raise OSError("no space")

    worker.put(lambda: order.append("first"))
    worker.put(fail)
    worker.put(lambda: order.append("last"))
    assert worker.finish(WAIT_S)
    assert order == ["first", "fails", "last"]
    assert str(errors.next()) == "no space"


def test_a_task_that_hangs_is_left_behind():
    """Finishing has an end even when a task has none."""
    worker, never = Worker(Told()), threading.Event()
    worker.put(never.wait)
    assert not worker.finish(0.05)
    never.set()


# When a time comes


@pytest.fixture
def fired():
    return Told()


@pytest.fixture
def scheduler(fired):
    worker = Worker(Told())
    scheduler = make_scheduler(worker, fired)
    scheduler.start()
    yield scheduler
    scheduler.shutdown(wait=False)
    worker.finish(WAIT_S)


def fire_now(scheduler, name, ago=timedelta()):
    scheduler.modify_job(name, next_run_time=datetime.now(UTC) - ago)


def test_a_schedule_is_fired_by_its_name(scheduler, fired):
    """When its time comes, the work is called with the schedule's name, and told without a problem."""
    ran = Told()
    set_schedules(scheduler, {"nightly": section()}, ran)
    fire_now(scheduler, "nightly")
    assert ran.next() == "nightly"
    assert fired.next()[::2] == ("nightly", None)


def test_a_late_fire_is_made_up_for_once(scheduler, fired):
    """A machine that slept through three nights runs one of them, not three and not none."""
    ran = Told()
    set_schedules(scheduler, {"nightly": section()}, ran)
    fire_now(scheduler, "nightly", ago=timedelta(days=3))
    assert ran.next() == "nightly"
    scheduler.remove_all_jobs()
    assert fired.next().problem is None
    assert (ran.silent(), fired.silent()) == (None, None)


def test_a_schedule_does_not_overtake_itself(scheduler, fired):
    """While a fire is at work the next one is skipped, and that is told."""
    begun, release = Told(), threading.Event()
    set_schedules(scheduler, {"nightly": section()}, lambda name: (begun(name), release.wait(WAIT_S)))
    fire_now(scheduler, "nightly")
    begun.next()
    assert fired.next().problem is None
    fire_now(scheduler, "nightly")
    assert "skipped, since its last fire is still at work" in fired.next().problem
    release.set()


def test_a_fire_that_raises_is_told(scheduler, fired):
    """What goes wrong in a fire is told with its reason, and the schedule stays."""

    def fail(name):
        raise OSError("no space")

    set_schedules(scheduler, {"nightly": section()}, fail)
    fire_now(scheduler, "nightly")
    told = [fired.next(), fired.next()]
    assert {one.problem for one in told} == {None, "failed: no space"}
    assert all(isinstance(one, Fired) and one.schedule == "nightly" for one in told)
    assert scheduler.get_job("nightly") is not None


def test_schedules_replace_each_other(scheduler):
    """After a change exactly the new and enabled schedules are followed."""
    set_schedules(scheduler, {"nightly": section(), "weekly": section("0 3 * * sun")}, Told())
    set_schedules(scheduler, {"hourly": section("0 * * * *"), "off": section(enabled=False)}, Told())
    assert [job.id for job in scheduler.get_jobs()] == ["hourly"]
