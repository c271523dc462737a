"""How often a nominal 95 % interval of a difference holds the truth, beside what a user would reach for.

Sparse: few cases differ between two runs. Clustered: the questions of one conversation are lost together; the
share of every cluster is drawn from a Beta distribution with the intra-cluster correlation given. A peer's
interval that does not exist (NaN) holds nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.measure import Bar
from store.stats.comparisons import paired_difference

Floats = NDArray[np.float64]
Ends = tuple[float | None, float | None]
Cell = dict[str, Any]

TARGET = 0.93
SEED = 20260105
RESAMPLES = 1000
SIZES = (20, 50, 89)
SPARSE = ((0.04, 0.0), (0.02, 0.02), (0.1, 0.0), (0.06, 0.02))
"""Shares of the cases that are truly lost and gained."""
PASSING = (0.5, 0.8, 0.96)
SHAPES = ((10, 20), (30, 7))
"""Clusters and cases in each: of LoCoMo's kind, and enough of them to resample."""
SHARED = (0.02, 0.1, 0.3)
LOST = ((0.04, 0.0), (0.1, 0.0), (0.1, 0.05), (0.3, 0.1))
REPEATED = ((50, 0.2), (89, 0.1), (180, 0.1))
"""Cases in three trials, and the share of them that breaks: passes with .2 instead of .9."""


