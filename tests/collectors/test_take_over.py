"""Two collectors on one record, as real processes: one leads, the other takes over when it is killed."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from collectors.pulse import NAME, TTL_S
from store import models as m
from store import queries
from tests.collectors.playground import cases, opened, project

WAIT_S = 60.0
NAMES = [f"s{number}" for number in range(8)]
CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.slow]
type = "sluggish:Slow"
[suites.mine]
path = "mine.jsonl"
""" + "".join(f'[schedules.{name}]\nevery = "30d"\nsuites = ["mine"]\n' for name in NAMES)
SLOW = """
import time

class Slow:
    def __init__(self):
        self.texts = []
    def write(self, text):
        self.texts.append(text)
    def search(self, query, k):
        time.sleep(0.05)
        return self.texts[:k]
"""
"""A run of it takes long enough to be killed in."""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "sluggish.py").write_text(SLOW)
    return project(tmp_path, CONFIG, cases(6), name="mine")


@pytest.fixture
def db(home):
    db = opened(home)
    yield db
    db.close()


class Collecting:
    """`memtrend collect` in a process of its own, which is stopped at the end."""

    def __init__(self, home, *options):
        command = [sys.executable, "-m", "collectors.cli", "collect", *options]
        with (home / "said.txt").open("a") as said:
            self.process = subprocess.Popen(
                command, cwd=home, env={**os.environ, "PYTHONPATH": str(home)}, stdout=said, stderr=said
            )

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def until(condition, what):
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {WAIT_S:.0f} s: {what}")


def expect(db, names, at):
    """Let the time of these schedules come."""
    rows = [
        {"schedule": name, "scheduled_for": at, "due": at, "state": "expected", "run_ids": []}
        for name in names
    ]
    with db.write() as connection:
        connection.execute(m.fire.insert(), rows)


def fires(db, at):
    return queries.schedule_calendar(db, at, at)


def leads(db, process):
    owners = [row.owner for row in queries.leases(db) if row.name == NAME and row.held]
    return bool(owners) and owners[0].endswith(f":{process.pid}")


def test_a_killed_leader_is_succeeded_and_no_fire_comes_twice(home, db):
    """After kill -9 of the leader the stand-by leads within the time of the lease. Each fire has come once:
    the one in flight is told with its run, and all others have one whole run."""
    with Collecting(home) as first:
        until(lambda: leads(db, first), "the first leads")
        with Collecting(home, "--stand-by") as second:
            until(lambda: "standing by" in (home / "said.txt").read_text(), "the second stands by")
            at = datetime.now(UTC)
            expect(db, NAMES, at)
            until(lambda: [fire for fire in fires(db, at) if fire.state == "done"], "one fire is done")
            until(lambda: queries.progress(db), "another is under way")
            first.send_signal(signal.SIGKILL)
            first.wait()
            killed = time.monotonic()
            until(lambda: leads(db, second), "the second leads")
            assert time.monotonic() - killed < TTL_S
            until(lambda: all(fire.state != "due" for fire in fires(db, at)), "all are accounted for")
            second.send_signal(signal.SIGTERM)
            assert second.wait(timeout=20) == 0
    runs = queries.runs(db, limit=1000)
    assert len({run.trigger for run in runs}) == len(runs) == len(NAMES), "one run a fire"
    cut = [run.trigger for run in runs if run.status != "whole"]
    assert len(cut) <= 1
    assert [f"schedule:{fire.schedule}" for fire in fires(db, at) if fire.state == "invalid"] == cut
    assert sum(fire.state == "done" for fire in fires(db, at)) == len(NAMES) - len(cut)
    tokens = {row.token for row in queries.leases(db) if row.name == NAME}
    assert tokens == {2}


def test_two_that_stand_by_do_not_both_lead(home, db):
    """Of collectors that all stand by exactly one leads, and what is due comes once."""
    with Collecting(home, "--stand-by") as first, Collecting(home, "--stand-by") as second:
        until(lambda: leads(db, first) or leads(db, second), "one leads")
        at = datetime.now(UTC)
        expect(db, NAMES[:3], at)
        until(lambda: [fire.state for fire in fires(db, at)] == ["done"] * 3, "all are done")
        assert leads(db, first) != leads(db, second)
    assert len(queries.runs(db)) == 3
