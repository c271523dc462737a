"""The heart: run a suite against a backend and keep every answer.

One loop for every kind of suite. Each scenario is committed before the next is played, so a kill at any
moment loses at most the scenarios in flight, and `resume` plays exactly those that are missing. A frozen
release that runs beside the backend, its control, takes turns with it.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from collectors.arm import Arm
from collectors.budget import refuse_beyond
from collectors.calls import Stopped
from collectors.lease import StopBeside
from collectors.plans import RunOutcome, RunPlan, beside, look_at, release
from collectors.rounds import Job, Report, Rounds, arms
from collectors.scenario import Played
from store import logs, queries, writes
from store.database import Database
from store.errors import StoreError
from store.records import ClosedStatus

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
    with arms(plans, db, stops) as found, logs.bound(suite=plan.suite.name, backend=plan.backend.name):
        return _Run(found, on_progress).run(resume)


class _Run(Rounds):
    """The backend's arm, and that of its control where it has one. A control that is broken, has too many
    errors, is cancelled or loses its lease ends no more than itself."""

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
            self.play_all()
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

    def play(self, job: Job) -> Played | None:
        """None of a control that was stopped alone."""
        try:
            return super().play(job)
        except Stopped:
            if self.own.lease.stop.is_set():
                raise
            return None

    def save(self, job: Job, answers: Played | None) -> None:
        if job.arm not in self.arms:  # it was left, and this was under way
            return
        if answers is None:
            return self._leave(job.arm, "interrupted", job.arm.lease.reason)
        try:
            super().save(job, answers)
        except writes.LeaseLost:
            if job.arm is self.own:
                raise
            self._leave(job.arm, "interrupted", job.arm.lease.reason)

    def _leave(self, control: Arm, status: ClosedStatus, reason: str | None) -> None:
        """The control ends, and it alone. One that another process has taken over cannot be written to."""
        self.arms = [arm for arm in self.arms if arm is not control]
        control.lease.stop.set()
        with suppress(writes.LeaseLost):
            control.end(status, reason)

    # The end

    def _interrupted(self) -> RunOutcome:
        reason = self.own.lease.reason or "stopped"
        for control in self.arms[1:]:
            self._leave(control, "interrupted", reason)
        outcome = self.own.end("interrupted", reason)
        return outcome._replace(waits=reason == self.overrun)  # and not cancelled since

    def _conclude(self, arm: Arm) -> RunOutcome:
        """With the look at it that is taken at once."""
        outcome = arm.conclude()
        if arm.plan.looks_at is None and outcome.verdict and outcome.verdict.wants_a_look:
            with suppress(Stopped, StoreError):  # the run has ended well, whatever becomes of its look
                again = Arm(look_at(arm.plan, outcome.run_id), arm.db, arm.lease, arm.instance)
                look = _Run([again], self.on_progress).run(None)
                return outcome._replace(verdict=look.verdict or outcome.verdict)
        return outcome
