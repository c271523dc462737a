"""The bootstrap: SciPy's with the same draws, and silent where it would be too sure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from store.stats import bootstrap
from store.stats.bootstrap import bca, quantile_ratios, resampling_weights
from store.stats.intervals import SEED, Floats


def _scipys(values: Floats, level: float = 0.95, resamples: int = 10_000) -> tuple[float, float]:
    """BCa of the mean by scipy.stats.bootstrap, which draws as we do from the same seed and order."""
    found = stats.bootstrap(
        (np.sort(values),),
        np.mean,
        method="BCa",
        confidence_level=level,
        n_resamples=resamples,
        rng=np.random.default_rng(SEED),
    )
    return tuple(found.confidence_interval)


# Weights


def test_weights_count_draws():
    """Every row says how often each case was drawn: as many draws as cases, the same from the same seed."""
    [weights] = resampling_weights(7, 50, SEED)
    draws = np.random.default_rng(SEED).integers(0, 7, (50, 7))
    assert (weights == [np.bincount(row, minlength=7) for row in draws]).all()


def test_batches_change_no_draw(monkeypatch: pytest.MonkeyPatch):
    """A draw that does not fit in memory at once is the same draw."""
    [whole] = resampling_weights(9, 40, SEED)
    monkeypatch.setattr(bootstrap, "BATCH", 50)
    batches = list(resampling_weights(9, 40, SEED))
    assert len(batches) == 8
    assert (np.concatenate(batches) == whole).all()


# Means

SAMPLES = [
    np.random.default_rng(1).exponential(120.0, 60) - 100,
    np.random.default_rng(2).normal(0.1, 1, 25),
    np.random.default_rng(3).integers(-4, 5, 64) / 4,  # ties, exact in binary
    np.random.default_rng(4).standard_t(3, 300),
]


@pytest.mark.parametrize("values", SAMPLES, ids=len)
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_bca_is_scipys(values: Floats, level: float):
    """With the same draws both ends are those of scipy.stats.bootstrap(method="BCa")."""
    [found] = bca(values[:, None], level=level)
    assert found[:2] == pytest.approx(_scipys(values, level), abs=1e-12, rel=1e-12)
    assert (found.n, found.dropped, found.seed, found.level) == (len(values), 0, SEED, level)
    assert (found.method, found.reason) == ("BCa bootstrap", None)


def test_one_draw_serves_all_metrics():
    """Columns side by side have each the interval of SciPy with the one draw, in the one order of cases."""
    first = np.sort(np.random.default_rng(5).normal(size=40))
    second = np.random.default_rng(6).exponential(size=40)
    found = bca(np.stack([second, first], axis=1), resamples=2000)
    alone = stats.bootstrap(
        (second,), np.mean, method="BCa", n_resamples=2000, rng=np.random.default_rng(SEED)
    ).confidence_interval
    assert found[0][:2] == pytest.approx(tuple(alone), abs=1e-12)
    assert found[1][:2] == pytest.approx(_scipys(first, resamples=2000), abs=1e-12)


def test_what_is_missing_is_dropped_and_counted():
    """A column with missing cases has about the interval of the cases it has, and counts both."""
    values = np.random.default_rng(7).normal(5, 1, 200)
    holed = np.where(np.arange(200) % 4 == 0, np.nan, values)
    whole, part = bca(np.stack([values, holed], axis=1))
    low, high = _scipys(holed[~np.isnan(holed)])
    assert (whole.n, whole.dropped, part.n, part.dropped) == (200, 0, 150, 50)
    assert (part.low, part.high) == pytest.approx((low, high), abs=0.1 * (high - low))


def test_sizes_make_it_a_ratio():
    """Sums of clusters of one size have the interval of their means."""
    means = np.random.default_rng(8).normal(size=30)
    [ratio], [mean] = bca(5 * means[:, None], np.full(30, 5.0)), bca(means[:, None])
    assert ratio[:2] == pytest.approx(mean[:2], abs=1e-12)


def test_unequal_sizes_have_the_exact_jackknife():
    """With clusters of unequal size both ends are SciPy's for the ratio of two resampled sums."""
    random = np.random.default_rng(9)
    sizes = random.integers(1, 9, 25).astype(float)
    sums = np.sort(random.normal(sizes * 0.3, 1))
    reference = stats.bootstrap(
        (sums, sizes),
        lambda total, size, axis: total.sum(axis=axis) / size.sum(axis=axis),
        method="BCa",
        paired=True,
        n_resamples=3000,
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    [found] = bca(sums[:, None], sizes, resamples=3000)
    assert found[:2] == pytest.approx(tuple(reference), abs=1e-12)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], "fewer than 6 values other than 0"),
        ([np.nan] * 9, "fewer than 6 values other than 0"),
        ([1.0, -1.0, 1.0, 1.0, 1.0] + [0.0] * 45, "fewer than 6 values other than 0"),
        ([0.25] * 20, "all values are equal"),
    ],
)
def test_too_little_spread_has_no_interval(values: list[float], reason: str):
    """Where resamples would hold too few differences, nothing is drawn and the reason is told."""
    [found] = bca(np.array(values)[:, None])
    assert (found.low, found.high, found.seed, found.reason) == (None, None, None, reason)


