"""The runs of a comparison: both sides are asked in turns, in the same hours, and neither is a night.

A side that ends badly leaves the comparison without an answer, and the other side's run as it should be. What
was interrupted is gone on with by the same comparison, in the same window and while the system is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime

from collectors.arm import Arm
from collectors.budget import refuse_beyond
from collectors.calls import Stopped
from collectors.plans import Outdated, RunOutcome, RunPlan
from collectors.rounds import Report, Rounds
from collectors.scorers import SCORER_VERSION
from store import logs, queries, writes
from store.comparisons import WINDOW
from store.errors import StoreError
from store.queries import RunRow

LOG = logs.get("compare")


def play_sides(
    arms: Sequence[Arm], on_progress: Report, say: Callable[[str], None] = LOG.info
) -> list[RunOutcome]:
    """Run what the arms, which are prepared, are planned to: an outcome each, but only of a broken one where
    there is one, since nothing is asked then. `say` hears which runs are gone on with. Raises `OverBudget`,
    `NeverWithinBudget`, `StoreError`."""
    if broken := [arm for arm in arms if arm.broken]:
        return [_void(arm) for arm in broken]
    names = " and ".join(arm.plan.backend.name for arm in arms)
    with logs.bound(suite=arms[0].plan.suite.name, backend=names):
        return _Sides(arms, on_progress).run(say)


def _void(arm: Arm) -> RunOutcome:
    arm.run_id = writes.open_run(arm.db, arm.new_run())
    return arm.end("void", arm.broken)


class _Sides(Rounds):
    """What ends one arm ends all: half of a comparison is worth nothing, and costs."""

    def run(self, say: Callable[[str], None]) -> list[RunOutcome]:
        begun = self._begun()
        refuse_beyond(self.own.db, [arm.plan for arm in self.arms], begun[0].id if begun else None)
        if begun:
            say(f"going on with {' and '.join(f'run {row.id}' for row in begun)}, which were interrupted")
        try:
            self._go_on(begun) if begun else self._open()
        except StoreError:  # of one side; what stands open of the other must not look as if it ran
            self._interrupted()
            raise
        for arm in self.arms:
            arm.lease.watch(arm.run_id)
        LOG.info("comparison began", runs=[arm.run_id for arm in self.arms], cases=self.own.total)
        try:
            self.play_all()
        except (Stopped, writes.LeaseLost):
            return self._interrupted()
        return [self._concluded(arm) for arm in self.arms]

    def _open(self) -> None:
        for arm in self.arms:
            arm.run_id = writes.open_run(arm.db, arm.new_run())

    def _go_on(self, begun: Sequence[RunRow]) -> None:
        for arm, row in zip(self.arms, begun, strict=True):
            arm.reopen(row.id)

    def _begun(self) -> list[RunRow]:
        """The runs of the same comparison that was interrupted, one an arm, or none."""
        found = [to_go_on(self._interrupted_runs(arm.plan), arm.plan, self._now) for arm in self.arms]
        begun = [row for row in found if row]
        if len(begun) < len(self.arms):
            return []
        with suppress(Outdated):
            for arm, row in zip(self.arms, begun, strict=True):
                arm.refuse_another_system(row.id)
            return begun
        return []

    @property
    def _now(self) -> datetime:
        return queries.clock(self.own.db)

    def _interrupted_runs(self, plan: RunPlan) -> list[RunRow]:
        names = {"suites": [plan.suite.name], "backends": [plan.backend.name]}
        return queries.runs(self.own.db, **names, statuses=["interrupted"])  # type: ignore[arg-type]

    def _interrupted(self) -> list[RunOutcome]:
        reason = next((arm.lease.reason for arm in self.arms if arm.lease.reason), "stopped")
        return [self._ended(arm, reason) for arm in self.arms if arm.run_id]

    def _ended(self, arm: Arm, reason: str) -> RunOutcome:
        with suppress(StoreError):  # another process has it, and says how it ended
            return arm.end("interrupted", reason)
        return RunOutcome(arm.run_id, "interrupted", reason)

    def _concluded(self, arm: Arm) -> RunOutcome:
        try:
            return arm.conclude()
        except writes.LeaseLost as error:
            return RunOutcome(arm.run_id, "interrupted", str(error))


def to_go_on(rows: Iterable[RunRow], plan: RunPlan, now: datetime) -> RunRow | None:
    """Which of the interrupted runs, newest first, is the same side of the same comparison, begun so lately
    that the rest of it is asked in the same window. One that a person cancelled is over."""
    other = plan.meta[queries.COMPARED_WITH]  # and not the command: another margin asks nothing else
    asked = (queries.COMPARED, other, plan.suite.version, plan.trials, SCORER_VERSION)
    for row in rows:
        with_ = row.meta.get(queries.COMPARED_WITH)
        told = (row.subset, with_, row.suite_version, row.trials, row.scorer)
        if told == asked and not row.cancelled and now - row.started_at < WINDOW:
            return row
    return None
