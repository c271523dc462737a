"""The collector: what is due becomes runs, every fire is accounted for, and what fails is told."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import time_machine

from collectors import envs
from collectors.collector import Collector
from collectors.reload import SettingsFile
from store import models as m
from store import queries, writes
from tests.collectors.collecting import CONFIG, WAIT_S, Running, answered, ask, ended, expect, told, until


def test_a_fire_runs_its_pairs(home, db):
    """A fire runs its suites on its backends with its trials, under the schedule's name and with its time,
    and is accounted for."""
    with Running(db) as running:
        at = running.fire("nightly")
        (fire,) = until(lambda: ended(db, "nightly"), "the fire has ended")
        (state,) = queries.schedules(db)
    (row,) = queries.runs(db)
    assert (row.suite, row.backend, row.trigger, row.trials) == ("mine", "floor", "schedule:nightly", 2)
    assert (row.status, row.meta) == ("whole", {"scheduled_for": f"{at:%Y-%m-%dT%H:%MZ}"})
    assert fire[:4] == ("nightly", at, "done", (row.id,))
    assert (state.name, state.last_fire, state.enabled) == ("nightly", at, True)
    assert state.next_fire > state.last_fire


def test_fire_times_are_written_ahead(home, db):
    """From its start on, the record says when each schedule should fire in the next 40 days."""
    with Running(db):
        until(lambda: queries.next_expected(db), "fires are expected")
        now = datetime.now(UTC)
        times = [row.scheduled_for for row in queries.schedule_calendar(db, now, now + timedelta(days=99))]
    assert len(times) == 40
    assert {(at.hour, at.minute) for at in times} == {(3, 0)}
    assert now < min(times) < now + timedelta(days=1)


def test_fire_times_are_renewed_every_day(home, db):
    """A day later the far end of what is expected has moved a day on."""
    collector = Collector(db, SettingsFile(), threading.Event(), leader=0)
    collector._tick()
    with db.write() as connection:
        connection.execute(m.fire.delete())
    collector._tick()
    assert queries.next_expected(db) is None
    with time_machine.travel(datetime.now(UTC) + timedelta(days=1, seconds=1)):
        collector._tick()
        assert queries.next_expected(db).schedule == "nightly"


def test_environments_of_releases_are_cleaned(home, db):
    """What was never finished, or not used for as long as is configured, is removed, and told."""
    with Path("memtrend.toml").open("a") as file:
        file.write('[environments]\ndirectory = "envs"\n')
    half = Path("envs/six-1_17_0-0123456789ab").absolute()
    half.mkdir(parents=True)
    (half / envs.BEGUN).touch()
    with Running(db):
        until(lambda: "was not used for 60d: removed" in str(queries.events(db)), "it is told")
    assert not half.exists()


def test_a_held_backend_is_told_by_name(home, db):
    """A scheduled run whose backend another run keeps for too long becomes an event that names both."""
    token = writes.acquire_lease(db, writes.backend_lease("floor"), "elsewhere:1", 60)
    with Running(db) as running:
        running.fire("nightly")
        event = told(db, "mine on floor", "schedule:nightly")
        (fire,) = until(lambda: ended(db, "nightly"), "the fire has ended")
    writes.release_lease(db, writes.backend_lease("floor"), token)
    assert "backend floor is in use" in event.message
    assert queries.runs(db) == []
    assert (fire.state, fire.reason) == ("invalid", event.message)


def test_a_held_backend_is_waited_for(home, db):
    """A run begins as soon as the one that holds its backend lets go."""
    token = writes.acquire_lease(db, writes.backend_lease("floor"), "elsewhere:1", 60)
    with Running(db, busy_wait_s=WAIT_S):
        request = ask(db, suite="mine", backend="floor")
        until(lambda: queries.requests(db, ["claimed"]), "the request is claimed")
        writes.release_lease(db, writes.backend_lease("floor"), token)
        assert answered(db, request).state == "done"


def test_what_is_due_at_the_start_is_run(home, db):
    """Of the fires that found no collector one is made up for when one starts, and is told to be late; the
    others are told to be missed."""
    now = datetime.now(UTC)
    expect(db, "nightly", *(now - timedelta(days=days, hours=1) for days in (2, 1, 0)))
    with Running(db):
        until(lambda: [fire for fire in ended(db, "nightly") if fire.state == "late"], "one is made up for")
    assert [fire.state for fire in ended(db, "nightly")] == ["missed", "missed", "late"]
    assert len(queries.runs(db)) == 1
    late, lost = (event.message for event in queries.events(db) if event.source == "schedule:nightly")
    assert late.endswith("UTC: made up for, late")
    assert "UTC: missed (2 in all): no collector ran; that of " in lost


def test_first_runs_fill_what_is_empty(home, db):
    """Every suite is run once on every backend; a second start finds nothing to do."""
    with Running(db, first_runs=True):
        until(lambda: queries.count_runs(db, statuses=["whole"]) == 5, "five first runs")
    assert {(row.suite, row.trigger, row.status) for row in queries.runs(db)} == {
        (suite, "first", "whole") for suite in ("mine", "golden", "smoke", "holdout", "contract")
    }
    with Running(db, first_runs=True):
        assert answered(db, ask(db, suite="mine", backend="floor")).state == "done"
    assert queries.count_runs(db, triggers=["first"]) == 5


def test_a_first_run_that_fails_is_told(home, db):
    """A backend that cannot even be opened makes a void run and an event; the collector goes on."""
    (home / "memtrend.toml").write_text(CONFIG.format(backend="lost", type="nowhere.to_be:Found"))
    with Running(db, first_runs=True):
        event = told(db, "mine on lost: void", "first")
    assert queries.run(db, event.run_id).status == "void"
