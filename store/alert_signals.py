"""One thing that is wrong in one series: how a sighting makes it surer, deeper, or over. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from store.alert_kinds import KINDS
from store.sightings import OF_A_VERDICT, STANDINGS, Key, Sighting, Standing, is_back, judged

SAME = 1e-9
"""Depths that differ by less are one."""
UNTOLD = -math.inf
"""The depth that was told of what nobody was told of."""


class Signal(NamedTuple):
    """One thing wrong in one series. `told`: how bad it was when somebody was last told; `good`: runs in a
    row that showed nothing of it; `run_id`: the last one that showed it, `first_run_id` the first."""

    key: Key
    standing: Standing
    depth: float
    told: float
    good: int
    run_id: int | None
    first_run_id: int | None
    cases: tuple[str, ...]
    content: Mapping[str, Any]
    closed: bool = False
    id: int | None = None


def begun(sighting: Sighting, run_id: int | None) -> Signal:
    return Signal(
        sighting.key, sighting.standing, sighting.depth, sighting.depth, 0, run_id, run_id, sighting.cases,
        sighting.content,
    )  # fmt: skip


def seen_again(signal: Signal, sighting: Sighting, run_id: int | None, *, again: bool) -> Signal:
    """What is less sure than before says that it stands, and no more: how deep it is now, its own looks must
    show. `again`: it is of a later look at that run."""
    if sighting.standing == "clear":
        return _cleared(signal, sighting, run_id, again)
    if STANDINGS.index(sighting.standing) < STANDINGS.index(signal.standing):
        return signal._replace(good=0, run_id=run_id)
    return signal._replace(
        standing=sighting.standing,
        depth=_depth(signal, sighting),
        good=0,
        run_id=run_id,
        cases=_cases(signal, sighting),
        content=sighting.content or signal.content,
    )


def _depth(signal: Signal, sighting: Sighting) -> float:
    """What names cases goes no deeper while it names no other one: the rate wavers with all that is flaky."""
    if signal.cases and {*sighting.cases} <= {*signal.cases}:
        return min(sighting.depth, max(signal.depth, signal.told))
    return sighting.depth


def _cases(signal: Signal, sighting: Sighting) -> tuple[str, ...]:
    """Lost now, and those of before that fail still: a verdict names none that its baseline came to know
    lost."""
    if sighting.failed is None:
        return sighting.cases or signal.cases
    still = [case for case in signal.cases if case in sighting.failed]
    return tuple(dict.fromkeys([*still, *sighting.cases]))


def fell_further(signal: Signal) -> bool:
    """By a step of its kind, than when it was told last."""
    step = max(KINDS[signal.key.kind].step, SAME)
    return signal.standing == "sure" and signal.depth > signal.told + step


def deepens(signal: Signal, told: Mapping[str, Any]) -> bool:
    """Whether the verdict of its newest run suspects that it fell further than people were told."""
    of_it = (one for one in judged(*signal.key[1:3], told) if one.key == signal.key)
    return any(
        one.standing == "suspected" and fell_further(signal._replace(depth=_depth(signal, one)))
        for one in of_it
    )


# What is over


def _cleared(signal: Signal, sighting: Sighting, run_id: int | None, again: bool) -> Signal:
    """A suspicion is over at once, and so is what a look takes back at the only run that showed it, or a leak
    whose evidence faded while the level stayed; what was sure takes its number of good runs."""
    if _taken_back(signal, sighting, run_id):
        return signal._replace(good=0, closed=True)
    if again and signal.run_id != run_id:  # its own sighting was counted
        return signal
    if signal.standing == "sure" and _stands(signal, sighting):
        return signal._replace(good=0)
    good = signal.good + 1
    return signal._replace(good=good, closed=signal.standing != "sure" or good >= KINDS[signal.key.kind].good)


def _taken_back(signal: Signal, sighting: Sighting, run_id: int | None) -> bool:
    """Looks take back what is held against a baseline; what was counted or failed in one of them did so."""
    if run_id is not None and signal.first_run_id == signal.run_id == run_id:
        return signal.key.kind in OF_A_VERDICT
    leak, now = signal.content.get("leak"), sighting.content.get("now")
    return bool(signal.key.kind == "leak" and leak and now is not None and not is_back(leak, now))


def _stands(signal: Signal, sighting: Sighting) -> bool:
    """Whether a night that is like the last ones is no good one: a baseline that took in some bad nights, and
    a test that misses a small fall now and then, find nothing, while the same cases fail. Where a fall named
    none, the pass rate tells."""
    if signal.cases and sighting.failed is not None:
        still = sum(case in sighting.failed for case in signal.cases)
        return still > (0 if signal.key.kind == "critical" else len(signal.cases) / 2)
    fell, now = signal.content.get("difference"), sighting.content.get("now")
    level = {"before": fell["old"], "after": fell["new"]} if fell else None
    return level is not None and now is not None and not is_back(level, now)
