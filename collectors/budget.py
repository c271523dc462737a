"""What all runs of a day may spend together: `[limits] money_per_day`.

A run begins only while what was spent today and what it will cost, by the last one of its kind, stay within
the limit. One that costs more than foreseen, or whose cost nobody knows, stops once the day is a tenth over.
What is known to cost nothing is held up by nobody's spending.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, NoReturn

from collectors.arguments import NO_ANSWER, USAGE
from collectors.plans import RunPlan
from store import queries, writes
from store.database import Database
from store.errors import StoreError

MARGIN = 0.1
"""The share of the limit by which a run that is under way may exceed it."""
SOURCE = "budget"


class OverBudget(StoreError):
    """The day's money is not enough for this run, so it does not begin before the next one."""

    code = NO_ANSWER


class NeverWithinBudget(StoreError):
    """One run alone costs more than a whole day may."""

    code = USAGE


class Allowance(NamedTuple):
    """What a refusal hangs on: with another day, in UTC, or another limit it may be otherwise."""

    day: date
    limit: float | None


def allowance(limit: float | None) -> Allowance:
    return Allowance(datetime.now(UTC).date(), limit)


def refuse_beyond(db: Database, plans: Sequence[RunPlan], resume: int | None = None) -> None:
    """Raises `OverBudget`, and notes it as an event, where a run of all these plans, a backend's and its
    control's, would exceed the limit of the day; `NeverWithinBudget` where it would exceed that of any. Of
    the run `resume` only what is missing counts."""
    limit = plans[0].limits.money_per_day
    if limit is None:
        return
    costs = [_cost(db, plan) for plan in plans]
    spent, expected = spent_today(db), sum(cost or 0.0 for cost in costs) * _missing(db, resume)
    if spent + expected <= limit or (expected == 0 and None not in costs):
        return
    _refuse(db, f"{plans[0].suite.name} on {plans[0].backend.name}", spent, expected, limit)


def _refuse(db: Database, pair: str, spent: float, expected: float, limit: float) -> NoReturn:
    if expected > limit:
        raise NeverWithinBudget(
            f"{pair} will cost about {expected:.2f} USD, more than limits.money_per_day = {limit:.2f} allows "
            "in a whole day; raise the limit, or ask for a part of the suite"
        )
    told = (
        f"{pair} may not begin before {_midnight()}: today {spent:.2f} USD are spent and it will cost about "
        f"{expected:.2f}, more than limits.money_per_day = {limit:.2f}; raise the limit to have it sooner"
    )
    writes.add_event(db, "warning", SOURCE, told)
    raise OverBudget(told)


def _midnight() -> str:
    """When the next day begins."""
    return f"{datetime.now(UTC).date() + timedelta(days=1)} 00:00 UTC"


def _cost(db: Database, plan: RunPlan) -> float | None:
    """USD; None where no run tells."""
    of_a_case = queries.cost_of_a_case(db, plan.suite.name, plan.backend.name)
    return None if of_a_case is None else plan.trials * len(list(plan.suite.probes)) * of_a_case


def _missing(db: Database, resume: int | None) -> float:
    """The share of a run that is still to be played."""
    row = queries.run(db, resume) if resume is not None else None
    return 1 - row.cases_done / row.cases_total if row and row.cases_total else 1.0


def overrun(db: Database, plan: RunPlan, run_ids: Collection[int]) -> str | None:
    """Why a run that is under way, as `run_ids`, must stop; None while it may go on, as one that has spent
    nothing today always may."""
    limit = plan.limits.money_per_day
    if limit is None or (spent := spent_today(db)) <= limit * (1 + MARGIN):
        return None
    if not queries.spent_on(db, datetime.now(UTC).date(), run_ids):
        return None
    return (
        f"the day's money is spent: {spent:.2f} USD, over limits.money_per_day = {limit:.2f} by more than "
        f"{MARGIN:.0%}; go on after {_midnight()}, or raise the limit"
    )


def spent_today(db: Database) -> float:
    """USD, in UTC."""
    return queries.spent_on(db, datetime.now(UTC).date())
