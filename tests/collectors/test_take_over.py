"""Two collectors on one record, as real processes: one leads, the other takes over when it is killed."""

import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from collectors.pulse import NAME, TTL_S
from store import models as m
from store import queries
from tests.collectors.collecting import CONFIG, Process, expect, until, write_suite

NAMES = [f"s{number}" for number in range(8)]
SCHEDULES = "".join(f'[schedules.{name}]\nevery = "30d"\nsuites = ["mine"]\n' for name in NAMES)


@pytest.fixture
def home(slow_home, monkeypatch):
    """With eight schedules of which none comes by itself."""
    monkeypatch.setenv("SLOW_S", "0.05")
    config = CONFIG.format(backend="slow", type="sluggish:Slow").partition("[schedules")[0]
    (slow_home / "memtrend.toml").write_text(config + SCHEDULES)
    write_suite(slow_home, 6)
    return slow_home


def fires(db, at):
    return queries.schedule_calendar(db, at, at)


def leads(db, process):
    owners = [row.owner for row in queries.leases(db) if row.name == NAME and row.held]
    return bool(owners) and owners[0].endswith(f":{process.pid}")


def test_a_killed_leader_is_succeeded_and_no_fire_comes_twice(home, db):
    """After kill -9 of the leader the stand-by leads within the time of the lease, and goes on with the fire
    in flight. Each has come once, and has one whole run."""
    with Process(home, "collect") as first:
        until(lambda: leads(db, first), "the first leads")
        with Process(home, "collect", "--stand-by") as second:
            until(lambda: "standing by" in (home / "said.txt").read_text(), "the second stands by")
            at = datetime.now(UTC)
            for name in NAMES:
                expect(db, name, at)
            until(lambda: [fire for fire in fires(db, at) if fire.state == "done"], "one fire is done")
            until(lambda: queries.progress(db), "another is under way")
            first.send_signal(signal.SIGKILL)
            first.wait()
            killed = time.monotonic()
            until(lambda: leads(db, second), "the second leads")
            assert time.monotonic() - killed < TTL_S
            until(lambda: all(fire.state == "done" for fire in fires(db, at)), "all are done")
            second.send_signal(signal.SIGTERM)
            assert second.wait(timeout=20) == 0
    runs = queries.runs(db, limit=1000)
    assert len({run.trigger for run in runs}) == len(runs) == len(NAMES), "one run a fire"
    assert {(run.status, run.cases_done) for run in runs} == {("whole", 6)}
    tokens = {row.token for row in queries.leases(db) if row.name == NAME}
    assert tokens == {2}


QUICK = """
import sys
from collectors import lease, pulse

pulse.TTL_S, pulse.BEAT_S, lease.POLL_S = 6.0, 1.0, 0.1
sys.argv = ["memtrend", *sys.argv[1:]]
from collectors import cli
cli.main()
"""
"""memtrend with a leader's lease that is over soon."""


class Quick(Process):
    def __init__(self, home, *arguments):
        self.said = home / "said.txt"
        with self.said.open("a") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", QUICK, *arguments], cwd=home, stdout=said, stderr=said
            )


def claim(db):
    return next(row for row in queries.leases(db) if row.name == NAME)


def moves_elsewhere(db, process):
    """Kill the leader, whose claim says another host, so that nobody can know that it is dead."""
    with db.write() as connection:
        of_the_leader = m.lease.update().where(m.lease.c.name == NAME)
        connection.execute(of_the_leader.values(owner=f"elsewhere:{process.pid}"))
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_leader_that_died_elsewhere_is_succeeded_when_its_claim_is_over(home, db):
    """What a leader of another host held is its own until it expires: the stand-by leads after that, and each
    fire comes once."""
    at = datetime.now(UTC)
    for name in NAMES[:2]:
        expect(db, name, at)
    with Quick(home, "collect") as first:
        until(lambda: leads(db, first), "the first leads")
        with Quick(home, "collect", "--stand-by") as second:
            until(lambda: len([fire for fire in fires(db, at) if fire.state == "done"]) == 2, "both are done")
            until(lambda: "standing by" in (home / "said.txt").read_text(), "the second stands by")
            later = datetime.now(UTC)
            moves_elsewhere(db, first)
            left = claim(db)
            for name in NAMES[2:4]:
                expect(db, name, later)
            until(lambda: leads(db, second), "the second leads")
            taken = claim(db)
            assert taken.token == left.token + 1
            until(lambda: all(fire.state == "done" for fire in fires(db, later)), "the others are done")
    assert taken.expires - timedelta(seconds=6) > left.expires
    runs = queries.runs(db, limit=1000)
    assert len({run.trigger for run in runs}) == len(runs) == 4, "one run a fire"


def test_two_that_stand_by_do_not_both_lead(home, db):
    """Of collectors that all stand by exactly one leads, and what is due comes once."""
    with Process(home, "collect", "--stand-by") as first, Process(home, "collect", "--stand-by") as second:
        until(lambda: leads(db, first) or leads(db, second), "one leads")
        at = datetime.now(UTC)
        for name in NAMES[:3]:
            expect(db, name, at)
        until(lambda: [fire.state for fire in fires(db, at)] == ["done"] * 3, "all are done")
        assert leads(db, first) != leads(db, second)
    assert len(queries.runs(db)) == 3
