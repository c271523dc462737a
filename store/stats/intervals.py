"""Intervals for one sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

Z95 = 1.959963984540054
"""97.5 % quantile of the standard normal."""

RESAMPLES = 1000
BATCH = 1_000_000
"""Numbers drawn at once: 8 MB, whatever the size of the sample."""
SEED = 20260105
"""Every draw below starts from it, so that equal data give equal intervals."""


class Interval(NamedTuple):
    """A nominal 95 % interval. `low` and `high` are None where the data allow none; `method` says why."""

    low: float | None
    high: float | None
    n: int
    method: str


def wilson(successes: float, n: int) -> Interval:
    """Wilson 1927 score interval of a share. `successes` may be fractional (trials averaged within a case);
    for any share bounded by 0 and 1 it is then on the wide side, since a mean varies least within binomial
    bounds. n = 0: no interval."""
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n={n}, not {successes}")
    if n == 0:
        return Interval(None, None, 0, "no data")
    share, z2 = successes / n, Z95**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return Interval(low, high, n, "wilson")


def bootstrap_mean(values: Floats) -> Interval:
    """Percentile bootstrap of the mean of a 1-d array."""
    return _bootstrap(values, np.mean, "bootstrap mean")


def bootstrap_median(values: Floats) -> Interval:
    """Percentile bootstrap of the median of a 1-d array."""
    return _bootstrap(values, np.median, "bootstrap median")


def _bootstrap(values: Floats, statistic: Callable[..., Any], method: str) -> Interval:
    if len(values) < 2:
        return Interval(None, None, len(values), "fewer than 2 values")
    found = np.concatenate([statistic(values[draws], axis=1) for draws in _draws(len(values))])
    low, high = np.quantile(found, [0.025, 0.975])
    return Interval(float(low), float(high), len(values), method)


def _draws(n: int) -> Iterable[Indices]:
    """RESAMPLES rows of n indices, in batches; those of the sizes that a suite's tags repeat are kept."""
    return _kept_draws(n) if n * RESAMPLES <= BATCH else _drawn(n)


@lru_cache(maxsize=4)
def _kept_draws(n: int) -> tuple[Indices, ...]:
    return tuple(_drawn(n))


def _drawn(n: int) -> Iterator[Indices]:
    random, rows = np.random.default_rng(SEED), max(1, BATCH // n)
    for done in range(0, RESAMPLES, rows):
        yield random.integers(0, n, (min(rows, RESAMPLES - done), n))
