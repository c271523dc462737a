"""Schedules on a clock that is moved by hand: each fire is taken once, made up for or told to be missed."""

from collections import deque
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import time_machine

from collectors.fires import Fires
from collectors.pairs import Done
from collectors.plans import RunOutcome
from collectors.runner import run
from store import models as m
from store import queries, writes
from store.cron import GRACE, due_time
from store.errors import StoreError
from store.settings import Settings
from tests.collectors.collecting import expect
from tests.collectors.playground import cases, plan, suite

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
NIGHT = datetime(2026, 3, 5, 3, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86400))
SPRING, AUTUMN = datetime(2026, 3, 27, 12, tzinfo=UTC), datetime(2026, 10, 23, 12, tzinfo=UTC)
"""Two days before Berlin's clocks change."""
NIGHTLY = {"cron": "0 3 * * *", "suites": ["smoke"], "backends": ["floor"]}


class Queue:
    """A worker whose tasks are done when the test says so."""

    def __init__(self):
        self.tasks = deque()

    def put(self, task):
        self.tasks.append(task)


class World:
    """A leader, its clock, and what it was asked to run."""

    def __init__(self, db, clock, folder):
        self.db, self.clock, self.folder, self.ran = db, clock, folder, []
        self.stopping, self.problem = False, None
        self.configure(nightly={})
        self.lead()
        self.fires.expect(NOON)

    def configure(self, **schedules):
        sections = {name: {**NIGHTLY, **keys} for name, keys in schedules.items()}
        backends = {"floor": {"type": "everything"}}
        self.settings = Settings.model_validate({"backends": backends, "schedules": sections})

    def reconfigure(self, **schedules):
        self.configure(**schedules)
        self.fires.expect(datetime.now(UTC))

    def lead(self):
        for row in queries.leases(self.db):
            writes.release_lease(self.db, row.name, row.token)
        token = writes.acquire_lease(self.db, writes.LEADER_LEASE, "test", 3600)
        self.worker = Queue()
        self.fires = Fires(
            self.db, token, self.worker, lambda: self.settings, lambda: self.stopping, self._run
        )

    def _run(self, pair, asked, how):
        self.ran.append((datetime.now(UTC), asked))
        return Done(pair, RunOutcome(len(self.ran), "whole"), self.problem)

    def at(self, now, *, work=True):
        """Let the clock say `now`, and the collector look at it."""
        self.clock.move_to(now)
        self.fires.take(now)
        while work and self.worker.tasks:
            self.worker.tasks.popleft()()

    def states(self, days=3):
        """Of the fires of these days, seen from the last moment of the clock."""
        return [row.state for row in queries.schedule_calendar(self.db, NOON, NOON + days * DAY)]

    def told(self):
        return [event.message for event in reversed(queries.events(self.db, limit=10_000))]


@pytest.fixture
def world(db, tmp_path):
    with time_machine.travel(NOON, tick=False) as clock:
        yield World(db, clock, tmp_path)


def test_a_fire_comes_once(world):
    """At its time and not before; a second look at the same moment, and a later one, bring nothing more."""
    world.at(NIGHT - SECOND)
    assert world.ran == []
    for moment in (NIGHT, NIGHT, NIGHT + SECOND, NIGHT + HOUR):
        world.at(moment)
    assert [at for at, _ in world.ran] == [NIGHT]
    assert world.states() == ["done", "due", "due"]
    assert world.told() == []


def test_a_record_that_refuses_loses_no_fire(world, monkeypatch):
    """A disk that is full the moment after a fire was taken does not keep it from being run."""

    def refuse(*_, **__):
        raise StoreError("no space left on its disk")

    with monkeypatch.context() as full:
        full.setattr(writes, "record_schedule", refuse)
        with pytest.raises(StoreError, match="no space"):
            world.at(NIGHT)
    world.at(NIGHT + SECOND)
    assert world.states()[0] == "done"
    assert len(world.ran) == 1


def test_a_fire_on_time_is_no_news(world):
    """A tick that comes within the grace is on time, whatever catch_up says."""
    world.reconfigure(nightly={"catch_up": "none"})
    world.at(NIGHT + GRACE)
    assert world.states()[0] == "done"
    assert world.told() == []


