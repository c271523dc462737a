"""The change test: silent about noise and moods, loud about cases that never failed before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from store.stats.change import change_test, smallest_visible_drop
from store.stats.intervals import Floats

RATES = np.repeat([0.999, 0.001, 0.2, 0.5, 0.8], [22, 3, 2, 1, 2])
"""A suite of thirty: most pass, some fail, some are flaky."""


def _answers(rates: Floats, nights: int, seed: int, mood: float = 0) -> Floats:
    """(nights, cases); `mood`: standard deviation of the logit that a night's cases share."""
    random = np.random.default_rng(seed)
    shift = random.normal(0, mood, (nights, 1))
    return np.asarray(random.random((nights, len(rates))) < expit(logit(rates) + shift), dtype=float)


def _broken(answers: Floats, cases: slice) -> Floats:
    answers = answers.copy()
    answers[:, cases] = 0
    return answers


@st.composite
def suites(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Nights and fresh trials, some without an answer."""
    cases, seed = draw(st.integers(1, 40)), draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    rates = random.choice([0.001, 0.3, 0.7, 0.999, 0.999, 0.999], cases)
    answers = _answers(rates, draw(st.integers(2, 16)), seed)
    answers[random.random(answers.shape) < draw(st.sampled_from([0, 0.1, 0.6]))] = np.nan
    fresh = draw(st.integers(1, min(4, len(answers) - 1)))
    return answers[:-fresh], answers[-fresh:]


# What an unchanged backend is told


@pytest.mark.parametrize("nights", [5, 10])
def test_no_change_is_seldom_called_one(nights: int):
    """Without a change a p-value is below a level at most about as often as the level says."""
    p = np.array([
        change_test(*np.split(_answers(RATES, nights + 1, seed), [nights]), draws=199).p
        for seed in range(300)
    ])  # fmt: skip
    for level in (0.05, 0.1, 0.3):
        assert (p <= level).mean() <= level + 2.5 * np.sqrt(level * (1 - level) / len(p))
    assert 0.4 <= p.mean() <= 0.75


@pytest.mark.parametrize("rates", [np.linspace(0.1, 0.9, 30), np.full(100, 0.95), np.full(60, 0.8)])
def test_flaky_cases_are_no_news(rates: Floats):
    """A suite whose every case is flaky, each in its way or all alike, raises no more suspicion than any."""
    p = [change_test(*np.split(_answers(rates, 7, seed), [6]), draws=199).p for seed in range(100)]
    assert np.mean(np.array(p) <= 0.05) <= 0.1


def test_a_mood_is_no_news_but_as_many_broken_cases_are():
    """A night that costs flaky cases is explained by nights like it; as many stable losses are not."""
    rates = np.repeat([0.999, 0.6], [60, 20])
    nights = _answers(rates, 60, seed=3, mood=1)
    usual = nights[:, 60:].sum(axis=1)
    tonight = _broken(np.ones((1, 80)), slice(60, 60 + 20 - int(np.quantile(usual, 0.1))))
    broken = np.ones((1, 80))
    broken[0, :60] = np.arange(60) >= (tonight == 0).sum()
    broken[0, 60:] = np.arange(20) < np.median(usual)
    moody, lost = change_test(nights, tonight), change_test(nights, broken)
    assert moody.p is not None
    assert moody.p > 0.05
    assert lost.p == 0.001


def test_moods_are_learnt_from_all_nights():
    """The same loss, tonight and in the newest ten nights, weighs less where older nights had moods."""
    rates = np.repeat([0.999, 0.5], [20, 40])
    calm, moody, newest = (_answers(rates, nights, 1, mood) for nights, mood in ((50, 0), (50, 1.5), (10, 0)))
    tonight = _answers(np.repeat([0.999, 0.25], [20, 40]), 1, seed=2)
    tests = [change_test(np.concatenate([older, newest]), tonight) for older in (calm, moody)]
    assert tests[0].p is not None
    assert tests[1].p is not None
    assert tests[0].p < tests[1].p / 2


# What a change is told


@pytest.mark.parametrize(("trials", "level"), [(1, 0.05), (3, 0.01)])
def test_broken_cases_are_seen(trials: int, level: float):
    """Three of thirty cases that never failed and now always fail are seen nearly always."""
    seen = []
    for seed in range(40):
        answers = _answers(RATES, 10 + trials, seed)
        seen.append(change_test(answers[:10], _broken(answers[10:], slice(3)), draws=499).p <= level)
    assert np.mean(seen) >= 0.95


def test_repeats_add_evidence_on_flaky_cases():
    """That flaky cases fail is seen in repeats, where one trial could not tell."""
    nights = _answers(RATES, 10, seed=5)
    once, thrice = (
        change_test(nights, _broken(np.tile(nights[-1], (trials, 1)), slice(25, 30))) for trials in (1, 3)
    )
    assert thrice.statistic is not None
    assert once.statistic is not None
    assert thrice.statistic > once.statistic


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(5, 12), st.integers(1, 3), st.integers(0, 12))
def test_more_broken_cases_never_lower_the_evidence(seed: int, nights: int, trials: int, broken: int):
    """To break one more case that always passed never raises the p-value."""
    answers = _answers(RATES, nights + trials, seed)
    answers[:nights, :14] = 1
    p = [
        change_test(answers[:nights], _broken(answers[nights:], slice(count)), draws=199).p
        for count in (broken, broken + 1)
    ]
    assert p[1] <= p[0]


def test_lost_and_gained_cases_are_counted():
    """Lost is a sure pass that failed in every trial, gained a sure failure that passed in every one; a
    flaky case is neither, nor is one that only some trials lost."""
    nights = np.tile([1, 1, 1, 1, 0, 0, 0, 0.0], (10, 1))
    nights[::2, 7] = 1
    fresh = np.array([[0, 0, 1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 1, 0, 0, 0.0]])
    found = change_test(nights, fresh)
    assert (found.lost, found.gained) == (1, 1)
    mirrored = change_test(nights, fresh, worse=False)
    assert (mirrored.lost, mirrored.gained) == (1, 1)


# Whatever the answers


@settings(deadline=None, max_examples=40)
@given(suites())
def test_better_is_worse_mirrored(suite: tuple[Floats, Floats]):
    """Passes and failures swapped, an improvement is a loss: the same evidence, lost and gained swapped."""
    nights, fresh = suite
    ours, mirrored = (
        change_test(nights, fresh, draws=99),
        change_test(1 - nights, 1 - fresh, worse=False, draws=99),
    )
    assert mirrored == ours._replace(lost=ours.gained, gained=ours.lost)


@settings(deadline=None, max_examples=40)
@given(suites(), st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_nothing(suite: tuple[Floats, Floats], random):
    """However the cases are shuffled, the result is the same to the last bit."""
    nights, fresh = suite
    order = list(range(nights.shape[1]))
    random.shuffle(order)
    assert change_test(nights[:, order], fresh[:, order], draws=99) == change_test(nights, fresh, draws=99)


@settings(deadline=None, max_examples=40)
@given(suites(), st.booleans())
def test_a_p_value_is_never_0(suite: tuple[Floats, Floats], worse: bool):
    """A p-value lies above 0 and at most at 1, or there is a reason why there is none."""
    found = change_test(*suite, worse=worse, draws=99)
    assert (found.p is None) == (found.statistic is None) == (found.reason is not None) == (found.n == 0)
    assert found.p is None or 0.01 <= found.p <= 1
    assert found.n + found.dropped == suite[0].shape[1]


def test_equal_data_give_equal_results():
    """A result is drawn anew to the same figures; another seed draws others."""
    nights, fresh = np.split(_answers(RATES, 11, seed=1), [10])
    assert change_test(nights, fresh) == change_test(nights, fresh)
    assert change_test(nights, fresh, seed=1).p != change_test(nights, fresh).p


# Missing answers


def test_cases_without_a_side_are_dropped_and_counted():
    """A case new tonight, or without a fresh answer, changes nothing and is counted."""
    nights, fresh = np.split(_answers(RATES, 12, seed=1), [10])
    new, silent = np.full((10, 2), np.nan), np.ones((10, 1))
    wider = change_test(
        np.hstack([nights, new, silent]), np.hstack([fresh, fresh[:, :2], np.full((2, 1), np.nan)])
    )
    assert wider == change_test(nights, fresh)._replace(dropped=3)


def test_an_answer_of_old_nights_is_no_history():
    """A case is known by the newest ten nights only."""
    nights, fresh = np.split(_answers(RATES, 13, seed=1), [12])
    nights[2:, 0] = np.nan
    found = change_test(nights, fresh)
    assert (found.n, found.dropped, found.nights) == (29, 1, 10)


def test_unanswered_nights_and_trials_do_not_count():
    """Nights and trials are those that hold an answer."""
    nights, fresh = np.split(_answers(RATES, 9, seed=1), [6])
    nights[1], fresh[2] = np.nan, np.nan
    found = change_test(nights, fresh)
    assert (found.nights, found.trials) == (5, 2)


def test_a_missing_answer_is_no_failure():
    """An error tonight is not a lost case."""
    nights = np.ones((10, 20))
    fresh = np.ones((3, 20))
    fresh[0, :5] = np.nan
    assert change_test(nights, fresh).p > 0.5


@pytest.mark.parametrize(
    ("nights", "fresh"),
    [
        (np.ones((0, 4)), np.ones((1, 4))),
        (np.ones((3, 0)), np.ones((1, 0))),
        (np.full((3, 4), np.nan), np.ones((1, 4))),
        (np.ones((3, 4)), np.full((1, 4), np.nan)),
    ],
)
def test_nothing_to_compare_has_a_reason(nights: Floats, fresh: Floats):
    """Without a case on both sides there is no figure, but a reason."""
    found = change_test(nights, fresh)
    assert (found.p, found.statistic, found.n) == (None, None, 0)
    assert found.reason == "no case has both a night and a fresh answer"


# The smallest loss that would be seen


def test_the_visible_drop_is_seen():
    """To break as many cases as told is seen by three looks about as often as told; one fewer, less."""
    nights = _answers(RATES, 10, seed=4)
    told = smallest_visible_drop(nights)
    assert told.cases is not None
    assert told.drop == told.cases / 30
    assert told.power >= 0.8
    seen = [_seen(nights, told.cases, seed) for seed in range(40)]
    assert np.mean(seen) == pytest.approx(told.power, abs=0.15)
    assert np.mean([_seen(nights, told.cases - 1, seed) for seed in range(40)]) < 0.8


def _seen(nights: Floats, broken: int, seed: int) -> bool:
    fresh = _answers(np.where(np.arange(30) < broken, 0.03, RATES), 7, seed + 1000)
    looks = zip(np.split(fresh, [1, 4]), (0.05, 0.01, 0.01), strict=True)
    return all(change_test(nights, look, draws=499).p <= level for look, level in looks)


def test_noise_hides_and_cases_show():
    """A suite four times as large sees a smaller drop; one half flaky, on moody nights, a larger one."""
    nights = (
        _answers(np.tile(RATES, 4), 10, seed=2),
        _answers(RATES, 10, seed=2),
        _answers(np.repeat([0.999, 0.5], [15, 15]), 10, seed=2, mood=1.5),
    )
    drops = [smallest_visible_drop(one).drop for one in nights]
    assert drops[0] < drops[1] < drops[2]


def test_more_power_takes_more_cases():
    """What is to be seen more surely must be larger."""
    nights = _answers(RATES, 5, seed=3)
    assert smallest_visible_drop(nights, power=0.3).cases < smallest_visible_drop(nights, power=0.99).cases
    strict = smallest_visible_drop(nights, levels=(0.002, 0.01, 0.01))
    assert strict.cases > smallest_visible_drop(nights).cases, "a stricter first look sees less"


@pytest.mark.parametrize(
    ("nights", "n", "reason"),
    [
        (np.zeros((10, 20)), 20, "no case passes for sure"),
        (np.full((10, 20), np.nan), 0, "no case passes for sure"),
        (np.ones((10, 1)), 1, "no loss is seen so often"),
    ],
)
def test_a_blind_suite_says_why(nights: Floats, n: int, reason: str):
    """Where no loss would be seen there is no figure, but a reason."""
    found = smallest_visible_drop(nights, power=0.99)
    assert (found.drop, found.cases, found.power, found.n, found.reason) == (None, None, None, n, reason)
