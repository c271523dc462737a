"""How long the figures of one run take. Each is the best of several: what else the machine does only adds.

SciPy's loop is measured on a few of the metrics and scaled to all of them, vectorised, a metric at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.measure import Bar
from store.stats.bootstrap import bca
from store.stats.change import change_test
from store.stats.changepoints import online, retrospective

CASES, METRICS, RESAMPLES = 500, 40, 10_000
NIGHTS, RUNS = 10, 365
FIRST_DRAWS, CONFIRM_DRAWS = 999, 1999
SEED = 20260105


def measure(quick: bool) -> dict[str, Any]:
    times, random = 3 if quick else 15, np.random.default_rng(SEED)
    values = random.normal(size=(CASES, METRICS))
    some = 1 if quick else 4
    rates = np.where(random.random(CASES) < 0.15, random.random(CASES), 0.999)
    nights = (random.random((NIGHTS, CASES)) < rates).astype(np.float64)
    fresh = (random.random((3, CASES)) < rates).astype(np.float64)
    passed = random.binomial(50, np.where(np.arange(RUNS) < 200, 0.9, 0.8)) / 50
    counts = np.full(RUNS, 50.0)
    return {
        "bca": _best(times, lambda: bca(values, resamples=RESAMPLES)),
        "scipy": _best(max(1, times // 5), lambda: _scipys(values[:, :some])) * METRICS / some,
        "scipy_metrics": some,
        "first_look": _best(times, lambda: change_test(nights, fresh[:1], draws=FIRST_DRAWS)),
        "three_trials": _best(times, lambda: change_test(nights, fresh, draws=CONFIRM_DRAWS)),
        "retrospective": _best(times, lambda: retrospective(passed, counts)),
        "online": _best(times, lambda: online(passed, counts)),
    }


def _best(times: int, done: Callable[[], Any]) -> float:
    """Seconds, after once to warm up."""
    done()
    found = []
    for _ in range(times):
        started = time.perf_counter()
        done()
        found.append(time.perf_counter() - started)
    return min(found)


def _scipys(values: np.ndarray) -> None:
    for column in values.T:
        stats.bootstrap((column,), np.mean, vectorized=True, method="BCa", n_resamples=RESAMPLES, rng=SEED)


def lines(found: dict[str, Any]) -> Iterator[str]:
    shape = f"{METRICS} metrics x {CASES} cases x {RESAMPLES:,} resamples"
    yield f"BCa, {shape}: {found['bca']:.3f} s"
    scaled = f"{found['scipy_metrics']} metrics, scaled"
    yield f"the same by scipy.stats.bootstrap: {found['scipy']:.2f} s ({scaled})"
    yield f"change test, {CASES} cases x {NIGHTS} nights, first look: {_ms(found['first_look'])} ms"
    yield f"the same, three trials: {_ms(found['three_trials'])} ms"
    yield f"change points of {RUNS} runs, retrospective: {_ms(found['retrospective'])} ms"
    yield f"the same, online: {_ms(found['online'])} ms"


def bars(found: dict[str, Any]) -> list[Bar]:
    points = max(found["retrospective"], found["online"])
    return [
        Bar("bca_seconds", round(found["bca"], 3), 0.2),
        Bar("bca_times_as_fast_as_scipy", round(found["scipy"] / found["bca"], 1), 10, at_least=True),
        Bar("change_test_first_look_ms", _ms(found["first_look"]), 20),
        Bar("change_test_three_trials_ms", _ms(found["three_trials"]), 300),
        Bar("change_points_ms", _ms(points), 20),
    ]


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
