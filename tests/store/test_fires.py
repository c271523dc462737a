"""Fires: expected ahead, taken once, and accounted for without a living collector."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import pytest
import sqlalchemy as sa
import time_machine
from sqlalchemy.engine import Connection

from store import models as m
from store import queries, writes
from store.cron import GRACE, due_time
from store.database import Database, open_database
from store.errors import StoreError
from store.writes.fires import MAX_DEATHS, PART
from tests.store.processes import PROCESSES

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
NIGHT = datetime(2026, 3, 5, 3, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def noon() -> Iterator[time_machine.Coordinates]:
    """A clock that stands still until it is moved."""
    with time_machine.travel(NOON, tick=False) as clock:
        yield clock


def daily(start: datetime = NIGHT) -> Iterator[datetime]:
    return (start + day * DAY for day in itertools.count())


def expect(db: Database, name: str = "nightly", days: int = 3) -> None:
    writes.write_expected(db, name, daily(), NIGHT + (days - 1) * DAY)
    writes.record_schedule(db, name, NIGHT, enabled=True)


def lead(db: Database) -> int:
    """The token of a new leader."""
    for row in queries.leases(db):
        writes.release_lease(db, row.name, row.token)
    token = writes.acquire_lease(db, writes.LEADER_LEASE, "leader", 3600)
    assert token is not None
    return token


def states(db: Database) -> list[str]:
    return [row.state for row in queries.schedule_calendar(db, NOON, NOON + 40 * DAY)]


# Expected


def times(db: Database) -> list[tuple[str, datetime]]:
    query = sa.select(m.fire.c.schedule, m.fire.c.scheduled_for).order_by(*m.fire.primary_key.columns)
    with db.read() as connection:
        return [(row.schedule, row.scheduled_for) for row in connection.execute(query)]


def test_the_first_fire_of_a_schedule(db: Database, noon: time_machine.Coordinates) -> None:
    """Once its time has come, and of that schedule alone."""
    expect(db)
    assert queries.first_fire(db, "nightly", NIGHT - MINUTE) is None
    assert queries.first_fire(db, "nightly", NIGHT + 2 * DAY) == NIGHT
    assert queries.first_fire(db, "other", NIGHT + DAY) is None


def test_expected_fires_ahead_are_replaced_and_past_ones_stay(
    db: Database, noon: time_machine.Coordinates
) -> None:
    """New times take the place of those ahead, up to the horizon; what should have run is not forgotten."""
    expect(db, "other", days=1)
    expect(db)
    noon.move_to(NIGHT + HOUR)
    writes.write_expected(db, "nightly", daily(NIGHT + HOUR / 2), NIGHT + DAY + HOUR)
    assert times(db) == [("nightly", NIGHT), ("nightly", NIGHT + DAY + HOUR / 2), ("other", NIGHT)]
    upcoming = queries.next_expected(db)
    assert upcoming is not None
    assert (upcoming.schedule, upcoming.at) == ("nightly", NIGHT + DAY + HOUR / 2)


def test_only_what_differs_is_written(
    db: Database, noon: time_machine.Coordinates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule of every minute does not hold up other writers: its fires are written a part at a time, and
    a day later only those that are new."""
    written: list[int] = []
    write = db.write

    @contextmanager
    def counted() -> Iterator[Connection]:
        with write() as connection:
            before = rows(connection)
            yield connection
            written.append(abs(rows(connection) - before))

    def rows(connection: Connection) -> int:
        return int(connection.execute(sa.select(sa.func.count()).select_from(m.fire)).scalar_one())

    monkeypatch.setattr(db, "write", counted)
    minutes = [NIGHT + n * MINUTE for n in range(2 * PART + 10)]
    writes.write_expected(db, "often", minutes, minutes[-1])
    assert written == [PART, PART, 10]
    written.clear()
    writes.write_expected(db, "often", [*minutes[1:], minutes[-1] + MINUTE], minutes[-1] + MINUTE)
    assert written == [1, 1]
    assert [at for _, at in times(db)] == [*minutes[1:], minutes[-1] + MINUTE]


