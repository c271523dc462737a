"""Two runs of the same cases: against SciPy's tests, and on what must hold whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from store.stats.bootstrap import bca
from store.stats.clusters import cluster_bootstrap, cr1
from store.stats.comparisons import (
    mcnemar,
    paired_difference,
    paired_ratio,
    sequential_evidence,
    sign_flip,
)
from store.stats.intervals import SEED, Floats, newcombe, typical_values

# McNemar


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (1, 0), (5, 0), (6, 0), (3, 9), (40, 61), (7, 7)])
def test_mcnemar_is_the_binomial_test(lost: int, gained: int):
    """p is that of scipy.stats.binomtest at one half."""
    expected = stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    assert mcnemar(lost, gained)[:2] == (pytest.approx(expected, rel=1e-12), lost + gained)


def test_mcnemar_is_as_published():
    """Fagerland, Lydersen and Laake 2013 (BMC Medical Research Methodology 13:91), airway
    hyper-responsiveness, 7 and 1 of 21 pairs: exact conditional p = .070."""
    assert mcnemar(1, 7).p == pytest.approx(0.070, abs=5e-4)


COUNTS = st.integers(0, 3000)


@given(COUNTS, COUNTS)
def test_mcnemar_is_never_0(lost: int, gained: int):
    """0 < p <= 1, and the same with the sides swapped."""
    assert 0 < mcnemar(lost, gained).p <= 1
    assert mcnemar(lost, gained).p == mcnemar(gained, lost).p


@given(COUNTS, COUNTS)
def test_more_lost_cases_never_lower_mcnemars_evidence(one: int, other: int):
    """With as many lost as gained or more, one more lost case never raises p."""
    gained, lost = sorted((one, other))
    assert mcnemar(lost + 1, gained).p <= mcnemar(lost, gained).p * (1 + 1e-12)


# Sign flips


def _scipys(values: Floats) -> float:
    found = stats.permutation_test(
        (values,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    return float(found.pvalue)


@pytest.mark.parametrize("seed", range(6))
def test_exact_sign_flips_are_scipys(seed: int):
    """Up to 13 differences every flip is made: p is that of scipy.stats.permutation_test, ties and all."""
    random = np.random.default_rng(seed)
    values = random.normal(0.4, 1, 10) if seed % 2 else random.integers(-2, 4, 11) / 4
    found = sign_flip(values)
    assert found.p == pytest.approx(_scipys(values), abs=1e-12)
    assert (found.method, found.seed, found.resamples) == ("exact sign flip", None, None)


def test_sampled_sign_flips_are_near_the_exact():
    """Beyond, flips are drawn, seeded, and count the data among the draws."""
    values = np.random.default_rng(7).normal(0.5, 1, 13)
    exact, sampled = sign_flip(values), sign_flip(values, resamples=8000)
    assert (sampled.method, sampled.seed, sampled.resamples) == ("sampled sign flip", SEED, 8000)
    assert sampled.p == pytest.approx(exact.p, abs=3 * np.sqrt(exact.p / 8000))
    assert sign_flip(np.ones(200), resamples=99).p == 1 / 100


def test_clusters_flip_whole():
    """Two clusters of ten have but four flips, whatever is inside."""
    values = np.ones(20)
    assert sign_flip(values, np.repeat([0, 1], 10))[:3] == (0.5, 2, "exact sign flip of clusters")
    assert sign_flip(values).p < 0.001


DIFFERENCES = st.lists(st.integers(-8, 8), min_size=1, max_size=12).map(lambda found: np.array(found) / 4)


@given(DIFFERENCES, st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_order_and_sides_change_no_p(values: Floats, seed: int):
    """Shuffled or swapped, the p is the very same, exact and sampled; it is above 0."""
    shuffled = np.random.default_rng(seed).permutation(values)
    for resamples in (10_000, 50):
        p = sign_flip(values, resamples=resamples).p
        assert sign_flip(shuffled, resamples=resamples).p == p
        assert sign_flip(-values, resamples=resamples).p == p
        assert 0 < p <= 1


@given(DIFFERENCES, st.integers(1, 8))
@settings(max_examples=60)
def test_a_further_loss_never_lowers_the_evidence(values: Floats, loss: int):
    """Where the mean fell, one more case that falls never raises p."""
    values = -np.sign(values.sum() or 1) * values
    assert sign_flip(np.append(values, -loss / 4)).p <= sign_flip(values).p + 1e-12


# Sequential


def test_sequential_evidence_by_hand():
    """b = 2, c = 0: the mixture gives B(2.5, .5) / B(.5, .5) = 3/8, and so LR = 3/8 x 4."""
    found = sequential_evidence([1, 1], [0, 0])
    assert found.log_ratio == pytest.approx(np.log(1.5))
    assert found.p == pytest.approx(1 / 1.5)
    assert (found.lost, found.gained, found.n, found.first) == (2, 0, 2, None)


def test_evidence_that_fades_stays_found():
    """p is the strongest so far and `first` the look at which it came to alpha, whatever follows."""
    found = sequential_evidence([4, 4, 0, 0], [0, 0, 6, 6])
    assert (found.first, found.log_ratio < 0) == (1, True)
    assert found.p == sequential_evidence([4, 4], [0, 0]).p < 0.05


def test_without_pairs_that_differ_there_is_no_evidence():
    """No looks, or looks without a difference: p is 1 and the reason is told."""
    for looks in ([], [0, 0]):
        found = sequential_evidence(looks, looks)
        assert (found.p, found.first, found.n, found.reason) == (1, None, 0, "no pair differs")


@given(COUNTS, COUNTS)
def test_more_lost_pairs_never_lower_the_sequential_evidence(one: int, other: int):
    """With as many lost as gained or more, one more lost pair never lowers the ratio; p is above 0."""
    gained, lost = sorted((one, other))
    before, after = sequential_evidence([lost], [gained]), sequential_evidence([lost + 1], [gained])
    assert after.log_ratio >= before.log_ratio - 1e-9
    assert after.p > 0


def test_looking_every_night_keeps_the_level():
    """90 looks at a backend that did not change reach alpha = .05 in at most about 5 % of histories."""
    random = np.random.default_rng(8)
    differ = random.binomial(50, 0.1, (800, 90))
    lost = random.binomial(differ, 0.5)
    alarms = [sequential_evidence(b, m - b).first is not None for b, m in zip(lost, differ, strict=True)]
    assert np.mean(alarms) <= 0.05


@pytest.mark.parametrize(("n", "nights"), [(50, 5), (200, 2)])
def test_a_drop_of_ten_points_is_found_within_nights(n: int, nights: int):
    """With 15 % of the cases flaky half of the histories alarm by night 5 at 50 cases, 2 at 200."""
    random = np.random.default_rng(18)
    looks = random.multinomial(n, [0.175, 0.075, 0.75], (400, 40))
    first = [sequential_evidence(lost, gained).first for lost, gained, _ in np.moveaxis(looks, 2, 1)]
    assert np.median([1 + (99 if night is None else night) for night in first]) == nights


# Paired differences


def _flipped(n: int, passed: int, lost: int, gained: int) -> tuple[Floats, Floats]:
    before = (np.arange(n) < passed).astype(float)
    after = before.copy()
    after[:lost], after[n - gained :] = 0, 1
    return before, after


def test_pass_or_fail_is_mcnemar_and_newcombe():
    """Two runs of 0 and 1: the exact test, Newcombe's interval, and both counts."""
    found = paired_difference(*_flipped(50, 40, 6, 1))
    assert found[:2] == (
        pytest.approx(-0.1),
        pytest.approx(np.std([-1] * 6 + [1] + [0] * 43, ddof=1) / 50**0.5),
    )
    assert (found.low, found.high) == newcombe(34, 6, 1, 9)[:2]
    assert (found.p, found.test) == (mcnemar(6, 1).p, "exact McNemar")
    assert (found.lost, found.gained, found.n, found.dropped) == (6, 1, 50, 0)
    assert (found.seed, found.resamples, found.reason) == (None, None, None)


