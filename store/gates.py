"""May this be shipped? What fails a gate, from the verdict of a run and what was asked beside it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from store.answers import Table, mean
from store.evidence import Verdict
from store.metrics import METRICS
from store.queries.verdicts import VerdictRecord
from store.records import Rollup
from store.rollups import EVERY, CaseRow, ScenarioRow, roll_up
from store.stats.margins import Migration, migration
from store.verdicts import clusters

Failure = Literal["change", "ship_bar", "critical", "margin", "missing"]


class Bar(NamedTuple):
    """What a suite asks of a metric: at least `bar`, or at most where lower is better. `value` None: no case
    measured it, and what was not measured was not met."""

    metric: str
    bar: float
    value: float | None
    met: bool


class Gate(NamedTuple):
    """`failed`: what a deploy should stop for. `answered`: whether all that was asked could be told; where
    nothing failed and that is so, the gate is passed. `quarantined` and `on_trial` cases were asked and fail
    nothing."""

    failed: tuple[Failure, ...]
    answered: bool
    bars: tuple[Bar, ...]
    margin: Migration | None
    quarantined: tuple[str, ...]
    on_trial: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return self.answered and not self.failed


def gate(record: VerdictRecord, verdict: Verdict, bars: Iterable[Bar], margin: float | None = None) -> Gate:
    """`margin`: the largest loss of the pass rate that is acceptable, None where that was not asked."""
    apart = {case.name for case in record.cases if case.quarantined}
    told, asked = tuple(bars), None if margin is None else non_inferiority(record, verdict, margin)
    open_ = margin is not None and (asked is None or asked.verdict == "inconclusive")
    checks: Mapping[Failure, bool] = {
        "change": verdict.verdict == "worse" and not leaks(verdict),
        "ship_bar": not all(bar.met for bar in told),
        "critical": bool(_critical(verdict)),
        "margin": asked is not None and asked.verdict == "inferior",
        "missing": bool(verdict.missing),
    }
    return Gate(
        tuple(name for name, failed in checks.items() if failed),
        verdict.verdict != "cannot_tell" and not open_,
        told,
        asked,
        tuple(name for name in verdict.aside if name in apart),
        tuple(name for name in verdict.aside if name not in apart),
    )


def leaks(verdict: Verdict) -> bool:
    """Whether the run is worse for a slow leak alone: no single night shows it, so it is not shown to be
    the fault of what would be shipped now."""
    return verdict.stage == "leak"


def _critical(verdict: Verdict) -> tuple[str, ...]:
    """Critical cases whose loss a second look has confirmed, whatever was gained beside them."""
    return verdict.critical if len(verdict.looks) > 1 else ()


def non_inferiority(record: VerdictRecord, verdict: Verdict, margin: float) -> Migration | None:
    """Of the run with its looks to the baseline, on the cases that decide; None without a baseline."""
    if verdict.reason or not verdict.looks:
        return None
    table = Table(record, record.answers)
    columns = np.array([case.name not in verdict.aside for case in record.cases], dtype=bool)
    first, again = table.trials(record.run_id)[:1], [table.trials(run_id) for run_id in record.looks]
    before = mean(table.nights(record.baseline.recent)[:, columns])
    now = mean(np.concatenate([first, *again])[:, columns])
    lost = len(_critical(verdict))
    return migration(before, now, clusters(record.cases, columns), margin=margin, critical_lost=lost)


def ship_bars(
    cases: Iterable[CaseRow],
    scenarios: Iterable[ScenarioRow],
    bars: Mapping[str, float],
    apart: Collection[str],
) -> list[Bar]:
    """Each bar beside what the run came to, without the cases that are set `apart`."""
    rolled = roll_up((case for case in cases if case.case not in apart), scenarios)
    found = {one.metric: one for one in rolled if one.tag == EVERY}
    return [_bar(name, bar, found.get(name)) for name, bar in bars.items()]


def _bar(name: str, bar: float, rolled: Rollup | None) -> Bar:
    if rolled is None:
        return Bar(name, bar, None, met=False)
    met = rolled.mean <= bar if METRICS[name].better == "lower" else rolled.mean >= bar
    return Bar(name, bar, rolled.mean, met)


def first(bars: Iterable[Bar]) -> Gate:
    """Of a run with nothing to be held against: its bars alone can fail it."""
    told = tuple(bars)
    failed: tuple[Failure, ...] = () if all(bar.met for bar in told) else ("ship_bar",)
    return Gate(failed, False, told, None, (), ())


def kept(gate: Gate, against: str, *, first: bool) -> dict[str, Any]:
    """What stands in the record with the verdict: the next gate may ask which runs have passed. Of the
    `first`, which could be held against nothing, it is enough that nothing failed."""
    passed = gate.passed or (first and not gate.failed)
    return {"passed": passed, "failed": list(gate.failed), "against": against}