def test_what_comes_due_while_it_is_written_is_written_too(
    db: Database, noon: time_machine.Coordinates
) -> None:
    """A fire whose time comes between the question of what is ahead and the answer's last row is not lost."""
    noon.move_to(NIGHT + MINUTE)
    writes.write_expected(db, "nightly", [NIGHT, NIGHT + DAY], NIGHT + DAY, since=NIGHT - MINUTE)
    assert [at for _, at in times(db)] == [NIGHT, NIGHT + DAY]


def test_no_times_ahead_clears_them(db: Database, noon: time_machine.Coordinates) -> None:
    """A schedule that will not fire any more expects nothing."""
    expect(db)
    writes.write_expected(db, "nightly", [], NIGHT)
    assert queries.next_expected(db) is None


def test_what_was_taken_is_not_expected_again(db: Database, noon: time_machine.Coordinates) -> None:
    """A clock that is set back by an hour, and fires written anew, bring no fire a second time."""
    expect(db)
    leader = lead(db)
    noon.move_to(NIGHT)
    assert writes.claim_fire(db, "nightly", NIGHT, leader)
    noon.move_to(NIGHT - HOUR)
    expect(db)
    noon.move_to(NIGHT)
    assert queries.due_fires(db, NIGHT) == []
    assert not writes.claim_fire(db, "nightly", NIGHT, leader)


def test_jitter_is_the_same_for_all_and_differs_by_fire() -> None:
    """Every collector puts a fire off by the same time, within the jitter, and another fire by another."""
    puts_off = [due_time("nightly", NIGHT + day * DAY, HOUR) - NIGHT - day * DAY for day in range(200)]
    assert puts_off == [
        due_time("nightly", NIGHT + day * DAY, HOUR) - NIGHT - day * DAY for day in range(200)
    ]
    assert len(set(puts_off)) > 190
    assert timedelta(0) <= min(puts_off) < HOUR / 10 < 9 * HOUR / 10 < max(puts_off) < HOUR
    assert due_time("weekly", NIGHT, HOUR) != due_time("nightly", NIGHT, HOUR)
    assert due_time("nightly", NIGHT, timedelta()) == NIGHT


def test_a_fire_is_due_after_its_jitter(db: Database, noon: time_machine.Coordinates) -> None:
    """A fire that is put off is not due at its time, but is when the jitter is over."""
    writes.write_expected(db, "nightly", [NIGHT], NIGHT, HOUR)
    due = due_time("nightly", NIGHT, HOUR)
    assert queries.due_fires(db, due - timedelta(seconds=1)) == []
    assert [row[:3] for row in queries.due_fires(db, due)] == [("nightly", NIGHT, due)]


# Taken


def _claim_all(url: str, leader: int, barrier: Barrier, won: Queue[list[bool]]) -> None:
    db = open_database(url)
    barrier.wait(60)
    won.put([writes.claim_fire(db, "nightly", NIGHT + day * DAY, leader) for day in range(30)])


def test_no_fire_is_taken_twice(db: Database, url: str, noon: time_machine.Coordinates) -> None:
    """Of two processes that claim the same fires at the same time exactly one gets each."""
    expect(db, days=30)
    leader = lead(db)
    barrier = PROCESSES.Barrier(2)
    won: Queue[list[bool]] = PROCESSES.Queue()
    claimers = [PROCESSES.Process(target=_claim_all, args=(url, leader, barrier, won)) for _ in range(2)]
    for claimer in claimers:
        claimer.start()
    shares = [won.get(timeout=100) for _ in claimers]
    for claimer in claimers:
        claimer.join(60)
    assert [sum(pair) for pair in zip(*shares, strict=True)] == [1] * 30


def test_a_fire_that_nobody_expected_is_not_taken(db: Database) -> None:
    """Only what stands in the record can be claimed."""
    assert not writes.claim_fire(db, "nightly", NIGHT, lead(db))


