"""The change test: does a backend answer otherwise than its own noise explains?

Each case is held against its own history, so two lost cases that never failed before are evidence, and ten
flaky ones are not. What a whole night shares (its mood) is part of the noise.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, expit, logit

from store.stats.intervals import SEED, Floats, Indices

LEVELS = (0.05, 0.01, 0.01)
"""Of the three looks: tonight's first trial, its repeats at once, and the repeats hours later."""
RECENT = 10
"""Newest nights that tell how often a case passes; all nights tell how much nights differ."""
METHOD = "predictive change test"

OFTEN = np.array([0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999])
FLAKY = np.linspace(0.05, 0.95, 19)
RATES = np.concatenate([1 - OFTEN[::-1], FLAKY, OFTEN])
KINDS = np.vstack([np.eye(39)[:10], np.repeat([0, 1 / 19, 0], [10, 19, 10]), np.eye(39)[-10:]])
"""What a case may be, (kinds, rates): a pass or a failure at a rate that many share, or flaky at any."""
SEEN = np.repeat([0.2, 0.02, 1, 0.02, 0.2], [5, 5, 1, 5, 5])
"""Cases of each kind taken to be seen beforehand: a stable pass and failure, a flaky one, few others."""
ROUNDS = 50

MOODS = np.arange(-6, 4.01, 0.25)
"""Shifts of the logit that all cases of a night share."""
SPREADS = np.array([0, 0.25, 0.5, 0.75, 1, 1.5])
"""What the standard deviation of the moods may be, and how likely that is before a night was seen."""
SPREADS_PRIOR = np.array([0.4, 0.15, 0.15, 0.1, 0.1, 0.1])
WORSE_BY = (2, 4, 8, 12)
"""Steps of `MOODS` by which everything may have got worse: .5, 1, 2 and 3 logits."""
BROKEN = ((0.05, 0.8), (0.2, 0.15), (0.6, 0.05))
"""What share of the cases may be broken, and how likely that is: with few alone, a mood would explain a
suite that is lost altogether better than they do."""
BROKEN_PASSES = 0.03
FAINTEST = 1e-12
"""No mood is impossible."""
TIE = 1e-7
SURE = 0.9


class ChangeTest(NamedTuple):
    """`p`: the share of unchanged backends with evidence at least as strong; never 0. `statistic`: log of
    the evidence for a change against none. Both are None where `reason` names what is missing. `nights`: of
    the newest 10, those with answers. `trials`: fresh ones with answers. `n`: cases compared; `dropped`:
    those without a night or without a fresh answer. `lost` and `gained`: cases surely passing (or failing)
    before and failing (or passing) in every fresh trial, whichever way was tested."""

    p: float | None
    statistic: float | None
    nights: int
    trials: int
    n: int
    lost: int
    gained: int
    dropped: int
    method: str
    seed: int
    reason: str | None


class VisibleDrop(NamedTuple):
    """`drop`: the smallest share of the suite whose loss all three looks see with the power asked for, as
    `cases` of `n`; `power`: how often they see it. None where `reason` says why no loss is seen so often."""

    drop: float | None
    cases: int | None
    power: float | None
    n: int
    trials: int
    dropped: int
    method: str
    seed: int
    reason: str | None


class _Groups(NamedTuple):
    """Cases with equal histories are exchangeable, so they are counted together. All are (groups,)."""

    passed: Indices
    asked: Indices
    trials: Indices
    size: Indices


class _Noise(NamedTuple):
    """What an unchanged backend does: how often the cases of each group pass, (groups, rates), and how
    likely each mood is, (moods,)."""

    rates: Floats
    moods: Floats