@pytest.mark.parametrize("passed", [0, 25, 50])
def test_without_a_difference_the_pass_rate_says_nothing(passed: int):
    """No lost case of 50 leaves the same limits, whether half of them pass or all."""
    found = paired_difference(*_flipped(50, passed, 0, 0), level=0.9)
    assert (found.low, found.high) == pytest.approx((-0.0513, 0.0513), abs=1e-4)
    assert (found.p, found.difference) == (1, 0)


def test_repeats_are_averaged_within_the_case():
    """Cases x trials are the means of the trials that there are; then sign flips and BCa."""
    random = np.random.default_rng(9)
    before, after = random.integers(0, 2, (2, 40, 3)).astype(float)
    before[0, 1] = np.nan
    found = paired_difference(before, after)
    assert found == paired_difference(np.nanmean(before, axis=1), after.mean(axis=1))
    assert (found.test, found.method, found.seed) == ("sampled sign flip", "BCa bootstrap", SEED)


def test_continuous_values_are_bca():
    """The interval is BCa of the differences, those missing on a side dropped from both and counted."""
    random = np.random.default_rng(10)
    before, after = random.exponential(1, 60), random.exponential(1.3, 60)
    before[3], after[[3, 5]] = np.nan, np.nan
    held = ~np.isnan(before + after)
    found = paired_difference(before, after)
    [reference] = bca((after - before)[held][:, None])
    mirrored = bca((before - after)[held][:, None])[0]
    assert (found.low, found.high) in (reference[:2], (-mirrored.high, -mirrored.low))
    assert (found.n, found.dropped) == (58, 2)


