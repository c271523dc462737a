"""The shift test: a value is held against the spread between nights, and against what is worth a word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from store.stats.intervals import Floats
from store.stats.shift import CONSTANT, FEW, LUCKY, NOTHING, shift_test


def _latencies(nights: int, seed: int, mood: float = 0.1, cases: int = 30) -> Floats:
    """(nights, cases) in ms: cases differ tenfold, answers of one case by a fifth, nights by `mood`."""
    random = np.random.default_rng(seed)
    usual = np.linspace(np.log(20), np.log(200), cases)
    return np.exp(usual + random.normal(0, 0.2, (nights, cases)) + random.normal(0, mood, (nights, 1)))


def _slower(fresh: Floats, nights: Floats):
    return shift_test(nights, fresh, smallest=0.2, upward=True, relative=True)


MATRICES = arrays(float, (7, 5), elements=st.floats(-100, 100, width=32) | st.just(np.nan))
"""Six nights and a fresh one, of five cases."""


def test_it_is_the_t_test_of_one_more_night():
    """On whole data p is that of the two-sample t test of the night means against the fresh one."""
    values = np.random.default_rng(1).normal(5, 1, (8, 12))
    found = shift_test(values[:7], values[7:], smallest=0.1, upward=True)
    reference = stats.ttest_ind([values[7].mean()], values[:7].mean(axis=1), alternative="greater")
    assert found.p == pytest.approx(reference.pvalue, rel=1e-9)
    assert found.change == pytest.approx(values[7].mean() - values[:7].mean())
    assert found.spread == pytest.approx(values[:7].mean(axis=1).std(ddof=1))
    assert (found.nights, found.trials, found.n, found.dropped) == (7, 1, 12, 0)


@pytest.mark.parametrize("mood", [0, 0.3])
def test_no_change_is_seldom_called_one(mood: float):
    """Without a change a p-value lies below a level as often as the level says, whatever nights share."""
    split = [np.split(_latencies(11, seed, mood), [10]) for seed in range(400)]
    p = [_slower(fresh, nights).p for nights, fresh in split]
    for level in (0.05, 0.2):
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=0.04)


def test_repeats_of_a_night_do_not_make_its_mood_a_change():
    """Ten trials in one slow night are one slow night."""
    rejected = []
    for seed in range(200):
        nights, fresh = np.split(_latencies(11, seed, mood=0.3), [10])
        again = fresh * np.exp(np.random.default_rng(seed).normal(0, 0.02, (10, 30)))
        rejected.append(_slower(again, nights).rejects(0.01))
    assert np.mean(rejected) <= 0.03


def test_twenty_times_slower_is_a_finding():
    """Five nights are enough for it, and its size is told as a share of the old value."""
    nights, fresh = np.split(_latencies(6, seed=1), [5])
    found = _slower(20 * fresh, nights)
    assert found.rejects(0.01)
    assert found.change == pytest.approx(19, rel=0.3)


def test_a_sure_change_too_small_for_a_word_is_none():
    """A change far beyond noise does not reject below the smallest one worth a word, and does at it."""
    nights = np.exp(np.random.default_rng(2).normal(3, 0.001, (10, 20)))
    small, large = (_slower(nights[:1] * factor, nights) for factor in (1.1, 1.25))
    assert small.p is not None
    assert small.p < 1e-6
    assert (small.beyond, small.rejects(0.05)) == (False, False)
    assert (large.beyond, large.rejects(0.05)) == (True, True)


def test_a_hung_call_moves_no_night():
    """One case of thirty that takes a thousand times as long is no change of the latency."""
    nights, fresh = np.split(_latencies(11, seed=3, mood=0), [10])
    fresh[0, 7] *= 1000
    assert not _slower(fresh, nights).rejects(0.05)


@settings(deadline=None)
@given(MATRICES, st.sampled_from([0.5, 20.0]))
def test_downward_is_upward_mirrored(values: Floats, smallest: float):
    """With all signs swapped a fall is the same finding as the rise."""
    up = shift_test(values[:6], values[6:], smallest=smallest, upward=True)
    down = shift_test(-values[:6], -values[6:], smallest=smallest, upward=False)
    assert down.p == (up.p if up.p is None else pytest.approx(up.p))
    assert (down.beyond, down.reason, down.n) == (up.beyond, up.reason, up.n)


@settings(deadline=None)
@given(MATRICES, st.permutations(range(5)), st.booleans())
def test_the_order_of_cases_changes_nothing(values: Floats, order: list[int], relative: bool):
    """However the cases are shuffled, the result is the same but for rounding."""
    ours, shuffled = (
        shift_test(one[:6], one[6:], smallest=0.5, upward=True, relative=relative)
        for one in (values, values[:, order])
    )
    assert shuffled.n == ours.n
    assert shuffled.reason == ours.reason
    assert shuffled.p == (ours.p if ours.p is None else pytest.approx(ours.p, rel=1e-3))


@settings(deadline=None)
@given(MATRICES, st.booleans(), st.booleans())
def test_a_p_value_is_never_0(values: Floats, upward: bool, relative: bool):
    """A p-value lies above 0 and at most at 1, or there is a reason why there is none."""
    found = shift_test(values[:6], values[6:], smallest=0.5, upward=upward, relative=relative)
    assert (found.p is None) == (found.reason is not None)
    assert found.p is None or 0 < found.p <= 1
    assert found.n + found.dropped == 5


def test_a_constant_baseline_is_named():
    """Where no night ever differed, there is no p-value; a change worth a word is one, a smaller is not."""
    nights = np.full((5, 30), 5.0)
    same, small, large = (
        shift_test(nights, nights[:1] - less, smallest=0.5, upward=False) for less in (0, 0.1, 1)
    )
    assert [found.reason for found in (same, small, large)] == [CONSTANT] * 3
    assert [found.p for found in (same, small, large)] == [None] * 3
    assert [found.rejects(0.01) for found in (same, small, large)] == [False, False, True]


@pytest.mark.parametrize(("nights", "reason"), [(1, FEW), (2, LUCKY), (4, LUCKY)])
def test_a_few_equal_nights_are_not_constant(nights: int, reason: str):
    """From fewer than five nights without spread nothing is concluded, and the reason says so."""
    found = shift_test(np.full((nights, 30), 5.0), np.full((1, 30), 50.0), smallest=0.5, upward=True)
    assert (found.p, found.reason, found.beyond, found.rejects(0.05)) == (None, reason, True, False)


def test_only_the_newest_ten_nights_count():
    """What nights before them were like is forgotten."""
    old, nights, fresh = np.split(_latencies(16, seed=4), [5, 15])
    assert _slower(fresh, np.concatenate([9 * old, nights])) == _slower(fresh, nights)


def test_cases_without_a_side_are_dropped_and_counted():
    """A case without a value on one side, or whose values have no logarithm, changes nothing and counts."""
    nights, fresh = np.split(_latencies(11, seed=5), [10])
    without, none, zero = np.full((10, 1), np.nan), np.full((1, 1), np.nan), np.zeros((1, 1))
    wider = _slower(np.hstack([fresh, fresh[:, :1], none, zero]), np.hstack([nights, without, nights[:, :2]]))
    assert wider == _slower(fresh, nights)._replace(dropped=3)


def test_a_missing_slow_case_makes_no_night_faster():
    """Cases are compared with themselves, so that which of them answered changes no level."""
    nights, fresh = np.split(_latencies(11, seed=6, mood=0), [10])
    nights[::2, 20:] = np.nan
    found = shift_test(nights, fresh, smallest=0.05, upward=True, relative=True)
    assert abs(found.change) < 0.2


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (3, 4)])
def test_nothing_to_compare_has_a_reason(shape: tuple[int, int]):
    """Without a case on both sides there is no figure, but a reason."""
    found = shift_test(np.full(shape, np.nan), np.ones((1, shape[1])), smallest=1, upward=True)
    assert (found.p, found.change, found.reason, found.n) == (None, None, NOTHING, 0)
    assert not found.rejects(1)


@pytest.mark.parametrize("smallest", [0, -0.1])
def test_the_smallest_change_is_above_0(smallest: float):
    """That no change at all would be worth a word is an error of the caller."""
    with pytest.raises(ValueError, match="must be above 0"):
        shift_test(np.ones((5, 3)), np.ones((1, 3)), smallest=smallest, upward=True)
