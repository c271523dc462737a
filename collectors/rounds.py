"""What every run goes through: its backends are held, and scenario after scenario is played and kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import NamedTuple

from collectors.arm import Arm
from collectors.budget import overrun
from collectors.calls import Instance
from collectors.lease import BackendLease
from collectors.plans import Progress, RunPlan
from collectors.scenario import Played
from collectors.suite import Scenario
from collectors.turns import played, turns
from store import queries
from store.database import Database

Report = Callable[[Progress], None]


@contextmanager
def arms(plans: Sequence[RunPlan], db: Database, stops: Sequence[threading.Event]) -> Iterator[list[Arm]]:
    """An arm for each plan, its backend held as long as this lasts. Raises `InstanceBusy` while another run
    has one of them, `Stopped` when stopped while waiting for one that was left."""
    with ExitStack() as held:
        leases = [
            held.enter_context(BackendLease(db, plan.backend.name, stop))
            for plan, stop in zip(plans, stops, strict=True)
        ]
        found = [
            Arm(_expecting(db, plan), db, lease, Instance(plan.backend))
            for plan, lease in zip(plans, leases, strict=True)
        ]
        for arm in found:
            held.callback(arm.close)
        yield found


def _expecting(db: Database, plan: RunPlan) -> RunPlan:
    expected = queries.expected_counts(db, plan.suite.name, plan.backend.name)
    return replace(plan, suite=plan.suite.expecting(expected))


class Job(NamedTuple):
    arm: Arm
    trial: int
    scenario: Scenario


class Rounds:
    """The loop. `own` is the first arm: progress is told of its run, and its lease ends all of them."""

    def __init__(self, arms: Sequence[Arm], on_progress: Report) -> None:
        self.own, self.arms, self.on_progress = arms[0], list(arms), on_progress
        self.overrun: str | None = None

    def play_all(self) -> None:
        """What is missing of the runs, which are open. Raises `Stopped`, `LeaseLost`."""
        finished = {arm.run_id: queries.finished_scenarios(arm.db, arm.run_id) for arm in self.arms}
        self._report()
        jobs = [job for job in self._jobs() if (job.scenario.id, job.trial) not in finished[job.arm.run_id]]
        together = [job for job in jobs if not job.scenario.reopens]
        alone = [job for job in jobs if job.scenario.reopens]
        for part, workers in ((together, self._workers()), (alone, 1)):
            for job, answers in played(part, self.play, workers):
                self.save(job, answers)
                self._report()

    def play(self, job: Job) -> Played | None:
        return job.arm.play(job.trial, job.scenario)

    def save(self, job: Job, answers: Played | None) -> None:
        if answers is not None:
            job.arm.save(job.trial, job.scenario, answers)
        if why := overrun(self.own.db, self.own.plan, [arm.run_id for arm in self.arms]):
            self.overrun = self.own.lease.reason = why
            self.own.lease.stop.set()

    def _jobs(self) -> list[Job]:
        suite, trials = self.own.plan.suite, self.own.plan.trials
        return [
            Job(arm, trial, arm.plan.suite.scenarios[place])
            for arm, trial, place in turns(self.arms, trials, len(suite.scenarios))
        ]

    def _workers(self) -> int:
        return self.own.plan.limits.concurrency if all(arm.concurrent for arm in self.arms) else 1

    def _report(self) -> None:
        plan, arms = self.own.plan, self.arms
        counts = (sum(getattr(arm, name) for arm in arms) for name in ("done", "total", "errors"))
        self.on_progress(Progress(self.own.run_id, plan.suite.name, plan.backend.name, *counts))
