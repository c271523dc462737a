"""What to run, how far it has come, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from collectors.backend import BackendConfig
from collectors.suite import Suite
from store import queries
from store.errors import StoreError
from store.evidence import Verdict
from store.portable import Against


@dataclass(frozen=True, slots=True)
class RunLimits:
    """`max_error_rate`: share of the cases that may go unanswered before a run is invalid; `concurrency`:
    scenarios at once, for a backend that allows it; `max_diagnoses`: lost probes asked again, a run;
    `money_per_day`: USD that all runs of a day may spend together, None for no limit."""

    timeout_s: float = 30.0
    attempts: int = 3
    max_error_rate: float = 0.1
    concurrency: int = 4
    max_diagnoses: int = 50
    money_per_day: float | None = None


class Confirm(NamedTuple):
    """How a suspicion is looked at again, at once: by so many trials, unless they would cost more than
    `max_cost` USD; `level`: of the look that it comes of."""

    trials: int = 3
    max_cost: float | None = None
    level: float = 0.05


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What to run. `subset` names the tag by which the suite was narrowed, '' for the whole of it; `owner`
    is the backend's, and so the run's; `looks_at` is the run whose questions are asked once more, `repeats`
    the one that this one makes a calibration with;
    `against` is what a run is held against in place of its baseline in the record;
    `public_config` is the backend's configuration with its secrets hidden; `control` is the frozen release
    that runs beside it, under a name of its own."""

    suite: Suite
    backend: BackendConfig
    trials: int = 1
    trigger: str = "cli"
    subset: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)
    owner: str = "default"
    suite_owner: str = "default"
    confirm: Confirm = Confirm()  # noqa: RUF009
    against: Against | None = None
    looks_at: int | None = None
    repeats: int | None = None
    limits: RunLimits = field(default_factory=RunLimits)
    public_config: Mapping[str, Any] = field(default_factory=dict)
    control: BackendConfig | None = None


class Progress(NamedTuple):
    """Cases answered so far, of cases x trials; those of a control count too."""

    run_id: int
    suite: str
    backend: str
    done: int
    total: int
    errors: int


class Outdated(StoreError):
    """What is missing of a run cannot be asked any more: its suite, scorers or system have changed since."""


class RunOutcome(NamedTuple):
    """How a run ended: whole, invalid (too many errors), void (the adapter is broken), interrupted. `verdict`
    of a whole run of the whole suite, after the looks taken at once; `waits`: it was interrupted for the
    day's money alone."""

    run_id: int
    status: str
    reason: str | None = None
    verdict: Verdict | None = None
    waits: bool = False


def look_at(plan: RunPlan, run_id: int) -> RunPlan:
    """The same questions once more, in fresh trials; what was diagnosed once is not diagnosed again."""
    return replace(
        plan,
        trials=plan.confirm.trials,
        trigger=queries.look_trigger(run_id),
        subset=queries.CONFIRM,
        looks_at=run_id,
        limits=replace(plan.limits, max_diagnoses=0),
    )


def compared(plan: RunPlan, other: str, command: str, of: BackendConfig | None = None) -> RunPlan:
    """A side of the comparison with `other` that `command` makes: of the whole suite, but no night of its
    series. `of`: another release that is asked in place of the backend."""
    meta = {queries.COMPARED_WITH: other, "command": command}
    side = replace(plan, trigger="compare", subset=queries.COMPARED, control=None, meta=meta)
    return replace(side, backend=of, public_config=_public(plan, of)) if of else side


def beside(plan: RunPlan) -> list[RunPlan]:
    """The plan of the control, if the run has one. Runs of a part have none, nor have those of an index that
    stands, since two releases never share a store. Why a frozen release lost a case, nobody asks."""
    if plan.control is None or plan.subset or plan.suite.standing:
        return []
    frozen = replace(plan, backend=plan.control, control=None, public_config=_public(plan, plan.control))
    return [replace(frozen, against=None, limits=replace(plan.limits, max_diagnoses=0))]


def _public(plan: RunPlan, control: BackendConfig) -> Mapping[str, Any]:
    """Of another release of the plan's backend."""
    kept = {name: value for name, value in plan.public_config.items() if name != "control"}
    package = {"package": control.isolation.package} if control.isolation else {}
    return {**kept, "type": control.type, **package}


def release(control: BackendConfig) -> str:
    """What a control is known by: nights of the same one are put together."""
    return control.isolation.package if control.isolation else control.type
