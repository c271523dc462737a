"""Many tests at once: against published examples, SciPy, and what the procedures promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from store.stats.intervals import Floats
from store.stats.multiplicity import benjamini_hochberg, gatekeeping, holm

PUBLISHED = np.array([
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
    0.7590, 1.0,
])  # fmt: skip
"""Benjamini and Hochberg 1995, section 3.2: 15 comparisons of two treatments of a heart attack."""

P = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array)
PROCEDURES = pytest.mark.parametrize("procedure", [holm, benjamini_hochberg])


def test_benjamini_and_hochberg_are_as_published():
    """Their example rejects four, where Bonferroni's rule rejects three."""
    assert sum(benjamini_hochberg(PUBLISHED).rejected) == 4
    assert sum(holm(PUBLISHED).rejected) == 3


def test_holm_by_hand():
    """Each p by the number of those not smaller, never below the one before, never above 1."""
    found = holm(np.array([0.04, 0.01, 0.03, 0.6]))
    assert found.p == pytest.approx((0.09, 0.04, 0.09, 0.6))
    assert found.rejected == (False, True, False, False)
    assert holm(np.array([0.5, 0.6])).p == (1, 1)


@given(P)
def test_benjamini_hochberg_is_scipys(p: Floats):
    """Adjusted p-values are those of scipy.stats.false_discovery_control, in the order asked."""
    assert benjamini_hochberg(p).p == pytest.approx(tuple(stats.false_discovery_control(p)))


@PROCEDURES
@given(p=P)
def test_nothing_gets_easier(procedure, p: Floats):
    """No adjusted p is below its own, all keep their order, and Bonferroni's is the most there can be."""
    found = np.array(procedure(p).p)
    assert (found >= p - 1e-15).all()
    assert (np.diff(found[np.argsort(p, kind="stable")]) >= 0).all()
    assert (found <= np.minimum(1, p * len(p)) + 1e-12).all()


@PROCEDURES
@given(p=P)
def test_a_test_not_made_counts_for_nothing(procedure, p: Floats):
    """NaN among the p-values stays a gap: no figure, no rejection, and no price for the others."""
    whole, holed = procedure(p), procedure(np.append(p, np.nan))
    assert holed.p == (*whole.p, None)
    assert holed.rejected == (*whole.rejected, False)
    assert (holed.n, holed.dropped) == (len(p), 1)


@PROCEDURES
def test_no_tests_are_told(procedure):
    """Without a test there is nothing to adjust, and the reason says so; what is no p-value is an error."""
    assert procedure(np.array([])).reason == "no test was made"
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            procedure(np.array([0.5, wrong]))


# Gatekeeping


def test_the_primary_opens_the_others():
    """When the pass rate rejects, the others are Holm's at the whole level; when not, they stay closed."""
    others = np.array([0.02, 0.03])
    opened, closed = gatekeeping(0.05, others), gatekeeping(0.051, others)
    assert (opened.rejected, opened.family) == (True, holm(others, 0.05))
    assert (closed.rejected, any(closed.family.rejected)) == (False, False)
    assert closed.family.alpha == 0


def test_a_reserve_lets_the_others_speak_alone():
    """With a fifth kept back, the primary has .04, and the others .01 when it does not reject."""
    found = gatekeeping(0.045, np.array([0.004, 0.02]), reserve=0.2)
    assert (found.rejected, found.family.rejected) == (False, (True, False))
    assert found.family.alpha == pytest.approx(0.01)
    assert gatekeeping(0.04, np.array([0.02]), reserve=0.2).family.alpha == 0.05


def test_a_primary_not_tested_opens_nothing():
    """NaN is told as such, counted, and rejects nothing."""
    found = gatekeeping(float("nan"), np.array([0.001, np.nan]))
    assert (found.rejected, any(found.family.rejected), found.n, found.dropped) == (False, False, 1, 2)
    assert found.reason == "the primary was not tested"


def test_a_reserve_of_all_is_refused():
    """A reserve that leaves the primary nothing is an error."""
    with pytest.raises(ValueError, match="reserve"):
        gatekeeping(0.5, np.array([0.5]), reserve=1)


@pytest.mark.parametrize("reserve", [0, 0.3])
@pytest.mark.parametrize("effect", [0, 3])
def test_gatekeeping_keeps_the_level(reserve: float, effect: float):
    """Any false rejection at all comes in at most 5 % of runs, whether the primary changed or not."""
    random = np.random.default_rng(1)
    wrong = 0
    for z in random.normal(size=(3000, 6)):
        p = stats.norm.sf(z + np.array([effect, 0, 0, 0, 0, 0]))
        found = gatekeeping(p[0], p[1:], reserve=reserve)
        wrong += any(found.family.rejected) or (found.rejected and not effect)
    assert wrong / 3000 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 3000)