def test_few_differences_are_not_resampled():
    """Five cases of 50 that differ: Newcombe's interval of the shares, and the reason."""
    before = np.full(50, 2 / 3)
    after = np.where(np.arange(50) < 5, 1 / 3, before)
    found = paired_difference(before, after)
    assert (found.method, found.reason) == ("newcombe", "fewer than 6 cases differ")
    assert (found.low, found.high) == pytest.approx(newcombe(95 / 3, 5 / 3, 0, 50 / 3)[:2])
    assert (found.lost, found.gained) == (5, 0)


def test_values_that_are_no_shares_have_no_interval_then():
    """The same of latencies: there is no share to fall back on, and no interval is claimed."""
    before = np.full(50, 120.0)
    found = paired_difference(before, before)
    assert (found.low, found.high, found.difference, found.p) == (None, None, 0, 1)
    assert found.reason == "fewer than 6 cases differ"


def test_equal_differences_are_no_certainty():
    """Where every case fell by the same, no interval without width is shown."""
    found = paired_difference(np.full(20, 0.75), np.full(20, 0.25))
    assert found.reason == "all values are equal"
    assert found.low < -0.5 < found.high


def test_below_ten_cases_all_is_exact():
    """Nine cases: every flip, and the exact interval of typical values; nothing is drawn."""
    values = np.random.default_rng(11).normal(0.4, 1, 9)
    found = paired_difference(np.zeros(9), values)
    assert (found.test, found.method, found.seed) == ("exact sign flip", "typical values", None)
    assert (found.low, found.high) == pytest.approx(typical_values(values)[:2])
    few = paired_difference(*_flipped(8, 8, 2, 0))
    assert (few.test, few.method) == ("exact McNemar", "newcombe")


CONVERSATIONS = np.random.default_rng(12).normal(np.repeat(np.random.default_rng(13).normal(size=30), 6), 1)


def test_clusters_are_cr1_then_resampled():
    """Below 20 clusters CR1, from 20 on what it or a bootstrap of clusters holds; flips are of clusters."""
    few, labels = CONVERSATIONS[:60], np.repeat(np.arange(30), 6)
    found = paired_difference(np.zeros(60), few, labels[:60])
    assert (found.low, found.high) == cr1(few, labels[:60])[:2]
    assert (found.test, found.method, found.clusters) == ("exact sign flip of clusters", "CR1", 10)
    many = paired_difference(np.zeros(180), CONVERSATIONS, labels)
    drawn, turned = (cluster_bootstrap(sign * CONVERSATIONS, labels) for sign in (1, -1))
    robust = cr1(CONVERSATIONS, labels)
    assert min(robust.low, drawn.low, -turned.high) <= many.low <= robust.low
    assert robust.high <= many.high <= max(robust.high, drawn.high, -turned.low)
    assert (many.low, many.high) != robust[:2]
    assert (many.method, many.seed) == ("CR1, cluster bootstrap", SEED)


