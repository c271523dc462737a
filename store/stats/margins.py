"""May the candidate replace what runs now? Non-inferiority to a margin that was written down before."""

from __future__ import annotations

from math import ceil
from typing import Literal, NamedTuple

from store.stats.bootstrap import RESAMPLES
from store.stats.comparisons import PairedDifference, paired_difference
from store.stats.intervals import SEED, Floats, Indices, normal_quantile
from store.stats.power import MOST_CASES

MARGIN = 0.03
"""Three points: the largest loss that a migration may cost, unless the user said otherwise."""

Verdict = Literal["better", "non_inferior", "inferior", "inconclusive"]


class Migration(NamedTuple):
    """`low` and `high` bound candidate - current at level 1 - 2 alpha. `needed`: the cases in all that would
    settle what is inconclusive, None where none would or the verdict stands. `reason`: why the figures do not
    decide, or what decided without them."""

    verdict: Verdict
    margin: float
    alpha: float
    difference: float | None
    low: float | None
    high: float | None
    lost: int
    gained: int
    needed: int | None
    n: int
    dropped: int
    method: str
    seed: int | None
    reason: str | None


def migration(
    current: Floats,
    candidate: Floats,
    clusters: Indices | None = None,
    *,
    margin: float = MARGIN,
    alpha: float = 0.05,
    critical_lost: int = 0,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Migration:
    """Better (low > 0), non-inferior (low > -margin), inferior (high < -margin, or a critical case confirmed
    lost), else inconclusive. Values as `paired_difference` takes them, higher being better; `margin` above 0,
    in their unit; `critical_lost`: how many critical cases are confirmed lost, whatever the mean says."""
    if margin <= 0:
        raise ValueError(f"margin must be above 0, not {margin}")
    found = paired_difference(
        current, candidate, clusters, level=1 - 2 * alpha, resamples=resamples, seed=seed
    )
    verdict = _verdict(found, margin, critical_lost)
    return Migration(
        verdict=verdict,
        margin=margin,
        alpha=alpha,
        difference=found.difference,
        low=found.low,
        high=found.high,
        lost=found.lost,
        gained=found.gained,
        needed=_needed(found, margin, alpha) if verdict == "inconclusive" else None,
        n=found.n,
        dropped=found.dropped,
        method=found.method,
        seed=found.seed,
        reason=f"critical cases confirmed lost: {critical_lost}" if critical_lost else found.reason,
    )


def _verdict(found: PairedDifference, margin: float, critical_lost: int) -> Verdict:
    if critical_lost:
        return "inferior"
    if found.low is None or found.high is None:
        return "inconclusive"
    if found.low > -margin:
        return "better" if found.low > 0 else "non_inferior"
    return "inferior" if found.high < -margin else "inconclusive"


def cases_for_margin(
    margin: float = MARGIN,
    discordant: float = 0.0,
    difference: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
) -> int | None:
    """Cases that settle a margin with this power, when a share `discordant` of them comes out differently and
    the mean moves by `difference`: by the normal approximation (z_alpha + z_beta)^2 x (discordant -
    difference^2) / (difference + margin)^2, and never fewer than it takes where no case is lost at all. None
    where 100,000 do not do."""
    variance = discordant - difference**2
    return _settling(margin, difference, variance, _all_kept(margin, alpha), alpha, power)


def _all_kept(margin: float, alpha: float) -> float:
    """Cases at which even none lost leaves a Wilson limit of just the margin, which must be below 1."""
    return float(normal_quantile(1 - alpha)) ** 2 * (1 - margin) / margin if margin < 1 else 0.0


def _settling(
    margin: float, difference: float, variance: float, least: float, alpha: float, power: float
) -> int | None:
    distance = (difference + margin) ** 2
    wanted = (normal_quantile(1 - alpha) + normal_quantile(power)) ** 2 * variance
    if wanted > MOST_CASES * distance or distance == 0:
        return None
    return ceil(max(wanted / distance, least))


def _needed(found: PairedDifference, margin: float, alpha: float, power: float = 0.8) -> int | None:
    """If difference and spread stay as they are."""
    if found.difference is None or found.error is None:
        return None
    variance, least = found.n * found.error**2, 0.0
    if "newcombe" in found.method:
        alike = found.n / found.clusters if found.clusters and not variance else 1.0
        least = alike * _all_kept(margin, alpha)
    needed = _settling(margin, found.difference, variance, least, alpha, power)
    return None if needed is None else max(needed, found.n + 1)
