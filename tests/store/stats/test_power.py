"""Blind spots: what a suite would have seen is what it sees when simulated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from store.stats.comparisons import mcnemar
from store.stats.intervals import Interval, newcombe
from store.stats.power import WORTH_SEEING, blind_spot, blind_spot_of, mcnemar_power


@pytest.mark.parametrize(
    ("n", "drop", "noise"), [(50, 0.05, 0.06), (50, 0.2, 0.1), (89, 0.1, 0.0), (8, 0.9, 0)]
)
def test_power_is_what_simulated_runs_see(n: int, drop: float, noise: float):
    """Of 4000 pairs of runs the exact test finds as many worse as the power says."""
    shares = [noise / 2 + drop, noise / 2, 1 - noise - drop]
    runs = np.random.default_rng(1).multinomial(n, shares, 4000)
    seen = [lost > gained and mcnemar(int(lost), int(gained)).p <= 0.05 for lost, gained, _ in runs]
    assert np.mean(seen) == pytest.approx(mcnemar_power(n, drop, noise), abs=0.025)


def test_fifty_cases_hardly_see_five_points():
    """50 cases, a tenth of them flaky: a drop of 5 points is seen with power .07."""
    assert mcnemar_power(50, 0.05, 0.1) == pytest.approx(0.07, abs=0.005)
    assert mcnemar_power(50, 0, 0) == 0


@pytest.mark.parametrize("noise", [0, 0.04, 0.2])
@pytest.mark.parametrize("n", [20, 89])
def test_the_smallest_drop_is_just_seen(n: int, noise: float):
    """At the drop told power is .8, and half a point below it is not."""
    found = blind_spot(n, noise)
    assert mcnemar_power(n, found.drop, noise) >= 0.8
    assert mcnemar_power(n, found.drop - 0.005, noise) < 0.8
    assert (found.n, found.method, found.reason) == (n, "exact McNemar", None)


@pytest.mark.parametrize("noise", [0, 0.04, 0.2])
def test_the_cases_needed_are_just_enough(noise: float):
    """With the cases told 5 points are seen with power .8, with one fewer they are not."""
    needed = blind_spot(50, noise).needed
    assert mcnemar_power(needed, WORTH_SEEING, noise) >= 0.8 > mcnemar_power(needed - 1, WORTH_SEEING, noise)
    assert blind_spot(needed, noise).drop == pytest.approx(WORTH_SEEING, abs=2e-4)


def test_five_cases_see_nothing():
    """All five lost are p = .0625: no drop is ever seen, and that is said."""
    found = blind_spot(5, 0.0)
    assert (found.drop, found.reason) == (None, "5 cases see no drop at all with power 0.8")
    assert blind_spot(6, 0.0).drop > 0.95


def test_the_needed_cases_may_be_too_many():
    """A drop of a hundredth of a point among flaky cases takes more than 100,000: none is told."""
    assert blind_spot(50, 0.3, worth=0.0001).needed is None


@pytest.mark.parametrize(("noise", "worth"), [(-0.1, 0.05), (1, 0.05), (0.1, 0), (0.5, 0.6)])
def test_impossible_shares_are_refused(noise: float, worth: float):
    """Noise and drop are shares of the same cases: together at most all of them."""
    with pytest.raises(ValueError, match="together are at most 1"):
        blind_spot(50, noise, worth)


def test_a_width_tells_its_blind_spot():
    """An interval +- 1.96 standard errors wide sees 2.8 of them with power .8, and says how many cases see
    less."""
    found = blind_spot_of(Interval(-0.196, 0.196, 100, "BCa bootstrap"), worth=0.14)
    assert found.drop == pytest.approx(0.1 * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)), rel=1e-3)
    assert found.needed == pytest.approx(100 * (found.drop / 0.14) ** 2, abs=1)


def test_width_and_exact_test_agree():
    """For many cases the two ways to a blind spot come to about the same."""
    wide = blind_spot_of(newcombe(3200, 400, 400, 0))
    assert wide.drop == pytest.approx(blind_spot(4000, 0.2).drop, rel=0.1)


def test_without_an_interval_there_is_no_figure():
    """The reason there was no interval is the reason there is no blind spot."""
    found = blind_spot_of(Interval(None, None, 4, "none", reason="too few"))
    assert (found.drop, found.needed, found.reason) == (None, None, "too few")
