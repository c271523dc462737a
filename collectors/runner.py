"""The heart: run a suite against a backend and keep every answer.

One loop for every kind of suite. Each scenario is committed before the next is played, so a kill at any
moment loses at most the scenarios in flight, and `resume` plays exactly those that are missing. A frozen
release that runs beside the backend, its control, takes turns with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import NamedTuple

from collectors.arm import Arm
from collectors.budget import overrun, refuse_beyond
from collectors.calls import Instance, Stopped
from collectors.lease import BackendLease, StopBeside
from collectors.plans import Progress, RunOutcome, RunPlan, beside, look_at, release
from collectors.scenario import Played
from collectors.suite import Scenario
from collectors.turns import played, turns
from store import logs, queries, writes
from store.database import Database
from store.errors import StoreError
from store.records import ClosedStatus

Report = Callable[[Progress], None]
LOG = logs.get("runner")


def run(
    plan: RunPlan,
    db: Database,
    *,
    on_progress: Report = lambda progress: None,
    stop: threading.Event | None = None,
    resume: int | None = None,
) -> RunOutcome:
    """Run the plan, or what is missing of the interrupted run `resume`; its control with it. `stop` is this
    run's alone, and interrupts it within 10 s. Raises `InstanceBusy` while another run has the backend or its
    control, `Stopped` when it was stopped before it began, `OverBudget` when the day's money is not enough
    and `NeverWithinBudget` when no day's would be, `StoreError` when the record refuses."""
    plans, stop = [plan, *beside(plan)], stop or threading.Event()
    stops = [stop, *(StopBeside(stop) for _ in plans[1:])]
    with ExitStack() as held:
        leases = [
            held.enter_context(BackendLease(db, one.backend.name, its_stop))
            for one, its_stop in zip(plans, stops, strict=True)
        ]
        arms = [
            Arm(_expecting(db, one), db, lease, Instance(one.backend))
            for one, lease in zip(plans, leases, strict=True)
        ]
        for arm in arms:
            held.callback(arm.close)
        with logs.bound(suite=plan.suite.name, backend=plan.backend.name):
            return _Run(arms, on_progress).run(resume)


def _expecting(db: Database, plan: RunPlan) -> RunPlan:
    expected = queries.expected_counts(db, plan.suite.name, plan.backend.name)
    return replace(plan, suite=plan.suite.expecting(expected))


class _Job(NamedTuple):
    arm: Arm
    trial: int
    scenario: Scenario


