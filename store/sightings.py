"""What one closed run says of everything that is watched. Pure.

A sighting is of one series: that something is wrong in it, how far the looks have come, or that nothing is.
What a run cannot tell, it does not mention: silence neither opens an alert nor resolves one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from store.metrics import METRICS

Standing = Literal["clear", "suspicion", "suspected", "sure"]
STANDINGS: tuple[Standing, ...] = ("clear", "suspicion", "suspected", "sure")
"""From nothing to certainty."""

CRITICAL_TRIALS = 4
"""Trials after which a critical case that is lost is told at once: the first look and three fresh ones."""
MOVES = {
    "recall_ms": "slower",
    "returned_tokens": "dearer",
    "ingest_tokens": "dearer",
    "money": "dearer",
}
"""Metrics that a verdict holds against the baseline and whose rise is an alert -> its kind."""
OF_A_VERDICT = ("critical", "regression", "leak", "slower", "dearer", "improvement")
"""Kinds that hold a run against its baseline, so that a new baseline settles them."""


class Key(NamedTuple):
    """A series as alerts name it. `subject`: the metric, leg or schedule, '' where the kind says all."""

    kind: str
    suite: str
    backend: str
    subject: str = ""


class Sighting(NamedTuple):
    """`depth`: how bad it is, larger is worse: points of pass rate, a share, a count. `content`: the numbers
    and names that the evidence is told from; never a text of a memory. `failed`: the cases that did not
    pass in the run, for sure or not; None where that is not asked."""

    key: Key
    standing: Standing
    depth: float = 0.0
    cases: tuple[str, ...] = ()
    content: Mapping[str, Any] = {}
    failed: frozenset[str] | None = None


class Measured(NamedTuple):
    """A metric over a run's cases, with its interval where there is one."""

    n: int
    mean: float
    low: float | None
    high: float | None


class Leg(NamedTuple):
    """What a leg of an index held, and should hold where somebody but the index knows."""

    name: str
    counted: int
    expected: int | None


class ClosedRun(NamedTuple):
    """A run that has ended, as far as alerts ask. `verdict`: the evidence in force as the record keeps it,
    None where nothing was judged; `bars`: metric -> what the suite asks for; `broken_before`: metrics whose
    bar was broken already by the whole run before, or is by a look at this one too; `tolerance`: of counts,
    as a share; `failed`: cases that did not pass, those that decide nothing among
    them."""

    suite: str
    backend: str
    status: str
    verdict: Mapping[str, Any] | None = None
    measured: Mapping[str, Measured] = {}
    bars: Mapping[str, float] = {}
    broken_before: frozenset[str] = frozenset()
    legs: Sequence[Leg] = ()
    tolerance: float = 0.02
    failed: frozenset[str] | None = None


def sightings(run: ClosedRun) -> list[Sighting]:
    """Of every kind that the run can speak of, its worst first."""
    if run.status == "interrupted":
        return []
    seen = [_failing(run), *_judged(run), *_thresholds(run), *_shrinkage(run)]
    return sorted(seen, key=lambda one: -STANDINGS.index(one.standing))


def missed(schedules: Mapping[str, Sequence[str]], known: Iterable[str]) -> list[Sighting]:
    """`schedules`: each one with fires missed and not made up for -> their times; `known`: all schedules."""
    late = [
        Sighting(Key("missed", "", "", name), "sure", float(len(times)), content={"times": list(times)})
        for name, times in schedules.items()
    ]
    return late + [Sighting(Key("missed", "", "", name), "clear") for name in known if name not in schedules]


def proof(reason: str = "", failures: int = 1) -> Sighting:
    """Of the drills: `reason` says why they prove nothing now, "" that the last one has arrived; `failures`
    in a row."""
    key = Key("proof", "", "")
    if not reason:
        return Sighting(key, "clear")
    return Sighting(key, "sure", float(failures), content={"reason": reason})


def judged(suite: str, backend: str, verdict: Mapping[str, Any]) -> list[Sighting]:
    """What a verdict alone says of a whole run."""
    return _judged(ClosedRun(suite, backend, "whole", verdict))


def _failing(run: ClosedRun) -> Sighting:
    key = Key("failing", run.suite, run.backend)
    if run.status == "whole":
        return Sighting(key, "clear")
    return Sighting(key, "sure", 1.0, content={"status": run.status})


# What the verdict says


def _judged(run: ClosedRun) -> list[Sighting]:
    told = run.verdict
    if run.status != "whole" or told is None or told["reason"]:
        return []
    return [*_changed(run, told), *_critical(run, told), *_leak(run, told), *_moved(run, told)]


def _changed(run: ClosedRun, told: Mapping[str, Any]) -> list[Sighting]:
    side, standing = _side(told), _standing(told)
    if not side and _behind(told):
        return []
    found = told["difference"]
    level = {"now": found["new"]} if found else {}
    return [
        Sighting(
            Key(kind, run.suite, run.backend),
            standing if side == mine else "clear",
            _points(told, mine) if side == mine else 0.0,
            tuple(told[names]) if side == mine else (),
            told if side == mine else level,
            _failed(run, told) if mine == "worse" else None,
        )
        for kind, mine, names in (("regression", "worse", "lost"), ("improvement", "better", "gained"))
    ]


def _failed(run: ClosedRun, told: Mapping[str, Any]) -> frozenset[str] | None:
    """Of the cases that decide."""
    return None if run.failed is None else run.failed.difference(told["aside"])


