"""Change points: silent about noise, loud about steps, and right about their dates."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from store.stats.changepoints import APART, KEPT, KEPT_MEAN, NEEDED, Changes, faded, online, retrospective
from store.stats.intervals import Floats
from store.stats.segments import LEAST, binomial, partition, squared_error

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
TALOS = SHARED / "data" / "timeseries" / "series.jsonl"


def _dates(found: Changes) -> list[int]:
    return [change.index for change in found.points]


def _shares(levels: list[tuple[int, float]], cases: int = 50, seed: int = 1) -> Floats:
    random = np.random.default_rng(seed)
    return np.concatenate([random.binomial(cases, share, runs) / cases for runs, share in levels])


def _correlated(random: np.random.Generator, n: int, rho: float) -> Floats:
    steps = random.normal(0, np.sqrt(1 - rho**2), n)
    values = [random.normal()]
    for step in steps[1:]:
        values.append(rho * values[-1] + step)
    return np.array(values)


# A step


#   .9 ****** ****** *******
#   .7                       ***** ****
@pytest.mark.parametrize("cases", [None, 50])
@pytest.mark.parametrize(("before", "after"), [(10, 10), (14, 4), (60, 10), (80, 80)])
def test_a_step_is_found_and_dated(cases: int | None, before: int, after: int):
    """A large step is one change, dated within two runs, in long histories and in short ones, which a step
    fills so much that it could pass for noise."""
    values = _shares([(before, 0.9), (after, 0.6)])
    found = retrospective(values, None if cases is None else np.full(len(values), cases))
    assert len(found.points) == 1
    change = found.points[0]
    assert abs(change.index - before) <= 2
    assert change.before == pytest.approx(values[: change.index].mean())
    assert change.after == pytest.approx(values[change.index :].mean())


def test_counts_and_values_agree():
    """Where the evidence is strong, shares are dated alike whether or not their cases are counted."""
    values = _shares([(30, 0.9), (20, 0.6), (30, 0.85)])
    counted, plain = retrospective(values, np.full(80, 50)), retrospective(values)
    assert _dates(counted) == _dates(plain)
    assert len(plain.points) == 2
    assert counted.noise == pytest.approx(plain.noise, rel=0.5)


def test_levels_tile_the_series():
    """Every run lies in one level, a level begins at each change, and its mean is that of its runs."""
    values = _shares([(30, 0.9), (20, 0.6), (30, 0.85)])
    found = retrospective(values, np.full(80, 50))
    assert [level.first for level in found.levels] == [0, *_dates(found)]
    assert [level.last + 1 for level in found.levels] == [*_dates(found), 80]
    for level in found.levels:
        assert level.mean == pytest.approx(values[level.first : level.last + 1].mean())


def test_a_run_weighs_as_many_cases_as_it_had():
    """With counts a level is the share of all its cases: a run of few hardly moves it."""
    values, counts = np.tile([0.9, 0.9, 0.9, 0.5], 10), np.tile([100, 100, 100, 10], 10)
    assert retrospective(values, counts).levels[0].mean == pytest.approx((3 * 90 + 5) / 310)


def test_a_step_from_a_share_of_one():
    """Fifty of fifty in every run, and then three runs of 44: the exact likelihood needs no noise to see
    it."""
    values = np.concatenate([np.ones(30), np.full(3, 0.88)])
    assert _dates(retrospective(values, np.full(33, 50))) == [30]


# No step


def test_equal_values_are_no_change():
    """Of values that are all equal no noise is known, and that is said; counts have the binomial one
    still."""
    values = np.full(40, 0.9)
    plain, counted = retrospective(values), retrospective(values, np.full(40, 50))
    assert (plain.points, plain.noise, plain.rho, plain.reason) == ((), None, None, "all values are equal")
    assert plain.levels == counted.levels == ((0, 39, pytest.approx(0.9)),)
    assert counted.points == ()
    assert counted.reason is None
    assert counted.noise == pytest.approx(np.sqrt(0.09 / 50), rel=0.05)


@pytest.mark.parametrize("look", [retrospective, online])
def test_too_few_runs_have_a_reason(look: Any):
    """Below NEEDED runs nothing is said of noise or changes, and why; missing runs do not count."""
    values = np.append(np.arange(NEEDED - 1.0), [np.nan, np.nan])
    found = look(values)
    assert found[:6] == ((), (), None, None, NEEDED - 1, 2)
    assert found.reason == f"fewer than {NEEDED} runs"
    assert look(np.array([])).reason == found.reason


def test_an_outlier_is_no_change():
    """One run 8 standard deviations off, anywhere, is replaced, so that it hardly makes an alarm."""
    alarms = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        values = random.normal(0, 1, 90)
        values[random.integers(90)] += 8
        alarms += bool(retrospective(values).points)
    assert alarms <= 6


def test_autocorrelation_is_no_change():
    """Runs that go with their neighbours (rho .3) wander; few of their series are taken for steps. The same
    evidence taken as if runs were independent would call changes in most."""
    random = np.random.default_rng(7)
    series = [_correlated(random, 90, 0.3) for _ in range(100)]
    assert np.mean([bool(retrospective(values).points) for values in series]) <= 0.16
    estimated = [retrospective(values).rho for values in series]
    assert 0.15 < np.mean(estimated) < 0.4


@pytest.mark.parametrize("share", [0.8, 0.9, 0.98])
def test_binomial_noise_is_no_change(share: float):
    """Ninety runs of an unchanged backend, fifty cases each: hardly a series has a change."""
    drawn = np.random.default_rng(3).binomial(50, share, (100, 90)) / 50
    assert np.mean([bool(retrospective(values, np.full(90, 50)).points) for values in drawn]) <= 0.08


# Night after night


def test_looking_every_night_needs_the_online_point():
    """Over 70 nights of looking, unchanged backends rarely get an online alarm; at the retrospective point
    several times as many do."""
    drawn = np.random.default_rng(5).normal(0, 1, (40, 90))

    def alarmed(look: Any) -> int:
        return sum(any(look(values[:n]).points for n in range(20, 91, 3)) for values in drawn)

    nightly = alarmed(online)
    assert nightly <= 4
    assert alarmed(retrospective) >= 2 * max(1, nightly)


def test_most_steps_are_told_within_ten_nights():
    """A fall from .9 to .8 of fifty cases is mostly alarmed about within ten nights."""
    counts = np.full(70, 50)
    series = [_shares([(60, 0.9), (10, 0.8)], seed=seed) for seed in range(40)]
    told = [any(online(values[:n], counts[:n]).points for n in range(61, 71)) for values in series]
    assert np.mean(told) >= 0.85


def test_a_change_is_new_once():
    """What lies within APART runs of a report is that change still; what lies further is another. The levels
    tell of it either way."""
    values = _shares([(60, 0.9), (20, 0.5)])
    (date,) = _dates(online(values))
    for distance in range(-APART, APART + 1):
        again = online(values, reported=[date + distance])
        assert again.points == ()
        assert len(again.levels) == 2
    for distance in (-APART - 1, APART + 1):
        assert _dates(online(values, reported=[3, date + distance])) == [date]


def test_a_report_fades_when_the_series_recovers():
    """A report stands while the series bears it out, within APART runs, and fades when nothing does."""
    values = _shares([(60, 0.9), (20, 0.5)])
    assert faded([62], values) == ()
    assert faded([20, 62], values) == (20,)
    assert faded([62], _shares([(80, 0.9)]), np.full(80, 50)) == (62,)


# Missing runs, and what is no share


def test_missing_runs_are_dropped_and_counted():
    """Missing runs change nothing but the numbering: points and levels are those of the runs that are
    there."""
    values, counts = _shares([(40, 0.9), (20, 0.6)]), np.full(60, 50)
    whole = retrospective(values, counts)
    gaps = [0, 7, 8, 39, 40, 41, 60]
    found = retrospective(np.insert(values, gaps, np.nan), np.insert(counts, gaps, 0))
    there = np.flatnonzero(~np.isnan(np.insert(values, gaps, np.nan)))
    assert (found.n, found.dropped) == (60, len(gaps))
    assert _dates(found) == [there[index] for index in _dates(whole)]
    assert [level.mean for level in found.levels] == [level.mean for level in whole.levels]
    assert (found.noise, found.rho) == (whole.noise, whole.rho)


@pytest.mark.parametrize(
    ("values", "counts"),
    [([0.5] * 12, [50] * 11), ([1.5] * 12, [50] * 12), ([0.5] * 12, [0] * 12), ([inf] * 12, None)],
)
def test_what_is_no_share_is_refused(values: list[float], counts: list[int] | None):
    """Counts of another shape, shares above 1, shares of no case and infinite values are errors."""
    with pytest.raises(ValueError, match=r"counts have|shares, 0 to 1|finite"):
        retrospective(np.array(values), None if counts is None else np.array(counts))


# Whatever the numbers


SERIES = st.tuples(st.integers(0, 2**32 - 1), st.integers(8, 25), st.integers(8, 25), st.floats(0, 4))


def _stepped(drawn: tuple[int, int, int, float]) -> Floats:
    seed, before, after, step = drawn
    values = np.random.default_rng(seed).normal(0, 1, before + after)
    values[before:] += step
    return values


@settings(max_examples=40, deadline=None)
@given(SERIES, st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.sampled_from([-1, 1]))
def test_unit_and_origin_do_not_matter(drawn: Any, shift: float, scale: float, sign: int):
    """Shifted, stretched or upside down, a series changes at the same runs on the same evidence."""
    values = _stepped(drawn)
    found, moved = retrospective(values), retrospective(shift + sign * scale * values)
    assert _dates(found) == _dates(moved)
    assert [one.evidence for one in moved.points] == pytest.approx([one.evidence for one in found.points])
    assert moved.noise == pytest.approx(scale * found.noise)
    assert moved.rho == pytest.approx(found.rho)


@settings(max_examples=40, deadline=None)
@given(SERIES)
def test_backwards_the_same_changes(drawn: Any):
    """Read from its end, a series changes between the same runs."""
    values = _stepped(drawn)
    backwards = _dates(retrospective(values[::-1]))
    assert _dates(retrospective(values)) == [len(values) - index for index in backwards[::-1]]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(8, 25), st.integers(8, 25))
def test_passed_or_failed_is_the_same(seed: int, before: int, after: int):
    """Shares of cases failed change where shares of cases passed do, on the same evidence."""
    random = np.random.default_rng(seed)
    cases = random.integers(40, 60, before + after)
    passed = random.binomial(cases, np.repeat([0.8, 0.6], [before, after]))
    found, mirrored = retrospective(passed / cases, cases), retrospective(1 - passed / cases, cases)
    assert _dates(found) == _dates(mirrored)
    assert [one.evidence for one in mirrored.points] == pytest.approx([one.evidence for one in found.points])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=LEAST, max_size=13), st.floats(0.5, 20), st.booleans())
def test_no_segmentation_is_better(passed: list[int], penalty: float, counted: bool):
    """Of all segmentations, tried one by one, none has more fit, less the penalty, than the one found."""
    n, numbers = len(passed), np.array(passed, dtype=float)
    fit = binomial(numbers, np.full(n, 20.0)) if counted else squared_error(numbers)

    def worth(firsts: tuple[int, ...]) -> float:
        fits = [float(fit(a, b)) for a, b in zip(firsts, (*firsts[1:], n), strict=True)]
        return sum(fits) - penalty * (len(firsts) - 1)

    cuts = [cut for size in range(5) for cut in combinations(range(LEAST, n - LEAST + 1), size)]
    possible = [(0, *cut) for cut in cuts if all(b - a >= LEAST for a, b in pairwise(cut))]
    assert worth(tuple(partition(fit, n, penalty))) == pytest.approx(max(map(worth, possible)))


def test_the_fit_is_twice_the_log_likelihood():
    """Two levels against one: the difference in fit is the likelihood ratio by SciPy's distributions."""
    passed, cases = np.array([18.0, 19, 20, 11, 9, 12]), np.array([20.0, 20, 20, 15, 15, 20])

    def likeliest(runs: slice) -> float:
        share = passed[runs].sum() / cases[runs].sum()
        return float(2 * stats.binom.logpmf(passed[runs], cases[runs], share).sum())

    fit = binomial(passed, cases)
    expected = likeliest(slice(0, 3)) + likeliest(slice(3, 6)) - likeliest(slice(0, 6))
    assert float(fit(0, 3) + fit(3, 6) - fit(0, 6)) == pytest.approx(expected)


def test_the_trimmed_mean_is_that_of_chi_squared():
    """KEPT_MEAN makes the trimmed mean square of normal differences estimate their variance."""
    cut = stats.chi2.ppf(KEPT, 1)
    assert pytest.approx(stats.chi2.cdf(cut, 3) / KEPT, abs=1e-4) == KEPT_MEAN


# Real series


@pytest.mark.skipif(not TALOS.exists(), reason="needs the change-point series of ../shared")
def test_talos_changes_are_found():
    """On the real Talos series of a year at most, every change that the maintainers accepted is found within
    five runs, with at most three others."""
    series = [json.loads(line) for line in TALOS.read_text().splitlines() if '"treeherder/' in line]
    short = [one for one in series if one["n"] <= 365]
    assert len(short) == 3
    hits = found = 0
    for one in short:
        dates = _dates(retrospective(np.array(one["values"], dtype=float)))
        found += len(dates)
        hits += sum(any(abs(date - true) <= 5 for date in dates) for true in one["change_points"])
    assert hits == 3
    assert found - hits <= 3
