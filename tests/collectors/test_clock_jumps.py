"""A machine's clock that is set by an hour, forward and back, under real collectors."""

import os
import shutil
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collectors import lease, pulse
from collectors.lease import BackendLease, InstanceBusy
from collectors.pulse import NAME, Pulse
from store import health_words, queries, writes
from store import models as m
from tests.collectors import collecting
from tests.collectors.collecting import Process, ended, expect, until

CLOCK = Path(__file__).parent / "clock"
HOUR = timedelta(hours=1)
SCHEDULES = ("first", "second", "third", "fourth")
CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.slow]
type = "sluggish:Slow"
[suites.mine]
path = "mine.jsonl"
""" + "".join(f'[schedules.{name}]\nevery = "30d"\nsuites = ["mine"]\n' for name in SCHEDULES)


pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("patience")]


@pytest.fixture
def home(home, linted_record):
    shutil.copy(linted_record, home / "record.db")
    (home / "memtrend.toml").write_text(CONFIG)
    (home / "sluggish.py").write_text(collecting.SLOW)
    collecting.write_suite(home, 12)
    set_clock(home, timedelta())
    return home


def set_clock(home, off):
    """Let it be `off` from the true time, in all processes of `on_that_clock`. At once: no half a number is
    read."""
    (home / "off.new").write_text(str(off.total_seconds()))
    (home / "off.new").rename(home / "off")


def on_that_clock(home, *arguments):
    return Process(home, *arguments, PYTHONPATH=str(CLOCK), CLOCK_FILE=str(home / "off"), SLOW_S="0.6")


def leader(db):
    """Token, process, and when the claim ends by the clock of the moment."""
    row = next((row for row in queries.leases(db) if row.name == NAME), None)
    return row and (row.token, int(row.owner.rpartition(":")[2]), row.expires)


def renewed(db, times):
    """Wait for so many renewals of the leader's claim: whoever wanted to take it over has had its chance."""
    for _ in range(times):
        before = leader(db)
        until(lambda before=before: leader(db)[2] != before[2], "the claim is renewed")


def done(db, *schedules):
    """Wait until each has fired once, and its run is whole."""
    for name in schedules:
        until(lambda name=name: ended(db, name), f"{name} has fired")
        assert [fire.state for fire in ended(db, name)] == ["done"]


def test_an_hour_forward_and_back(home, db):
    """When the clock is set forward by an hour, and back again, with a run under way each time, the leader
    stays the leader beside one that stands by, the run goes on to its end, what is due comes once and within
    seconds, and the heartbeat is young."""
    with on_that_clock(home, "collect") as first:
        until(lambda: leader(db) and queries.schedules(db), "the first leads")
        with on_that_clock(home, "collect", "--stand-by") as second:
            until(lambda: "standing by" in (home / "said.txt").read_text(), "the second stands by")
            expect(db, "first", datetime.now(UTC))
            until(lambda: queries.runs(db), "a run is under way")
            set_clock(home, HOUR)
            renewed(db, 2)
            expect(db, "second", datetime.now(UTC) + HOUR)
            done(db, "first", "second")
            assert leader(db)[:2] == (1, first.pid)

            expect(db, "third", datetime.now(UTC) + HOUR)
            until(lambda: len(queries.runs(db)) == 3, "a run is under way again")
            set_clock(home, timedelta())
            renewed(db, 2)
            expect(db, "fourth", datetime.now(UTC))
            done(db, "third", "fourth")
            assert leader(db)[:2] == (1, first.pid)
            assert (first.poll(), second.poll()) == (None, None)
            silent = health_words.silence(queries.heartbeats(db), datetime.now(UTC))
            assert 0 <= silent < health_words.HEARTBEAT_LIMIT_S
            first.send_signal(signal.SIGKILL)
            first.wait()
            until(lambda: leader(db)[:2] == (2, second.pid), "the second leads, now that the first is dead")
    runs = queries.runs(db, limit=100)
    assert sorted(run.trigger for run in runs) == sorted(f"schedule:{name}" for name in SCHEDULES)
    assert {run.status for run in runs} == {"whole"}


# What is renewed, and what was left


@pytest.fixture
def quick(monkeypatch):
    """Claims of one second."""
    for module in (lease, pulse):
        monkeypatch.setattr(module, "TTL_S", 1.0)
    monkeypatch.setattr(lease, "POLL_S", 0.02)
    monkeypatch.setattr(pulse, "RETRY_S", 0.02)


def claim_of_another(db, name, ends):
    """Somebody elsewhere has a lease that ends so many seconds from now."""
    token = writes.acquire_lease(db, name, "elsewhere:1", 60)
    with db.write() as connection:
        expires = datetime.now(UTC).timestamp() + ends
        connection.execute(m.lease.update().where(m.lease.c.name == name).values(expires=expires))
    return token


def test_a_clock_set_forward_takes_no_backend_away(db, quick):
    """A lease that looks expired and is renewed is held: whoever comes second is refused."""
    token = claim_of_another(db, "backend:mine", -3600)
    threading.Timer(0.1, writes.renew_lease, (db, "backend:mine", token, 60)).start()
    with pytest.raises(InstanceBusy), BackendLease(db, "mine", threading.Event()):
        pass


def test_what_expired_and_is_not_renewed_is_free(db, quick):
    """A lease that its holder left without giving it back is taken, once it has shown not to be renewed."""
    token = claim_of_another(db, "backend:mine", -3600)
    before = time.monotonic()
    with BackendLease(db, "mine", threading.Event()) as held:
        assert held.token == token + 1
    assert time.monotonic() - before >= lease.TTL_S / 2


def test_a_clock_set_back_blocks_no_stand_by(db, quick):
    """The claim of a leader that died elsewhere before the clock was set back by an hour ends in its time,
    and not an hour later."""
    token = claim_of_another(db, NAME, 3600)
    with Pulse(db, threading.Event(), stand_by=True) as stood_by:
        assert stood_by.token == token + 1


@pytest.mark.parametrize(("said", "alive"), [(3600, False), (-3600, False), (2, True), (-2, True)])
def test_a_heartbeat_is_as_old_as_it_is_far(db, said, alive):
    """What a dead collector said by a clock that was an hour ahead is no sign of life, nor of a negative
    age."""
    now = datetime.now(UTC)
    beat = queries.HeartbeatRow("collector", now + timedelta(seconds=said), 1, "here", now)
    silent = health_words.silence([beat], now)
    assert silent == abs(said)
    assert health_words.is_alive(silent) is alive


def test_a_start_in_the_future_is_a_start_now(db):
    """A collector that lives on while its clock is set back has not started later than it last said so:
    what it tells of its configuration stays its own."""
    writes.beat(db, NAME, os.getpid(), "here")
    with db.write() as connection:
        connection.execute(m.heartbeat.update().values(started_at=datetime.now(UTC) + HOUR))
    writes.beat(db, NAME, os.getpid(), "here")
    (beat,) = queries.heartbeats(db)
    assert beat.started_at == beat.at
