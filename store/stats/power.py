"""Blind spots: the smallest drop that a suite would have seen, and the cases it takes to see one."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, bdtrik

from store.stats.intervals import Indices, Interval, normal_quantile

WORTH_SEEING = 0.05
"""The drop of a share for which `needed` is told: 5 points."""
MOST_CASES = 100_000
PRECISION = 1e-4
"""Of a drop: a hundredth of a point."""


class BlindSpot(NamedTuple):
    """`drop`: the smallest that is seen with `power`, None where not even the largest possible is; `needed`:
    the cases it takes to see a drop of `worth`, None where 100,000 do not do."""

    drop: float | None
    needed: int | None
    worth: float
    power: float
    alpha: float
    n: int
    method: str
    dropped: int = 0
    seed: int | None = None
    reason: str | None = None


def blind_spot(
    n: int, noise: float, worth: float = WORTH_SEEING, alpha: float = 0.05, power: float = 0.8
) -> BlindSpot:
    """Of `n` paired pass/fail cases under the exact McNemar test. `noise`: the share of cases that come out
    differently without any change, as often better as worse."""
    _check(noise, worth)
    drop = _smallest_drop(n, noise, alpha, power)
    needed = _cases_needed(worth, noise, alpha, power)
    reason = None if drop is not None else f"{n} cases see no drop at all with power {power:g}"
    return BlindSpot(drop, needed, worth, power, alpha, n, "exact McNemar", reason=reason)


def blind_spot_of(interval: Interval, worth: float = WORTH_SEEING, power: float = 0.8) -> BlindSpot:
    """Of an interval of a difference: what would have been told from 0 at its level, were it as wide around
    another difference. For any metric, `worth` in its unit; width falls with the root of the cases."""
    low, high, n, method, dropped, seed, level, reason = interval
    if low is None or high is None:
        return BlindSpot(None, None, worth, power, 1 - level, n, method, dropped, seed, reason)
    critical = normal_quantile((1 + level) / 2)
    drop = (high - low) / 2 * (1 + normal_quantile(power) / critical)
    needed = max(1, ceil(n * (drop / worth) ** 2))
    return BlindSpot(drop, needed, worth, power, 1 - level, n, method, dropped, seed, reason)


def mcnemar_power(n: int, drop: float, noise: float, alpha: float = 0.05) -> float:
    """Chance that the two-sided exact McNemar test of `n` cases rejects towards worse, when a share
    `noise` / 2 + `drop` of them is lost and `noise` / 2 gained: exact, over all numbers that may differ."""
    if noise + drop == 0:
        return 0.0
    differ = np.arange(n + 1)
    seen = bdtrc(_enough(differ, alpha), differ, (noise / 2 + drop) / (noise + drop))
    return float(np.diff(bdtr(differ, n, noise + drop), prepend=0.0) @ seen)


def _enough(differ: Indices, alpha: float) -> Indices:
    """Of so many cases that differ, more than these must be lost. Without `scipy.stats`, which takes half a
    second to load."""
    at = np.maximum(np.ceil(np.nan_to_num(bdtrik(1 - alpha / 2, differ, 0.5))).astype(int), 0)  # none of 0
    below = np.maximum(at - 1, 0)
    found: Indices = np.where(bdtr(below, differ, 0.5) >= 1 - alpha / 2, below, at)
    return found


def _check(noise: float, worth: float) -> None:
    if not 0 <= noise < 1 or not 0 < worth <= 1 - noise:
        raise ValueError(f"noise {noise} and a drop of {worth} must be shares that together are at most 1")


def _smallest_drop(n: int, noise: float, alpha: float, power: float) -> float | None:
    low, high = 0.0, 1 - noise
    if mcnemar_power(n, high, noise, alpha) < power:
        return None
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if mcnemar_power(n, middle, noise, alpha) >= power else (middle, high)
    return high


def _cases_needed(drop: float, noise: float, alpha: float, power: float) -> int | None:
    """By doubling and halving: power rises with n but for the teeth of an exact test, which are small."""
    low, high = 0, 1
    while mcnemar_power(high, drop, noise, alpha) < power:
        low, high = high, 2 * high
        if high > MOST_CASES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if mcnemar_power(middle, drop, noise, alpha) >= power else (middle, high)
    return high