def test_a_late_fire_is_made_up_for_once(world):
    """A machine that slept through three nights runs one of them, not three and not none, and says so."""
    world.at(NIGHT + 2 * DAY + HOUR)
    assert len(world.ran) == 1
    assert world.ran[0][1].meta == {"scheduled_for": "2026-03-07T03:00Z"}
    assert world.states() == ["missed", "missed", "late"]
    lost, late = world.told()
    assert lost.startswith("fire of 2026-03-06 03:00 UTC: missed (2 in all): no collector ran; that of ")
    assert late == "fire of 2026-03-07 03:00 UTC: made up for, late"


def test_without_catch_up_a_late_fire_is_missed(world):
    """With catch_up none nothing runs before the next time, and the misfire is told."""
    world.reconfigure(nightly={"catch_up": "none"})
    world.at(NIGHT + DAY + HOUR)
    assert world.ran == []
    assert world.told() == [
        "fire of 2026-03-06 03:00 UTC: missed (2 in all): no collector ran, and catch_up is none"
    ]
    world.at(NIGHT + 2 * DAY)
    assert world.states() == ["missed", "missed", "done"]


def test_a_start_after_more_than_the_fires_written_ahead(world):
    """A collector that was away for half a year makes up for one fire, and for no more."""
    world.at(NIGHT + 180 * DAY)
    world.fires.expect(NIGHT + 180 * DAY)
    world.at(NIGHT + 180 * DAY + SECOND)
    assert len(world.ran) == 1


def test_a_fire_does_not_overtake_itself(world):
    """While a fire is at work the next one is skipped, and that is told; the one after that comes."""
    world.at(NIGHT, work=False)
    world.at(NIGHT + DAY, work=False)
    (told,) = world.told()
    assert told.startswith("fire of 2026-03-06 03:00 UTC: skipped: the last fire is still at work; ")
    world.at(NIGHT + DAY + HOUR)
    world.at(NIGHT + 2 * DAY)
    assert world.states() == ["late", "skipped", "done"]


def test_the_window_is_kept_when_a_collector_starts(world):
    """A fire whose window is over is missed, however much it would be made up for."""
    world.reconfigure(nightly={"window": "2h"})
    world.at(NIGHT + 2 * HOUR + SECOND)
    assert world.ran == []
    assert world.told() == [
        "fire of 2026-03-05 03:00 UTC: missed: it could not begin within its window of 2h"
    ]
    world.at(NIGHT + DAY + 2 * HOUR)
    assert world.states() == ["missed", "late", "due"]


def test_the_window_is_kept_in_the_queue(world):
    """A fire that waited for its turn until its window was over is not begun any more."""
    world.reconfigure(nightly={"window": "2h"})
    world.at(NIGHT, work=False)
    world.at(NIGHT + 3 * HOUR)
    assert world.ran == []
    assert world.states()[0] == "missed"
    assert "could not begin within its window" in world.told()[0]


def test_jitter_puts_off(world):
    """A fire comes within its jitter after its time, by the same time for every collector."""
    world.reconfigure(nightly={"jitter": "1h"})
    due = due_time("nightly", NIGHT, HOUR)
    world.at(due - SECOND)
    assert world.ran == []
    world.at(due)
    assert world.ran[0][1].meta == {"scheduled_for": "2026-03-05T03:00Z"}
    assert world.states()[0] == "done"


def test_a_schedule_that_was_taken_away_does_not_come(world):
    """What became due just before its schedule went is skipped, and one that waits for its turn as well."""
    world.at(NIGHT, work=False)
    world.clock.move_to(NIGHT + DAY)
    world.reconfigure(other={})
    world.at(NIGHT + DAY)
    assert [asked.trigger for _, asked in world.ran] == []
    nightly = queries.schedule_calendar(world.db, NOON, NIGHT + DAY)
    assert [row.state for row in nightly if row.schedule == "nightly"] == ["skipped", "skipped"]


