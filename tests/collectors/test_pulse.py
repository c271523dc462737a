"""One collector leads for each database: a second is refused or stands by, and one that was deposed stops."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from collectors import cli, collector, pulse
from collectors.collector import collect
from collectors.pulse import BEAT_S, NAME, TTL_S, CollectorBusy, Pulse
from store import models as m
from store import queries, writes
from store.errors import DatabaseError
from tests.collectors.collecting import WAIT_S, Process, Running, until


def test_a_second_collector_is_refused(home, db, monkeypatch, capsys):
    """While one lives, a second says which process on which host has the database, and exits with 1; ^C ends
    the first with 130, and its claim with it."""
    with Process(home, "collect") as first:
        until(lambda: queries.heartbeats(db), "the first collector beats")
        monkeypatch.setattr(sys, "argv", ["memtrend", "collect"])
        with pytest.raises(SystemExit) as second:
            cli.main()
        assert first.poll() is None
        first.send_signal(signal.SIGINT)
        assert first.wait(timeout=10) == 130
    assert not any(lease.held for lease in queries.leases(db))
    assert second.value.code == 1
    said = capsys.readouterr().err
    assert f"process {first.pid} on " in said
    assert "Traceback" not in said


def test_a_killed_collector_is_succeeded(home, db, monkeypatch):
    """The claim of a process that is no more is waited for, not refused."""
    monkeypatch.setattr("collectors.pulse.RETRY_S", 0.01)
    monkeypatch.setattr("collectors.pulse.TTL_S", 1.0)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    writes.acquire_lease(db, NAME, f"{os.uname().nodename}:{gone.pid}", 0.3)
    with Pulse(db, threading.Event()) as leader:
        assert not leader.lost
        assert queries.leases(db)[0].owner.endswith(f":{os.getpid()}")


def test_a_collector_on_another_host_is_refused(home, db):
    """Whether a process of another host lives cannot be seen, so its claim holds until it ends by itself."""
    writes.acquire_lease(db, NAME, "elsewhere:1", 60)
    with pytest.raises(CollectorBusy, match="process 1 on elsewhere"), Pulse(db, threading.Event()):
        pass


def test_a_stand_by_takes_over(home, db, monkeypatch):
    """A stand-by waits while another leads, says who that is, and leads once its claim has ended."""
    monkeypatch.setattr("collectors.pulse.RETRY_S", 0.01)
    said, old = [], writes.acquire_lease(db, NAME, "elsewhere:1", 60)

    def told_to_wait(text):
        said.append(text)
        writes.release_lease(db, NAME, old)

    monkeypatch.setattr("collectors.pulse.say", told_to_wait)
    with Pulse(db, threading.Event(), stand_by=True) as leader:
        assert leader.token == old + 1
    assert said == ["standing by: process 1 on elsewhere leads"]
    event = queries.events(db)[0]
    assert (event.level, event.source) == ("info", NAME)
    assert event.message.endswith("took over the lead from elsewhere:1, which gave it back")


def test_a_succession_after_a_kill_is_told(home, db):
    """Health shows as a warning that the collector before was killed, and who leads now; the first collector
    of a record, and one that starts after a proper end, have nothing to tell."""
    for _ in range(2):
        with Pulse(db, threading.Event()):
            pass
    assert queries.events(db) == []
    writes.acquire_lease(db, NAME, "elsewhere:1", -1)
    with Pulse(db, threading.Event()):
        event = queries.events(db)[0]
    assert event.level == "warning"
    assert event.message.endswith("took over the lead from elsewhere:1, which did not give it back")


def test_a_stand_by_can_be_stopped(home, db, monkeypatch):
    """A stand-by that is asked to stop has led nothing, and leaves the leader's claim alone."""
    stop = threading.Event()
    writes.acquire_lease(db, NAME, "elsewhere:1", 60)
    monkeypatch.setattr("collectors.pulse.say", lambda text: stop.set())
    assert collect(stop=stop, stand_by=True) == 0
    assert [lease.owner for lease in queries.leases(db) if lease.held] == ["elsewhere:1"]
    assert queries.heartbeats(db) == []


def test_a_deposed_collector_stops(home, db, monkeypatch):
    """A collector that slept too long, and was succeeded meanwhile, notices and stops."""
    monkeypatch.setattr("collectors.pulse.BEAT_S", 0.01)
    stop = threading.Event()
    with Pulse(db, stop) as leader:
        with db.write() as connection:
            connection.execute(m.lease.update().values(token=m.lease.c.token + 1, owner="elsewhere:1"))
        assert stop.wait(WAIT_S)
    assert leader.lost
    assert "another collector took over" in queries.events(db)[0].message


class Log:
    """The events of what is logged, in order."""

    def __init__(self):
        self.events = []

    def __getattr__(self, level):
        return lambda event, **_: self.events.append(event)


def test_what_keeps_beats_away_is_told_once(home, db, monkeypatch):
    """However many beats fail, one entry says so, and one that they can be written again; the next time,
    too."""
    log, refusals, renew = Log(), [], writes.renew_lease

    def refused(*lease):
        if refusals:
            raise DatabaseError(refusals.pop())
        return renew(*lease)

    monkeypatch.setattr(pulse, "BEAT_S", 0.01)
    monkeypatch.setattr(pulse, "LOG", log)
    monkeypatch.setattr(writes, "renew_lease", refused)
    with Pulse(db, threading.Event()):
        for time in (1, 2):
            refusals.extend(["the disk is full"] * 5)
            until(lambda time=time: log.events.count("the heart beats again") == time, "it beats again")
    assert log.events == ["no heartbeat", "the heart beats again"] * 2


def test_a_deposed_collector_stops_though_nothing_can_be_told(home, db, monkeypatch):
    """One that was succeeded stops, even where the record refuses the event that would say so."""
    monkeypatch.setattr(pulse, "BEAT_S", 0.01)
    monkeypatch.setattr(writes, "add_event", refuse)
    stop = threading.Event()
    with Pulse(db, stop) as leader:
        writes.release_lease(db, NAME, leader.token)
        writes.acquire_lease(db, NAME, "elsewhere:1", 60)
        assert stop.wait(WAIT_S)
    assert leader.lost


def refuse(*_):
    raise DatabaseError("the disk is full")


def test_a_deposed_collector_says_what_is_true(home, db, monkeypatch):
    """A collector that comes to take what is due and finds another leading says that, once, and not that the
    record refuses; then it ends."""
    log = Log()
    monkeypatch.setattr(collector, "LOG", log)
    monkeypatch.setattr(collector, "POLL_S", 0.01)
    monkeypatch.setattr(pulse, "BEAT_S", 1.0)
    with Running(db) as running:
        writes.release_lease(db, NAME, running.pulse.token)
        writes.acquire_lease(db, NAME, "elsewhere:1", 60)
        running.thread.join(WAIT_S)
    assert log.events == ["another collector leads"]
    assert running.pulse.lost


def test_the_claim_outlives_two_lost_beats():
    """A heartbeat that could not be written twice does not depose its collector."""
    assert BEAT_S * 3 < TTL_S
