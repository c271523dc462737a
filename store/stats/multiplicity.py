"""Many looks, many metrics: what is still a finding when much was asked at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from store.stats.intervals import Floats


class Adjusted(NamedTuple):
    """In the order asked. `p`: adjusted p-values, None where there was none; `rejected`: p <= alpha."""

    p: tuple[float | None, ...]
    rejected: tuple[bool, ...]
    alpha: float
    n: int
    method: str
    dropped: int = 0
    seed: int | None = None
    reason: str | None = None


def holm(p: Floats, alpha: float = 0.05) -> Adjusted:
    """Holm 1979 (Scandinavian Journal of Statistics 6:65-70): the chance of any false rejection is at most
    alpha, however the tests depend on each other. NaN is a test not made: it counts for nothing."""
    ordered = np.sort(p[~np.isnan(p)])
    steps = np.maximum.accumulate(ordered * np.arange(len(ordered), 0, -1))
    return _adjusted(p, steps, alpha, "Holm")


def benjamini_hochberg(p: Floats, alpha: float = 0.05) -> Adjusted:
    """Benjamini and Hochberg 1995 (JRSS B 57:289-300): the expected share of false ones among the rejected is
    at most alpha, for independent or positively dependent tests. For tables one explores; it keeps no budget
    of false alarms. NaN is a test not made: it counts for nothing."""
    ordered = np.sort(p[~np.isnan(p)])
    steps = ordered * len(ordered) / np.arange(1, len(ordered) + 1)
    return _adjusted(p, np.minimum.accumulate(steps[::-1])[::-1], alpha, "Benjamini-Hochberg")


def _adjusted(p: Floats, steps: Floats, alpha: float, method: str) -> Adjusted:
    """`steps` belong to the p-values in rising order. Raises `ValueError` for what is no p-value."""
    made = ~np.isnan(p)
    if np.any((p[made] < 0) | (p[made] > 1)):
        raise ValueError("p-values must lie between 0 and 1")
    spread = np.full(len(p), np.nan)
    spread[np.flatnonzero(made)[np.argsort(p[made], kind="stable")]] = np.minimum(steps, 1.0)
    found = tuple(float(value) if held else None for value, held in zip(spread, made, strict=True))
    n = int(made.sum())
    reason = None if n else "no test was made"
    rejected = tuple(value is not None and value <= alpha for value in found)
    return Adjusted(found, rejected, alpha, n, method, len(p) - n, reason=reason)


class Gate(NamedTuple):
    """`rejected`: the primary; `family`: the others, at the level that was left to them (its `alpha`)."""

    rejected: bool
    family: Adjusted
    alpha: float
    n: int
    method: str
    dropped: int
    seed: int | None = None
    reason: str | None = None


def gatekeeping(primary: float, others: Floats, alpha: float = 0.05, reserve: float = 0.0) -> Gate:
    """The primary (pass rate) first, at alpha x (1 - reserve). When it rejects, the others are tested by Holm
    at the whole alpha; when not, at the reserve alone, a share from 0 (they stay closed) to below 1.

    The chance of any false rejection is at most alpha: the fallback procedure (Wiens and Dmitrienko 2005,
    Journal of Biopharmaceutical Statistics 15:929-942). A primary of NaN was not tested and opens nothing."""
    if not 0 <= reserve < 1:
        raise ValueError(f"reserve must lie between 0 and 1, not {reserve}")
    rejected = bool(primary <= alpha * (1 - reserve))
    family = holm(others, alpha if rejected else alpha * reserve)
    missing = int(np.isnan(primary))
    reason = "the primary was not tested" if missing else None
    n, dropped = family.n + 1 - missing, family.dropped + missing
    return Gate(rejected, family, alpha, n, "gatekeeping, Holm", dropped, reason=reason)
