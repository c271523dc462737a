"""False alarms over whole histories of an unchanged backend, and power on the night it changes.

A made-up suite: of the cases 15 % are flaky, their pass rates uniform from .05 to .95, 10 % fail and the rest
pass, but for one time in a thousand. A mood is a normal shift of the logits that the cases of a night share.
A broken case passes with .03. "A little worse" is one shift of all logits that costs the suite its points.

As in production: five nights are provisional; every later one is looked at three times, against the newest
ten accepted ones. An accepted night raised no alarm and is not worse than the anchor, the first ten accepted.
The third look, hours later, has a mood of its own; or one correlated .8 with the night's.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binomtest

from benchmarks.measure import Bar
from store.stats.change import LEVELS, change_test

Floats = NDArray[np.float64]

NIGHTS, PROVISIONAL, ANCHOR, KEPT = 90, 5, 10, 60
TRIALS = 3
BREAKS = {20: 2, 30: 3, 89: 4, 180: 9}
"""Cases of the suite, and how many of them break."""
BROKEN = 0.03
PEERS = ("-3 points", "mcnemar", "bootstrap")
CONFIRM_DRAWS = 1999


class Mood(NamedTuple):
    name: str
    sd: float
    on_all: bool


MOODS = (
    Mood("independent", 0, False),
    Mood("flaky .5", 0.5, False),
    Mood("flaky 1.0", 1.0, False),
    Mood("all .5", 0.5, True),
    Mood("all 1.0", 1.0, True),
)
CHANGES = ("stable cases break", "any passing cases break", "5 points", "10 points")
POWER = {(CHANGES[0], 10): 0.95, (CHANGES[0], 5): 0.93, (CHANGES[1], 10): 0.9, (CHANGES[1], 5): 0.8}
PRINTED = 20
"""A suite too small for a bar on its power."""


def measure(quick: bool) -> dict[str, Any]:
    started, times = time.perf_counter(), 40 if quick else 400
    histories = [(cases, mood, seed) for cases in BREAKS for mood in MOODS for seed in range(times)]
    changes = [(*one, seed) for one in _changes() for seed in range(times)]
    with _processes() as pool:
        alarms = list(pool.map(history, *zip(*histories, strict=True), chunksize=10))
        seen = list(pool.map(night_of_change, *zip(*changes, strict=True), chunksize=10))
    return {
        "times": times,
        "false_alarms": _cells([(cases, mood.name) for cases, mood, _ in histories], alarms),
        "power": _cells([change[:3] for change in changes], seen),
        "seconds": round(time.perf_counter() - started),
    }


def _processes() -> ProcessPoolExecutor:
    """As many as there are cores, and so of one thread each: told before NumPy is loaded."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(None, spawn, os.putenv, ("OPENBLAS_NUM_THREADS", "1"))


def lines(found: dict[str, Any]) -> Iterator[str]:
    times = found["times"]
    yield f"Share of {times} histories of 90 unchanged nights with an alarm ({found['seconds']} s in all)"
    yield from _table(("cases", "mood"), found["false_alarms"])
    yield f"Share of {times} changes seen on their night; broken: {_told(BREAKS)}"
    yield from _table(("cases", "nights", "change"), found["power"])


def bars(found: dict[str, Any]) -> list[Bar]:
    alarms = [
        Bar(f"false_alarms_{cases}_{mood}", told["ours"], 0.03 if mood == "independent" else 0.1)
        for (cases, mood), told in found["false_alarms"]
    ]
    power = [
        Bar(f"power_{cases}_h{nights}_{what}", told["ours"], POWER[what, nights], at_least=True)
        for (cases, nights, what), told in found["power"]
        if cases != PRINTED and (what, nights) in POWER
    ]
    return [bar._replace(name=bar.name.replace(" ", "_")) for bar in alarms + power]


