"""Kill parts of a running memtrend at random moments, and see what is lost, doubled or left behind.

`python -m scripts.kills [--kills 50] [--seed N] [--folder F] [--stand-by]`: `memtrend up` under a service
manager of ours; with --stand-by two collectors, of which whoever leads is killed. Prints a line for each kill
and what was found; exit code 1 when anything is wrong. ^C ends the killing, and what follows is told.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from scripts.kills_audit import InFlight, Record, left_on_disk, problems, unsettled
from scripts.kills_world import APART, World, free_port, left_behind

KINDS = ("up", "collector", "worker", "dashboard")
GONE_S = 20.0
"""How long what a killed process leaves may live: it is asked to stop, and killed after 12 s."""


class Kill(NamedTuple):
    """`at` and the others in seconds. `back`: until a collector led that had taken over what the last one had
    begun; `gone`: until what belonged to the killed was gone."""

    number: int
    at: float
    what: str
    in_flight: list[InFlight]
    back: float
    gone: float
    problems: list[str]


class Found(NamedTuple):
    kills: list[Kill]
    problems: list[str]
    record: Record
    starts: int

    @property
    def wrong(self) -> list[str]:
        return [*(one for kill in self.kills for one in kill.problems), *self.problems]


def kill_up(home: Path, kinds: list[str], dice: random.Random) -> Found:
    with World(home, ("up", "--port", str(free_port()))) as world:
        return _killed(world, kinds, dice)


def kill_leaders(home: Path, kills: int, dice: random.Random) -> Found:
    """Of two collectors that both stand by."""
    with World(home, ("collect", "--stand-by"), ("collect", "--stand-by")) as world:
        return _killed(world, ["leader"] * kills, dice)


def _killed(world: World, kinds: list[str], dice: random.Random) -> Found:
    record, started = Record(world.home), time.monotonic()
    world.until(world.leader, "a collector leads")
    kills = list[Kill]()
    with suppress(KeyboardInterrupt):
        for number, what in enumerate(kinds, 1):
            _wait_for_a_moment(world, record, dice)
            kills.append(_kill(world, record, number, what, dice, started))
            _say(kills[-1])
    return Found(kills, list(_ended(world, record)), record, sum(one.starts for one in world.services))


def _wait_for_a_moment(world: World, record: Record, dice: random.Random) -> None:
    """Any moment; four times of five while something runs."""
    if dice.random() < 0.8:
        world.until(record.in_flight, "something runs")
    world.wait(dice.uniform(0.0, 3.0))


def _kill(world: World, record: Record, number: int, what: str, dice: random.Random, started: float) -> Kill:
    victim = world.until(lambda: world.leader() if what == "leader" else world.find(what), f"a {what} lives")
    if what == "worker":  # it lives no longer than its run
        world.wait(dice.uniform(0.0, 0.8))
        victim = world.until(lambda: _of_a_run(world, record), "a worker lives")
    world.ask()
    stored, in_flight, theirs = record.stored(), record.in_flight(), _theirs(world, victim, what)
    at = time.monotonic()
    victim.kill()
    end = at + GONE_S
    world.until(lambda: time.monotonic() > end or not _alive(theirs), "they are gone")
    gone, late = time.monotonic() - at, _alive(theirs)
    world.until(lambda: world.leader() and not record.of_the_dead(), "a collector leads and has settled")
    back = time.monotonic() - at
    wrong = [*problems(record, stored, world.workers), *(f"outlived its parent: {one}" for one in late)]
    return Kill(number, at - started, what, in_flight, back, gone, wrong)


def _of_a_run(world: World, record: Record) -> psutil.Process | None:
    """A worker, which counts as one of the run under way on its backend."""
    runs = [run.run_id for run in record.in_flight() if run.backend == APART]
    victim = world.find("worker") if runs else None
    if victim:
        world.workers.update(runs)
    return victim


def _theirs(world: World, victim: psutil.Process, what: str) -> list[psutil.Process]:
    """What has to end with the victim: of `up` and its children all, of a worker its leash."""
    if what == "worker":
        return [victim, victim.parent() or victim]
    service = next(one for one in world.services if victim in one.below())
    return service.below()


def _alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in processes if _lives(one)]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _ended(world: World, record: Record) -> Iterator[str]:
    """What is wrong once every fire is accounted for and all was stopped."""
    world.firing = False
    world.until(lambda: not _waiting(record), "every fire is accounted for")
    stored = record.stored()
    if code := world.stop():
        yield f"TERM: exit code {code}"
    yield from problems(record, stored, world.workers)
    yield from unsettled(record)
    yield from left_on_disk(world.home, record)
    yield from (f"left: process {one}" for one in left_behind(world.home))


def _waiting(record: Record) -> bool:
    """Whether a fire, a request or a first run is to come or at work."""
    query = "SELECT 1 FROM fire WHERE state = 'claimed' OR state = 'expected' AND due <= datetime('now')"
    asked = "SELECT 1 FROM request WHERE state IN ('queued', 'claimed')"
    first = "SELECT 1 FROM run WHERE trigger = 'first' AND status IN ('running', 'interrupted')"
    return any(map(record.rows, (query, asked, first)))


# Told


def _say(kill: Kill) -> None:
    flying = "; ".join(f"run {run.run_id} on {run.backend} {run.done}/{run.total}" for run in kill.in_flight)
    print(
        f"{kill.number:3} {kill.at:7.1f} s  {kill.what:9}  {flying or 'no run':34}  back {kill.back:5.1f} s  "
        f"gone {kill.gone:5.1f} s  {'; '.join(kill.problems) or 'ok'}",
        flush=True,
    )


def _sum_up(found: Found) -> None:
    cut = {run.run_id for kill in found.kills for run in kill.in_flight}
    ended = [found.record.status(run) for run in sorted(cut)]
    print(f"\n{len(found.kills)} kills, {found.starts} starts")
    print("runs in flight at a kill:", {status: ended.count(status) for status in sorted(set(ended))})
    print("runs:", found.record.count("run", "status"))
    print("fires:", found.record.count("fire"))
    print("requests:", found.record.count("request"))
    for line in found.wrong or ["nothing lost, nothing twice, nothing left"]:
        print(line)


def shuffled(kills: int, dice: random.Random) -> list[str]:
    """Each kind as often as the others, in random order."""
    kinds = [KINDS[number % len(KINDS)] for number in range(kills)]
    dice.shuffle(kinds)
    return kinds


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--folder", type=Path, help="kept afterwards; without it a temporary one")
    options.add_argument("--stand-by", action="store_true", help="two collectors instead of `up`")
    asked = options.parse_args()
    dice = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as temporary:
        home = (asked.folder or Path(temporary)) / "home"
        if asked.stand_by:
            found = kill_leaders(home, asked.kills, dice)
        else:
            found = kill_up(home, shuffled(asked.kills, dice), dice)
        _sum_up(found)
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