def test_a_deposed_leader_writes_nothing_about_fires(db: Database, noon: time_machine.Coordinates) -> None:
    """Whatever a former leader would still say of fires is refused, and leaves no trace."""
    expect(db)
    old = lead(db)
    assert writes.claim_fire(db, "nightly", NIGHT, old)
    lead(db)
    late_writes = (
        lambda: writes.claim_fire(db, "nightly", NIGHT + DAY, old),
        lambda: writes.start_fire(db, "nightly", NIGHT, old, late=True),
        lambda: writes.note_runs(db, "nightly", NIGHT, [7], old),
        lambda: writes.finish_fire(db, "nightly", NIGHT, "missed", "x", old),
        lambda: writes.give_back(db, "nightly", NIGHT, old),
        lambda: writes.pass_over(db, "nightly", [NIGHT + DAY], "missed", "x", old),
        lambda: writes.take_back_from_the_dead(db, old),
        lambda: writes.hold_fire(db, "nightly", NIGHT, "x", old, begun=False),
        lambda: writes.write_expected(db, "nightly", [], NIGHT + DAY, leader=old),
        lambda: writes.write_expected(db, "other", [NIGHT], NIGHT, leader=old),
        lambda: writes.record_schedule(db, "nightly", None, False, leader=old),
    )
    before = queries.schedule_calendar(db, NOON, NOON + 9 * DAY), queries.schedules(db)
    for late_write in late_writes:
        with pytest.raises(writes.Deposed, match="another collector has taken over"):
            late_write()
    assert (queries.schedule_calendar(db, NOON, NOON + 9 * DAY), queries.schedules(db)) == before
    assert queries.events(db) == []


def begin(db: Database) -> int:
    """Of a new leader, who takes and begins the first fire."""
    leader = lead(db)
    assert writes.claim_fire(db, "nightly", NIGHT, leader)
    writes.start_fire(db, "nightly", NIGHT, leader)
    return leader


def test_what_a_dead_leader_began_is_due_again(db: Database, noon: time_machine.Coordinates) -> None:
    """A new leader gets what its predecessor had begun, with the runs it had noted and its beginning, and an
    event tells; what it took itself stays its own."""
    expect(db)
    old = begin(db)
    writes.note_runs(db, "nightly", NIGHT, [7], old)
    assert states(db)[0] == "due"
    new = lead(db)
    assert states(db)[0] == "invalid", "seen before anybody takes it back"
    assert writes.claim_fire(db, "nightly", NIGHT + DAY, new)
    writes.take_back_from_the_dead(db, new)
    assert states(db) == ["invalid", "due", "due"]
    (event,) = queries.events(db)
    assert (event.source, event.level) == ("schedule:nightly", "warning")
    assert event.message == "fire of 2026-03-05 03:00 UTC: the collector that ran it died; it is gone on with"
    (row,) = queries.due_fires(db, NIGHT + DAY)
    assert (row.scheduled_for, row.begun, list(row.run_ids)) == (NIGHT, True, [7])
    noon.move_to(NIGHT + HOUR)
    assert writes.claim_fire(db, "nightly", NIGHT, new)
    writes.start_fire(db, "nightly", NIGHT, new)
    (shown,) = queries.schedule_calendar(db, NIGHT, NIGHT)
    assert (shown.state, shown.started_at) == ("due", NOON)


def test_a_fire_that_kills_its_leaders_is_left_alone(db: Database, noon: time_machine.Coordinates) -> None:
    """The third leader that dies over a fire is the last: it has failed, and says so."""
    expect(db)
    for _ in range(3):
        begin(db)
        writes.take_back_from_the_dead(db, lead(db))
    assert queries.due_fires(db, NIGHT) == []
    (row,) = queries.schedule_calendar(db, NIGHT, NIGHT)
    assert row.state == "invalid"
    assert row.reason == "3 collectors died over it; memtrend run --resume goes on with what was begun"
    last, *_ = queries.events(db)
    assert (last.level, last.message[30:]) == ("error", "3 collectors died over it, so it is left alone")


def test_what_was_begun_is_neither_missed_nor_skipped(db: Database, noon: time_machine.Coordinates) -> None:
    """Passed over by a later leader, what was begun has failed; what was not is missed."""
    expect(db)
    begin(db)
    new = lead(db)
    writes.take_back_from_the_dead(db, new)
    writes.pass_over(db, "nightly", [NIGHT, NIGHT + DAY], "missed", "too late", new)
    assert states(db) == ["invalid", "missed", "due"]
    told = [event.message for event in queries.events(db)][:2]
    assert told == [
        "fire of 2026-03-06 03:00 UTC: missed: too late",
        "fire of 2026-03-05 03:00 UTC: failed: too late",
    ]


