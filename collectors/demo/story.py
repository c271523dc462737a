"""Thirty nights of a support desk whose assistant has a memory: a month that ends last night.

On night 20 a new release of a package breaks three cases; one alert says so, a person takes it, gates refuse
the commit and pass its mending, and after two good nights it is over. Everything happens as it would: a
collector in a process of its own, its schedule, its looks, its messages, commands as processes. Only the
clock is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from collectors.demo import folder as demo
from collectors.demo.receiver import receiving
from collectors.demo.stage import Stage
from store import queries, writes

NIGHTS, BAD_NIGHT, MENDED_NIGHT, PROOF_NIGHT = 30, 20, 25, 28
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NIGHT_HOUR = 3
THIRD_LOOK = 2.5 * HOUR
"""After a night's runs, and long enough after them for the look that settles what is suspected."""
SETTLED = 6 * HOUR
"""How long ago the last night must be, so that nothing of it is still ahead."""
PERSON = "noor"
BAD_COMMIT, MENDED_COMMIT = "b81f3d0", "e07c2a9"
DEPLOYS = {6: "deploy 4.10", 13: "deploy 4.11"}

Say = Callable[[str], None]


def last_night(now: datetime) -> datetime:
    """The newest night that is over, in UTC."""
    over = (now - SETTLED).astimezone(UTC)
    night = over.replace(hour=NIGHT_HOUR, minute=0, second=0, microsecond=0)
    return night if night <= over else night - DAY


def build(folder: Path, now: datetime, dashboard: str, say: Say) -> None:
    """Let the month pass in a folder that is there and empty. `dashboard`: where it will answer."""
    first = last_night(now) - (NIGHTS - 1) * DAY
    demo.furnish(folder, first, dashboard)
    with receiving(folder), Stage(folder, first - 12 * HOUR) as stage:
        month = Month(stage, first, say)
        month.pass_by()
        demo.write_story(folder, {"nights": [first.isoformat(), month.at(NIGHTS).isoformat()], **month.told})


class Month:
    """What happens, night by night, and on the days before and after some of them."""

    def __init__(self, stage: Stage, first: datetime, say: Say) -> None:
        self.stage, self.first, self.say = stage, first, say
        self.told: dict[str, Any] = {"gates": {}}
        self.days_before: Mapping[int, Callable[[], None]] = {
            BAD_NIGHT: lambda: self.upgrade(demo.BAD, self.at(BAD_NIGHT, -11)),
            MENDED_NIGHT: self.mend,
        }
        self.days_after: Mapping[int, Callable[[], None]] = {
            BAD_NIGHT: self.take_the_alert,
            MENDED_NIGHT + 1: self.judge_the_alert,
            PROOF_NIGHT: self.prove,
        }

    def at(self, night: int, hours: float = 0.0) -> datetime:
        """So many hours after the runs of that night begin."""
        return self.first + (night - 1) * DAY + hours * HOUR

    def pass_by(self) -> None:
        self.stage.start_collector()
        for night in range(1, NIGHTS + 1):
            self.say(f"night {night} of {NIGHTS}, {self.at(night):%d %B}")
            self.evening(night)
            self.night(night)
            if after := self.days_after.get(night):
                after()
        self.report()
        self.stage.stop_collector()

    def evening(self, night: int) -> None:
        if before := self.days_before.get(night):
            before()
        elif text := DEPLOYS.get(night):
            self.mark(text, self.at(night, -11), "deploy")

    def night(self, night: int) -> None:
        """Its runs, the looks at once, and the look some hours later where that is owed."""
        self.stage.go_to(self.at(night))
        if queries.owed_looks(self.stage.db):
            self.stage.go_to(self.at(night) + THIRD_LOOK)

    # What people do

    def mark(self, text: str, at: datetime, kind: str) -> None:
        writes.add_mark(self.stage.db, text, at, kind, PERSON)
        self.say(f"  {text}")

    def upgrade(self, release: str, at: datetime) -> None:
        """Who was started before would go on with the package as it was."""
        self.stage.stop_collector()
        demo.install(self.stage.folder, release)
        self.stage.clock.set(at)
        self.mark(f"{demo.PACKAGE} {release}", at, "upgrade")
        self.stage.start_collector()

    def take_the_alert(self) -> None:
        for row in queries.alerts(self.stage.db, states=["open"], limit=None):
            self.say(f"  alert {row.incident.id}: {PERSON} takes it")
            self.stage.go_to(self.at(BAD_NIGHT, 5.7))
            self.act("ack", row.incident.id, "it came with the upgrade, I ask its makers")
        self.stage.go_to(self.at(BAD_NIGHT, 7.2))
        self.gate(BAD_COMMIT)

    def mend(self) -> None:
        self.stage.go_to(self.at(MENDED_NIGHT, -13))
        demo.install(self.stage.folder, demo.MENDED)
        self.gate(MENDED_COMMIT)
        self.upgrade(demo.MENDED, self.at(MENDED_NIGHT, -11))

    def judge_the_alert(self) -> None:
        self.stage.go_to(self.at(MENDED_NIGHT + 1, 6))
        for row in queries.alerts(self.stage.db, states=["resolved"], limit=None):
            self.act("real", row.incident.id, f"{demo.PACKAGE} {demo.BAD} kept what was amended")

    def prove(self) -> None:
        """The drill that shows that somebody would be told."""
        self.stage.go_to(self.at(PROOF_NIGHT, 6))
        self.stage.run("alerts", "proof", "--suite", demo.SUITE, "--backend", demo.STEADY)

    def report(self) -> None:
        """On the morning after the last night: what the upgrade did, and whether to move to the other one."""
        self.stage.go_to(self.at(NIGHTS, 5))
        for row in queries.alerts(self.stage.db, states=["resolved"], kinds=["regression"], limit=None):
            self.write(demo.REPORTED, "report", str(row.first_bad_run_id))
        self.write(demo.COMPARED, "compare", demo.ASSISTANT, demo.STEADY, "--suite", demo.SUITE)

    def write(self, file: str, *command: str) -> None:
        code = self.stage.run(*command, "--html", file)
        self.told[command[0]] = code
        self.say(f"  memtrend {' '.join(command)} --html {file}: exit {code}")

    def act(self, what: str, alert: int | None, reason: str) -> None:
        self.stage.run("alerts", what, str(alert), "--reason", reason, user=PERSON)
        self.stage.go_to(self.stage.clock.now)

    def gate(self, commit: str) -> None:
        file, of = f"gate-{commit}.md", ("--suite", demo.SUITE, "--backend", demo.ASSISTANT)
        code = self.stage.run("gate", *of, "--meta", f"commit={commit}", "--md", file)
        self.told["gates"][commit] = code
        self.say(f"  memtrend gate on commit {commit}: exit {code}")
