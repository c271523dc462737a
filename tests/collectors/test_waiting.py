"""What the day's money is not enough for waits, says so, and comes with the next day or another limit."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from collectors import tables
from collectors.budget import Allowance
from collectors.collector import Collector
from collectors.reload import SettingsFile
from collectors.waiting import Waiting
from store import queries, writes
from store.errors import DatabaseError
from tests.collectors.collecting import ask, expect, work_by_hand
from tests.collectors.playground import cases, project

pytestmark = pytest.mark.usefixtures("no_pauses")

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)
RUN = 4 * 0.011
"""USD that four cases cost: a question and a plant each."""
CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.paid]
type = "tests.collectors.odd_backends:Paid"
[backends.free]
type = "everything"
[suites.mine]
path = "mine.jsonl"
[schedules.nightly]
cron = "0 3 1 1 *"
suites = ["mine"]
[limits]
concurrency = 1
money_per_day = {limit}
"""
KIND = '[schedules.nightly]\nkind = "calibration"\nbackends = ["paid"]'


class World:
    """A collector on a clock that is moved by hand, with a limit of the day."""

    def __init__(self, folder, db, clock):
        self.folder, self.db, self.clock = folder, db, clock
        self.limit(RUN * 1.5)
        self.start()

    def limit(self, money):
        (self.folder / "memtrend.toml").write_text(CONFIG.format(limit=money))

    def start(self):
        for row in queries.leases(self.db):
            writes.release_lease(self.db, row.name, row.token)
        leader = writes.acquire_lease(self.db, writes.LEADER_LEASE, "test", 3600)
        self.collector = Collector(self.db, SettingsFile(), threading.Event(), leader)
        work_by_hand(self.collector)
        self.collector._begin()

    def at(self, now, ticks=1):
        self.clock.move_to(now)
        for _ in range(ticks):
            self.collector._tick()
            self.collector.worker.work()

    def answer(self, request):
        return queries.answer(self.db, request)

    def fire(self, at):
        (fire,) = queries.schedule_calendar(self.db, at, at)
        return fire

    def statuses(self):
        return [(row.backend, row.status) for row in reversed(queries.runs(self.db))]


@pytest.fixture
def world(tmp_path, db, monkeypatch):
    monkeypatch.chdir(project(tmp_path, "", cases(4), name="mine"))
    with time_machine.travel(NOON, tick=False) as clock:
        yield World(tmp_path, db, clock)


def test_a_request_waits_for_the_next_day(world):
    """A request that would exceed the day is queued with the reason, holds up no other, and runs after
    midnight UTC."""
    first, second = (ask(world.db, suite="mine", backend="paid") for _ in range(2))
    other = ask(world.db, suite="mine", backend="free")
    world.at(NOON, ticks=3)
    assert world.answer(first).state == world.answer(other).state == "finished"
    waiting = world.answer(second)
    assert (waiting.state, waiting.run_ids) == ("queued", [])
    assert "may not begin before 2026-03-05 00:00 UTC" in waiting.request.error
    (told,) = tables.waiting(queries.waiting_fires(world.db), queries.waiting_requests(world.db))
    assert told == f"request-{second} waits: {waiting.request.error}"
    assert len(queries.events(world.db, levels=["warning"])) == 1, "it is told once, not at every tick"
    world.at(NOON + DAY / 2 - timedelta(seconds=1))
    assert world.answer(second).state == "queued"
    world.at(NOON + DAY / 2)
    done = world.answer(second)
    assert (done.state, done.request.error) == ("finished", None)
    assert world.statuses() == [("paid", "whole"), ("free", "whole"), ("paid", "whole")]


def test_a_request_comes_with_a_higher_limit(world):
    """Once the limit is raised nobody waits for midnight."""
    requests = [ask(world.db, suite="mine", backend="paid") for _ in range(2)]
    world.at(NOON)
    world.limit(RUN * 5)
    world.at(NOON, ticks=3)
    assert [world.answer(request).state for request in requests] == ["finished"] * 2


def test_a_request_outlives_the_collector(world):
    """What waits for money is queued, so a collector that ends meanwhile leaves it to the next."""
    ask(world.db, suite="mine", backend="paid")
    waiting = ask(world.db, suite="mine", backend="paid")
    world.at(NOON)
    world.collector._end()
    world.start()
    world.at(NOON)
    assert world.answer(waiting).state == "queued"
    world.at(NOON + DAY)
    assert world.answer(waiting).state == "finished"


def test_a_request_that_was_cut_short_is_gone_on_with(world):
    """A run that exceeds the day in its middle is finished on the next one, under the same request."""
    world.limit(0.02)
    world.start()
    request = ask(world.db, suite="mine", backend="paid")
    world.at(NOON)
    cut = world.answer(request)
    (run,) = queries.runs(world.db)
    assert (cut.state, cut.run_ids, run.status) == ("queued", [run.id], "interrupted")
    assert "the day's money is spent" in cut.request.error
    for day in (1, 2, 3):
        world.at(NOON + day * DAY)
    assert world.answer(request)[1:] == ("finished", [run.id])
    assert world.statuses() == [("paid", "whole")]