def test_what_is_said_of_a_fire_is_what_became_of_it(db: Database, noon: time_machine.Coordinates) -> None:
    """A fire that was begun and is not finished has failed, in the calendar and in its event."""
    expect(db)
    leader = begin(db)
    writes.finish_fire(db, "nightly", NIGHT, "skipped", "not in force", leader)
    (event,) = queries.events(db)
    assert (states(db)[0], event.message[30:], event.level) == ("invalid", "failed: not in force", "error")


def test_nothing_is_noted_of_a_fire_that_is_not_claimed(db: Database, noon: time_machine.Coordinates) -> None:
    """Whoever would begin, hold or close a fire that it has no more is told so, and nothing changes."""
    expect(db)
    leader = begin(db)
    writes.give_back(db, "nightly", NIGHT, leader)
    before = queries.schedule_calendar(db, NOON, NOON + 9 * DAY)
    for late_write in (
        lambda: writes.start_fire(db, "nightly", NIGHT, leader, late=True),
        lambda: writes.note_runs(db, "nightly", NIGHT, [7], leader),
        lambda: writes.hold_fire(db, "nightly", NIGHT, "x", leader, begun=True),
        lambda: writes.finish_fire(db, "nightly", NIGHT, "missed", "x", leader),
        lambda: writes.give_back(db, "nightly", NIGHT, leader),
    ):
        with pytest.raises(StoreError, match="of 2026-03-05 03:00 UTC is not claimed by this collector"):
            late_write()
    assert queries.schedule_calendar(db, NOON, NOON + 9 * DAY) == before
    assert queries.events(db) == []


def test_who_dies_idle_dies_over_nothing(db: Database, noon: time_machine.Coordinates) -> None:
    """A fire that waits for money or for its turn after a part of it killed no collector; one at work did."""
    expect(db)
    leader = begin(db)
    for _ in range(MAX_DEATHS):
        writes.hold_fire(db, "nightly", NIGHT, "no money today", leader, begun=True)
        leader = lead(db)
        writes.take_back_from_the_dead(db, leader)
        assert writes.claim_fire(db, "nightly", NIGHT, leader)
        leader = lead(db)
        writes.take_back_from_the_dead(db, leader)
        assert queries.events(db) == []
        assert writes.claim_fire(db, "nightly", NIGHT, leader)
        writes.start_fire(db, "nightly", NIGHT, leader)
        assert queries.waiting_fires(db) == []
    writes.take_back_from_the_dead(db, lead(db))
    assert [event.level for event in queries.events(db)] == ["warning"]


def test_what_a_dead_leader_had_only_taken_is_due_again(db: Database, noon: time_machine.Coordinates) -> None:
    """A fire of which nothing was run is for the next leader, and is missed while there is none."""
    expect(db)
    assert writes.claim_fire(db, "nightly", NIGHT, lead(db))
    new = lead(db)
    noon.move_to(NIGHT + HOUR)
    assert states(db)[0] == "missed"
    writes.take_back_from_the_dead(db, new)
    assert [row.scheduled_for for row in queries.due_fires(db, NIGHT)] == [NIGHT]
    assert queries.events(db) == []
    assert writes.claim_fire(db, "nightly", NIGHT, new)
    assert states(db)[0] == "due", "it waits for its turn"


def test_a_fire_given_back_is_due_again(db: Database, noon: time_machine.Coordinates) -> None:
    """What a leader took but did not begin before it stopped is for the next one."""
    expect(db)
    old = lead(db)
    assert writes.claim_fire(db, "nightly", NIGHT, old)
    writes.give_back(db, "nightly", NIGHT, old)
    assert [row.scheduled_for for row in queries.due_fires(db, NIGHT)] == [NIGHT]
    assert writes.claim_fire(db, "nightly", NIGHT, lead(db))


# Accounted for