def change_test(
    nights: Floats, fresh: Floats, *, worse: bool = True, draws: int = 999, seed: int = SEED
) -> ChangeTest:
    """Are the fresh trials worse (or better) than an unchanged backend would give?

    `nights`: (nights, cases), the accepted ones, oldest first; up to 60 are of use. `fresh`: (trials,
    cases), all of one night. Both hold 1 for a pass, 0 for a failure, NaN for no answer. The order of
    cases changes nothing; better is worse with passes and failures swapped.

    A posterior predictive test with empirical Bayes priors: the pass rates of cases are fitted to the
    suite, the moods of nights to the nights. The evidence is the ratio of two changes, a few cases broken
    or everything a little worse, to none; its distribution without a change is drawn."""
    if not worse:
        nights, fresh = 1 - nights, 1 - fresh
    usable = _answered(nights[-RECENT:]) & _answered(fresh)
    n, dropped = int(usable.sum()), int((~usable).sum())
    if not n:
        reason = "no case has both a night and a fresh answer"
        return ChangeTest(None, None, 0, 0, 0, 0, 0, dropped, METHOD, seed, reason)
    nights, fresh = nights[:, usable], fresh[:, usable]
    groups, group = _grouped(nights[-RECENT:], _count(fresh))
    outcomes = _tallied(group, np.nansum(fresh[None], axis=1).astype(np.int64), len(fresh))[0]
    noise = _Noise(_rates(groups), _moods(nights))
    statistic, p = _compared(noise, groups, outcomes, draws, seed)
    lost, gained = _flipped(noise, groups, outcomes)
    if not worse:
        lost, gained = gained, lost
    asked, trials = int(_answered(nights[-RECENT:].T).sum()), int(_answered(fresh.T).sum())
    return ChangeTest(p, statistic, asked, trials, n, lost, gained, dropped, METHOD, seed, None)


def smallest_visible_drop(
    nights: Floats,
    trials: int = 3,
    power: float = 0.8,
    *,
    levels: Sequence[float] = LEVELS,
    draws: int = 400,
    seed: int = SEED,
) -> VisibleDrop:
    """The smallest share of the suite whose loss would be noticed, with this noise and these looks.

    `nights` as in `change_test`; `trials`: fresh ones of the second and third look, `levels` those
    of all three. Cases that surely pass
    are broken in random order, fewer or more of them, until all three looks see it in `power` of the draws.
    Moods are as the nights show them; the third look has its own."""
    usable = _answered(nights[-RECENT:])
    n, dropped = int(usable.sum()), int((~usable).sum())
    looks = _rehearsed(nights[:, usable], trials, levels, draws, seed) if n else None
    if looks is None or not looks.sure:
        return VisibleDrop(None, None, None, n, trials, dropped, METHOD, seed, "no case passes for sure")
    seen = cache(looks.power)
    if seen(looks.sure) < power:
        return VisibleDrop(None, None, None, n, trials, dropped, METHOD, seed, "no loss is seen so often")
    enough = next(cases for cases in (1 << doubled for doubled in count()) if seen(cases) >= power)
    cases = bisect_left(range(enough + 1), power, key=seen)
    return VisibleDrop(cases / n, cases, seen(cases), n, trials, dropped, METHOD, seed, None)


def _answered(answers: Floats) -> NDArray[np.bool_]:
    """Columns that hold an answer."""
    return np.asarray(~np.isnan(answers).all(axis=0))


def _grouped(recent: Floats, trials: Indices) -> tuple[_Groups, Indices]:
    """The groups, and which of them each case is in, (cases,). `trials`: those of each case."""
    sizes = (RECENT + 1, RECENT + 1, int(trials.max()) + 1)
    keys = np.ravel_multi_index((np.nansum(recent, axis=0).astype(np.int64), _count(recent), trials), sizes)
    found, group, size = np.unique(keys, return_inverse=True, return_counts=True)
    passed, asked, fresh = np.unravel_index(found, sizes)
    return _Groups(passed, asked, fresh, size), group


def _tallied(group: Indices, passed: Indices, most: int) -> Indices:
    """In how many cases of each group 0 .. `most` trials passed, (sets, groups, most + 1); `passed` is
    (sets, cases)."""
    sets, groups = np.arange(len(passed))[:, None], int(group.max()) + 1
    cells = ((sets * groups + group) * (most + 1) + passed).ravel()
    return np.bincount(cells, minlength=len(passed) * groups * (most + 1)).reshape(-1, groups, most + 1)


def _count(answers: Floats) -> Indices:
    return np.asarray((~np.isnan(answers)).sum(axis=0))


# What an unchanged backend does


