"""Two runs of the same cases: did it change, and by how much? Which test and which interval, the data say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, betaln

from store.stats.bootstrap import FEWEST_CASES, FEWEST_DIFFERENT, RESAMPLES, Ratio, bca, quantile_ratios
from store.stats.clusters import FEWEST_TO_RESAMPLE, by_cluster, cluster_bootstrap, cr1, standard_error
from store.stats.intervals import BATCH, SEED, Floats, Indices, Interval, newcombe, typical_values

LEAST_P = float(np.finfo(np.float64).tiny)
"""A p-value is never 0, not even where it is smaller than a number can be."""

# Tests


class PValue(NamedTuple):
    """Two-sided. `p` is None where there was nothing to compare; `reason` says why. `resamples` is None where
    nothing was drawn."""

    p: float | None
    n: int
    method: str
    dropped: int = 0
    seed: int | None = None
    resamples: int | None = None
    reason: str | None = None


def mcnemar(lost: int, gained: int) -> PValue:
    """Exact McNemar test: the binomial test at one half of the cases that differ, lost and gained. `n` is
    their number; with none of them p is 1."""
    n = lost + gained
    return PValue(float(np.clip(2 * bdtr(min(lost, gained), n, 0.5), LEAST_P, 1.0)), n, "exact McNemar")


def sign_flip(
    differences: Floats, clusters: Indices | None = None, *, resamples: int = RESAMPLES, seed: int = SEED
) -> PValue:
    """Permutation test of a mean of 0: the sign of every difference, or of every whole cluster, is flipped.
    Exact when the flips are at most `resamples`; differences of 0 need none. `n` counts what is flipped.
    A sampled p counts the data as one of the draws (Phipson and Smyth 2010)."""
    sums = differences if clusters is None else by_cluster(differences, clusters)[0]
    sizes = np.sort(np.abs(sums[sums != 0]))
    least = abs(float(sums.sum())) - 1e-12 * float(sizes.sum())
    whole = "" if clusters is None else " of clusters"
    if 2 ** len(sizes) <= resamples:
        p = float(np.mean(np.abs(_every_flip(sizes)) >= least))
        return PValue(p, len(sizes), f"exact sign flip{whole}")
    beyond = sum(int((np.abs(sums) >= least).sum()) for sums in _drawn_flips(sizes, resamples, seed))
    p = (beyond + 1) / (resamples + 1)
    return PValue(p, len(sizes), f"sampled sign flip{whole}", seed=seed, resamples=resamples)


def _every_flip(sizes: Floats) -> Floats:
    sums = np.zeros(1)
    for size in sizes:
        sums = np.append(sums + size, sums - size)
    return sums


def _drawn_flips(sizes: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    random, rows = np.random.default_rng(seed), max(1, BATCH // len(sizes))
    for done in range(0, resamples, rows):
        signs = random.integers(0, 2, (min(rows, resamples - done), len(sizes)), dtype=np.int8)
        yield (2.0 * signs - 1) @ sizes


class Evidence(NamedTuple):
    """Against "lost and gained are equally likely", after each look so far. `log_ratio` is the natural log of
    the likelihood ratio now; `p` may be read after every look; `first` is the look (from 0) at which p came
    to alpha, or None; `n` counts pairs that differ."""

    log_ratio: float
    p: float
    first: int | None
    lost: int
    gained: int
    n: int
    method: str = "sequential binomial, mixture Beta(1/2, 1/2)"
    dropped: int = 0
    seed: int | None = None
    reason: str | None = None


def sequential_evidence(lost: Sequence[int], gained: Sequence[int], alpha: float = 0.05) -> Evidence:
    """Of pairs against a control run of the same night: how many cases were lost and gained at each look.

    LR = B(b + 1/2, c + 1/2) / (B(1/2, 1/2) 0.5^(b + c)), b and c summed over the looks; with no difference it
    reaches 1 / alpha with a probability of at most alpha, however often one looks (Ville's inequality;
    Robbins 1970). The two sides of a pair must be exchangeable: a pinned old run is no control."""
    b, c = np.cumsum([0, *lost]), np.cumsum([0, *gained])
    ratios = betaln(b + 0.5, c + 0.5) - betaln(0.5, 0.5) + (b + c) * np.log(2)
    crossed = np.flatnonzero(ratios >= -np.log(alpha))
    p = max(LEAST_P, float(np.exp(-ratios.max())))
    first = int(crossed[0]) - 1 if len(crossed) else None
    reason = None if b[-1] + c[-1] else "no pair differs"
    n = int(b[-1] + c[-1])
    return Evidence(float(ratios[-1]), p, first, int(b[-1]), int(c[-1]), n, reason=reason)


# Pairs


class Pairs(NamedTuple):
    """Cases with a value on both sides; `clusters` is None where each case is its own."""

    before: Floats
    after: Floats
    clusters: Indices | None
    dropped: int

    @property
    def differences(self) -> Floats:
        return self.after - self.before

    @property
    def binary(self) -> bool:
        return bool(np.isin((self.before, self.after), (0, 1)).all())

    @property
    def shares(self) -> bool:
        values = np.array((self.before, self.after))
        return bool(((values >= 0) & (values <= 1)).all())


def _paired(before: Floats, after: Floats, clusters: Indices | None) -> Pairs:
    before, after = _case_means(before), _case_means(after)
    if before.shape != after.shape or (clusters is not None and len(clusters) != len(before)):
        raise ValueError("both sides, and the clusters, must have one row for each case")
    held = ~(np.isnan(before) | np.isnan(after))
    if not (np.isfinite(before[held]).all() and np.isfinite(after[held]).all()):
        raise ValueError("values must be finite, or NaN where missing")
    if clusters is not None:
        clusters = clusters[held]
        clusters = clusters if len(np.unique(clusters)) < len(clusters) else None
    return Pairs(before[held], after[held], clusters, int((~held).sum()))


def _case_means(values: Floats) -> Floats:
    """The unit is the case: trials (columns) are averaged first, without those that are missing."""
    if values.ndim == 1:
        return values
    held = ~np.isnan(values)
    counts = held.sum(axis=1)
    sums = np.where(held, values, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


class PairedDifference(NamedTuple):
    """after - before. `lost` and `gained` count the cases whose value fell and rose. `test` and `method` name
    what gave `p` and the interval; `reason` says why figures are missing, or why another method than the
    usual stands in. `error`: standard error, CR1 for clusters, whose number is `clusters`; None for fewer
    than two. `seed` and `resamples` are None where nothing was drawn."""

    difference: float | None
    error: float | None
    low: float | None
    high: float | None
    p: float | None
    lost: int
    gained: int
    n: int
    dropped: int
    clusters: int | None
    test: str
    method: str
    level: float
    seed: int | None
    resamples: int | None
    reason: str | None


def paired_difference(
    before: Floats,
    after: Floats,
    clusters: Indices | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> PairedDifference:
    """Mean difference of the same cases in two runs, with the test and the interval that such data bear.

    `before` and `after`: one value a case, or cases x trials; NaN is missing, and a case that is missing on a
    side is dropped from both. `clusters`: one label a case. Pass/fail (all 0 or 1): exact McNemar and
    Newcombe's interval; other values: sign flips and BCa, below 10 cases exact ones; clusters: flips of
    whole clusters and CR1, from 20 clusters on widened to what a cluster bootstrap holds. Where too few cases
    differ to resample, shares show Newcombe's interval. Raises `ValueError` for sides of unequal length or
    infinite values."""
    pairs = _paired(before, after, clusters)
    test, interval = _test(pairs, resamples, seed), _interval(pairs, level, resamples, seed)
    drawn = test.resamples is not None or interval.seed is not None
    return PairedDifference(
        difference=float(pairs.differences.mean()) if len(pairs.before) else None,
        error=standard_error(pairs.differences, pairs.clusters),
        low=interval.low,
        high=interval.high,
        p=test.p,
        lost=int((pairs.differences < 0).sum()),
        gained=int((pairs.differences > 0).sum()),
        n=len(pairs.before),
        dropped=pairs.dropped,
        clusters=None if pairs.clusters is None else len(np.unique(pairs.clusters)),
        test=test.method,
        method=interval.method,
        level=level,
        seed=seed if drawn else None,
        resamples=resamples if drawn else None,
        reason=test.reason or interval.reason,
    )


def _test(pairs: Pairs, resamples: int, seed: int) -> PValue:
    differences = pairs.differences
    if not len(differences):
        return PValue(None, 0, "none", reason="no case has a value on both sides")
    if pairs.clusters is None and pairs.binary:
        return mcnemar(int((differences < 0).sum()), int((differences > 0).sum()))
    return sign_flip(differences, pairs.clusters, resamples=resamples, seed=seed)


def _interval(pairs: Pairs, level: float, resamples: int, seed: int) -> Interval:
    if not len(pairs.before):
        return Interval(None, None, 0, "none", level=level)
    if pairs.clusters is not None:
        return _clustered(pairs, pairs.clusters, level, resamples, seed)
    if pairs.binary:
        return _newcombe(pairs, level)
    if np.count_nonzero(pairs.differences) < FEWEST_DIFFERENT:
        return _instead(pairs, level, f"fewer than {FEWEST_DIFFERENT} cases differ")
    sign = orientation(pairs.differences)
    if len(pairs.before) < FEWEST_CASES:
        found = typical_values(sign * pairs.differences, level)
    else:
        [found] = bca(sign * pairs.differences[:, None], level=level, resamples=resamples, seed=seed)
    return turned(found, sign) if found.reason is None else _instead(pairs, level, found.reason)


def _clustered(pairs: Pairs, clusters: Indices, level: float, resamples: int, seed: int) -> Interval:
    differences, n = pairs.differences, len(pairs.before)
    sums, _ = by_cluster(differences, clusters)
    if n < FEWEST_CASES:
        reason = f"fewer than {FEWEST_CASES} cases in clusters: no exact interval"
        return Interval(None, None, n, "none", level=level, reason=reason)
    if np.count_nonzero(sums) < FEWEST_DIFFERENT:
        return _instead(pairs, level, f"fewer than {FEWEST_DIFFERENT} clusters differ", len(sums))
    found = cr1(differences, clusters, level)
    if found.reason is not None:
        return _instead(pairs, level, found.reason, len(sums))
    if len(sums) >= FEWEST_TO_RESAMPLE:
        sign = orientation(sums)
        drawn = cluster_bootstrap(sign * differences, clusters, level=level, resamples=resamples, seed=seed)
        found = _outer(found, turned(drawn, sign))._replace(method="CR1, cluster bootstrap", seed=seed)
    return _outer(found, _newcombe(pairs, level)) if pairs.binary else found


def _outer(found: Interval, other: Interval) -> Interval:
    """What either holds. CR1 is too narrow where all differences have one sign, BCa where they have both; and
    clusters only widen what independent cases would show, though where they are few they may seem not to."""
    lows = [low for low in (found.low, other.low) if low is not None]
    highs = [high for high in (found.high, other.high) if high is not None]
    return found._replace(low=min(lows), high=max(highs))


def _newcombe(pairs: Pairs, level: float, independent: int | None = None) -> Interval:
    """From `independent` cases' worth of knowledge: all of them, or only the clusters. Where no case differs,
    the pass rate says nothing of how often one would, so the widest, that of all passed, is taken."""
    scale = (independent or len(pairs.before)) / len(pairs.before)
    before, after = pairs.before, pairs.after
    lost, gained = np.maximum(before - after, 0).sum() * scale, np.maximum(after - before, 0).sum() * scale
    both = np.minimum(before, after).sum() * scale
    whole = len(before) * scale
    if not lost and not gained:
        both = whole
    neither = max(0.0, whole - both - lost - gained)
    found = newcombe(float(both), float(lost), float(gained), float(neither), level)
    return found._replace(n=len(before))


def _instead(pairs: Pairs, level: float, reason: str, clusters: int | None = None) -> Interval:
    if not pairs.shares:
        return Interval(None, None, len(pairs.before), "none", level=level, reason=reason)
    method = "newcombe" if clusters is None else "newcombe, each cluster as one case"
    return _newcombe(pairs, level, clusters)._replace(method=method, reason=reason)


def orientation(differences: Floats) -> int:
    """1 or -1: the way to turn differences before drawing, so that swapped sides mirror the interval."""
    ordered = np.sort(differences)
    skew = ordered + ordered[::-1]
    leading = skew[skew != 0]
    return -1 if len(leading) and leading[0] < 0 else 1


def turned(found: Interval, sign: int) -> Interval:
    if sign > 0 or found.low is None or found.high is None:
        return found
    return found._replace(low=-found.high, high=-found.low)


class PairedRatio(NamedTuple):
    """after / before of positive values: a ratio and its interval for every quantile asked for, and the test
    of the mean log ratio. `fell` and `rose` count cases."""

    ratios: tuple[Ratio, ...]
    p: float | None
    fell: int
    rose: int
    n: int
    dropped: int
    test: str
    method: str
    level: float
    seed: int | None
    resamples: int | None
    reason: str | None


def paired_ratio(
    before: Floats,
    after: Floats,
    clusters: Indices | None = None,
    *,
    shares: Sequence[float] = (0.5, 0.95),
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> PairedRatio:
    """Latency or tokens of the same cases in two runs, as `paired_difference` takes them: sign flips of the
    log ratio, and a bootstrap of the ratio of each quantile (from 20 clusters on, where they are given). A
    value of 0 or below has no ratio: no figures, and the reason."""
    pairs = _paired(before, after, clusters)
    reason = _without_ratio(pairs)
    if reason is not None:
        empty = (0, 0, len(pairs.before), pairs.dropped, "none", "none", level, None, None, reason)
        return PairedRatio((), None, *empty)
    logs = pairs._replace(before=np.log(pairs.before), after=np.log(pairs.after))
    test = sign_flip(logs.differences, pairs.clusters, resamples=resamples, seed=seed)
    ratios = _quantile_ratios(pairs, shares, level, resamples, seed)
    drawn = test.resamples is not None or any(ratio.seed is not None for ratio in ratios)
    return PairedRatio(
        ratios=ratios,
        p=test.p,
        fell=int((logs.differences < 0).sum()),
        rose=int((logs.differences > 0).sum()),
        n=len(pairs.before),
        dropped=pairs.dropped,
        test=test.method,
        method="bootstrap of the quantile ratio",
        level=level,
        seed=seed if drawn else None,
        resamples=resamples if drawn else None,
        reason=None,
    )


def _without_ratio(pairs: Pairs) -> str | None:
    if not len(pairs.before):
        return "no case has a value on both sides"
    positive = (pairs.before > 0).all() and (pairs.after > 0).all()
    return None if positive else "a value of 0 or below has no ratio"


def _quantile_ratios(
    pairs: Pairs, shares: Sequence[float], level: float, resamples: int, seed: int
) -> tuple[Ratio, ...]:
    units = None if pairs.clusters is None else np.unique(pairs.clusters, return_inverse=True)[1]
    if units is not None and units.max() + 1 < FEWEST_TO_RESAMPLE:
        units = np.zeros_like(units)  # one unit, which bears no interval
    found = quantile_ratios(
        pairs.before, pairs.after, shares, units, level=level, resamples=resamples, seed=seed
    )
    return tuple(found)