def ran(
    db: Database, leader: int, at: datetime, state: writes.Closed = "done", reason: str | None = None
) -> None:
    """A fire from its claim to its end."""
    assert writes.claim_fire(db, "nightly", at, leader)
    writes.start_fire(db, "nightly", at, leader)
    writes.note_runs(db, "nightly", at, [1, 2], leader)
    writes.finish_fire(db, "nightly", at, state, reason, leader)


def test_the_calendar_tells_every_state(db: Database, noon: time_machine.Coordinates) -> None:
    """Done, late, invalid, skipped, missed and due are told apart, with runs, start and reason."""
    expect(db, days=7)
    leader = lead(db)
    nights = list(itertools.islice(daily(), 7))
    noon.move_to(nights[0] + GRACE)
    ran(db, leader, nights[0])
    noon.move_to(nights[1] + GRACE + timedelta(seconds=1))
    ran(db, leader, nights[1])
    ran(db, leader, nights[2], state="failed", reason="mine on floor: invalid")
    writes.pass_over(db, "nightly", [nights[3]], "skipped", "at work", leader)
    writes.pass_over(db, "nightly", [nights[4]], "missed", "over", leader)
    noon.move_to(nights[5] + GRACE + timedelta(seconds=1))
    found = queries.schedule_calendar(db, NOON, nights[6])
    assert [(row.state, row.reason) for row in found] == [
        ("done", None),
        ("late", None),
        ("invalid", "mine on floor: invalid"),
        ("skipped", "at work"),
        ("missed", "over"),
        ("missed", "no collector ran"),
        ("due", None),
    ]
    assert found[0] == ("nightly", nights[0], "done", (1, 2), nights[0] + GRACE, None, nights[0])


def test_the_calendar_has_bounds(db: Database, noon: time_machine.Coordinates) -> None:
    """From the first moment asked for to the last, both included, by time and then by name."""
    expect(db, "weekly")
    expect(db)
    found = queries.schedule_calendar(db, NIGHT, NIGHT + DAY)
    assert [(row.schedule, row.scheduled_for) for row in found] == [
        ("nightly", NIGHT),
        ("weekly", NIGHT),
        ("nightly", NIGHT + DAY),
        ("weekly", NIGHT + DAY),
    ]


def test_a_dead_collector_is_seen_without_a_living_one(db: Database, noon: time_machine.Coordinates) -> None:
    """What no collector took is missed once its grace is over, by name and time, until the schedule runs."""
    expect(db)
    assert queries.missed(db, NIGHT + GRACE) == []
    late = NIGHT + DAY + GRACE + timedelta(seconds=1)
    noon.move_to(late)
    assert [(row.schedule, row.scheduled_for) for row in queries.missed(db, late)] == [
        ("nightly", NIGHT),
        ("nightly", NIGHT + DAY),
    ]
    noon.move_to(NIGHT + 2 * DAY)
    ran(db, lead(db), NIGHT + 2 * DAY)
    assert queries.missed(db, NIGHT + 2 * DAY) == []


def test_a_skipped_night_makes_nothing_up(db: Database, noon: time_machine.Coordinates) -> None:
    """What was missed stays so while later fires are passed over."""
    expect(db)
    leader = lead(db)
    writes.pass_over(db, "nightly", [NIGHT], "missed", "over", leader)
    writes.pass_over(db, "nightly", [NIGHT + DAY], "skipped", "at work", leader)
    assert [row.scheduled_for for row in queries.missed(db, NIGHT + DAY)] == [NIGHT]


def test_a_schedule_that_is_off_misses_nothing(db: Database, noon: time_machine.Coordinates) -> None:
    """What a schedule missed before it was taken out of force is nobody's concern any more."""
    expect(db)
    writes.record_schedule(db, "nightly", None, enabled=False)
    assert queries.missed(db, NIGHT + DAY) == []


def test_passing_over_many_is_one_event(db: Database, noon: time_machine.Coordinates) -> None:
    """One event tells of all fires that are passed over at once, how many they are, and why."""
    expect(db)
    leader = lead(db)
    writes.pass_over(db, "nightly", list(itertools.islice(daily(), 3)), "missed", "no collector ran", leader)
    (event,) = queries.events(db)
    assert event.message == "fire of 2026-03-07 03:00 UTC: missed (3 in all): no collector ran"
    assert event.level == "error"
