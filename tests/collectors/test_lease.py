"""A backend belongs to one run at a time, for as long as that run lives and no longer."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from collectors import lease
from collectors.lease import (
    BackendLease,
    InstanceBusy,
    Sightings,
    release_those_of_the_dead,
    take,
    whoami,
)
from collectors.runner import run
from store import queries, writes
from store.database import open_database
from store.dialects import base
from store.errors import DatabaseError
from store.writes import LEADER_LEASE
from tests.collectors.playground import cases, plan, suite
from tests.databases import TEMPLATE


@pytest.fixture
def quick(monkeypatch):
    """Leases that are looked after every few ms, and last one second."""
    monkeypatch.setattr(lease, "POLL_S", 0.02)
    monkeypatch.setattr(lease, "TTL_S", 1.0)


@pytest.fixture
def held(db):
    with BackendLease(db, "mine", threading.Event()) as held:
        yield held


def row(db, name="backend:mine"):
    return next(row for row in queries.leases(db) if row.name == name)


def other_process(db, code):
    """A process that has taken the lease of `mine` and waits."""
    start = (
        "import sys, threading, time\n"
        "from collectors.lease import BackendLease\n"
        "from store.database import open_database\n"
        f"db = open_database({db.url_public!r})\n"
        f"{code}\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


HOLDING = "BackendLease(db, 'mine', threading.Event()).__enter__()"


def test_one_at_a_time(db, held):
    """Whoever comes second is told which backend is in use, what to do, and which process has it."""
    with (
        pytest.raises(
            InstanceBusy, match=rf"mine is in use by another run; wait .*\(process {os.getpid()} on "
        ),
        BackendLease(db, "mine", threading.Event()),
    ):
        pass
    assert row(db).owner == whoami()


def test_other_backends_are_free(db, held):
    """A lease is of one backend."""
    with BackendLease(db, "yours", threading.Event()) as other:
        assert (other.token, held.token) == (1, 1)


def test_given_back(db):
    """After a run its backend is free, and the next one gets a higher token."""
    tokens = []
    for _ in range(3):
        with BackendLease(db, "mine", threading.Event()) as held:
            tokens.append(held.token)
        assert not row(db).held
    assert tokens == [1, 2, 3]


def test_given_back_after_an_error(db):
    """A run that fails gives its backend back, too."""
    with pytest.raises(ZeroDivisionError), BackendLease(db, "mine", threading.Event()):
        raise ZeroDivisionError
    assert not row(db).held


def test_kept_while_it_lasts(db, quick):
    """While a run lasts its lease is renewed, again and again."""
    with BackendLease(db, "mine", threading.Event()) as held:
        for _ in range(3):
            until_renewed(db)
        assert not held.stop.is_set()


def test_lost(db, quick):
    """A run whose backend was taken over stops, and knows why."""
    stop = threading.Event()
    with BackendLease(db, "mine", stop) as held:
        writes.release_lease(db, held.name, held.token)
        taken = writes.acquire_lease(db, held.name, "elsewhere:1", 60)
        assert stop.wait(10)
        assert held.reason == "another process took the backend over"
    assert (row(db).token, row(db).held) == (taken, True), "it does not give back what is another's"


def test_cancelled(db, quick, tmp_path):
    """A cancel of the run that is watched stops it, and only that."""
    stop = threading.Event()
    run_id = run(plan(suite(tmp_path, cases(1)), name="other"), db).run_id
    with BackendLease(db, "mine", stop) as held:
        held.watch(run_id)
        assert not stop.wait(0.1)
        with db.write() as connection:
            connection.exec_driver_sql("UPDATE run SET cancel = 1")
        assert stop.wait(10)
        assert held.reason == "cancelled"


def test_record_that_is_locked_for_a_while(db, quick, monkeypatch):
    """While the record cannot be written a run goes on, and its lease is renewed afterwards."""
    monkeypatch.setattr(base, "BUSY_SECONDS", 0.05)
    impatient = open_database(db.url_public)
    with BackendLease(impatient, "mine", threading.Event()) as held:
        blocker = sqlite3.connect(db.url_public.removeprefix("sqlite:///"), isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        threading.Event().wait(0.6 * lease.TTL_S)
        blocker.execute("COMMIT")
        blocker.close()
        until_renewed(db)
        assert not held.stop.is_set()
    impatient.close()


def until_renewed(db):
    before = row(db).expires
    while row(db).expires <= before:
        threading.Event().wait(0.02)


@pytest.fixture(params=["sqlite", "postgres"])
def record(request, db):
    """An empty record in each kind of database."""
    if request.param == "sqlite":
        yield db
        return
    with request.getfixturevalue("databases").fresh(TEMPLATE) as url, closing(open_database(url)) as opened:
        yield opened


@pytest.mark.parametrize("name", [LEADER_LEASE, "backend:mine"])
@pytest.mark.parametrize("lasts", [60, -60], ids=["held", "expired"])
def test_renewed_between_the_look_and_the_take(record, monkeypatch, name, lasts):
    """Whoever renews a lease after it was found to be left, and before it is taken, keeps it."""
    token = writes.acquire_lease(record, name, "elsewhere:1", lasts)

    def left_and_then_renewed(self, row, ttl_s):
        return writes.renew_lease(record, name, token, 60)

    monkeypatch.setattr(Sightings, "is_left", left_and_then_renewed)
    assert take(record, name, 60, Sightings()) is None
    assert row(record, name).token == token


# Whose process was killed


def test_killed(db):
    """What a killed process of this machine held is free at once."""
    process = other_process(db, HOLDING)
    with pytest.raises(InstanceBusy), BackendLease(db, "mine", threading.Event()):
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with BackendLease(db, "mine", threading.Event()) as taken:
        assert taken.token == 2
    process.stdout.close()


@pytest.mark.parametrize(
    "owner",
    [
        "elsewhere:{dead}",
        "{host}:{dead}",
        "{host}-1:{dead}",
        "{machine}:{alive}",
        "{machine}:1",
        "seed",
    ],
)
def test_not_known_to_be_dead(db, owner):
    """A pid means nothing on another machine or in another container, and who lives keeps what is his."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    machine = whoami().rpartition(":")[0]
    names = {"dead": gone.pid, "alive": os.getpid(), "machine": machine, "host": socket.gethostname()}
    writes.acquire_lease(db, "backend:mine", owner.format(**names), 60)
    release_those_of_the_dead(db)
    assert row(db).held