def _table(names: Sequence[str], cells: Sequence[tuple[Sequence[Any], dict[str, float]]]) -> Iterator[str]:
    yield "  " + "".join(f"{name:<8}" for name in names[:-1]) + f"{names[-1]:<26}" + "  ".join(cells[0][1])
    for key, told in cells:
        head = "".join(f"{part:<8}" for part in key[:-1]) + f"{key[-1]:<26}"
        yield "  " + head + "  ".join(f"{share:<{len(name)}.3f}" for name, share in told.items())


def _told(breaks: dict[int, int]) -> str:
    return ", ".join(f"{broken} of {cases}" for cases, broken in breaks.items())


def _changes() -> list[tuple[int, int, str]]:
    return [(cases, nights, what) for cases in BREAKS for nights in (5, 10) for what in CHANGES]


def _cells(
    keys: Sequence[tuple[Any, ...]], found: Sequence[dict[str, bool]]
) -> list[tuple[tuple[Any, ...], dict[str, float]]]:
    """The share of True by cell, in the order in which the cells first occur."""
    cells: dict[tuple[Any, ...], list[dict[str, bool]]] = {}
    for key, one in zip(keys, found, strict=True):
        cells.setdefault(key, []).append(one)
    return [
        (key, {name: fmean(one[name] for one in cell) for name in cell[0]}) for key, cell in cells.items()
    ]


# A made-up backend


def population(cases: int, random: np.random.Generator) -> Floats:
    """The pass rates of a suite: flaky cases first, then those that fail, then those that pass."""
    flaky, failing = round(0.15 * cases), round(0.1 * cases)
    passing = cases - flaky - failing
    return np.concatenate(
        [random.uniform(0.05, 0.95, flaky), np.full(failing, 0.001), np.full(passing, 0.999)]
    )


class Backend:
    """Answers at `rates`, (cases,), moved by the mood of the night."""

    def __init__(self, rates: Floats, mood: Mood, random: np.random.Generator) -> None:
        self.rates, self._mood, self._random = rates, mood, random
        self._moved = np.full(len(rates), mood.on_all) | ((rates > 0.01) & (rates < 0.99))

    def mood(self) -> float:
        return float(self._random.normal(0, self._mood.sd))

    def answers(self, mood: float, trials: int = 1) -> Floats:
        """(trials, cases) of 0 and 1."""
        rates = expit(logit(self.rates) + mood * self._moved)
        return np.asarray(self._random.random((trials, len(rates))) < rates, dtype=float)


# Whole histories


def history(cases: int, mood: Mood, seed: int) -> dict[str, bool]:
    """Whether 90 nights of an unchanged backend gave an alarm, by each rule."""
    random = np.random.default_rng([seed, cases, MOODS.index(mood)])
    backend = Backend(population(cases, random), mood, random)
    moods = [backend.mood() for _ in range(NIGHTS)]
    nights = np.concatenate([backend.answers(one) for one in moods])
    peers = [_peers(*pair) for pair in pairwise(nights)]
    return _watched(backend, nights, moods) | {name: any(one[name] for one in peers) for name in PEERS}


def _watched(backend: Backend, nights: Floats, moods: Sequence[float]) -> dict[str, bool]:
    found, accepted = {"ours": False, "correlated": False}, list(range(PROVISIONAL))
    for night in range(PROVISIONAL, NIGHTS):
        baseline = nights[accepted[-KEPT:]]
        if _suspicious(backend, baseline, nights[[night]], moods[night]):
            later = {"ours": backend.mood(), "correlated": 0.8 * moods[night] + 0.6 * backend.mood()}
            alarms = {name: _confirmed(backend, baseline, mood) for name, mood in later.items()}
            found = {name: found[name] or alarms[name] for name in found}
            if alarms["ours"]:
                continue
        if not _falls_behind(nights[accepted], nights[[night]]):
            accepted.append(night)
    return found


def _suspicious(backend: Backend, baseline: Floats, tonight: Floats, mood: float) -> bool:
    return _rejects(baseline, tonight, LEVELS[0]) and _confirmed(backend, baseline, mood)


def _falls_behind(accepted: Floats, tonight: Floats) -> bool:
    """Is the night worse than the anchor? Asked once the baseline has left it."""
    return len(accepted) > ANCHOR and _rejects(accepted[:ANCHOR], tonight, LEVELS[1])