def measure(quick: bool) -> dict[str, Any]:
    part = 10 if quick else 1
    return {
        "sparse": [_sparse(*cell, 20_000 // part) for cell in _sparse_cells()],
        "repeated": [_repeated(*cell, 1500 // part) for cell in REPEATED],
        "clustered": [_clustered(*cell, 1500 // part) for cell in product(SHAPES, LOST, SHARED)],
        "continuous": [_continuous(shape, shared, 1500 // part) for shape in SHAPES for shared in SHARED],
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    for name, cells in found.items():
        figures = list(cells[0])
        yield f"{name:<40}" + "".join(f"{figure:>22}" for figure in figures[1:])
        for cell in cells:
            yield f"  {cell['cell']:<38}" + "".join(f"{cell[figure]:>22.3f}" for figure in figures[1:])


def bars(found: dict[str, Any]) -> list[Bar]:
    """The worst cell of each kind: each must hold, and so must they all."""
    return [
        Bar(f"coverage_{name}_worst_cell", min(cell["ours"] for cell in cells), TARGET, at_least=True)
        for name, cells in found.items()
    ]


def _holds(ends: Ends, truth: float) -> bool:
    low, high = ends
    return low is not None and high is not None and low - 1e-12 <= truth <= high + 1e-12


# Pass/fail, one trial


def _sparse_cells() -> Iterator[tuple[int, float, float, float]]:
    for n, (lost, gained), passing in product(SIZES, SPARSE, PASSING):
        if lost <= passing and gained <= 1 - passing:
            yield n, lost, gained, passing


def _sparse(n: int, lost: float, gained: float, passing: float, times: int) -> Cell:
    """Equal tables have equal intervals: each that was drawn is asked about once."""
    shares = [passing - lost, lost, gained, 1 - passing - gained]
    drawn = np.random.default_rng(SEED).multinomial(n, shares, times)
    tables, counts = np.unique(drawn, axis=0, return_counts=True)
    peers: dict[str, Callable[..., Ends]] = {
        "ours": _ours,
        "percentile bootstrap": lambda _, b, c, __: _percentile(n, b, c),
        "scipy BCa": lambda _, b, c, __: _scipys(n, b, c),
    }
    cell: Cell = {"cell": f"{n} cases, {lost:.0%} lost, {gained:.0%} gained, {passing:.0%} pass"}
    for name, interval in peers.items():
        held = [_holds(interval(*map(int, table)), gained - lost) for table in tables]
        cell[name] = round(float(np.average(held, weights=counts)), 4)
    return cell


def _ours(both: int, lost: int, gained: int, neither: int) -> Ends:
    cells = (both, lost, gained, neither)
    before, after = np.repeat([1.0, 1, 0, 0], cells), np.repeat([1.0, 0, 1, 0], cells)
    found = paired_difference(before, after)
    return found.low, found.high


@cache
def _percentile(n: int, lost: int, gained: int) -> Ends:
    """Of the mean difference: resampling the cases is drawing the three kinds of them anew."""
    kinds = np.array([lost, gained, n - lost - gained]) / n
    drawn = np.random.default_rng(SEED).multinomial(n, kinds, RESAMPLES)
    low, high = np.quantile((drawn[:, 1] - drawn[:, 0]) / n, [0.025, 0.975])
    return float(low), float(high)


@cache
def _scipys(n: int, lost: int, gained: int) -> Ends:
    values = np.repeat([-1.0, 1, 0], (lost, gained, n - lost - gained))
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        random = np.random.default_rng(SEED)
        found = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=RESAMPLES, rng=random)
    low, high = found.confidence_interval
    return float(low), float(high)


# Means of trials


def _repeated(n: int, broken: float, times: int) -> Cell:
    """Cases that break do so by chance, too: the question is about cases like these."""
    random, held = np.random.default_rng(SEED), np.zeros(2)
    for _ in range(times):
        before = random.binomial(3, 0.9, n) / 3
        after = random.binomial(3, np.where(random.random(n) < broken, 0.2, 0.9)) / 3
        found = paired_difference(before, after, resamples=RESAMPLES)
        truth = -0.7 * broken
        held += _holds((found.low, found.high), truth), _holds(_percentile_of(after - before, random), truth)
    ours, percentile = (held / times).round(4).tolist()
    return {"cell": f"{n} cases x 3, {broken:.0%} break", "ours": ours, "percentile bootstrap": percentile}


def _percentile_of(differences: Floats, random: np.random.Generator) -> Ends:
    drawn = random.choice(differences, (RESAMPLES, len(differences))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


# Clusters


def _clustered(shape: tuple[int, int], rates: tuple[float, float], shared: float, times: int) -> Cell:
    random, (lost, gained) = np.random.default_rng(SEED), rates
    draws = (_lost_together(random, shape, lost, gained, shared) for _ in range(times))
    name = f"{shape[0]} x {shape[1]}, {lost:.0%} lost, {gained:.0%} gained, icc {shared:g}"
    return _in_clusters(name, draws, shape, gained - lost, times)


def _lost_together(
    random: np.random.Generator, shape: tuple[int, int], lost: float, gained: float, shared: float
) -> tuple[Floats, Floats]:
    """Cases passed half the time before; those lost did, those gained did not."""
    draw = random.random(shape)
    falls = draw < _shares(random, lost, shared, shape[0])
    rises = ~falls & (draw > 1 - _shares(random, gained, shared, shape[0]))
    before = np.where(falls, True, np.where(rises, False, random.random(shape) < 0.5))
    after = np.where(falls, False, np.where(rises, True, before))
    return before.ravel().astype(np.float64), after.ravel().astype(np.float64)


def _shares(random: np.random.Generator, mean: float, shared: float, count: int) -> Floats:
    weight = (1 - shared) / shared
    drawn = random.beta(mean * weight, (1 - mean) * weight, count) if mean else np.zeros(count)
    return drawn[:, None]


def _continuous(shape: tuple[int, int], shared: float, times: int) -> Cell:
    """Differences of a measured value, normal, around -1."""
    random, nothing = np.random.default_rng(SEED), np.zeros(shape[0] * shape[1])
    draws = (
        (nothing, (random.normal(-1, shared**0.5, (shape[0], 1)) + own).ravel())
        for own in random.normal(0, (1 - shared) ** 0.5, (times, *shape))
    )
    return _in_clusters(f"{shape[0]} x {shape[1]}, values, icc {shared:g}", draws, shape, -1, times)


def _in_clusters(
    name: str, draws: Iterator[tuple[Floats, Floats]], shape: tuple[int, int], truth: float, times: int
) -> Cell:
    labels, held = np.repeat(np.arange(shape[0]), shape[1]), np.zeros(2)
    for before, after in draws:
        found = paired_difference(before, after, labels, resamples=RESAMPLES)
        alone = paired_difference(before, after, resamples=RESAMPLES)
        held += _holds((found.low, found.high), truth), _holds((alone.low, alone.high), truth)
    ours, independent = (held / times).round(4).tolist()
    return {"cell": name, "ours": ours, "as if independent": independent}
