"""What all runs of a day may spend together: `[limits] money_per_day`.

A run begins only while what was spent today and what it will cost, by the last one of its kind, stay within
the limit. One that costs more than foreseen, or whose cost nobody knows, stops once the day is a tenth over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from collectors.arguments import NO_ANSWER
from collectors.plans import RunPlan
from store import queries, writes
from store.database import Database
from store.errors import StoreError

MARGIN = 0.1
"""The share of the limit by which a run that is under way may exceed it."""
SOURCE = "budget"


class OverBudget(StoreError):
    """The day's money is not enough for this run, so it does not begin."""

    code = NO_ANSWER


def refuse_beyond(db: Database, plans: Sequence[RunPlan]) -> None:
    """Raises `OverBudget`, and notes it as an event, where a run of all these plans, a backend's and its
    control's, would exceed the limit of the day."""
    limit = plans[0].limits.money_per_day
    if limit is None:
        return
    spent, expected = spent_today(db), sum(_expected(db, plan) for plan in plans)
    if spent + expected <= limit:
        return
    pair = f"{plans[0].suite.name} on {plans[0].backend.name}"
    told = (
        f"{pair} waits: today (UTC) {spent:.2f} USD are spent and it will cost about {expected:.2f}, more "
        f"than limits.money_per_day = {limit:.2f}; ask again after midnight UTC, or raise the limit"
    )
    writes.add_event(db, "warning", SOURCE, told)
    raise OverBudget(told)


def _expected(db: Database, plan: RunPlan) -> float:
    """USD; 0 where no run tells."""
    cases = plan.trials * sum(1 for _ in plan.suite.probes)
    return cases * (queries.cost_of_a_case(db, plan.suite.name, plan.backend.name) or 0.0)


def overrun(db: Database, plan: RunPlan) -> str | None:
    """Why a run that is under way must stop, None while it may go on."""
    limit = plan.limits.money_per_day
    if limit is None or (spent := spent_today(db)) <= limit * (1 + MARGIN):
        return None
    return (
        f"today (UTC) {spent:.2f} USD are spent, over limits.money_per_day = {limit:.2f} by more than "
        f"{MARGIN:.0%}; go on after midnight UTC, or raise the limit"
    )


def spent_today(db: Database) -> float:
    """USD, in UTC."""
    return queries.spent_on(db, datetime.now(UTC).date())
