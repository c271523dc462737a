"""Intervals of one sample: against SciPy's, and on properties that must hold whatever the numbers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from store.stats.intervals import (
    MOST_TYPICAL,
    RESAMPLES,
    SEED,
    Floats,
    Interval,
    bootstrap_mean,
    bootstrap_median,
    clopper_pearson,
    newcombe,
    normal_quantile,
    proportion,
    typical_values,
    wilson,
)

# Shares


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 17, 40, 77, 1000, 250_000])
def test_wilson_is_scipys(n: int):
    """At every count of a grid both ends are those of binomtest(...).proportion_ci("wilson")."""
    for successes in sorted({0, 1, n // 7, n // 3, n // 2, n - 1, n}):
        reference = stats.binomtest(successes, n).proportion_ci(method="wilson")
        found = wilson(successes, n)
        assert (found.low, found.high) == pytest.approx((reference.low, reference.high), abs=1e-12)
        assert (found.n, found.method) == (n, "wilson")


@pytest.mark.parametrize(
    ("successes", "n", "of_wilson", "exact"),
    [
        (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
        (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
        (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
        (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
    ],
)
def test_shares_are_as_published(
    successes: int, n: int, of_wilson: tuple[float, float], exact: tuple[float, float]
):
    """Newcombe 1998 (Statistics in Medicine 17:857-872), table I: the score method and the exact one."""
    assert wilson(successes, n)[:2] == pytest.approx(of_wilson, abs=5e-5)
    assert clopper_pearson(successes, n)[:2] == pytest.approx(exact, abs=5e-5)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 5, 40, 1000])
def test_levels_are_scipys(n: int, level: float):
    """At every level Wilson's and the exact interval are those of binomtest(...).proportion_ci."""
    for successes in sorted({0, 1, n // 3, n - 1, n}):
        for ours, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
            reference = stats.binomtest(successes, n).proportion_ci(level, method=method)
            found = ours(successes, n, level)
            assert found[:2] == pytest.approx((reference.low, reference.high), abs=1e-12)
            assert (found.n, found.level, found.reason) == (n, level, None)


def test_all_alike_take_the_exact_interval():
    """A share of 0 or 1 has the exact interval, any other Wilson's, fractional counts too."""
    assert proportion(0, 12) == clopper_pearson(0, 12)
    assert proportion(12, 12, 0.9) == clopper_pearson(12, 12, 0.9)
    assert proportion(4.5, 12) == wilson(4.5, 12)


@pytest.mark.parametrize("share", [1e-9, 0.025, 0.5, 0.8, 0.975])
def test_normal_quantiles_are_scipys(share: float):
    """The quantiles of the standard normal are those of scipy.stats.norm."""
    assert normal_quantile(share) == pytest.approx(stats.norm.ppf(share), abs=1e-12)


def test_wilson_covers_what_it_should():
    """Over shares and sizes the interval holds the true share about as often as it says."""
    for n in (20, 80):
        counts = np.arange(n + 1)
        ends = [wilson(int(count), n)[:2] for count in counts]
        for share in (0.1, 0.3, 0.5, 0.9):
            held = [low <= share <= high for low, high in ends]
            assert stats.binom.pmf(counts, n, share)[held].sum() == pytest.approx(0.95, abs=0.035)


COUNTS = st.integers(1, 400).flatmap(
    lambda n: st.tuples(st.integers(0, 12 * n).map(lambda passes: passes / 12), st.just(n))
)
"""Passes of n cases, each in twelve trials."""


@given(COUNTS)
def test_wilson_holds_the_share_within_its_bounds(counted: tuple[float, int]):
    """0 <= low <= share <= high <= 1, also for shares of cases averaged over trials; never without width."""
    successes, n = counted
    found = wilson(successes, n)
    assert 0 <= found.low <= successes / n <= found.high <= 1
    assert found.low < found.high


@given(COUNTS)
def test_wilson_is_the_same_upside_down(counted: tuple[float, int]):
    """The interval of what failed is the mirror image of that of what passed."""
    successes, n = counted
    passed, failed = wilson(successes, n), wilson(n - successes, n)
    assert (failed.low, failed.high) == pytest.approx((1 - passed.high, 1 - passed.low), abs=1e-9)


@given(COUNTS, st.integers(2, 50))
def test_more_cases_narrow_it(counted: tuple[float, int], times: int):
    """The same share of more cases has a narrower interval."""
    successes, n = counted
    few, many = wilson(successes, n), wilson(successes * times, n * times)
    assert many.high - many.low < few.high - few.low


@given(COUNTS, st.floats(0, 1))
def test_more_successes_never_lower_it(counted: tuple[float, int], more: float):
    """Both ends rise with the share."""
    successes, n = counted
    better = min(n, successes + more)
    assert wilson(better, n).low >= wilson(successes, n).low - 1e-12
    assert wilson(better, n).high >= wilson(successes, n).high - 1e-12


def test_no_data_has_no_interval():
    """Nothing counted is nothing known, and the method says so."""
    assert wilson(0, 0) == Interval(None, None, 0, "wilson", reason="no data")
    assert clopper_pearson(0, 0) == Interval(None, None, 0, "clopper-pearson", reason="no data")
    assert newcombe(0, 0, 0, 0) == Interval(None, None, 0, "newcombe", reason="no data")


@pytest.mark.parametrize(("successes", "n"), [(-0.1, 5), (5.1, 5), (1, 0), (float("nan"), 5)])
def test_impossible_counts_are_refused(successes: float, n: int):
    """What cannot be a count is an error, not an interval."""
    for interval in (wilson, clopper_pearson):
        with pytest.raises(ValueError, match=f"successes must lie between 0 and n={n}, not "):
            interval(successes, n)


# Paired shares


@pytest.mark.parametrize(
    ("cells", "published"),
    [
        ((59, 16, 6, 80), (-0.1186, -0.0046)),  # complete response, Cavo et al. 2012
        ((1, 7, 1, 12), (-0.507, -0.026)),  # airway hyper-responsiveness, Bentur et al. 2009
    ],
)
def test_newcombe_is_as_published(cells: tuple[int, int, int, int], published: tuple[float, float]):
    """The square-and-add interval of Fagerland, Lydersen and Laake's two examples: Statistical Analysis of
    Contingency Tables (2017), chapter 8, and Statistics in Medicine 33 (2014), table V."""
    digits = 5e-5 if cells[0] == 59 else 5e-4
    assert newcombe(*cells)[:2] == pytest.approx(published, abs=digits)


CELLS = st.tuples(*[st.integers(0, 60)] * 4).filter(any)


@given(CELLS)
def test_newcombe_mirrors(cells: tuple[int, int, int, int]):
    """Swapping before and after, or passing and failing, mirrors the interval."""
    both, lost, gained, neither = cells
    found = newcombe(*cells)
    for mirror in (newcombe(both, gained, lost, neither), newcombe(neither, gained, lost, both)):
        assert mirror[:2] == pytest.approx((-found.high, -found.low), abs=1e-12)


@given(CELLS)
def test_newcombe_holds_the_difference(cells: tuple[int, int, int, int]):
    """-1 <= low <= difference <= high <= 1."""
    found, difference = newcombe(*cells), (cells[2] - cells[1]) / sum(cells)
    assert -1 <= found.low <= difference + 1e-12
    assert difference - 1e-12 <= found.high <= 1


def test_newcombe_refuses_what_is_no_count():
    """A negative number of cases is an error."""
    with pytest.raises(ValueError, match="negative"):
        newcombe(3, -1, 0, 2)


# A few values


def test_typical_values_are_the_means_of_subsets():
    """Three values at 50 %: the means of their 7 subsets, without the smallest two and the largest two."""
    means = sorted([1, 2, 6, 1.5, 3.5, 4, 3])
    found = typical_values(np.array([6.0, 1.0, 2.0]), 0.5)
    assert found[:2] == pytest.approx((means[1], means[-2]))


def test_typical_values_cover_exactly():
    """Of a symmetric distribution, however heavy its tails, 8 values cover the middle as often as said."""
    draws = np.random.default_rng(6).standard_t(2, (4000, 8))
    held = [low <= 0 <= high for low, high in (typical_values(row, 0.95)[:2] for row in draws)]
    assert np.mean(held) == pytest.approx(1 - 2 * 6 / 256, abs=0.01)


def test_too_few_typical_values_have_no_interval():
    """Five values cannot bear 95 %, and equal ones say nothing of spread; too many are an error."""
    assert typical_values(np.arange(5.0)).reason == "too few values at level 0.95"
    assert typical_values(np.ones(8)).reason == "all values are equal"
    with pytest.raises(ValueError, match="at most 20 values"):
        typical_values(np.arange(MOST_TYPICAL + 1.0))


# Means and medians


def _scipys(values: Floats, statistic: Callable[..., Any]) -> tuple[float, float]:
    """The percentile interval of scipy.stats.bootstrap, which draws as we do from the same seed."""
    found = stats.bootstrap(
        (values,), statistic, method="percentile", n_resamples=RESAMPLES, rng=np.random.default_rng(SEED)
    )
    return tuple(found.confidence_interval)


SAMPLES = [
    np.array([1.0, 2.0]),
    np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]),
    np.random.default_rng(1).exponential(120.0, 60),  # latencies
    np.random.default_rng(2).integers(0, 6, 177).astype(float),  # counts
    np.random.default_rng(4).exponential(120.0, 1501),  # drawn in batches
]