def _rates(groups: _Groups) -> Floats:
    """The posterior of a case's pass rate, (groups, rates). How common each kind of case is, is fitted by
    EM (Dempster, Laird and Rubin 1977)."""
    failed = groups.asked - groups.passed
    likelihood = RATES ** groups.passed[:, None] * (1 - RATES) ** failed[:, None]
    of_kinds, share, n = likelihood @ KINDS.T, SEEN / SEEN.sum(), SEEN.sum() + groups.size.sum()
    for _ in range(ROUNDS):
        share = (SEEN + share * ((groups.size / (of_kinds @ share)) @ of_kinds)) / n
    posterior = likelihood * (share @ KINDS)
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def _moods(nights: Floats) -> Floats:
    """How likely each mood is, (moods,), from how much more the totals of nights vary than their cases."""
    normal = np.exp(-0.5 * (MOODS / np.maximum(SPREADS, 0.05)[:, None]) ** 2)
    weights = _spreads(nights) @ (normal / normal.sum(axis=1, keepdims=True))
    return np.asarray(np.maximum(weights, FAINTEST) / np.maximum(weights, FAINTEST).sum())


def _spreads(nights: Floats) -> Floats:
    """The posterior of the moods' standard deviation, (spreads,). Where the cases of a night vary by W, a
    mood of spread s moves its total by W s: the total varies by W + (W s)^2. A night lost to the case
    means is taken off the degrees of freedom, as in the sample variance."""
    nights = nights[:, np.lexsort(nights)]  # no order of the cases may change a sum
    seen, count = ~np.isnan(nights), _count(nights)
    mean = np.nansum(nights, axis=0) / np.maximum(count, 1)
    within = seen @ (mean * (1 - mean) * count / np.maximum(count - 1, 1))
    total = np.nansum(nights - mean, axis=1)[within > 0]
    variance = within[within > 0][:, None] * (1 + within[within > 0][:, None] * SPREADS**2)
    free = 1 - 1 / max(len(total), 1)
    fit = -0.5 * (free * np.log(variance) + total[:, None] ** 2 / variance).sum(axis=0)
    posterior = SPREADS_PRIOR * np.exp(fit - fit.max())
    return np.asarray(posterior / posterior.sum())


def _predicted(noise: _Noise, groups: _Groups, most: int) -> Floats:
    """How likely 0 .. `most` passes are in each mood, (groups, most + 1, moods)."""
    passes = expit(logit(RATES)[:, None] + MOODS)
    found = np.zeros((len(groups.size), most + 1, len(MOODS)))
    for trials in np.unique(groups.trials):
        own = groups.trials == trials
        found[own, : trials + 1] = np.tensordot(noise.rates[own], _binomial(passes, trials), 1)
    return found


def _binomial(share: Floats, trials: int) -> Floats:
    """(a, b) shares to the likelihood of 0 .. trials passes, (a, trials + 1, b)."""
    k = np.arange(trials + 1)[:, None]
    return np.asarray(comb(trials, k) * share[:, None] ** k * (1 - share[:, None]) ** (trials - k))


# The evidence


def _compared(
    noise: _Noise, groups: _Groups, outcomes: Indices, draws: int, seed: int
) -> tuple[float, float]:
    """The statistic and its p-value, (1 + draws at least as extreme) / (1 + draws): Davison and Hinkley
    1997, section 4.2."""
    predicted = _predicted(noise, groups, outcomes.shape[1] - 1)
    null = _drawn(noise, groups, predicted, draws, np.random.default_rng(seed))
    found = _evidence(noise, groups, predicted, np.concatenate([outcomes[None], null]))
    return float(found[0]), float((found >= found[0] - TIE).mean())


def _drawn(
    noise: _Noise, groups: _Groups, predicted: Floats, draws: int, random: np.random.Generator
) -> Indices:
    """Outcomes of an unchanged backend, (draws, groups, outcomes)."""
    moods = random.choice(len(MOODS), draws, p=noise.moods)
    shares = (predicted / predicted.sum(axis=1, keepdims=True)).transpose(2, 0, 1)
    return random.multinomial(groups.size, shares[moods])


def _evidence(noise: _Noise, groups: _Groups, predicted: Floats, outcomes: Indices) -> Floats:
    """ln((S_broken + S_worse) / S_unchanged) of each set of outcomes, (sets,)."""
    sets = outcomes.reshape(len(outcomes), -1).astype(float)
    unchanged = sets @ _log(predicted)
    broken = _broken(groups, predicted.shape[1])
    worse = np.mean([np.append(noise.moods[by:], np.zeros(by)) for by in WORSE_BY], axis=0)
    changes = [_summed(unchanged, worse)]
    for share, weight in BROKEN:
        mixed = sets @ _log((1 - share) * predicted + share * broken)
        changes.append(_summed(mixed, weight * noise.moods))
    return np.asarray(np.logaddexp.reduce(changes) - _summed(unchanged, noise.moods))