def _confirmed(backend: Backend, baseline: Floats, mood: float) -> bool:
    return _confirms(baseline, backend.answers(mood, TRIALS))


def _confirms(baseline: Floats, trials: Floats) -> bool:
    p = change_test(baseline, trials, draws=CONFIRM_DRAWS).p
    return p is not None and p <= LEVELS[1]


def _rejects(baseline: Floats, tonight: Floats, level: float) -> bool:
    """A tenth of the draws is enough for most nights: a p-value of .05 looks like .2 once in a million."""
    p = change_test(baseline, tonight, draws=99).p
    if p is not None and p <= 0.2:
        p = change_test(baseline, tonight).p
    return p is not None and p <= level


# The night of a change


def night_of_change(cases: int, nights: int, what: str, seed: int) -> dict[str, bool]:
    """Whether each rule saw the change on the night it came: ours and the test that knows, in all looks."""
    random = np.random.default_rng([seed, cases, nights, CHANGES.index(what)])
    before = population(cases, random)
    after = _changed(before, what, random)
    was, now = (Backend(rates, MOODS[0], random) for rates in (before, after))
    baseline = was.answers(0, nights)
    looks = [now.answers(0, trials) for trials in (1, TRIALS, TRIALS)]
    ours = _rejects(baseline, looks[0], LEVELS[0]) and all(_confirms(baseline, one) for one in looks[1:])
    known = [_knowing(before, after, one, random) for one in looks]
    knowing = all(p <= level for p, level in zip(known, LEVELS, strict=True))
    return {"ours": ours, "knowing": knowing} | _peers(baseline[-1], looks[0][0])


def _changed(rates: Floats, what: str, random: np.random.Generator) -> Floats:
    if what.endswith("points"):
        return _spread_loss(rates, float(what.split()[0]) / 100)
    candidates = np.flatnonzero(rates > (0.99 if what.startswith("stable") else 0.5))
    after = rates.copy()
    after[random.choice(candidates, BREAKS[len(rates)], replace=False)] = BROKEN
    return after


def _spread_loss(rates: Floats, points: float) -> Floats:
    def shifted(shift: float) -> Floats:
        return np.asarray(expit(logit(rates) - shift))

    return shifted(brentq(lambda shift: (rates - shifted(shift)).mean() - points, 0, 15))


def _knowing(before: Floats, after: Floats, look: Floats, random: np.random.Generator) -> float:
    """The most powerful test there is (Neyman and Pearson 1933), p-value by 999 draws: it knows the pass
    rate of every case before and after."""
    trials, passed = len(look), look.sum(axis=0)
    weight = logit(after) - logit(before)
    null = random.binomial(trials, before, (999, len(before))) @ weight
    return float((1 + (null >= passed @ weight - 1e-9).sum()) / 1000)


# What a user would use instead


def _peers(last: Floats, tonight: Floats) -> dict[str, bool]:
    """Does each rule say that tonight, (cases,), is worse than the last run?"""
    lost, gained = int(((last == 1) & (tonight == 0)).sum()), int(((last == 0) & (tonight == 1)).sum())
    return _rules(lost, gained, len(last))


@cache
def _rules(lost: int, gained: int, cases: int) -> dict[str, bool]:
    worse = lost > gained
    return {
        "-3 points": (lost - gained) / cases > 0.03,
        "mcnemar": worse and binomtest(gained, lost + gained).pvalue <= 0.05,
        "bootstrap": worse and _upper_end(lost, gained, cases) < 0,
    }


def _upper_end(lost: int, gained: int, cases: int) -> float:
    """Of the 95 % percentile interval of the mean paired difference; resamples of cases, as counts."""
    shares = np.array([lost, gained, cases - lost - gained]) / cases
    counts = np.random.default_rng(0).multinomial(cases, shares, 9999)
    return float(np.quantile((counts[:, 1] - counts[:, 0]) / cases, 0.975))