@pytest.mark.parametrize("values", SAMPLES, ids=len)
def test_bootstraps_are_scipys(values: Floats):
    """With the same draws, mean and median have the ends of scipy.stats.bootstrap's percentile interval."""
    for ours, statistic in ((bootstrap_mean, np.mean), (bootstrap_median, np.median)):
        found = ours(values)
        assert (found.low, found.high) == pytest.approx(_scipys(values, statistic), rel=1e-12)
        assert (found.n, found.method) == (len(values), f"bootstrap {statistic.__name__}")


def test_the_mean_is_near_the_normal_interval():
    """For a large sample the bootstrap of the mean is the normal one, within its own noise."""
    values = np.random.default_rng(3).normal(50, 10, 2000)
    found = bootstrap_mean(values)
    half = normal_quantile(0.975) * values.std(ddof=1) / sqrt(len(values))
    assert found.low == pytest.approx(values.mean() - half, abs=half / 5)
    assert found.high == pytest.approx(values.mean() + half, abs=half / 5)


VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40).map(np.array)
Bootstrap = Callable[[Floats], Interval]
BOOTSTRAPS = pytest.mark.parametrize("bootstrap", [bootstrap_mean, bootstrap_median])


@BOOTSTRAPS
@given(values=VALUES)
def test_a_bootstrap_stays_among_its_values(bootstrap: Bootstrap, values: Floats):
    """Ordered, and never beyond the smallest and the largest value."""
    found = bootstrap(values)
    slack = 1e-9 * (1 + np.abs(values).max())
    assert values.min() - slack <= found.low <= found.high <= values.max() + slack


