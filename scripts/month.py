"""Thirty days of schedules in minutes, with a real collector whose clock runs fast.

`python -m scripts.month [--days 30] [--folder F]`: `memtrend collect` in a process of its own, over small
suites. Its clock stands still until what is due has been taken and run, then goes on to the next fire. The
clock of Berlin is set back half-way through, and the collector is away twice, for a night and for a day.
Afterwards every fire that the schedules should have had is held against the record, the runs, and what
`memtrend doctor` says. Prints the account, the collector's memory by day, and the size of the record; exit
code 1 when anything is wrong. Needs time-machine: make install EXTRAS=test.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import time_machine

from collectors import collector
from collectors.demo.clock import Clock, follow
from collectors.demo.until import until
from scripts.month_account import AWAY, DAY, FLAT_MB, Month, Sample, account, warm_up
from store import queries
from store.database import Database, open_database
from store.settings import CONFIG_VARIABLE

SET_BACK = datetime(2026, 10, 25, 1, tzinfo=UTC)
"""When Berlin's clocks show 02:30 for the second time, half an hour later."""

STEP, SECOND = timedelta(minutes=4), timedelta(seconds=1)
"""A step is shorter than the grace in which a fire is on time: so time passes while a run goes on."""

WAIT_S = 300.0
CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.floor]
type = "everything"
[backends.words]
type = "keyword"
[backends.flaky]
type = "odd_days:Flaky"
[backends.slow]
type = "odd_days:Slow"
[suites.small]
path = "small.jsonl"