def _side(told: Mapping[str, Any]) -> str:
    """Which way the change test points; a leak is a matter of its own, and a suspicion names no side."""
    if told["stage"] == "leak":
        return ""
    if told["stage"] == "suspicion":
        if told["deterministic"] or told["critical"]:
            return "worse" if told["lost"] else "better"
        first = told["looks"][0]
        worse, better = (1.0 if first[p] is None else first[p] for p in ("p_worse", "p_better"))
        return "worse" if worse <= better else "better"
    return str(told["verdict"]) if told["verdict"] in ("worse", "better") else ""


def _behind(told: Mapping[str, Any]) -> bool:
    """Whether the run is like the last ones, and yet worse than the anchor: no good run, nor a bad one."""
    slower = any(one["worse"] and one["stage"] != "suspicion" for one in told["moved"])
    return told["verdict"] == "unchanged" and not told["accepted"] and not slower


_STAGES: Mapping[str, Standing] = {"suspicion": "suspicion", "suspected": "suspected", "confirmed": "sure"}


def _standing(told: Mapping[str, Any]) -> Standing:
    """A frozen release that did not fall beside it is as good as a look some hours later."""
    control = told.get("control") or {}
    if told["stage"] == "suspected" and control.get("cause") == "backend":
        return "sure"
    return _STAGES.get(told["stage"], "clear")


def _points(told: Mapping[str, Any], side: str) -> float:
    found = told["difference"]
    apart = found["old"] - found["new"] if found else 0.0
    return float(apart if side == "worse" else -apart)


def _critical(run: ClosedRun, told: Mapping[str, Any]) -> list[Sighting]:
    key, lost = Key("critical", run.suite, run.backend), tuple(told["critical"])
    if not lost or _side(told) != "worse":
        return [Sighting(key, "clear", failed=_failed(run, told))]
    trials = sum(look["trials"] for look in told["looks"])
    surely = told["stage"] == "confirmed" or trials >= CRITICAL_TRIALS
    standing = "sure" if surely else _standing(told)
    return [Sighting(key, standing, float(len(lost)), lost, told, _failed(run, told))]


def _leak(run: ClosedRun, told: Mapping[str, Any]) -> list[Sighting]:
    """What the change test sees is no leak, though the series shows that step as well; and while a step that
    was mended is still in the series, the nights after it are none either."""
    key, leak, rate = Key("leak", run.suite, run.backend), told["leak"], run.measured.get("pass")
    if leak is None:
        return [Sighting(key, "clear", content={"now": rate.mean if rate else None})]
    if told["stage"] != "leak" or (rate and is_back(leak, rate.mean)):
        return []
    return [Sighting(key, "sure", float(leak["before"] - leak["after"]), content=told)]


def is_back(leak: Mapping[str, Any], now: float) -> bool:
    """Whether the pass rate is nearer to where it leaked from than to where it went."""
    return bool(now > (leak["before"] + leak["after"]) / 2)


def _moved(run: ClosedRun, told: Mapping[str, Any]) -> list[Sighting]:
    untaken = {"untaken": told["untaken"]} if told.get("untaken") else {}
    worse = {one["metric"]: {**one, **untaken} for one in told["moved"] if one["worse"]}
    return [
        _one_moved(Key(kind, run.suite, run.backend, metric), worse.get(metric))
        for metric, kind in MOVES.items()
        if metric in run.measured or metric in worse
    ]


def _one_moved(key: Key, moved: Mapping[str, Any] | None) -> Sighting:
    if moved is None:
        return Sighting(key, "clear")
    return Sighting(key, _standing(moved), abs(float(moved["change"])), content=moved)


# What was measured


def _thresholds(run: ClosedRun) -> list[Sighting]:
    if run.status != "whole":
        return []
    return [
        _threshold(run, metric, bar, run.measured[metric])
        for metric, bar in run.bars.items()
        if metric in run.measured
    ]


def _threshold(run: ClosedRun, metric: str, bar: float, found: Measured) -> Sighting:
    """A bar that the whole interval is beyond is broken; by the mean alone, once two runs agree."""
    key, lower = Key("threshold", run.suite, run.backend, metric), METRICS[metric].better == "lower"
    beyond = found.mean - bar if lower else bar - found.mean
    if beyond <= 0:
        return Sighting(key, "clear")
    edge = found.low if lower else found.high
    surely = edge is not None and (edge > bar if lower else edge < bar)
    standing: Standing = "sure" if surely or metric in run.broken_before else "suspected"
    content = {
        "metric": metric,
        "bar": bar,
        "n": found.n,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
    }
    return Sighting(key, standing, float(beyond), content=content)


def _shrinkage(run: ClosedRun) -> list[Sighting]:
    """Each leg against what it should hold; and where nobody knows that, the legs against each other."""
    if run.status != "whole" or not run.legs:
        return []
    told = [_short(run, leg) for leg in run.legs if leg.expected]
    unknown = [leg for leg in run.legs if not leg.expected]
    return told + ([_apart(run, unknown)] if len(unknown) > 1 else [])


def _short(run: ClosedRun, leg: Leg) -> Sighting:
    key = Key("shrinkage", run.suite, run.backend, leg.name)
    lacking = 1 - leg.counted / leg.expected if leg.expected else 0.0
    content = {"leg": leg.name, "counted": leg.counted, "expected": leg.expected}
    return Sighting(key, "sure" if lacking > run.tolerance else "clear", max(lacking, 0.0), content=content)


def _apart(run: ClosedRun, legs: Sequence[Leg]) -> Sighting:
    counts = {leg.name: leg.counted for leg in legs}
    most = max(counts.values())
    apart = 1 - min(counts.values()) / most if most else 0.0
    standing: Standing = "sure" if apart > run.tolerance else "clear"
    return Sighting(Key("shrinkage", run.suite, run.backend), standing, apart, content={"counted": counts})
