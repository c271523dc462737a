"""One bootstrap draw for all metrics of a run: BCa intervals of means, and intervals of quantile ratios.

The resampling weights (how often each case was drawn) are drawn once and multiplied with the whole matrix of
cases x metrics. Cases are first put in the order of their values, so that the order they came in changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from store.stats.intervals import SEED, Floats, Indices, Interval

RESAMPLES = 10_000
TOO_SKEWED = "too skewed to resample"
BATCH = 12_500
"""Numbers drawn at once: 100 kB, which stay in the cache of a core, in products too small for BLAS to share
among threads that would wait for each other on a busy machine."""
FEWEST_CASES = 10
"""Below, exact methods only."""
FEWEST_DIFFERENT = 6
"""Values other than 0 below which too many resamples hold none of them, and the bootstrap is too sure."""


def resampling_weights(n: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each of `n` cases is drawn: `resamples` rows that sum to n, in batches that fit in memory."""
    random, rows = np.random.default_rng(seed), max(1, BATCH // n)
    for done in range(0, resamples, rows):
        count = min(rows, resamples - done)
        drawn = random.integers(0, n, (count, n))
        drawn += n * np.arange(count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


# Means


def bca(
    totals: Floats,
    sizes: Floats | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[Interval]:
    """Bias-corrected and accelerated intervals (Efron 1987) of sum(totals) / sum(sizes), one a column.

    `totals`: cases x metrics, NaN where a case has none. `sizes`: one number above 0 a row; without it each
    is 1, which makes the ratio a mean. Rows may be whole clusters: their sums, and their numbers of cases. A
    column with fewer than 6 values other than 0, without spread, or too skewed to resample, has none."""
    order = np.lexsort(totals.T)
    totals, sizes = totals[order], np.ones(len(totals)) if sizes is None else sizes[order]
    sums, counts = np.nan_to_num(totals), sizes[:, None] * ~np.isnan(totals)
    rates = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    reasons = [_unfit(column[~np.isnan(column)]) for column in rates.T]
    fit = [reason is None for reason in reasons]
    drawn = iter(_replicates(sums[:, fit], counts[:, fit], resamples, seed))
    return [
        _interval(column, count, reason or next(drawn), level, seed)
        for column, count, reason in zip(sums.T, counts.T, reasons, strict=True)
    ]


def _unfit(rates: Floats) -> str | None:
    if np.count_nonzero(rates) < FEWEST_DIFFERENT:
        return f"fewer than {FEWEST_DIFFERENT} values other than 0"
    return "all values are equal" if np.ptp(rates) <= 1e-12 * np.abs(rates).max() else None


def _interval(sums: Floats, counts: Floats, drawn: Floats | str, level: float, seed: int) -> Interval:
    """`drawn`: the replicates, or the reason that there are none."""
    n, method = int(np.count_nonzero(counts)), "BCa bootstrap"
    ends = None if isinstance(drawn, str) else _bca_ends(sums, counts, drawn, level)
    if ends is None:
        reason = drawn if isinstance(drawn, str) else TOO_SKEWED
        return Interval(None, None, n, method, len(counts) - n, None, level, reason)
    return Interval(*ends, n, method, len(counts) - n, seed, level)


def _replicates(sums: Floats, counts: Floats, resamples: int, seed: int) -> Floats:
    """metrics x resamples. A resample without a value says nothing: it stays at the estimate."""
    if not sums.size:
        return np.empty((0, resamples))
    if (counts == counts[:, :1]).all():
        counts = counts[:, :1]
    found = np.tile(sums.sum(axis=0) / counts.sum(axis=0), (resamples, 1))
    done = 0
    for weights in resampling_weights(len(sums), resamples, seed):
        held, batch = weights @ counts, found[done : done + len(weights)]
        np.divide(weights @ sums, held, out=batch, where=held > 0)
        done += len(weights)
    return np.ascontiguousarray(found.T)


def _bca_ends(sums: Floats, counts: Floats, replicates: Floats, level: float) -> tuple[float, float] | None:
    """The jackknife behind the acceleration is exact and in closed form: what is left without each row. None
    where all replicates lie on one side of the estimate, whose bias then has no end."""
    estimate = sums.sum() / counts.sum()
    tie = 1e-12 * np.abs(replicates).max()
    below = (replicates < estimate - tie).mean() + (replicates <= estimate + tie).mean()
    bias = ndtri(below / 2)
    if not np.isfinite(bias):
        return None
    left_out = (sums.sum() - sums) / (counts.sum() - counts)
    influence = left_out.mean() - left_out
    acceleration = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    shifted = bias + ndtri(_tails(level))
    shares = ndtr(bias + shifted / (1 - acceleration * shifted))
    low, high = np.quantile(replicates, shares, overwrite_input=True)
    return float(low), float(high)


# Ratios of quantiles


class Ratio(NamedTuple):
    """Of the `share` quantile after to the one before, with the interval of that ratio. None where the data
    allow none; `reason` says why."""

    share: float
    ratio: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    dropped: int = 0
    seed: int | None = None
    level: float = 0.95
    reason: str | None = None


def quantile_ratios(
    before: Floats,
    after: Floats,
    shares: Sequence[float] = (0.5, 0.95),
    units: Indices | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[Ratio]:
    """Percentile bootstrap of quantile(after) / quantile(before), one for each share between 0 and 1.

    Both sides are of the same cases, positive, without NaN, and drawn together. `units` numbers from 0 what
    is drawn whole (clusters); by default each case is. Fewer than 10 units, or a quantile so far out that all
    of them lie on one side of it more often than the interval may miss: no interval."""
    order = np.lexsort((after, before))
    before, after = before[order], after[order]
    units = np.arange(len(order)) if units is None else units[order]
    drawn = int(units.max(initial=-1)) + 1
    fit = [share for share in shares if _reaches(share, drawn, level)]
    ends: dict[float, Floats] = {}
    if fit:
        batches = (weights[:, units] for weights in resampling_weights(drawn, resamples, seed))
        found = [_quantiles(after, batch, fit) / _quantiles(before, batch, fit) for batch in batches]
        ends = dict(zip(fit, np.quantile(np.concatenate(found), _tails(level), axis=0).T, strict=True))
    return [_ratio(before, after, share, ends.get(share), seed, level) for share in shares]


def _reaches(share: float, units: int, level: float) -> bool:
    return units >= FEWEST_CASES and max(share, 1 - share) ** units <= (1 - level) / 2


def _quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> Floats:
    """Of every resample (row), as numpy.quantile would take them of the values drawn: resamples x shares."""
    order = np.argsort(values)
    ordered, reached = np.append(values[order], values.max()), weights[:, order].cumsum(axis=1)
    found = []
    for share in shares:
        position = (reached[:, -1] - 1) * share
        rank = np.floor(position)
        low, high = (ordered[(reached <= (rank + more)[:, None]).sum(axis=1)] for more in (0, 1))
        found.append(low + (high - low) * (position - rank))
    return np.stack(found, axis=1)


def _ratio(
    before: Floats, after: Floats, share: float, ends: Floats | None, seed: int, level: float
) -> Ratio:
    n, method = len(before), "bootstrap of the quantile ratio"
    ratio = float(np.quantile(after, share) / np.quantile(before, share)) if n else None
    if ends is None:
        reason = f"too few independent cases for an interval of the {share:g} quantile"
        return Ratio(share, ratio, None, None, n, method, level=level, reason=reason)
    return Ratio(share, ratio, float(ends[0]), float(ends[1]), n, method, seed=seed, level=level)


def _tails(level: float) -> Floats:
    return np.array([1 - level, 1 + level]) / 2