def test_a_disabled_schedule_does_not_come(world):
    """`enabled = false` takes a schedule out of force."""
    world.reconfigure(nightly={"enabled": False})
    world.at(NIGHT)
    assert (world.ran, world.states()) == ([], [])


def test_a_clock_that_jumps_brings_nothing_twice(world):
    """An hour forward and an hour back, around a fire: it comes once."""
    world.at(NIGHT - HOUR / 2)
    world.at(NIGHT + HOUR / 2)
    world.clock.move_to(NIGHT - HOUR / 2)
    world.fires.expect(NIGHT - HOUR / 2)
    for minutes in range(0, 120, 10):
        world.at(NIGHT - HOUR / 2 + minutes * MINUTE)
    assert len(world.ran) == 1


def test_a_stop_leaves_what_has_not_begun(world):
    """A fire that a stop overtakes in the queue is run by the next leader, once."""
    world.at(NIGHT, work=False)
    world.stopping = True
    world.at(NIGHT + SECOND)
    assert world.ran == []
    world.stopping = False
    world.lead()
    world.at(NIGHT + MINUTE)
    assert world.states()[0] == "done"
    assert len(world.ran) == 1


def test_a_deposed_leader_runs_nothing(world):
    """A leader that slept over a fire it had taken is refused when it wakes, and its successor runs it."""
    world.at(NIGHT, work=False)
    (asleep,) = world.worker.tasks
    world.lead()
    writes.take_back_from_the_dead(world.db, world.fires.leader)
    with pytest.raises(writes.Deposed):
        asleep()
    assert world.ran == []
    world.at(NIGHT + MINUTE)
    assert len(world.ran) == 1


def die_over(world, night):
    """The leader begins a fire and dies; another one leads."""
    writes.claim_fire(world.db, "nightly", night, world.fires.leader)
    writes.start_fire(world.db, "nightly", night, world.fires.leader)
    world.lead()
    writes.take_back_from_the_dead(world.db, world.fires.leader)


def begun_run(world, **fields):
    """What the leader had made for the fire of the night before it died."""
    asked = {"trigger": "schedule:nightly", "meta": {"scheduled_for": "2026-03-05T03:00Z"}}
    of_the_night = plan(suite(world.folder, cases(2), "smoke"), name="floor", **asked)
    outcome = run(of_the_night, world.db)
    with world.db.write() as connection:
        connection.execute(
            m.run.update().where(m.run.c.id == outcome.run_id).values(**fields or {"cancel": False})
        )
    return outcome.run_id


def test_what_a_leader_died_over_is_gone_on_with(world):
    """The next leader finishes the fire, before the newest of those that came meanwhile; the others are
    missed."""
    world.at(NIGHT - SECOND)
    die_over(world, NIGHT)
    world.at(NIGHT + 2 * DAY + MINUTE)
    fires = ["2026-03-05T03:00Z", "2026-03-07T03:00Z"]
    assert [asked.meta["scheduled_for"] for _, asked in world.ran] == fires
    assert world.states() == ["done", "missed", "done"]
    assert (
        world.told()[0] == "fire of 2026-03-05 03:00 UTC: the collector that ran it died; it is gone on with"
    )


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"catch_up": "none"}, "no collector ran, and catch_up is none"),
        ({"window": "2h"}, "it could not begin within its window of 2h"),
        ({"enabled": False}, "the schedule is not in force any more"),
    ],
)
def test_what_a_leader_died_over_is_not_always_owed(world, keys, reason):
    """Where a late fire would not be run, one that was begun is not gone on with: it has failed."""
    world.reconfigure(nightly=keys)
    if not world.settings.schedules["nightly"].enabled:
        expect(world.db, "nightly", NIGHT)  # as it was before
    die_over(world, NIGHT)
    world.at(NIGHT + 3 * HOUR)
    (row,) = queries.schedule_calendar(world.db, NIGHT, NIGHT)
    assert (row.state, row.reason, world.ran) == ("invalid", reason, [])


