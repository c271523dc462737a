"""The shift test: has a measured value (latency, tokens, hits returned, nDCG) left its run-to-run noise?

The sibling of the change test for values. The unit is the night: what all cases of a night share is in the
spread between nights, so that more cases or trials of one night never make its mood look like a change.
"""

from __future__ import annotations

from math import expm1, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t, trim_mean

from store.stats.intervals import Floats

RECENT = 10
"""Newest nights that a value is held against."""
ENOUGH = 5
"""Equal nights that make a value constant rather than lucky."""
TRIM = 0.1
"""Share of the cases left out at either end of a night's log ratios, so that a hung call moves no night."""
EQUAL = 1e-9
METHOD = "t prediction between nights"

CONSTANT = "the baseline is constant"
FEW = "fewer than 2 nights"
LUCKY = f"the baseline has no spread, in fewer than {ENOUGH} nights"
NOTHING = "no case has both a night and a fresh value"


class ShiftTest(NamedTuple):
    """`change`: fresh less baseline in the metric's own unit, or as a share of the old value; `spread`: the
    standard deviation between baseline nights, likewise. `p`: one-sided, never 0. None where `reason` names
    what is missing. `beyond`: the change is on the side asked about and at least the smallest worth a word.
    `nights`, `trials`, `n`: nights, fresh trials and cases compared; `dropped`: cases without a value on
    one of the sides. Nothing is drawn, so there is no seed."""

    p: float | None
    change: float | None
    spread: float | None
    beyond: bool
    nights: int
    trials: int
    n: int
    dropped: int
    method: str
    seed: None
    reason: str | None

    def rejects(self, level: float) -> bool:
        """Whether to call it a change. One of a constant baseline needs no p-value."""
        return self.beyond and (self.reason == CONSTANT if self.p is None else self.p <= level)


def shift_test(
    nights: Floats, fresh: Floats, *, smallest: float, upward: bool, relative: bool = False
) -> ShiftTest:
    """Are the fresh values above (or below) what another night of the baseline would give?

    `nights`: (nights, cases), oldest first, of which the newest 10 count; `fresh`: (trials, cases), all of
    one night; NaN where there is no value. `smallest`: the change worth a word, above 0; a share of the old
    value where `relative`, which compares logarithms and so drops values that are not above 0.

    Each case is taken against its own mean over the nights, each night as the mean of its cases. The fresh
    night is then one more draw of a normal sample: its distance is t with nights - 1 degrees of freedom
    (the prediction interval for one more observation: Hahn and Meeker 1991, chapter 4). Fresh trials share
    their night, so their number does not narrow it."""
    if smallest <= 0:
        raise ValueError(f"the smallest change worth a word must be above 0, not {smallest}")
    nights, fresh, dropped = _paired(nights[-RECENT:], fresh, relative)
    counts = len(nights), len(fresh), nights.shape[1], dropped, METHOD, None
    if not nights.size:
        return ShiftTest(None, None, None, False, *counts, NOTHING)
    change, spread, tiny = _distance(nights, fresh, TRIM if relative else 0)
    told = expm1(change) if relative else change
    beyond = (told if upward else -told) >= smallest
    if spread is None or spread <= tiny:
        reason = FEW if spread is None else LUCKY if len(nights) < ENOUGH else CONSTANT
        return ShiftTest(None, told, spread, beyond, *counts, reason)
    distance = change / (spread * sqrt(1 + 1 / len(nights)))
    p = float(t.sf(distance if upward else -distance, len(nights) - 1))
    return ShiftTest(p, told, expm1(spread) if relative else spread, beyond, *counts, None)


def _paired(nights: Floats, fresh: Floats, relative: bool) -> tuple[Floats, Floats, int]:
    """The nights, trials and cases with values on both sides, as logarithms where `relative`; and how many
    cases are dropped."""
    if relative:
        nights, fresh = _logs(nights), _logs(fresh)
    usable = ~(_empty(nights) | _empty(fresh))
    nights, fresh = nights[:, usable], fresh[:, usable]
    return nights[~_empty(nights.T)], fresh[~_empty(fresh.T)], int((~usable).sum())


def _logs(values: Floats) -> Floats:
    return np.log(np.where(values > 0, values, np.nan))


def _empty(values: Floats) -> NDArray[np.bool_]:
    """Columns that hold no value."""
    return np.asarray(np.isnan(values).all(axis=0))


def _distance(nights: Floats, fresh: Floats, trim: float) -> tuple[float, float | None, float]:
    """How far the fresh night is from the mean of the nights, their spread, and what is no spread at all."""
    usual = np.nanmean(nights, axis=0)
    apart = np.concatenate([nights, np.nanmean(fresh, axis=0)[None]]) - usual
    *levels, now = trim_mean(apart, trim, axis=1, nan_policy="omit")
    change = float(now - np.mean(levels))
    spread = float(np.std(levels, ddof=1)) if len(levels) > 1 else None
    return change, spread, EQUAL * max(1.0, float(np.abs(usual).max()))
