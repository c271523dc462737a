"""When did the level of a series of runs change? One detector, two operating points.

The noise of a run is taken from differences between runs, robust against the very changes that are looked
for. Outliers are replaced. The best of all segmentations is found at one penalty a change, the penalty raised
by what noise and autocorrelation add to the evidence; then once more, with the autocorrelation about the
levels just found. The penalties were fixed on simulated series: docs/decisions/0008-change-points.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np

from store.stats.intervals import Floats, Indices
from store.stats.segments import LEAST, binomial, gained, partition, residuals, squared_error

NEEDED = 10
"""Runs: fewer allow no estimate of the noise at the lags below."""
LAGS = (3, 4, 5, 6)
"""Runs so far apart hardly share an autocorrelated disturbance, and seldom lie on two sides of a change."""
KEPT = 0.9
"""Share of the squared differences that counts; the largest may span a change."""
KEPT_MEAN = 0.6230
"""Mean of the lowest 90 % of chi-squared with 1 degree of freedom: P(chi2_3 < q) / .9, q its .9 quantile."""
OUTLYING = 4.0
"""Standard deviations from the median of five runs beyond which a run is replaced by that median."""
USUAL_RHO, WORTH = 0.3, 20
"""The autocorrelation believed before a run is seen, as firmly as if that many runs had shown it."""
RHO_RANGE = (0.1, 0.95)
"""An estimate below .1 may well be of .1, or more: to believe it costs more in false alarms than it finds."""
TAKEN = 8
"""Degrees of freedom that the greatest step of a series without a change takes with it: a mean, and its
date."""
APART = 5
"""Runs between two dates of what is still one change."""


class Penalty(NamedTuple):
    """Evidence that a change must bring in a series of 90 runs, and what is added for each e-fold of its
    length: a longer series offers more places for a change that is none."""

    usual: float
    growth: float

    def of(self, n: int) -> float:
        return self.usual + self.growth * log(n / 90)


RETROSPECTIVE = Penalty(usual=7.75, growth=1.2)
ONLINE = Penalty(usual=12.25, growth=0.0)


class Change(NamedTuple):
    """From run `index` on the level is `after`, not `before` (means of the runs, in their unit). `evidence`:
    twice the log likelihood ratio of two levels against one, over the noise; chi-squared with 1 degree of
    freedom if date and noise were known beforehand."""

    index: int  # type: ignore[assignment]  # the method of that name, of all tuples, is not used
    before: float
    after: float
    evidence: float


class Level(NamedTuple):
    """The mean of the runs from index `first` to `last`, both included."""

    first: int
    last: int
    mean: float


class Changes(NamedTuple):
    """Changes and levels in order of time. `noise`: standard deviation of one run about its level, in the
    unit of the values; `rho`: autocorrelation of neighbouring runs, .1 to .95, as the evidence was divided
    for it. Both None where `reason` says why there is none. `n` runs were used, `dropped` were missing."""

    points: tuple[Change, ...]
    levels: tuple[Level, ...]
    noise: float | None
    rho: float | None
    n: int
    dropped: int
    method: str
    seed: None = None
    reason: str | None = None


def retrospective(values: Floats, counts: Floats | Indices | None = None) -> Changes:
    """All changes of a series that is looked at once, as for a chart.

    `values`: 1-d, one a run in order of time, NaN where the run is missing; such runs are left out, indices
    stay those of `values`. `counts`: cases of each run, when values are shares of cases passed (0 to 1); None
    for any other value. Raises ValueError where shapes differ, a value is infinite or a share is none."""
    return _detect(values, counts, RETROSPECTIVE, "retrospective")


def online(values: Floats, counts: Floats | Indices | None = None, reported: Iterable[int] = ()) -> Changes:
    """What is new to a series that is looked at every night, as for an alert: `points` holds the changes more
    than APART runs from every one `reported` (indices) before; `levels` tells of all. Otherwise as
    `retrospective`, at a penalty that allows for looking again and again."""
    found = _detect(values, counts, ONLINE, "online")
    return found._replace(points=tuple(one for one in found.points if _apart(one.index, reported)))


def faded(reported: Iterable[int], values: Floats, counts: Floats | Indices | None = None) -> tuple[int, ...]:
    """Those of the `reported` changes that the series no longer bears out: not even `retrospective`, which
    asks for less, finds one within APART runs."""
    standing = [one.index for one in retrospective(values, counts).points]
    return tuple(index for index in reported if _apart(index, standing))


def _apart(index: int, others: Iterable[int]) -> bool:
    return all(abs(index - other) > APART for other in others)


class _Series(NamedTuple):
    """The runs that are there. `even`: the values, shares stabilised so that the variance of a run does not
    hang on the share; `variance` of each run of `even` and `floor`, below which no noise is believed, in its
    unit."""

    values: Floats
    cases: Floats | None
    even: Floats
    variance: Floats
    floor: float


class _Noise(NamedTuple):
    """`dispersion`: variance of a run in units of `_Series.variance`; `rho`: autocorrelation of
    neighbours."""

    dispersion: float
    rho: float
    floor: float

    @property
    def lasting(self) -> float:
        """The variance that evidence is measured in: under AR(1) the mean of many runs varies (1 + rho) / (1
        - rho) times as much as that of independent ones."""
        return max(self.floor * _lengthened(RHO_RANGE[0]), self.dispersion * _lengthened(self.rho))


def _lengthened(rho: float) -> float:
    return (1 + rho) / (1 - rho)


def _detect(values: Floats, counts: Floats | Indices | None, penalty: Penalty, point: str) -> Changes:
    values = np.asarray(values, dtype=np.float64)
    if np.isinf(values).any():
        raise ValueError("values are finite, or NaN where the run is missing")
    kept = np.flatnonzero(~np.isnan(values))
    series = _series(values[kept], None if counts is None else _checked(values, counts)[kept])
    method = f"optimal partitioning, {'normal' if counts is None else 'binomial'}, {point}"
    nothing = Changes((), (), None, None, len(kept), len(values) - len(kept), method)
    if len(kept) < NEEDED:
        return nothing._replace(reason=f"fewer than {NEEDED} runs")
    if series.floor == 0:
        return nothing._replace(levels=_levels(series, [0, len(kept)], kept), reason="all values are equal")
    return _found(nothing, series, kept, penalty.of(len(kept)))


def _found(nothing: Changes, series: _Series, kept: Indices, penalty: float) -> Changes:
    ends, noise, evidence = _segmented(series, penalty)
    levels = _levels(series, ends, kept)
    points = tuple(
        Change(after.first, before.mean, after.mean, gain / noise.lasting)
        for (before, after), gain in zip(pairwise(levels), evidence, strict=True)
    )
    return nothing._replace(points=points, levels=levels, noise=_sd(series, noise), rho=noise.rho)


def _segmented(series: _Series, penalty: float) -> tuple[list[int], _Noise, list[float]]:
    """The first run of every segment and, last, the number of runs; the noise; the evidence for each change,
    not yet divided."""
    noise, n = _noise(series), len(series.values)
    tame = _tamed(series, max(noise.dispersion, noise.floor))
    fit = squared_error(tame.values) if tame.cases is None else binomial(tame.values * tame.cases, tame.cases)
    first = [*partition(fit, n, penalty * noise.lasting), n]
    noise = noise._replace(rho=_trusted(_residual_rho(tame, first), n))
    second = [*partition(fit, n, penalty * noise.lasting), n]
    return second, noise, gained(fit, second)


def _levels(series: _Series, ends: list[int], kept: Indices) -> tuple[Level, ...]:
    """Of the values as they were given, outliers too."""
    weights = np.ones(len(series.values)) if series.cases is None else series.cases
    return tuple(
        Level(int(kept[a]), int(kept[b - 1]), float(np.average(series.values[a:b], weights=weights[a:b])))
        for a, b in pairwise(ends)
    )


def _sd(series: _Series, noise: _Noise) -> float:
    """Of one run, in the unit of the values: for shares the binomial one times the root of the dispersion, at
    the mean share with half a case added to either side, since not even a share of 1 promises that nothing
    varies."""
    dispersion = max(noise.dispersion, noise.floor)
    if series.cases is None:
        return sqrt(dispersion)
    share = float((series.values @ series.cases + 0.5) / (series.cases.sum() + 1))
    return sqrt(dispersion * share * (1 - share) * float(np.mean(1 / series.cases)))


def _series(values: Floats, cases: Floats | None) -> _Series:
    if cases is None:
        return _Series(values, None, values, np.ones(len(values)), _resolution(values) ** 2 / 12)
    return _Series(values, cases, _arcsine(values, cases), 1 / (4 * cases + 2), 1.0)


def _checked(values: Floats, counts: Floats | Indices) -> Floats:
    cases = np.asarray(counts, dtype=np.float64)
    if cases.shape != values.shape:
        raise ValueError(f"counts have the shape {cases.shape}, values {values.shape}")
    there = ~np.isnan(values)
    if not (np.all(cases[there] > 0) and np.all((values[there] >= 0) & (values[there] <= 1))):
        raise ValueError("values with counts are shares, 0 to 1, of at least one case")
    return cases


def _resolution(values: Floats) -> float:
    """The smallest step between values, but for what rounding leaves; 0 where all are equal."""
    steps = np.diff(np.unique(values))
    steps = steps[steps > 1e-12 * np.abs(values).max(initial=0)]
    return float(steps.min()) if len(steps) else 0.0


def _arcsine(shares: Floats, cases: Floats) -> Floats:
    """Freeman and Tukey 1950, halved: variance 1 / (4 m + 2) whatever the share, but near 0 and 1."""
    passed = shares * cases
    lower, upper = np.sqrt(passed / (cases + 1)), np.sqrt((passed + 1) / (cases + 1))
    return np.asarray((np.arcsin(lower) + np.arcsin(upper)) / 2)


def _noise(series: _Series) -> _Noise:
    """Without the greatest step there may be: in a short history one looks like autocorrelation, and would
    hide itself. What this takes from a series that has none is given back."""
    n, fit = len(series.even), squared_error(series.even)
    cuts = slice(LEAST, n - LEAST + 1)
    cut = LEAST + int((fit(0, cuts) + fit(cuts, n)).argmax())
    rest = series._replace(even=residuals(series.even, [0, cut, n]))
    far = float(np.mean([_spread(rest, lag) for lag in LAGS]))
    rho = 1 - _spread(rest, 1) / far if far else 0.0
    return _Noise(far * n / (n - TAKEN), _trusted(rho, n), series.floor)


def _spread(series: _Series, lag: int) -> float:
    """Half the trimmed mean square of the differences between runs `lag` apart, over their expected variance:
    1 for the noise expected, less where neighbours go together."""
    pairs = series.variance[lag:] + series.variance[:-lag]
    squares = np.sort((series.even[lag:] - series.even[:-lag]) ** 2 / pairs)
    return float(squares[: ceil(KEPT * len(squares))].mean() / KEPT_MEAN)


def _trusted(rho: float, n: int) -> float:
    return float(np.clip((n * rho + WORTH * USUAL_RHO) / (n + WORTH), *RHO_RANGE))


def _tamed(series: _Series, dispersion: float) -> _Series:
    """Outliers replaced by the median of the five runs about them, the first or last five at the ends."""
    first = np.clip(np.arange(len(series.even)) - 2, 0, len(series.even) - 5)
    medians = np.median(series.even[first[:, None] + np.arange(5)], axis=1)
    out = np.abs(series.even - medians) > OUTLYING * np.sqrt(dispersion * series.variance)
    even = np.where(out, medians, series.even)
    shown = even if series.cases is None else np.where(out, np.sin(even) ** 2, series.values)
    return series._replace(even=even, values=shown)


def _residual_rho(series: _Series, ends: list[int]) -> float:
    """Of neighbouring residuals, with what each estimated mean takes from it, (1 + 3 rho) / n (Marriott and
    Pope 1954)."""
    rest = residuals(series.even, ends) / np.sqrt(series.variance)
    total = float(rest @ rest)
    rho = float(rest[1:] @ rest[:-1]) / total if total > series.floor else 0.0
    return rho + (1 + 3 * rho) * (len(ends) - 1) / len(rest)
