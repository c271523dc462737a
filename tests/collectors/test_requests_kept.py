"""A request outlives the collector that took it, and a record that refuses: its run is made once."""

import threading

import pytest

from collectors.collector import Collector
from collectors.reload import SettingsFile
from store import models as m
from store import queries, writes
from store.errors import DatabaseError
from tests.collectors.collecting import ask, work_by_hand

DIED = "the collector that ran it died; it is gone on with"


class Leader:
    """A collector whose ticks and worker go on by hand. `Leader(db)` after another: that one was killed."""

    def __init__(self, db):
        for row in queries.leases(db):
            writes.release_lease(db, row.name, row.token)
        self.db, self.stop = db, threading.Event()
        token = writes.acquire_lease(db, writes.LEADER_LEASE, "test", 3600)
        self.collector = Collector(db, SettingsFile(), self.stop, token)
        work_by_hand(self.collector)
        self.collector._begin()

    def tick(self):
        self.collector._tick()

    def work(self):
        self.collector.worker.work()

    def go_on(self):
        self.tick()
        self.work()


def refuse(*_, **__):
    raise DatabaseError("no space left on its disk")


def run_unnoted(db, leader, monkeypatch):
    """The leader runs what was asked for, and the record refuses to be told so."""
    with monkeypatch.context() as full:
        full.setattr(writes, "finish_request", refuse)
        leader.tick()
        with pytest.raises(DatabaseError):
            leader.work()
    (run,) = queries.runs(db)
    assert run.status == "whole"
    return run.id


def state(db, request):
    found = queries.answer(db, request)
    return found.state, found.run_ids, found.request.error


def test_a_run_is_not_made_again_when_its_end_was_refused(home, db, monkeypatch):
    """What the record refused to note of a request is noted once it does not, without another run."""
    request, leader = ask(db, suite="mine", backend="floor"), Leader(db)
    run_id = run_unnoted(db, leader, monkeypatch)
    leader.go_on()
    assert state(db, request) == ("finished", [run_id], None)
    assert queries.count_runs(db) == 1


def test_a_run_is_not_made_again_after_a_crash(home, db, monkeypatch):
    """A collector that is killed between the end of a run and its noting leaves it to the next to note."""
    request = ask(db, suite="mine", backend="floor")
    run_id = run_unnoted(db, Leader(db), monkeypatch)
    Leader(db).go_on()
    assert state(db, request) == ("finished", [run_id], None)
    assert queries.count_runs(db) == 1


def test_the_same_asked_for_twice_is_run_twice(home, db):
    """A run belongs to its own request, and not to another of the same words."""
    first, second = (ask(db, suite="mine", backend="floor") for _ in range(2))
    Leader(db).go_on()
    assert [state(db, request)[1] for request in (first, second)] == [[1], [2]]


@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_what_never_began_is_done_by_the_next(home, db, ends):
    """Requests that a collector had only taken when it ended wait again, and say nothing of it."""
    requests, leader = [ask(db, suite="mine", backend="floor") for _ in range(3)], Leader(db)
    leader.tick()
    assert [state(db, request)[0] for request in requests] == ["claimed"] * 3
    if ends == "stopped":
        leader.stop.set()
        leader.work()
        assert [state(db, request) for request in requests] == [("queued", [], None)] * 3
    successor = Leader(db)
    assert [state(db, request) for request in requests] == [("queued", [], None)] * 3
    successor.go_on()
    assert [state(db, request) for request in requests] == [("finished", [n], None) for n in (1, 2, 3)]
    assert [event.source for event in queries.events(db) if "request" in event.source] == []


def killed_over(db, run_id):
    """As a run stands whose collector was killed: nobody has closed it, and nobody holds its lease."""
    with db.write() as connection:
        connection.execute(m.run.update().where(m.run.c.id == run_id).values(status="running"))
    return Leader(db)


def test_what_was_begun_is_gone_on_with(home, db, monkeypatch):
    """The run over which a collector was killed is finished by the next, which tells of it."""
    request = ask(db, suite="mine", backend="floor")
    run_id = run_unnoted(db, Leader(db), monkeypatch)
    leader = killed_over(db, run_id)
    (event,) = queries.events(db, source=f"request-{request}")
    assert (event.level, event.message, event.run_id) == ("warning", DIED, run_id)
    assert state(db, request) == ("queued", [run_id], None)
    leader.go_on()
    assert state(db, request) == ("finished", [run_id], None)
    assert (queries.count_runs(db), queries.run(db, run_id).status) == (1, "whole")


def test_a_request_that_kills_its_collectors_is_left_alone(home, db, monkeypatch):
    """The third collector that dies over a run that was asked for is the last: the request has failed."""
    request = ask(db, suite="mine", backend="floor")
    run_id = run_unnoted(db, Leader(db), monkeypatch)
    for _ in range(writes.MAX_DEATHS - 1):
        assert state(db, request)[0] in ("claimed", "running")
        killed_over(db, run_id).tick()
    killed_over(db, run_id)
    told = "3 collectors died over it; memtrend run --resume goes on with what was begun"
    assert state(db, request) == ("failed", [run_id], told)


def test_what_a_person_cancelled_is_not_gone_on_with(home, db, monkeypatch):
    """A run that was cancelled before the collector died stays so, and its request is answered."""
    request = ask(db, suite="mine", backend="floor")
    run_id = run_unnoted(db, Leader(db), monkeypatch)
    with db.write() as connection:
        connection.execute(m.run.update().values(status="interrupted", cancel=True))
    Leader(db).go_on()
    assert state(db, request) == ("finished", [run_id], None)
    assert queries.run(db, run_id).status == "interrupted"