def test_known_to_be_dead(db):
    """The lease of a process that is gone is released, whatever it was of."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    writes.acquire_lease(db, "collector", f"{whoami().rpartition(':')[0]}:{gone.pid}", 60)
    release_those_of_the_dead(db)
    assert not row(db, "collector").held


def test_what_could_not_be_given_back_is_given_back_later(db, monkeypatch):
    """A lease whose giving back the record refused is given back at the next look, and is no more in mind
    then."""
    with monkeypatch.context() as patch:
        patch.setattr(writes, "release_lease", refuse)
        with BackendLease(db, "mine", threading.Event()):
            pass
    assert row(db).held
    release_those_of_the_dead(db)
    assert not row(db).held
    assert lease._kept == {}


def test_what_another_has_taken_since_is_not_given_back(db, monkeypatch):
    """A lease that was taken before it could be given back stays the other's, and is no more in mind."""
    with monkeypatch.context() as patch:
        patch.setattr(writes, "release_lease", refuse)
        with BackendLease(db, "mine", threading.Event()):
            pass
    taken = writes.acquire_lease(db, "backend:mine", "elsewhere:1", 60, left=row(db))
    release_those_of_the_dead(db)
    assert (row(db).token, row(db).held) == (taken, True)
    assert lease._kept == {}


def refuse(*_):
    raise DatabaseError("the disk is full")