def test_clusters_of_one_are_no_clusters():
    """A label of its own for each case changes nothing."""
    before, after = _flipped(40, 30, 5, 2)
    assert paired_difference(before, after, np.arange(40)) == paired_difference(before, after)


def test_few_clusters_that_differ_count_as_cases():
    """Lost cases in 3 of 10 conversations: as much is known as 10 cases tell, and the reason is said."""
    before, labels = np.ones(100), np.repeat(np.arange(10), 10)
    after = np.where(np.isin(np.arange(100), [0, 1, 2, 50, 99]), 0.0, 1.0)
    found = paired_difference(before, after, labels)
    assert (found.low, found.high) == pytest.approx(newcombe(9.5, 0.5, 0, 0)[:2])
    assert (found.method, found.reason) == (
        "newcombe, each cluster as one case",
        "fewer than 6 clusters differ",
    )


def test_clusters_never_narrow_it():
    """Pass/fail spread evenly over clusters has at least the interval of independent cases."""
    before, labels = np.ones(200), np.repeat(np.arange(10), 20)
    after = np.where(np.arange(200) % 20 == 0, 0.0, 1.0)
    after[1] = 0
    clustered, alone = paired_difference(before, after, labels), paired_difference(before, after)
    assert clustered.method == "CR1"
    assert clustered.low <= alone.low
    assert clustered.high >= alone.high


def test_few_cases_in_clusters_have_no_interval():
    """Nine cases in three conversations: the exact test alone."""
    found = paired_difference(np.zeros(9), np.arange(1.0, 10), np.repeat(np.arange(3), 3))
    assert (found.p, found.low) == (0.25, None)
    assert found.reason == "fewer than 10 cases in clusters: no exact interval"


@pytest.mark.parametrize("clusters", [None, np.zeros(4)])
def test_nothing_in_common_is_told(clusters: Floats | None):
    """Without a case on both sides there are no figures, and the dropped cases are counted."""
    values = np.array([np.nan, 1.0, np.nan, 0.0])
    found = paired_difference(values, values[::-1].copy(), clusters)
    assert found[:5] == (None, None, None, None, None)
    assert (found.n, found.dropped, found.reason) == (0, 4, "no case has a value on both sides")


def test_impossible_sides_are_refused():
    """Sides of unequal length, clusters that are not one a case, and infinite values are errors."""
    for clusters in (None, np.zeros(2)):
        with pytest.raises(ValueError, match="one row for each case"):
            paired_difference(np.zeros(3), np.zeros(3 if clusters is not None else 4), clusters)
    with pytest.raises(ValueError, match="finite"):
        paired_difference(np.zeros(3), np.array([0, 1, np.inf]))


PAIRS = st.one_of(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30),
).map(lambda pairs: np.array(pairs, dtype=float).T / (4 if np.max(pairs) > 1 else 1))