def test_clusters_of_equal_means_have_no_interval():
    """Sums that differ only because the clusters do in size have no spread."""
    sizes = np.arange(1.0, 31.0)
    [found] = bca(0.1 * sizes[:, None], sizes)
    assert (found.low, found.reason) == (None, "all values are equal")


def test_a_value_beyond_all_resamples_is_told(monkeypatch: pytest.MonkeyPatch):
    """An estimate with every resample on one side of it has a bias without end: no interval."""
    monkeypatch.setattr(bootstrap, "resampling_weights", lambda *_: iter([np.eye(8)[[0, 0, 1]] * 8]))
    [found] = bca(np.array([1.0, 2, 3, 4, 5, 6, 7, 90])[:, None], resamples=3)
    assert (found.low, found.seed) == (None, None)
    assert found.reason == "too skewed to resample"


def test_an_unfit_column_leaves_the_others_theirs():
    """A metric without spread costs the metrics beside it nothing."""
    values = np.sort(SAMPLES[1])
    unfit, found = bca(np.stack([np.zeros(25), values], axis=1))
    assert unfit.reason is not None
    assert found == bca(values[:, None])[0]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_the_order_of_cases_changes_nothing(seed: int):
    """Rows in any order give the very same intervals."""
    values = np.random.default_rng(10).normal(size=(30, 3)).round(1)
    shuffled = np.random.default_rng(seed).permutation(values)
    assert bca(shuffled, resamples=200) == bca(values, resamples=200)


# Ratios of quantiles


def test_quantiles_are_numpys():
    """Each resample's quantile is numpy.quantile of the values drawn."""
    random = np.random.default_rng(11)
    before, after = random.exponential(100, 80), random.exponential(130, 80)
    order = np.lexsort((after, before))
    before, after = before[order], after[order]
    draws = np.random.default_rng(SEED).integers(0, 80, (300, 80))
    for found in quantile_ratios(before, after, (0.25, 0.5, 0.95), level=0.9, resamples=300):
        ratios = [np.quantile(after[d], found.share) / np.quantile(before[d], found.share) for d in draws]
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(ratios, [0.05, 0.95])), rel=1e-12)
        assert found.ratio == np.quantile(after, found.share) / np.quantile(before, found.share)


def test_units_are_drawn_whole():
    """Two cases of one unit always come together: doubling every case as a pair changes no interval."""
    random = np.random.default_rng(12)
    before, after = np.sort(random.exponential(100, 90)), random.exponential(130, 90)
    [alone] = quantile_ratios(before, after, (0.5,), resamples=500)
    twice, units = (np.repeat(before, 2), np.repeat(after, 2)), np.repeat(np.arange(90), 2)
    [paired] = quantile_ratios(*twice, (0.5,), units, resamples=500)
    width = alone.high - alone.low
    assert (paired.low, paired.high) == pytest.approx((alone.low, alone.high), abs=0.1 * width)


def test_a_quantile_out_of_reach_has_no_interval():
    """60 cases all lie below the 95 % quantile too often (.046), 73 do not; 9 bear no median."""
    values = np.arange(1.0, 74.0)
    median, far = quantile_ratios(values[:60], 2 * values[:60], resamples=100)
    assert (far.ratio, far.low, far.seed) == (pytest.approx(2), None, None)
    assert far.reason == "too few independent cases for an interval of the 0.95 quantile"
    assert (median.low, median.high, median.reason) == (pytest.approx(2), pytest.approx(2), None)
    assert quantile_ratios(values, values, (0.95,), resamples=100)[0].reason is None
    assert quantile_ratios(values[:9], values[:9], (0.5,))[0].low is None
    assert quantile_ratios(values[:0], values[:0], (0.5,))[0].ratio is None


def test_the_ratio_covers():
    """A median 1.2 times as long is in the 95 % interval about as often as said."""
    random = np.random.default_rng(13)
    held = 0
    for _ in range(120):
        case = random.normal(0, 0.5, 60)
        before, after = np.exp(case + random.normal(0, 0.2, 60)), np.exp(case + random.normal(0, 0.2, 60))
        [found] = quantile_ratios(before, 1.2 * after, (0.5,), resamples=300)
        held += found.low <= 1.2 <= found.high
    assert held / 120 >= 0.91
