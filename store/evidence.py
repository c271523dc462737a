"""What a verdict says, and how it is kept: the evidence as plain data. Pure, and light to load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from store.records import Rollup, VerdictEntry

Word = Literal["better", "worse", "unchanged", "cannot_tell"]
Stage = Literal["", "suspicion", "suspected", "confirmed", "leak"]
Side = Literal["worse", "better"]
Cause = Literal["backend", "shared", "none", "cannot tell"]

EVERY = ""
"""The tag of all cases."""


class Look(NamedTuple):
    """One of the three looks. `run_id`: the run that asked; `p_worse`, `p_better`: of the change test, None
    where it had nothing to compare."""

    number: int
    run_id: int
    trials: int
    p_worse: float | None
    p_better: float | None

    def p(self, side: Side) -> float:
        p = self.p_worse if side == "worse" else self.p_better
        return 1.0 if p is None else p


class Difference(NamedTuple):
    """Of the pass rate now and in the baseline, on the same cases: how much worse for questions like these.
    `low` and `high` bound its 95 % interval, None where `reason` says why there is none."""

    old: float
    new: float
    low: float | None
    high: float | None
    n: int
    dropped: int
    method: str
    reason: str | None


class Moved(NamedTuple):
    """Another metric than the pass rate that changed beyond the spread between nights, and beyond what is
    worth a word. `change`: in the metric's unit, or as a share of the old value where it is told so;
    `stage`: how far the looks have come, as of the verdict itself."""

    metric: str
    change: float
    worse: bool
    stage: Stage


class Leak(NamedTuple):
    """A step down in the series of pass rates that no single night shows, and that stands. `new`: this run is
    the first to show it; it is told once."""

    first_bad: int
    before: float
    after: float
    new: bool


class Control(NamedTuple):
    """What the frozen `release` that ran beside it says of the cause of a fall. Of so many `nights` of both:
    `lost` cases that the control passed and the backend did not, `gained` the other way round, and `dropped`
    ones with an error on either side; `log_ratio` and `p` of "lost and gained are equally likely"; `since`:
    the run at which p came to .05, None where it did not. `fell`: whether the control is worse than its own
    baseline, None where `untold` says why that cannot be told. `unread`: why its run of this night, `run_id`,
    could not be compared at all. `alike`: of the metrics that moved beside the pass rate, those that moved
    the same way on the control in this night."""

    run_id: int
    release: str
    cause: Cause
    nights: int
    lost: int
    gained: int
    dropped: int
    log_ratio: float
    p: float
    since: int | None
    fell: bool | None
    untold: str | None = None
    unread: str | None = None
    alike: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """`stage`: how far the looks have come; `reason`: why nothing can be told; `lost` and `gained`: cases
    that surely passed (or failed) and do not now; `drift`: pass rate less that of the anchor, on the same
    cases; `blind_spot`: the smallest share of cases whose loss this suite would have shown; `beats_dense`:
    by tag, '' for all cases: yes, no or cannot tell; `nights`: rows of the baseline, on `days` days;
    `aside`: cases that were asked and decide nothing, being in quarantine or on trial; `untaken`: why a look
    that would settle it was not taken; `borrowed`: held against a baseline that a gate was given, and not
    that of its series; `control`: None where none ran beside it; `level`: of the first look."""

    verdict: Word
    stage: Stage
    provisional: bool
    accepted: bool
    reason: str | None
    looks: tuple[Look, ...]
    difference: Difference | None
    lost: tuple[str, ...]
    gained: tuple[str, ...]
    critical: tuple[str, ...]
    blind_spot: float | None
    drift: float | None
    moved: tuple[Moved, ...]
    leak: Leak | None
    beats_dense: Mapping[str, str]
    cases: int
    nights: int
    days: int
    baseline: tuple[int, ...]
    anchor: tuple[int, ...]
    missing: tuple[str, ...]
    deterministic: bool
    seed: int
    version: str
    aside: tuple[str, ...] = ()
    untaken: str | None = None
    borrowed: bool = False
    control: Control | None = None
    level: float = 0.05

    @property
    def wants_a_look(self) -> bool:
        """Whether asking once more, at once, would settle what the first look left open."""
        open_ = [self.stage, *(one.stage for one in self.moved)]
        return "suspicion" in open_ and self.untaken is None


def entry(run_id: int, verdict: Verdict) -> VerdictEntry:
    """As it is kept: the whole evidence as JSON values, so that it can be explained in years to come."""
    return VerdictEntry(
        run_id, len(verdict.looks), verdict.verdict, verdict.stage, verdict.provisional, verdict.accepted,
        plain(verdict),
    )  # fmt: skip


def plain(value: Any) -> Any:
    """Tuples with names as objects, others as lists: JSON values."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(held) for name, held in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: plain(held) for name, held in value.items()}
    return [plain(held) for held in value] if isinstance(value, list | tuple) else value


def drift_rollups(verdict: Verdict) -> list[Rollup]:
    """How far the pass rate has come from the anchor, as a series of its own."""
    if verdict.drift is None:
        return []
    return [Rollup("anchor_drift", EVERY, verdict.cases, verdict.drift, None, None)]
