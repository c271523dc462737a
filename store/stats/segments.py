"""The levels that fit a series best: exact segmentation by dynamic programming."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from store.stats.intervals import Floats, Indices

Fit = Callable[[int | slice, int | slice], Floats]
"""`fit(first, stop)`: twice the log likelihood of one level for the runs first to stop - 1, up to a term that
every segmentation shares, so that differences are likelihood ratios. Either end may be a slice of ends."""

LEAST = 3
"""Runs in the shortest segment: fewer cannot be told from outliers."""
TINY = 1e-300
"""Stands for 0 in a logarithm that 0 is multiplied with."""


def squared_error(values: Floats) -> Fit:
    """Values of any unit, normal with variance 1 about the level. Their constant goes first: sums of large
    numbers would eat the digits in which the levels differ."""
    sums, runs = _running(values - values.mean()), np.arange(len(values) + 1.0)

    def fit(first: int | slice, stop: int | slice) -> Floats:
        return np.asarray((sums[stop] - sums[first]) ** 2 / (runs[stop] - runs[first]))

    return fit


def binomial(passed: Floats, cases: Floats) -> Fit:
    """`passed` of `cases` in each run, the level being the share. Exact, so that shares near 0 and 1 are held
    to no normal curve."""
    passes, asked = _running(passed), _running(cases)

    def fit(first: int | slice, stop: int | slice) -> Floats:
        k, m = passes[stop] - passes[first], asked[stop] - asked[first]
        return 2 * (_x_log_x(k) + _x_log_x(m - k) - _x_log_x(m))

    return fit


def partition(fit: Fit, n: int, penalty: float) -> list[int]:
    """The first run of every segment, 0 the first of all: of all divisions of `n` >= LEAST runs into segments
    of at least LEAST, the one whose fit, less `penalty` for each change, is greatest (optimal partitioning,
    Jackson et al. 2005). Time grows with n squared, memory with n."""
    best = np.full(n + 1, -np.inf)
    best[0] = penalty  # the first segment is no change
    starts = np.zeros(n + 1, dtype=np.int64)
    for stop in range(LEAST, n + 1):
        firsts = slice(0, stop - LEAST + 1)
        total = best[firsts] + fit(firsts, stop)
        starts[stop] = total.argmax()
        best[stop] = total[starts[stop]] - penalty
    return _back(starts)


def gained(fit: Fit, ends: list[int]) -> list[float]:
    """For each change between neighbouring segments, what two levels fit better than one. `ends`: the first
    run of every segment, and the number of runs."""
    return [
        float(fit(a, b) + fit(b, c) - fit(a, c)) for a, b, c in zip(ends, ends[1:], ends[2:], strict=False)
    ]


def residuals(values: Floats, ends: list[int]) -> Floats:
    """What is left of each run without the mean of its segment."""
    return np.concatenate([values[first:stop] - values[first:stop].mean() for first, stop in pairwise(ends)])


def _back(starts: Indices) -> list[int]:
    firsts = [int(starts[-1])]
    while firsts[-1]:
        firsts.append(int(starts[firsts[-1]]))
    return firsts[::-1]


def _running(numbers: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(numbers)])


def _x_log_x(x: Floats) -> Floats:
    return np.asarray(x * np.log(np.maximum(x, TINY)))