class _Run:
    """The backend's arm, and that of its control where it has one. A control that is broken, has too many
    errors, is cancelled or loses its lease ends no more than itself."""

    def __init__(self, arms: Sequence[Arm], on_progress: Report) -> None:
        self.own, self.arms, self.on_progress = arms[0], list(arms), on_progress
        self._overrun: str | None = None

    def run(self, resume: int | None) -> RunOutcome:
        refuse_beyond(self.own.db, [arm.plan for arm in self.arms], resume)
        self._prepare()
        self._open() if resume is None else self._reopen(resume)
        for arm in self.arms:
            arm.lease.watch(arm.run_id)
        with logs.bound(run=self.own.run_id):
            LOG.info("run began", cases=self.own.total, trigger=self.own.plan.trigger, resumed=bool(resume))
            return self._from_opening()

    def _from_opening(self) -> RunOutcome:
        if self.own.broken:
            return self.own.end("void", self.own.broken)
        for control in self.arms[1:]:
            if control.broken:
                self._leave(control, "void", control.broken)
        try:
            self._play_all()
        except Stopped:
            return self._interrupted()
        for control in self.arms[1:]:  # first: what it says is part of the backend's verdict
            with suppress(writes.LeaseLost):
                self._conclude(control)
        return self._conclude(self.own)

    # Before the first scenario

    def _prepare(self) -> None:
        self.own.prepare()
        if self.own.broken:  # there is nothing for a control to be compared with
            self.arms = [self.own]
        for control in self.arms[1:]:
            try:
                control.prepare()
            except Stopped:
                if self.own.lease.stop.is_set():
                    raise
                self.arms = [self.own]  # its lease is another's

    def _open(self) -> None:
        own, db = self.own, self.own.db
        if len(self.arms) == 1:
            own.run_id = writes.open_run(db, own.new_run())
            return
        control = self.arms[1]
        own.run_id, control.run_id = writes.open_pair(db, own.new_run(), control.new_control())

    def _reopen(self, run_id: int) -> None:
        run_ids = [run_id, *self._control_to_resume(run_id)]
        self.arms = self.arms[: len(run_ids)]
        reopened = list(zip(self.arms, run_ids, strict=True))
        for arm, one in reopened:
            arm.refuse_another_system(one)
        for arm, one in reopened:
            arm.reopen(one)

    def _control_to_resume(self, run_id: int) -> list[int]:
        """A control that has ended, or is of another release now, stays as it is."""
        found = queries.control_beside(self.own.db, run_id)
        same = [found for arm in self.arms[1:] if found and found.release == release(arm.plan.backend)]
        return [one.control_id for one in same if one.status == "interrupted"]

    # The loop

    def _play_all(self) -> None:
        finished = {arm.run_id: queries.finished_scenarios(arm.db, arm.run_id) for arm in self.arms}
        self._report()
        jobs = [job for job in self._jobs() if (job.scenario.id, job.trial) not in finished[job.arm.run_id]]
        together = [job for job in jobs if not job.scenario.reopens]
        alone = [job for job in jobs if job.scenario.reopens]
        for part, workers in ((together, self._workers()), (alone, 1)):
            for job, answers in played(part, self._play, workers):
                self._save(job, answers)
                self._report()

    def _play(self, job: _Job) -> Played | None:
        """None of a control that was stopped alone."""
        try:
            return job.arm.play(job.trial, job.scenario)
        except Stopped:
            if self.own.lease.stop.is_set():
                raise
            return None

    def _save(self, job: _Job, answers: Played | None) -> None:
        if job.arm not in self.arms:  # it was left, and this was under way
            return
        if answers is None:
            return self._leave(job.arm, "interrupted", job.arm.lease.reason)
        try:
            job.arm.save(job.trial, job.scenario, answers)
        except writes.LeaseLost:
            if job.arm is self.own:
                raise
            self._leave(job.arm, "interrupted", job.arm.lease.reason)
        if why := overrun(self.own.db, self.own.plan, [arm.run_id for arm in self.arms]):
            self._overrun = self.own.lease.reason = why
            self.own.lease.stop.set()

    def _leave(self, control: Arm, status: ClosedStatus, reason: str | None) -> None:
        """The control ends, and it alone. One that another process has taken over cannot be written to."""
        self.arms = [arm for arm in self.arms if arm is not control]
        control.lease.stop.set()
        with suppress(writes.LeaseLost):
            control.end(status, reason)

    def _jobs(self) -> list[_Job]:
        suite, trials = self.own.plan.suite, self.own.plan.trials
        return [
            _Job(arm, trial, arm.plan.suite.scenarios[place])
            for arm, trial, place in turns(self.arms, trials, len(suite.scenarios))
        ]

    def _workers(self) -> int:
        return self.own.plan.limits.concurrency if all(arm.concurrent for arm in self.arms) else 1

    def _report(self) -> None:
        plan, arms = self.own.plan, self.arms
        counts = (sum(getattr(arm, name) for arm in arms) for name in ("done", "total", "errors"))
        self.on_progress(Progress(self.own.run_id, plan.suite.name, plan.backend.name, *counts))

    # The end

    def _interrupted(self) -> RunOutcome:
        reason = self.own.lease.reason or "stopped"
        for control in self.arms[1:]:
            self._leave(control, "interrupted", reason)
        outcome = self.own.end("interrupted", reason)
        return outcome._replace(waits=reason == self._overrun)  # and not cancelled since

    def _conclude(self, arm: Arm) -> RunOutcome:
        """With the look at it that is taken at once."""
        outcome = arm.conclude()
        if arm.plan.looks_at is None and outcome.verdict and outcome.verdict.wants_a_look:
            with suppress(Stopped, StoreError):  # the run has ended well, whatever becomes of its look
                again = Arm(look_at(arm.plan, outcome.run_id), arm.db, arm.lease, arm.instance)
                look = _Run([again], self.on_progress).run(None)
                return outcome._replace(verdict=look.verdict or outcome.verdict)
        return outcome
