"""A folder in which memtrend runs by itself, as under a service manager, and what there is to kill in it.

Three schedules of a small suite: over a store on disk, a backend in a process of its own, and a slow one.
Their fire times come every few seconds, written as a collector writes them ahead, since `every` knows no less
than a minute.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import psutil

from collectors.configured import configured, load_suite, register_all
from collectors.demo.until import until
from collectors.record import suite_record
from collectors.scorers import SCORER_VERSION
from collectors.suite import SHIPPED
from store import models as m
from store import queries, writes
from store.database import Database, open_database
from store.records import NewRun

T = TypeVar("T")

ROOT = Path(__file__).parent.parent
APART = "apart"
"""The backend whose runs have a worker."""
BACKENDS = ("kept", APART, "slow")
"""Of each there is a schedule of its name."""
CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.kept]
type = "sluggish:Slow"
where = "kept"
[backends.apart]
type = "sluggish:Slow"
package = "six==1.17.0"
[backends.slow]
type = "sluggish:Slow"
seconds = 0.4
[suites.mine]
path = "mine.jsonl"
[schedules.kept]
every = "30d"
suites = ["mine"]
backends = ["kept"]
[schedules.apart]
every = "30d"
suites = ["mine"]
backends = ["apart"]
[schedules.slow]
every = "30d"
suites = ["mine"]
backends = ["slow"]
"""
ADAPTER = """
import time
from pathlib import Path

from collectors.backend import BackendConfig
from collectors.backends.keyword import Keyword


class Slow(Keyword):
    def __init__(self, seconds=0.15, where=None):
        super().__init__(BackendConfig("slow", "keyword", {}, directory=Path(where) if where else None))
        self.seconds = seconds

    def recall(self, scope, query, k, leg=None):
        time.sleep(self.seconds if query.startswith("Which") else 0)
        return super().recall(scope, query, k, leg)
"""
CASES = 10
FIRE_S = 3.0
"""Between one fire and the next, whose schedules take turns."""
RESTART_S = 0.5
WAIT_S = 120.0
MARK = "KILLS_FOLDER"
"""A variable of the environment of all that is started here, but for workers, which live in our folder."""


