"""Migration: four verdicts, and what would settle the fourth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.stats.comparisons import paired_difference
from store.stats.intervals import Floats
from store.stats.margins import Migration, cases_for_margin, migration


def _migrated(n: int, lost: int, gained: int = 0, **options) -> Migration:
    """n cases, half passing before, of which some are lost and of the others some gained."""
    before = (np.arange(n) < n // 2).astype(float)
    after = before.copy()
    after[:lost], after[n - gained :] = 0, 1
    return migration(before, after, **options)


@pytest.mark.parametrize(
    ("lost", "gained", "verdict"),
    [(0, 30, "better"), (0, 0, "non_inferior"), (60, 0, "inferior"), (12, 4, "inconclusive")],
)
def test_four_verdicts(lost: int, gained: int, verdict: str):
    """200 cases: more gained, nothing moved, many lost, and in between."""
    found = _migrated(200, lost, gained)
    assert (found.verdict, found.lost, found.gained) == (verdict, lost, gained)
    assert (found.needed is not None) == (verdict == "inconclusive")


def test_the_interval_is_that_of_both_one_sided_tests():
    """At alpha = .05 it is the 90 % interval of the paired difference, with its method."""
    random = np.random.default_rng(1)
    before, after = random.random(60), random.random(60)
    found, reference = migration(before, after), paired_difference(before, after, level=0.9)
    assert found[3:6] == (reference.difference, reference.low, reference.high)
    assert (found.method, found.seed, found.n) == (reference.method, reference.seed, 60)


@pytest.mark.parametrize(("n", "low"), [(8, -0.25), (20, -0.12), (30, -0.083)])
def test_few_cases_cannot_show_it(n: int, low: float):
    """Without one lost case the lower limit is still -.25 at 8, -.12 at 20, -.083 at 30; 88 settle it."""
    found = _migrated(n, 0)
    assert found.low == pytest.approx(low, abs=0.003)
    assert (found.verdict, found.needed) == ("inconclusive", 88)


def test_88_cases_show_three_points():
    """Without one lost case, 88 show a margin of 3 points and 87 do not; at 10 % discordant it takes 687."""
    assert (_migrated(88, 0).verdict, _migrated(87, 0).verdict) == ("non_inferior", "inconclusive")
    assert (cases_for_margin(), cases_for_margin(discordant=0.1)) == (88, 687)


def test_the_cases_needed_settle_it():
    """With 687 cases, 10 % of them discordant, the chance of "non-inferior" is about 80 %."""
    random, settled = np.random.default_rng(2), 0
    for lost, gained, _ in random.multinomial(687, [0.05, 0.05, 0.9], 300):
        settled += _migrated(687, lost, gained).verdict in ("non_inferior", "better")
    assert settled / 300 == pytest.approx(0.8, abs=0.06)


def test_the_number_told_follows_what_was_seen():
    """Inconclusive at 200 cases: the number is that of the formula for the shares seen."""
    found = _migrated(200, 12, 8)
    assert found.needed == pytest.approx(cases_for_margin(discordant=0.1, difference=-0.02), rel=0.01)


def test_at_the_margin_no_number_settles_it():
    """A loss of just the margin stays inconclusive however many cases there are: no number is told."""
    found = _migrated(200, 6)
    assert (found.difference, found.verdict, found.needed) == (-0.03, "inconclusive", None)
    assert cases_for_margin(discordant=0.1, difference=-0.03) is None


def test_clusters_need_more():
    """Nothing lost in 5 conversations of 20: as much is known as of 5 cases, and 88 of them are needed."""
    found = migration(np.ones(100), np.ones(100), np.repeat(np.arange(5), 20))
    assert (found.verdict, found.needed) == ("inconclusive", pytest.approx(20 * 87.5, abs=20))


def test_a_critical_case_lost_decides():
    """However good the mean, a critical case confirmed lost is inferior, and the reason says so."""
    found = _migrated(200, 0, 30, critical_lost=1)
    assert (found.verdict, found.reason) == ("inferior", "critical cases confirmed lost: 1")
    assert found.low > 0


def test_without_an_interval_it_is_inconclusive():
    """Nothing in common, or nothing that bears an interval: inconclusive with the reason, never a verdict."""
    nothing = migration(np.array([np.nan]), np.array([1.0]))
    assert (nothing.verdict, nothing.needed) == ("inconclusive", None)
    assert nothing.reason == "no case has a value on both sides"
    alike = migration(np.full(30, 250.0), np.full(30, 250.0))
    assert (alike.verdict, alike.reason) == ("inconclusive", "fewer than 6 cases differ")


@pytest.mark.parametrize("margin", [0, -0.03])
def test_a_margin_below_0_is_refused(margin: float):
    """A margin allows a loss: it is above 0."""
    with pytest.raises(ValueError, match="margin must be above 0"):
        migration(np.ones(9), np.ones(9), margin=margin)


RANK = {"inferior": 0, "inconclusive": 1, "non_inferior": 2, "better": 3}


@given(st.integers(2, 150), st.data())
@settings(max_examples=80, deadline=None)
def test_a_wider_margin_is_never_harsher(n: int, data: st.DataObject):
    """The more may be lost, the better the verdict."""
    lost, gained = data.draw(st.integers(0, n // 2)), data.draw(st.integers(0, n // 2))
    strict, wide = (_migrated(n, lost, gained, margin=margin) for margin in (0.03, 0.1))
    assert RANK[strict.verdict] <= RANK[wide.verdict]


@pytest.mark.parametrize("shape", ["cases", "clusters"])
def test_inferior_backends_seldom_pass(shape: str):
    """A true loss of just the margin of 10 points passes as non-inferior in about 5 % or fewer."""
    random, passed = np.random.default_rng(3), 0
    labels: Floats | None = np.repeat(np.arange(20), 10) if shape == "clusters" else None
    for _ in range(300):
        share = np.repeat(random.beta(2, 18, 20), 10) if shape == "clusters" else 0.1
        after = (random.random(200) >= share).astype(float)
        found = migration(np.ones(200), after, labels, margin=0.1, resamples=300)
        passed += found.verdict == "non_inferior"
    assert passed / 300 <= 0.08