[schedules.berlin]
cron = "30 2 * * *"
timezone = "Europe/Berlin"
suites = ["small"]
backends = ["floor", "words"]
[schedules.often]
every = "6h"
suites = ["small"]
backends = ["floor"]
subset = { share = 0.5 }
[schedules.weekly]
cron = "0 5 * * sun"
suites = ["small"]
backends = ["words"]
trials = 2
[schedules.within]
cron = "0 4 * * *"
window = "1h"
suites = ["small"]
backends = ["words"]
[schedules.spread]
cron = "0 6 * * *"
jitter = "40m"
suites = ["small"]
backends = ["floor"]
[schedules.strict]
cron = "0 3 * * *"
catch_up = "none"
suites = ["small"]
backends = ["floor"]
[schedules.flaky]
cron = "15 7 * * *"
suites = ["small"]
backends = ["flaky"]
[schedules.slow]
cron = "0,30 12 * * *"
suites = ["small"]
backends = ["slow"]
"""

BACKENDS = '''
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

WAITING = Path(__file__).with_name("waiting")


class Shelf:
    def __init__(self):
        self.texts = []

    def write(self, text):
        self.texts.append(text)

    def search(self, query, k):
        return self.texts[:k]


class Flaky(Shelf):
    """Out of order every third day."""

    def search(self, query, k):
        if query.startswith("Which") and datetime.now(UTC).day % 3 == 0:
            raise ConnectionError("the server is being moved")
        return super().search(query, k)


class Slow(Shelf):
    """Takes 45 minutes for its first answer."""

    def __init__(self):
        super().__init__()
        self.until = None

    def _wait(self):
        self.until = datetime.now(UTC) + timedelta(minutes=45)
        WAITING.touch()
        while datetime.now(UTC) < self.until:
            time.sleep(0.002)
        WAITING.unlink()

    def search(self, query, k):
        if query.startswith("Which"):
            if self.until is None:
                self._wait()
        return super().search(query, k)
'''

# The collector's side ------------------------------------------------------------------------------------


def collect(clock: Path) -> int:
    """`memtrend collect`, at the time that the file says."""
    collector.POLL_S = 0.05
    collector.note = _passed_over
    follow(clock, tick=False)
    return collector.main()


def _passed_over(*_: object) -> None:
    """The look at shipped suites, once in the life of a record, has nothing to do with schedules."""


# The other side: the clock, and who is there ---------------------------------------------------------------


class World:
    """A folder with a record, a clock that only we set, and a collector that is there or away."""

    def __init__(self, folder: Path, start: datetime) -> None:
        self.folder, self.clock = folder, Clock(folder / "clock", start)
        (folder / "memtrend.toml").write_text(CONFIG)
        (folder / "odd_days.py").write_text(BACKENDS)
        (folder / "small.jsonl").write_text("".join(f"{json.dumps(_case(n))}\n" for n in range(6)))
        self.db = open_database(f"sqlite:///{folder / 'record.db'}")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def now(self) -> datetime:
        return self.clock.now

    def begin(self) -> None:
        (self.folder / "waiting").unlink(missing_ok=True)  # of one that was stopped in it
        command = [sys.executable, "-m", "scripts.month", "--collect", str(self.clock.path)]
        variables = {**os.environ, CONFIG_VARIABLE: str(self.folder / "memtrend.toml")}
        with (self.folder / "said.txt").open("a") as said:
            self.process = subprocess.Popen(command, env=variables, stdout=said, stderr=said)
        self._until(lambda: any(row.held for row in queries.leases(self.db)), "the collector leads")
        every = CONFIG.count("[schedules.")
        self._until(lambda: len(queries.schedules(self.db)) == every, "the schedules are followed")
        self._until(self._has_done, "what was due meanwhile was done")

    def end(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            if self.process.wait(timeout=WAIT_S):
                raise RuntimeError(f"the collector failed: {(self.folder / 'said.txt').read_text()[-2000:]}")
            self.process = None

    def go_on(self, until: datetime) -> None:
        """Let time pass, and the collector do what is due."""
        while self.now < until:
            step = STEP if self.waits else _next_due(self.db, self.now) - self.now
            self.clock.set(min(self.now + step, until))
            if self.process is not None:
                self._until(self._has_done, "what is due was done")

    def _has_done(self) -> bool:
        """All that is due is over, or waits behind what takes its time."""
        due = queries.unfinished_fires(self.db, self.now)
        return not due or ("expected" not in due and self.waits)

    @property
    def waits(self) -> bool:
        """Whether the slow backend lets time pass."""
        return (self.folder / "waiting").exists()

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        at = f"{self.now:%Y-%m-%d %H:%M}: {what}"
        until(condition, at, WAIT_S, self._tend, (self.folder / "said.txt").read_text)

    def _tend(self) -> None:
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"the collector ended: {(self.folder / 'said.txt').read_text()[-2000:]}")

    def sample(self, day: int) -> Sample:
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
        size = sum(part.stat().st_size for part in self.folder.glob("record.db*"))
        return Sample(day, int(kilobytes) / 1000, size / 1e6)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.db.close()


def _case(number: int) -> dict[str, object]:
    return {
        "id": f"door-{number}",
        "writes": [f"The door of room {number} opens with code {1000 + number}."],
        "query": f"Which code opens room {number}?",
        "expect_any": [f"{1000 + number}"],
    }


def _next_due(db: Database, now: datetime) -> datetime:
    """A second later: no clock that is told in fractions of one falls short of it."""
    ahead = queries.next_due(db, now)
    assert ahead is not None, "fire times are written 40 days ahead"
    return ahead + SECOND


def spend(folder: Path, days: int) -> Month:
    """Let so many days pass around the night in which Berlin's clocks are set back."""
    began = time.monotonic()
    start = SET_BACK.replace(hour=12) - (days // 2 + 1) * DAY
    world = World(folder, start)
    with closing(world):
        world.begin()
        samples = list(_days(world, start, days))
        world.go_on(start + days * DAY)
        world.end()
        with _at(world):
            return account(world.db, world.now, start, days, samples, time.monotonic() - began)


def _days(world: World, start: datetime, days: int) -> Iterator[Sample]:
    asked = {1, warm_up(days), 2 * days // 3, days}
    for day in range(1, days + 1):
        if day in AWAY:
            night = (world.now + DAY).replace(hour=1)
            world.go_on(night)
            world.end()
            world.go_on(night + AWAY[day])
            world.begin()
        world.go_on(start + day * DAY)
        if day in asked:
            yield (sample := world.sample(day))
            print(_told(sample), file=sys.stderr)


@contextmanager
def _at(world: World) -> Iterator[None]:
    """This process at the time of that world, in its folder."""
    with time_machine.travel(world.now, tick=False):
        before = Path.cwd()
        os.chdir(world.folder)
        try:
            yield
        finally:
            os.chdir(before)


def _print(month: Month) -> None:
    names = ("done", "late", "invalid", "skipped", "missed", "due")
    print(f"{'schedule':<10}{'fires':>7}" + "".join(f"{name:>9}" for name in names))
    for schedule, states in month.states.items():
        print(f"{schedule:<10}{sum(states.values()):>7}" + "".join(f"{states[name]:>9}" for name in names))
    print(f"{month.runs} runs, {len(month.missed)} fires missed at the end and not made up for")
    print("\n".join(map(_told, month.samples)))
    print(f"{month.days} days in {month.seconds:.0f} s")
    flat = f"memory is flat: at most {FLAT_MB:.0f} MB more after day {warm_up(month.days)}"
    print("\n".join(month.problems) or f"every fire is accounted for, and {flat}")


def _told(sample: Sample) -> str:
    return f"day {sample.day:>3}: collector {sample.memory:6.1f} MB, record {sample.record:6.2f} MB"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.month", description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--folder", type=Path, help="an empty one; kept")
    parser.add_argument("--collect", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.collect:
        return collect(given.collect)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        month = spend(folder.absolute(), given.days)
    _print(month)
    return 1 if month.problems else 0


if __name__ == "__main__":
    sys.exit(main())