class Service:
    """A command that is started again whenever it has ended, as `Restart=always` has it."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.home, self.arguments = home, arguments
        self.starts, self._ended = 0, 0.0
        self.start()

    def start(self) -> None:
        scratch = self.home / "tmp"
        variables = {**os.environ, MARK: str(self.home), "TMPDIR": str(scratch), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-P", "-m", "collectors.cli", *self.arguments]
        self.starts += 1
        with (self.home / "said.txt").open("a") as said:
            self.process = psutil.Popen(
                command, cwd=self.home, env=variables, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )

    def tend(self) -> None:
        if self.process.poll() is None:
            self._ended = time.monotonic()
        elif time.monotonic() - self._ended > RESTART_S:
            self.start()

    def below(self) -> list[psutil.Process]:
        """It and all that it started."""
        with suppress(psutil.NoSuchProcess):
            return [self.process, *self.process.children(recursive=True)]
        return []


class World:
    """The folder, its services, and its fires, which come as long as `firing`. `workers`: of which run how
    many were killed."""

    def __init__(self, home: Path, *commands: tuple[str, ...]) -> None:
        self.home, self.firing = home, True
        lay_out(home)
        self.db = opened(home)
        pretend_first_runs(self.db, home)
        self._next = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(days=20)
        self._turn, self._fired, self.workers = 0, time.monotonic(), Counter[int]()
        self.services = [Service(home, *command) for command in commands]

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        for process in left_behind(self.home):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for service in self.services:
            service.process.wait()
        self.db.close()

    def tend(self) -> None:
        for service in self.services:
            service.tend()
        if self.firing and time.monotonic() - self._fired > FIRE_S:
            self._fire()

    def _fire(self) -> None:
        """Each is of a minute of its own, as the times of a schedule are, and due now. While two of a
        schedule wait for a collector no more come: most would be missed, and few run."""
        name, self._turn = BACKENDS[self._turn % len(BACKENDS)], self._turn + 1
        self._fired = time.monotonic()
        if sum(fire.schedule == name for fire in queries.due_fires(self.db, datetime.now(UTC))) > 1:
            return
        at, self._next = self._next, self._next + timedelta(minutes=1)
        row = {
            "schedule": name,
            "scheduled_for": at,
            "due": datetime.now(UTC),
            "state": "expected",
            "run_ids": [],
        }
        with self.db.write() as connection:
            connection.execute(m.fire.insert(), [row])

    def ask(self) -> None:
        """For a run, as a person does."""
        writes.add_request(self.db, "run", {"suite": "mine", "backend": BACKENDS[0]}, "kills")

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.tend()
            time.sleep(0.02)

    def until(self, condition: Callable[[], T], what: str) -> T:
        return until(condition, what, WAIT_S, self.tend, (self.home / "said.txt").read_text)

    def find(self, what: str) -> psutil.Process | None:
        """The process to kill: `up`, `collector`, `dashboard`, or the `worker` of a run under way."""
        for service in self.services:
            for process in service.below():
                with suppress(psutil.NoSuchProcess):
                    if kind(process) == what:
                        return process
        return None

    def leader(self) -> psutil.Process | None:
        """The living process that leads."""
        held = [row for row in queries.leases(self.db) if row.name == writes.LEADER_LEASE and row.held]
        pids = {int(row.owner.rpartition(":")[2]) for row in held}
        ours = (process for service in self.services for process in service.below())
        return next((process for process in ours if process.pid in pids and process.is_running()), None)

    def stop(self) -> int | None:
        """TERM to all. The exit code of the one that led: another may only be starting."""
        leader = self.until(self.leader, "a collector leads")
        led = next(one for one in self.services if leader in one.below())
        for service in self.services:
            with suppress(psutil.NoSuchProcess):
                service.process.terminate()
        return {service: service.process.wait(60) for service in self.services}[led]


def kind(process: psutil.Process) -> str:
    command = " ".join(process.cmdline())
    if "leash.py" in command:
        return "leash"
    kinds = {"worker.py": "worker", "dashboard.server": "dashboard", "collectors.collector": "collector"}
    found = next((kind for part, kind in kinds.items() if part in command), None)
    if found or "collectors.cli" not in command:
        return found or "other"
    return "up" if process.cmdline()[4] == "up" else "collector"


def lay_out(home: Path) -> None:
    (home / "tmp").mkdir(parents=True)
    (home / "memtrend.toml").write_text(CONFIG)
    (home / "sluggish.py").write_text(ADAPTER)
    lines = [json.dumps(_case(number)) for number in range(CASES)]
    (home / "mine.jsonl").write_text("\n".join(lines) + "\n")


def _case(number: int) -> dict[str, object]:
    return {
        "id": f"door-{number}",
        "writes": [f"The door of room {number} opens with code {1000 + number}."],
        "query": f"Which code opens room {number}?",
        "expect_any": [f"{1000 + number}"],
    }


def opened(home: Path) -> Database:
    return open_database(f"sqlite:///{home / 'record.db'}")


def pretend_first_runs(db: Database, home: Path) -> None:
    """The shipped suites have run before: `up` would begin with them, and is to be killed in schedules."""
    settings = configured(home / "memtrend.toml")
    register_all(db, settings)
    for name in SHIPPED:
        suite = load_suite(settings, name)
        version = writes.register_suite(db, suite_record(suite, "default"))
        for backend in BACKENDS:
            _pretend(db, version, writes.register_backend(db, backend, "sluggish:Slow", {}, "default"))


def _pretend(db: Database, version: int, backend: int) -> None:
    new = NewRun(version, backend, None, "before", 0, 0, 0, SCORER_VERSION)
    writes.close_run(db, writes.open_run(db, new), "whole", [], token=0)


def left_behind(home: Path) -> Iterator[psutil.Process]:
    """Every process that was started in the folder, by anyone, and lives."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            inside = process.environ().get(MARK) == str(home) or process.cwd().startswith(str(home))
            if inside and process.status() != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
                yield process


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