def test_what_no_day_allows_fails(world):
    """A request for a run that costs more than any day may does not wait for ever."""
    ask(world.db, suite="mine", backend="paid")
    world.at(NOON)
    never = ask(world.db, suite="mine", backend="paid", trials=9)
    world.at(NOON)
    assert world.answer(never).state == "failed"
    assert "allows in a whole day; raise the limit" in world.answer(never).request.error


def test_a_fire_waits_with_what_is_missing(world):
    """Of a fire that the day's money is not enough for, the rest is run the next day; it is due until then
    and says why, and what costs nothing has run."""
    ask(world.db, suite="mine", backend="paid")
    world.at(NOON)
    at = NOON + timedelta(minutes=1)
    expect(world.db, "nightly", at)
    world.at(at, ticks=3)
    waiting = world.fire(at)
    assert (waiting.state, len(waiting.run_ids)) == ("due", 1)
    assert "mine on paid may not begin before 2026-03-05 00:00 UTC" in waiting.reason
    told = tables.waiting(queries.waiting_fires(world.db), queries.waiting_requests(world.db))
    assert told == [f"nightly, 2026-03-04 12:01 UTC, waits: {waiting.reason}"]
    world.at(NOON + DAY / 2)
    done = world.fire(at)
    assert (done.state, len(done.run_ids), done.reason) == ("done", 2, None)
    assert queries.waiting_fires(world.db) == []
    assert world.statuses() == [("paid", "whole"), ("free", "whole"), ("paid", "whole")]


@pytest.mark.parametrize(("limit", "state"), [(2.5, "due"), (1.5, "invalid")])
def test_a_calibration_begins_with_money_for_both_of_its_runs(world, limit, state):
    """Half a calibration tells nothing: it waits until a day has the money for both, and fails where none
    has."""
    ask(world.db, suite="mine", backend="paid")
    world.at(NOON)
    world.limit(RUN * limit)
    config = (world.folder / "memtrend.toml").read_text().replace("[schedules.nightly]", KIND)
    (world.folder / "memtrend.toml").write_text(config)
    at = NOON + timedelta(minutes=1)
    world.start()
    expect(world.db, "nightly", at)
    world.at(at)
    assert (world.fire(at).state, len(world.statuses())) == (state, 1)
    world.at(NOON + DAY / 2)
    assert len(world.statuses()) == (3 if state == "due" else 1)


def test_the_next_fire_of_one_that_waits_is_skipped(world):
    """A schedule does not pile up fires that wait for money, and says what the last one waits for."""
    ask(world.db, suite="mine", backend="paid")
    world.at(NOON)
    first, second = NOON + timedelta(minutes=1), NOON + timedelta(hours=1)
    expect(world.db, "nightly", first, second)
    world.at(first)
    world.at(second)
    assert world.fire(second)[2] == "skipped"
    assert world.fire(second).reason == "the last fire still waits for the day's money"


def test_a_fire_whose_waiting_is_refused_waits_all_the_same(world, monkeypatch):
    """A record that refuses to note that a fire waits for money loses no fire: it comes with the next day."""
    ask(world.db, suite="mine", backend="paid")
    world.at(NOON)
    at = NOON + timedelta(minutes=1)
    expect(world.db, "nightly", at)
    with monkeypatch.context() as full:
        full.setattr(writes, "hold_fire", refuse)
        with pytest.raises(DatabaseError):
            world.at(at)
    world.at(at + timedelta(seconds=1))
    assert (world.fire(at).state, [row.schedule for row in queries.waiting_fires(world.db)]) == (
        "due",
        ["nightly"],
    )
    world.at(NOON + DAY / 2)
    assert world.fire(at).state == "done"


def refuse(*_, **__):
    raise DatabaseError("no space left on its disk")


def test_a_fire_that_waits_is_left_to_the_next_leader(world):
    """A collector that stops leaves a fire that waits for money to the next, as one that nobody died over."""
    ask(world.db, suite="mine", backend="paid")
    world.at(NOON)
    at = NOON + timedelta(minutes=1)
    expect(world.db, "nightly", at)
    world.at(at)
    world.collector._end()
    assert [row.schedule for row in queries.due_fires(world.db, at)] == ["nightly"]
    world.start()
    world.at(at)
    assert world.fire(at).state == "due"
    world.at(NOON + DAY / 2)
    assert world.fire(at).state == "done"
    assert len(world.statuses()) == 3


def test_a_day_that_ends_meanwhile_is_another_day():
    """What was refused in the last second of a day, and put to wait in the first of the next, is free at
    once."""
    today, tomorrow = (Allowance(NOON.date() + days * DAY, 1.0) for days in (0, 1))
    waiting = Waiting(lambda: tomorrow)
    waiting.add("late", today)
    waiting.add("early", tomorrow)
    assert waiting.release() == ["late"]
    assert waiting.all() == ["early"]
