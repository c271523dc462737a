"""A collector to test: in the test's own process or in one of its own, in a folder with a slow backend."""

import json
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from collectors.collector import Collector
from collectors.pulse import Pulse
from collectors.reload import SettingsFile
from store import models as m
from store import queries, writes
from tests import waiting

WAIT_S = 60.0

CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.{backend}]
type = "{type}"
[suites.mine]
path = "mine.jsonl"
[schedules.nightly]
cron = "0 3 * * *"
suites = ["mine"]
backends = ["*"]
trials = 2
[limits]
timeout = 60
"""

SLOW = """
import os, time

class Slow:
    def __init__(self):
        self.texts = []
    def write(self, text):
        self.texts.append(text)
    def search(self, query, k):
        time.sleep(float(os.environ.get("SLOW_S", "0.15")) if query.startswith("Which") else 0)
        return self.texts[:k]
"""
"""Its run takes long enough to be looked at, stopped and killed."""


def until(condition, what):
    return waiting.until(condition, what, WAIT_S)


def case(number):
    return {
        "id": f"door-{number}",
        "writes": [f"The door of room {number} opens with code {1000 + number}."],
        "query": f"Which code opens room {number}?",
        "expect_any": [f"{1000 + number}"],
    }


def write_suite(folder, cases):
    lines = [json.dumps(case(number)) for number in range(cases)]
    (folder / "mine.jsonl").write_text("\n".join(lines) + "\n")


class Running:
    """A collector on a thread of the test's own process."""

    def __init__(self, db, busy_wait_s=0.0, first_runs=False):
        self.db, self.busy_wait_s, self.first_runs = db, busy_wait_s, first_runs
        self.stop = threading.Event()
        self.pulse, self.file = Pulse(db, self.stop), SettingsFile()

    def __enter__(self):
        self.pulse.__enter__()
        made = (self.db, self.file, self.stop, self.pulse.token, self.busy_wait_s)
        work = partial(Collector(*made).work, first_runs=self.first_runs)
        self.thread = threading.Thread(target=work)
        self.thread.start()
        until(lambda: queries.schedules(self.db), "the schedules are followed")
        return self

    def fire(self, schedule):
        """Let the schedule's time come. Returns it."""
        now = datetime.now(UTC)
        expect(self.db, schedule, now)
        return now

    def __exit__(self, *raised):
        self.stop.set()
        self.thread.join(WAIT_S)
        self.pulse.__exit__(*raised)
        assert not self.thread.is_alive()


class Tasks:
    """A worker whose tasks are done when the test says so."""

    def __init__(self):
        self.tasks = []

    def put(self, task):
        self.tasks.append(task)

    def work(self):
        while self.tasks:
            self.tasks.pop(0)()

    def finish(self, timeout_s):
        return True


def work_by_hand(collector):
    """Let its worker wait for `collector.worker.work()`."""
    collector.worker = collector.fires.worker = collector.answering.worker = Tasks()


class Process:
    """`memtrend ...` as a process of its own, killed at the end should it still live. What it says goes to
    `said`, which all of a folder share."""

    def __init__(self, home: Path, *arguments, **environment):
        command = [sys.executable, "-m", "collectors.cli", *arguments]
        self.said = home / "said.txt"
        variables = {**os.environ, "PYTHONPATH": "", **environment}
        with self.said.open("a") as said:
            self.process = subprocess.Popen(command, cwd=home, env=variables, stdout=said, stderr=said)

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def expect(db, schedule, *times):
    """Let these times of a schedule come."""
    rows = [
        {"schedule": schedule, "scheduled_for": at, "due": at, "state": "expected", "run_ids": []}
        for at in times
    ]
    with db.write() as connection:
        connection.execute(m.fire.insert(), rows)


def ask(db, kind="run", **payload):
    return writes.add_request(db, kind, payload, "tester")


def answered(db, request_id):
    def find():
        return [row for row in queries.requests(db, ["done", "failed"]) if row.id == request_id]

    return until(find, f"request {request_id} is answered")[0]


def told(db, part, source=None):
    """The event whose message holds `part`, once there is one."""

    def find():
        return [e for e in queries.events(db) if part in e.message and source in (None, e.source)]

    return until(find, f"an event says {part!r}")[0]


def ended(db, schedule):
    """The fires of a schedule that are over."""
    rows = queries.schedule_calendar(db, datetime(2026, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    return [row for row in rows if row.schedule == schedule and row.state != "due"]