@BOOTSTRAPS
@given(values=VALUES, factor=st.floats(0.1, 10), shift=st.floats(-100, 100))
def test_a_bootstrap_follows_its_unit(bootstrap: Bootstrap, values: Floats, factor: float, shift: float):
    """In another unit it is the same interval in that unit."""
    before, after = bootstrap(values), bootstrap(values * factor + shift)
    expected = (before.low * factor + shift, before.high * factor + shift)
    assert (after.low, after.high) == pytest.approx(expected, rel=1e-6, abs=1e-3)


@BOOTSTRAPS
def test_equal_data_give_equal_intervals(bootstrap: Bootstrap):
    """Every draw starts from the one seed: asking again changes nothing."""
    assert bootstrap(SAMPLES[2]) == bootstrap(SAMPLES[2].copy())


@BOOTSTRAPS
@pytest.mark.parametrize("values", [[], [7.0]])
def test_fewer_than_two_values_have_no_interval(bootstrap: Bootstrap, values: list[float]):
    """One value says nothing of how values vary, and the method says so."""
    found = bootstrap(np.array(values))
    assert (found.low, found.high, found.n) == (None, None, len(values))
    assert (found.seed, found.reason) == (None, "fewer than 2 values")


def test_a_large_sample_takes_little_memory():
    """The interval of 10,000 cases is drawn in batches: well below what all its draws would take."""
    values = np.random.default_rng(5).exponential(120.0, 10_000)
    tracemalloc.start()
    try:
        bootstrap_mean(values)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
