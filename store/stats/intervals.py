"""Intervals of one sample, and of the difference of two paired shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

RESAMPLES = 1000
BATCH = 1_000_000
"""Numbers drawn at once: 8 MB, whatever the size of the sample."""
SEED = 20260105
"""Every draw starts from it, so that equal data give equal intervals."""
MOST_TYPICAL = 20
"""Values whose subsets, 2 to that power, can still be listed: 8 MB."""


class Interval(NamedTuple):
    """Of nominal coverage `level`. `low` and `high` are None where the data allow none; `reason` says why."""

    low: float | None
    high: float | None
    n: int
    method: str
    dropped: int = 0
    seed: int | None = None
    level: float = 0.95
    reason: str | None = None


def normal_quantile(share: float) -> float:
    """The point below which `share`, between 0 and 1, of a standard normal lies."""
    return NormalDist().inv_cdf(share)


# Shares


def wilson(successes: float, n: int, level: float = 0.95) -> Interval:
    """Wilson 1927 score interval of a share. `successes` may be fractional (trials averaged within a case);
    for any share bounded by 0 and 1 it is then on the wide side, since a mean varies least within binomial
    bounds. n = 0: no interval. Raises `ValueError` for successes outside 0..n."""
    _check(successes, n)
    if n == 0:
        return Interval(None, None, 0, "wilson", level=level, reason="no data")
    return Interval(*_wilson(successes, n, level), n, "wilson", level=level)


def _check(successes: float, n: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n={n}, not {successes}")


def _wilson(successes: float, n: float, level: float) -> tuple[float, float]:
    z = normal_quantile((1 + level) / 2)
    share, z2 = successes / n, z**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z * sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return low, high


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Clopper and Pearson 1934: the shares that an exact binomial test does not reject. n = 0: no interval.
    Raises `ValueError` for successes outside 0..n."""
    # Takes longer to load than numpy, and whoever closes a run needs Wilson alone.
    from scipy.special import betaincinv

    _check(successes, n)
    if n == 0:
        return Interval(None, None, 0, "clopper-pearson", level=level, reason="no data")
    tail, failures = (1 - level) / 2, n - successes
    low = float(betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - tail)) if failures else 1.0
    return Interval(low, high, n, "clopper-pearson", level=level)


def proportion(successes: float, n: int, level: float = 0.95) -> Interval:
    """Interval of one share: Wilson's, or Clopper and Pearson's exact one where all cases are alike."""
    if successes in (0, n):
        return clopper_pearson(int(successes), n, level)
    return wilson(successes, n, level)


def newcombe(both: float, lost: float, gained: float, neither: float, level: float = 0.95) -> Interval:
    """Interval of the difference after - before of two paired shares: Newcombe 1998 (Statistics in Medicine
    17:2635-2650), method 10, the Wilson limits of each joined by their corrected correlation.

    The four are the numbers of cases that passed both times, before only, after only, and never; they may be
    fractional (trials averaged within a case). The limits lie within -1..1. No cases: no interval. Raises
    `ValueError` for a negative number."""
    if min(both, lost, gained, neither) < 0:
        raise ValueError("no number of cases may be negative")
    n = both + lost + gained + neither
    if n == 0:
        return Interval(None, None, 0, "newcombe", level=level, reason="no data")
    after, before = both + gained, both + lost
    (low_a, high_a), (low_b, high_b) = _wilson(after, n, level), _wilson(before, n, level)
    a, b, phi = after / n, before / n, _correlation(both, lost, gained, neither)
    low = a - b - _joined(a - low_a, high_b - b, phi)
    high = a - b + _joined(high_a - a, b - low_b, phi)
    return Interval(max(low, -1.0), min(high, 1.0), round(n), "newcombe", level=level)


def _correlation(both: float, lost: float, gained: float, neither: float) -> float:
    """Phi with Newcombe's correction for continuity, which lowers a positive one, to 0 at the least."""
    n = both + lost + gained + neither
    product = both * neither - lost * gained
    margins = (both + gained) * (lost + neither) * (both + lost) * (gained + neither)
    if product > 0:
        product = max(product - n / 2, 0.0)
    return product / sqrt(margins) if margins else 0.0


def _joined(one: float, other: float, phi: float) -> float:
    return sqrt(max(0.0, one**2 - 2 * phi * one * other + other**2))


# Means and medians


def typical_values(values: Floats, level: float = 0.95) -> Interval:
    """Exact interval of the middle of a symmetric distribution from a few values (at most 20): Hartigan 1969
    (JASA 64:1303-1317). The means of all subsets cut the line into pieces that hold the middle equally often.
    Fewer values than the level takes (6 at 95 %), or no spread: no interval."""
    n, method = len(values), "typical values"
    if n > MOST_TYPICAL:
        raise ValueError(f"at most {MOST_TYPICAL} values, not {n}: their subsets are too many")
    beyond = int(2**n * (1 - level) / 2)
    if beyond < 1 or np.ptp(values) == 0:
        reason = "all values are equal" if beyond else f"too few values at level {level:g}"
        return Interval(None, None, n, method, level=level, reason=reason)
    sums, sizes = np.zeros(1), np.zeros(1)
    for value in np.sort(values):
        sums, sizes = np.append(sums, sums + value), np.append(sizes, sizes + 1)
    means = np.sort(sums[1:] / sizes[1:])
    return Interval(float(means[beyond - 1]), float(means[-beyond]), n, method, level=level)


def bootstrap_mean(values: Floats) -> Interval:
    """Percentile bootstrap of the mean of a 1-d array without NaN."""
    return _bootstrap(values, np.mean, "bootstrap mean")


def bootstrap_median(values: Floats) -> Interval:
    """Percentile bootstrap of the median of a 1-d array without NaN."""
    return _bootstrap(values, np.median, "bootstrap median")


def _bootstrap(values: Floats, statistic: Callable[..., Any], method: str) -> Interval:
    if len(values) < 2:
        return Interval(None, None, len(values), method, reason="fewer than 2 values")
    found = np.concatenate([statistic(values[draws], axis=1) for draws in _draws(len(values))])
    low, high = np.quantile(found, [0.025, 0.975])
    return Interval(float(low), float(high), len(values), method, seed=SEED)


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