def test_a_run_that_has_ended_is_not_made_again(world):
    """A collector that dies after a run of its fire has closed, and before it noted that, leaves it whole."""
    world.at(NIGHT - SECOND)
    die_over(world, NIGHT)
    world.clock.move_to(NIGHT + SECOND)
    run_id = begun_run(world)
    world.at(NIGHT + MINUTE)
    (row,) = queries.schedule_calendar(world.db, NIGHT, NIGHT)
    assert (row.state, row.run_ids, world.ran) == ("done", (run_id,), [])


def test_what_a_person_cancelled_stays_cancelled(world):
    """A collector that dies over a run that was cancelled is no reason to go on with it."""
    world.at(NIGHT - SECOND)
    die_over(world, NIGHT)
    world.clock.move_to(NIGHT + SECOND)
    run_id = begun_run(world, status="interrupted", reason="cancelled", cancel=True)
    world.at(NIGHT + MINUTE)
    (row,) = queries.schedule_calendar(world.db, NIGHT, NIGHT)
    assert (row.state, row.run_ids, world.ran) == ("invalid", (run_id,), [])


def test_what_went_wrong_stands_with_the_fire(world):
    """A fire with a run that is not whole is invalid, with its runs and the first reason."""
    world.reconfigure(nightly={"suites": ["smoke", "contract"]})
    world.problem = "invalid: 5 of 5 answers were errors"
    world.at(NIGHT)
    (row,) = queries.schedule_calendar(world.db, NIGHT, NIGHT)
    assert row == (
        "nightly",
        NIGHT,
        "invalid",
        (1, 2),
        NIGHT,
        "smoke on floor: invalid: 5 of 5 answers were errors; and 1 more",
        NIGHT,
    )


def test_a_subset_is_drawn_by_the_fire(world):
    """The cases drawn depend on schedule and fire time, and both stand in the run."""
    world.reconfigure(nightly={"subset": {"share": 0.2}, "trials": 3})
    world.at(NIGHT)
    world.at(NIGHT + DAY)
    assert [str(asked.sample) for _, asked in world.ran] == [
        "@sample 20% nightly 2026-03-05T03:00Z",
        "@sample 20% nightly 2026-03-06T03:00Z",
    ]
    assert world.ran[0][1].trials == 3


@pytest.mark.parametrize("start", [SPRING, AUTUMN])
def test_a_nightly_line_over_a_clock_change(world, start):
    """A nightly 02:30 in Berlin runs once in each of the nights around a change, on a tick of 15 minutes."""
    world.reconfigure(nightly={"cron": "30 2 * * *", "timezone": "Europe/Berlin"})
    world.clock.move_to(start)
    world.fires.expect(start)
    world.at(start)
    world.ran.clear()
    for quarter in range(4 * 96):
        world.at(start + quarter * 15 * MINUTE)
    nights = [at.astimezone(ZoneInfo("Europe/Berlin")).day for at, _ in world.ran]
    assert nights == [(start + (day + 1) * DAY).day for day in range(4)]


def test_thirty_days_are_accounted_for(world):
    """Over 30 days with a collector that is away at times every fire of every schedule is done, late or
    missed, and has exactly one run or none."""
    world.reconfigure(nightly={}, often={"cron": None, "every": "6h"}, weekly={"cron": "0 5 * * sun"})
    away = [(NOON + 3 * DAY, NOON + 5 * DAY), (NOON + 20 * DAY, NOON + 20 * DAY + 7 * HOUR)]
    for tick in range(30 * 24):
        now = NOON + tick * HOUR
        if any(begin <= now < end for begin, end in away):
            continue
        if tick % 24 == 0:
            world.clock.move_to(now)
            world.fires.expect(now)
        world.at(now)
    world.clock.move_to(NOON + 30 * DAY - SECOND)
    rows = queries.schedule_calendar(world.db, NOON, NOON + 30 * DAY - SECOND)
    assert len(rows) == 30 + 119 + 4
    counts = {state: sum(row.state == state for row in rows) for state in ("done", "late", "missed")}
    assert sum(counts.values()) == len(rows)
    assert (counts["missed"], counts["late"]) == (1 + 9, 3)
    runs = [run for row in rows for run in row.run_ids]
    assert len(runs) == len(set(runs)) == len(world.ran) == counts["done"] + counts["late"]