@given(PAIRS, st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_the_order_of_cases_changes_nothing(pairs: Floats, seed: int):
    """Cases in any order give the same figures, drawn or not."""
    order = np.random.default_rng(seed).permutation(pairs.shape[1])
    found, shuffled = (paired_difference(*sides, resamples=200) for sides in (pairs, pairs[:, order]))
    assert shuffled == pytest.approx(found)


@given(PAIRS)
@settings(max_examples=60, deadline=None)
def test_swapping_the_sides_mirrors_all(pairs: Floats):
    """Lost become gained, the interval its mirror image, and p stays. (Only a drawn interval of differences
    that are their own mirror image need not be one.)"""
    differences = np.sort(pairs[1] - pairs[0])
    found, mirror = (paired_difference(*sides, resamples=200) for sides in (pairs, pairs[::-1]))
    assume(found.method != "BCa bootstrap" or not np.array_equal(differences, -differences[::-1]))
    assert (mirror.lost, mirror.gained, mirror.p) == (found.gained, found.lost, found.p)
    assert (mirror.low is None) == (found.low is None)
    if found.low is not None:
        assert (mirror.low, mirror.high) == pytest.approx((-found.high, -found.low), abs=1e-12)


@given(st.integers(10, 60), st.data())
@settings(deadline=None)
def test_a_further_broken_case_moves_the_interval_down(n: int, data: st.DataObject):
    """One more case lost: neither end rises, and p does not where as many were lost as gained."""
    passed = data.draw(st.integers(1, n))
    lost, gained = data.draw(st.integers(0, passed - 1)), data.draw(st.integers(0, n - passed))
    few, more = (paired_difference(*_flipped(n, passed, count, gained)) for count in (lost, lost + 1))
    assert more.difference < few.difference
    if lost >= gained:
        assert more.p <= few.p


# Coverage


@pytest.mark.parametrize("gained", [0.0, 0.04])
@pytest.mark.parametrize("passing", [0.5, 0.8, 1.0])
def test_sparse_differences_are_covered(passing: float, gained: float):
    """50 cases, 0 or 4 % truly lost: the 95 % interval holds the truth in at least 93 %."""
    random = np.random.default_rng(14)
    lost, held = 0.04, 0
    gained = min(gained, 1 - passing)
    for _ in range(400):
        draw = random.random(50)
        before = random.random(50) < passing
        after = np.where(before, draw >= lost / passing, draw < gained / max(1 - passing, 1e-9))
        found = paired_difference(before.astype(float), after.astype(float))
        held += found.low <= gained - lost <= found.high
    assert held / 400 >= 0.93


def test_clusters_are_covered():
    """10 conversations x 20, cases lost mostly in some of them: at least 93 % as well."""
    random, labels, held = np.random.default_rng(15), np.repeat(np.arange(10), 20), 0
    for _ in range(400):
        lost = np.repeat(random.beta(0.9, 8.1, 10), 20)
        after = (random.random(200) >= lost).astype(float)
        found = paired_difference(np.ones(200), after, labels, resamples=500)
        held += found.low <= -0.1 <= found.high
    assert held / 400 >= 0.93


# Ratios


def test_latency_is_a_ratio():
    """Half as long again: both quantile ratios with intervals, and the flips of the log ratio."""
    random = np.random.default_rng(16)
    before = random.exponential(100, 120)
    after = before * 1.5 * np.exp(random.normal(0, 0.1, 120))
    found = paired_ratio(before, after)
    assert [ratio.share for ratio in found.ratios] == [0.5, 0.95]
    assert all(ratio.low < 1.5 < ratio.high for ratio in found.ratios)
    assert found.p == sign_flip(np.log(after) - np.log(before)).p < 0.01
    assert (found.rose > 110, found.n, found.dropped, found.seed) == (True, 120, 0, SEED)


def test_ratios_in_few_clusters_have_no_interval():
    """19 conversations bear no bootstrap: ratios and the flips of clusters alone; 20 do."""
    random = np.random.default_rng(17)
    before, after, labels = random.exponential(1, 80), random.exponential(1, 80), np.repeat(np.arange(20), 4)
    few = paired_ratio(before[:76], after[:76], labels[:76], shares=(0.5,), resamples=200)
    assert few.ratios[0].low is None
    assert few.ratios[0].ratio == pytest.approx(np.median(after[:76]) / np.median(before[:76]))
    many = paired_ratio(before, after, labels, shares=(0.5,), resamples=200)
    assert many.ratios[0].low < many.ratios[0].ratio < many.ratios[0].high


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ([np.nan, np.nan], "no case has a value on both sides"),
        ([0.0, 1.0], "a value of 0 or below has no ratio"),
    ],
)
def test_what_has_no_ratio_is_told(before: list[float], reason: str):
    """Without positive values on both sides there are no figures, and the reason is told."""
    found = paired_ratio(np.array(before), np.ones(2))
    assert (found.ratios, found.p, found.reason) == ((), None, reason)