def _broken(groups: _Groups, outcomes: int) -> Floats:
    """How likely each number of passes is for broken cases, (groups, outcomes, 1)."""
    k, trials = np.arange(outcomes), groups.trials[:, None]
    found = comb(trials, k) * BROKEN_PASSES**k * (1 - BROKEN_PASSES) ** np.maximum(trials - k, 0)
    return np.asarray(found[:, :, None])


def _log(likelihood: Floats) -> Floats:
    """(groups, outcomes, moods) to (groups * outcomes, moods); what cannot happen is never counted."""
    flat = likelihood.reshape(-1, likelihood.shape[2])
    return np.asarray(np.log(np.where(flat > 0, flat, 1)))


def _summed(logs: Floats, weights: Floats) -> Floats:
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]) @ weights))


def _flipped(noise: _Noise, groups: _Groups, outcomes: Indices) -> tuple[int, int]:
    """Cases surely passing before and failing in every trial now, and the other way round."""
    rate = noise.rates @ RATES
    none, every = outcomes[:, 0], outcomes[np.arange(len(rate)), groups.trials]
    return int(none[rate >= SURE].sum()), int(every[rate <= 1 - SURE].sum())


# What would be seen


class _Look(NamedTuple):
    """A look at made-up nights, some cases healthy, some broken: both are the trials that pass, (draws,
    cases). Evidence above `limit` rejects."""

    groups: _Groups
    predicted: Floats
    healthy: Indices
    broken: Indices
    limit: float


class _Rehearsal(NamedTuple):
    """All looks. `turn`: when each case breaks, (draws, cases); `sure`: how many cases can."""

    noise: _Noise
    group: Indices
    turn: Indices
    sure: int
    looks: tuple[_Look, ...]

    def power(self, cases: int) -> float:
        """How often all looks reject when that many cases are broken."""
        seen = [self._rejects(look, self.turn < cases) for look in self.looks]
        return float(np.all(seen, axis=0).mean())

    def _rejects(self, look: _Look, broken: NDArray[np.bool_]) -> NDArray[np.bool_]:
        passed = np.where(broken, look.broken, look.healthy)
        outcomes = _tallied(self.group, passed, look.predicted.shape[1] - 1)
        return np.asarray(_evidence(self.noise, look.groups, look.predicted, outcomes) - TIE > look.limit)


def _rehearsed(nights: Floats, trials: int, levels: Sequence[float], draws: int, seed: int) -> _Rehearsal:
    random, cases = np.random.default_rng(seed), nights.shape[1]
    groups, group = _grouped(nights[-RECENT:], np.ones(cases, dtype=np.int64))
    noise = _Noise(_rates(groups), _moods(nights))
    sure = (noise.rates @ RATES >= SURE)[group]
    turn = np.where(sure, random.random((draws, cases)), 1).argsort(axis=1).argsort(axis=1)
    rates = logit(RATES)[_inverted(noise.rates.cumsum(axis=1)[:, :-1], group, random.random((draws, cases)))]
    tonight, later = MOODS[random.choice(len(MOODS), (2, draws, 1), p=noise.moods)]
    looks = tuple(
        _look(noise, groups, expit(rates + mood), asked, level, random)
        for mood, asked, level in zip((tonight, tonight, later), (1, trials, trials), levels, strict=True)
    )
    return _Rehearsal(noise, group, turn, int(sure.sum()), looks)


def _inverted(cumulative: Floats, group: Indices, shares: Floats) -> Indices:
    """How many of its group's `cumulative` shares each of (draws, cases) is above."""
    found = np.empty(shares.shape, dtype=np.int64)
    for number, row in enumerate(cumulative):
        found[:, group == number] = row.searchsorted(shares[:, group == number])
    return found


def _look(
    noise: _Noise, groups: _Groups, rates: Floats, trials: int, level: float, random: np.random.Generator
) -> _Look:
    groups = groups._replace(trials=np.full_like(groups.size, trials))
    predicted = _predicted(noise, groups, trials)
    null = _evidence(noise, groups, predicted, _drawn(noise, groups, predicted, 999, random))
    limit = float(np.sort(null)[-round(level * 1000)])
    broken = random.binomial(trials, BROKEN_PASSES, rates.shape)
    return _Look(groups, predicted, random.binomial(trials, rates), broken, limit)
