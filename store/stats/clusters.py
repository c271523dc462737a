"""Intervals of a mean whose cases come in clusters: the questions of one conversation stand or fall together.

The number of clusters, not of cases, says how much is known.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.special import stdtrit

from store.stats.bootstrap import RESAMPLES, bca
from store.stats.intervals import SEED, Floats, Indices, Interval

FEWEST_TO_RESAMPLE = 20
"""Clusters from which on a bootstrap of whole clusters can be trusted."""


def by_cluster(values: Floats, clusters: Indices) -> tuple[Floats, Floats]:
    """Sum of the values and number of cases of every cluster. `clusters`: one label a value."""
    _, codes, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    sums = np.bincount(codes, weights=values).astype(np.float64)
    return sums, sizes.astype(np.float64)


def standard_error(values: Floats, clusters: Indices | None = None) -> float | None:
    """Of the mean, robust to clusters: CR1, with the factor C / (C-1) (Cameron and Miller 2015, Journal of
    Human Resources 50:317-372). Without clusters each value is its own. None for fewer than two."""
    sums, sizes = by_cluster(values, np.arange(len(values)) if clusters is None else clusters)
    count = len(sums)
    if count < 2:
        return None
    spread = sums - sizes * values.mean()
    return sqrt(count / (count - 1) * float((spread**2).sum())) / len(values)


def cr1(values: Floats, clusters: Indices, level: float = 0.95) -> Interval:
    """Mean +- t(C-1) x the standard error robust to C clusters. Fewer than 2 clusters, or clusters all alike:
    no interval."""
    count, n = len(np.unique(clusters)), len(values)
    error = standard_error(values, clusters)
    if error is None or error <= 1e-12 * np.abs(values).max():
        reason = "fewer than 2 clusters" if error is None else "no spread between clusters"
        return Interval(None, None, n, "CR1", level=level, reason=reason)
    half = float(stdtrit(count - 1, (1 + level) / 2)) * error
    return Interval(float(values.mean()) - half, float(values.mean()) + half, n, "CR1", level=level)


def cluster_bootstrap(
    values: Floats,
    clusters: Indices,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """BCa bootstrap of whole clusters. Fewer than 20 clusters, or fewer than 6 whose values do not sum to 0:
    no interval."""
    sums, sizes = by_cluster(values, clusters)
    method = "cluster bootstrap"
    if len(sums) < FEWEST_TO_RESAMPLE:
        reason = f"fewer than {FEWEST_TO_RESAMPLE} clusters"
        return Interval(None, None, len(values), method, level=level, reason=reason)
    [found] = bca(sums[:, None], sizes, level=level, resamples=resamples, seed=seed)
    return found._replace(n=len(values), method=method)
