"""Clusters: what the questions of one conversation share makes the interval wider."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from store.stats.bootstrap import bca
from store.stats.clusters import by_cluster, cluster_bootstrap, cr1, standard_error
from store.stats.intervals import SEED, Floats, Indices


def _conversations(random: np.random.Generator, count: int, size: int, shared: float) -> Floats:
    """count x size values around 0, of which a share `shared` of the variance belongs to the cluster."""
    own = random.normal(0, np.sqrt(1 - shared), (count, size))
    return own + random.normal(0, np.sqrt(shared), (count, 1))


def test_by_cluster_sums():
    """Sum and number of cases of every label, whatever the labels are."""
    sums, sizes = by_cluster(np.array([1.0, 2.0, 4.0]), np.array(["b", "a", "b"]))
    assert (sums.tolist(), sizes.tolist()) == ([2.0, 5.0], [1.0, 2.0])


def test_alone_each_case_is_the_t_interval():
    """With every case its own cluster, CR1 is Student's interval of a mean."""
    values = np.random.default_rng(1).normal(3, 2, 12)
    found = cr1(values, np.arange(12), 0.9)
    reference = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert found[:2] == pytest.approx(tuple(reference), abs=1e-12)
    assert standard_error(values) == pytest.approx(stats.sem(values), abs=1e-12)


def test_clusters_of_one_size_are_the_t_interval_of_their_means():
    """Balanced clusters: as if each had been averaged to one case."""
    values = _conversations(np.random.default_rng(2), 8, 5, 0.4)
    found = cr1(values.ravel(), np.repeat(np.arange(8), 5))
    reference = stats.ttest_1samp(values.mean(axis=1), 0).confidence_interval(0.95)
    assert found[:2] == pytest.approx(tuple(reference), abs=1e-12)
    assert (found.n, found.method, found.seed) == (40, "CR1", None)


def test_unequal_clusters_by_hand():
    """Clusters (1, 1), (0, 0, 0), (1): mean 1/2, residual sums 1, -3/2, 1/2, so V = 3/2 x 7/2 / 36."""
    values, labels = np.array([1.0, 1, 0, 0, 0, 1]), np.array([0, 0, 1, 1, 1, 2])
    assert standard_error(values, labels) == pytest.approx(np.sqrt(1.5 * 3.5 / 36))


@pytest.mark.parametrize(
    ("values", "labels", "reason"),
    [
        ([], [], "fewer than 2 clusters"),
        ([1.0, 2.0, 3.0], [5, 5, 5], "fewer than 2 clusters"),
        ([1.0, 1.0, 1.0], [1, 2, 3], "no spread between clusters"),
        ([0.0, 0.0], [1, 2], "no spread between clusters"),
    ],
)
def test_no_spread_is_no_certainty(values: list[float], labels: list[int], reason: str):
    """Clusters that do not differ give no interval, rather than one without width."""
    found = cr1(np.array(values), np.array(labels))
    assert (found.low, found.high, found.n, found.reason) == (None, None, len(values), reason)


def test_the_bootstrap_waits_for_twenty_clusters():
    """19 clusters are refused with the reason; 20 are drawn whole, seeded and counted in cases."""
    values, labels = np.random.default_rng(3).normal(size=80), np.repeat(np.arange(20), 4)
    few = cluster_bootstrap(values[:76], labels[:76])
    assert (few.low, few.n, few.reason) == (None, 76, "fewer than 20 clusters")
    found = cluster_bootstrap(values, labels, resamples=500)
    assert (found.n, found.method, found.seed, found.level) == (80, "cluster bootstrap", SEED, 0.95)


def test_the_bootstrap_of_clusters_is_bca():
    """It is the BCa interval of the clusters' sums over their numbers of cases."""
    values = np.random.default_rng(4).normal(size=100)
    labels = np.append(np.arange(80) // 4, np.arange(80, 100))
    sums, sizes = by_cluster(values, labels)
    [reference] = bca(sums[:, None], sizes, level=0.9, resamples=500)
    found = cluster_bootstrap(values, labels, level=0.9, resamples=500)
    assert found[:2] == reference[:2]


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_cases_changes_no_error(seed: int):
    """Cases shuffled with their labels have the same standard error."""
    values, labels = np.random.default_rng(5).normal(size=40), np.repeat(np.arange(8), 5)
    order = np.random.default_rng(seed).permutation(40)
    assert standard_error(values[order], labels[order]) == pytest.approx(standard_error(values, labels))


def _coverage(values: Floats, labels: Indices) -> float:
    held = [found.low <= 0 <= found.high for found in (cr1(row, labels) for row in values)]
    return float(np.mean(held))


def test_cr1_covers_where_independence_does_not():
    """10 clusters x 20, a fifth of the variance shared: CR1 holds 95 %, independent cases far less."""
    random = np.random.default_rng(6)
    values = np.stack([_conversations(random, 10, 20, 0.2).ravel() for _ in range(1500)])
    assert _coverage(values, np.repeat(np.arange(10), 20)) == pytest.approx(0.95, abs=0.015)
    assert _coverage(values[:300], np.arange(200)) < 0.75
