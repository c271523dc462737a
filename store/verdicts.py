"""Is it worse? The one place that says so: a run against its baseline, in up to three looks. Pure.

Two questions, two answers. Did the backend change: every case against its own history, which decides. How
much worse is it for questions like these: the paired difference with its interval, which is told beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from store.answers import Flags, Table, constant, longest_stretch, mean
from store.baselines import FULL
from store.control import read
from store.evidence import EVERY, Difference, Leak, Look, Moved, Side, Stage, Verdict, Word
from store.metrics import METRICS, NOISE_MS
from store.queries.policy import TRIAL_RUNS
from store.queries.verdicts import (
    MEASURED,
    SCORED,
    SPENT,
    AskedCase,
    PassRate,
    ValueRow,
    VerdictRecord,
)
from store.stats.change import LEVELS, change_test, smallest_visible_drop
from store.stats.changepoints import faded, online
from store.stats.comparisons import paired_difference
from store.stats.intervals import SEED, Floats, Indices
from store.stats.shift import shift_test

VERSION = "2"
"""Rises when the same answers may get another verdict."""


STAGES: tuple[Stage, ...] = ("suspicion", "suspected", "confirmed")
FAMILY = len(SCORED + MEASURED + SPENT)
"""Metrics beside the pass rate, which share the level of each look among them (Bonferroni)."""
ENOUGH_LOST = 0.75
"""Of its trials, a case fails in so many before it counts as lost: 3 of 4."""
SURELY = 0.9
"""Of its nights, a case passed (or failed) in so many before losing (or gaining) it is news."""
STEADY = 0.95
"""Of all its nights, a critical case passed in so many before its loss alone is asked about again."""
AT_ONCE = 0.001
"""Level at which lost critical cases need no third look."""
DRAWS = (999, 1999)
"""Of the null distribution, at the first look and at later ones."""
SHARED = 0.5
"""With a smaller share of its cases known to the baseline, a run begins a series of its own."""


def judge(record: VerdictRecord, *, deterministic: bool = False, level: float = LEVELS[0]) -> Verdict:
    """The verdict of a run with the looks that were taken. `deterministic`: what the backend says of itself,
    so that every case that turned is a change; `level`: of the first look."""
    held = _Held(record, deterministic, level)
    if held.reason:
        return held.nothing_to_tell()
    side, stage = held.decision()
    leak = held.leak()
    if leak is not None and side is None:
        side, stage = "worse", "leak"
    word: Word = "cannot_tell" if stage == "suspicion" else side or "unchanged"
    return held.verdict(word, stage, leak)


class _Held:
    """A run held against its baseline: answers as arrays, columns in the order of `cases`."""

    def __init__(self, record: VerdictRecord, deterministic: bool, level: float) -> None:
        self.record, self.levels = record, (level, *LEVELS[1:])
        table = Table(record, record.answers)
        self.recent = table.nights(record.baseline.recent)
        self.history = table.nights(record.baseline.history)
        self.anchor = table.nights(record.baseline.anchor)
        self.first = table.trials(record.run_id)[:1]
        self.again = [(run_id, table.trials(run_id)) for run_id in record.looks]
        self.fresh = np.concatenate([self.first, *(trials for _, trials in self.again)])
        self.gates = self._gates()
        self.reason = self._reason()
        self.looks = () if self.reason else self._looked()
        self.deterministic = deterministic and self._repeats_agree()
        self.lost, self.gained = self._turned(passing=True), self._turned(passing=False)

    # What is compared

    def _gates(self) -> Flags:
        """Cases that decide: not in quarantine, and no longer on trial; all of the former while the whole
        suite is still on trial."""
        free = np.array([not case.quarantined for case in self.record.cases], dtype=bool)
        tried = np.array([longest_stretch(column) >= TRIAL_RUNS for column in self.history.T], dtype=bool)
        return free & tried if (free & tried).any() else free

    def _reason(self) -> str | None:
        if not self.record.baseline.recent:
            left = self.record.baseline.left_out
            return f"nothing to compare with: {left[-1].why}" if left else "the first run of this series"
        known = ~np.isnan(self.recent).all(axis=0)
        answered = ~np.isnan(self.first).all(axis=0)
        if not (known & answered & self.gates).any():
            return "no case that decides was answered both now and before"
        if known.sum() < SHARED * known.size:
            return f"{int(known.sum())} of {known.size} cases are known to the baseline: a series of its own"
        return None

    # Did it change?

    def _looked(self) -> tuple[Look, ...]:
        asked = [(self.record.run_id, self.first), *self.again]
        return tuple(self._look(number, *one) for number, one in enumerate(asked, start=1))

    def _look(self, number: int, run_id: int, trials: Floats) -> Look:
        draws = DRAWS[min(number, len(DRAWS)) - 1]
        p = {side: self._tested(self.history, trials, side == "worse", draws) for side in ("worse", "better")}
        return Look(number, run_id, len(trials), p["worse"], p["better"])

    def _tested(self, nights: Floats, fresh: Floats, worse: bool, draws: int) -> float | None:
        return change_test(nights[:, self.gates], fresh[:, self.gates], worse=worse, draws=draws).p

    def decision(self) -> tuple[Side | None, Stage]:
        """Which way it went and how sure that is; None: no change."""
        if self.deterministic:
            return self._flipped()
        if stage := self._critical_stage():
            return "worse", stage
        sides: tuple[Side, ...] = ("worse", "better")
        told = [side for side in sides if self._rejected(side)]
        if not told:
            return None, ""
        side = self._stronger() if len(told) == 2 else told[0]
        return side, STAGES[min(len(self.looks), len(STAGES)) - 1]

    def _rejected(self, side: Side) -> bool:
        """At every look that was taken."""
        return all(look.p(side) <= level for look, level in zip(self.looks, self.levels, strict=False))

    def _stronger(self) -> Side:
        """Where both sides are rejected: what turned one way for sure makes the few that turned the other
        way look unlikely, as everything had been expected to go with it."""
        return "better" if len(self.gained) > len(self.lost) else "worse"

    def _critical_stage(self) -> Stage:
        """Critical cases are a family of their own, over all trials at once; "": nothing is sure of them.
        That they failed is not enough: among many, a flaky one that was lucky fails four times in a row."""
        critical = self.gates & np.array([case.critical for case in self.record.cases], dtype=bool)
        steady = critical & (mean(self.history) >= STEADY)
        if not set(self._named(steady)) & set(self.lost):
            return ""
        if not self.again:
            return "suspicion"
        p = change_test(self.history[:, critical], self.fresh[:, critical], draws=DRAWS[1]).p or 1.0
        if p <= AT_ONCE:
            return "confirmed"
        return "suspected" if p <= LEVELS[1] and len(self.again) == 1 else ""

    def _flipped(self) -> tuple[Side | None, Stage]:
        """Of a backend whose answers repeat, one look more is certainty."""
        if not self.lost and not self.gained:
            return None, ""
        return "worse" if self.lost else "better", "confirmed" if self.again else "suspicion"

    def _repeats_agree(self) -> bool:
        """Whether the trials in hand, and the last two nights, give the lie to a backend that calls itself
        deterministic. Older nights may be those before a change."""
        steady = [rows[:, self.gates] for rows in (self.recent[-2:], self.fresh) if len(rows)]
        return all(bool(constant(rows).all()) for rows in steady)

    def _turned(self, *, passing: bool) -> tuple[str, ...]:
        """Cases that surely passed (or failed) in the baseline, and did not in most fresh trials."""
        nights = mean(self.recent[-1:] if self.deterministic else self.recent)
        before = nights if passing else 1 - nights
        now = 1 - mean(self.fresh) if passing else mean(self.fresh)
        turned = self.gates & (before >= SURELY) & (now >= ENOUGH_LOST)
        return self._named(turned)

    def _named(self, chosen: Flags) -> tuple[str, ...]:
        return tuple(case.name for case, is_so in zip(self.record.cases, chosen, strict=True) if is_so)

    @property
    def critical(self) -> tuple[str, ...]:
        names = {case.name for case in self.record.cases if case.critical}
        return tuple(name for name in self.lost if name in names)

    def leak(self) -> Leak | None:
        """A downward step that the online detector sees in the series now, or saw earlier and sees still."""
        series = [*self.record.series, self._rate()]
        shares = np.array([point.passed / point.asked for point in series if point.asked])
        counts = np.array([point.asked for point in series if point.asked], dtype=float)
        ids = [point.run_id for point in series if point.asked]
        reported = [ids.index(run_id) for run_id in self.record.reported if run_id in ids]
        found = online(shares, counts, reported)
        down = [point for point in found.points if point.after < point.before]
        if down:
            return Leak(ids[down[-1].index], down[-1].before, down[-1].after, new=True)
        standing = sorted(set(reported) - set(faded(reported, shares, counts)) - {0})
        return self._standing(ids, shares, standing[-1]) if standing else None

    def _standing(self, ids: Sequence[int], shares: Floats, first: int) -> Leak | None:
        """A leak that was told, unless the last nights are nearer to where it came from than to where it
        went."""
        before, after, now = (
            float(part.mean()) for part in (shares[:first], shares[first:][:FULL], shares[-FULL:])
        )
        return None if now > (before + after) / 2 else Leak(ids[first], before, now, new=False)

    def _rate(self) -> PassRate:
        asked = self.first[0][~np.isnan(self.first[0])]
        run = self.record
        return PassRate(run.run_id, float(asked.sum()), len(asked))

    # How much worse?

    def difference(self) -> Difference:
        groups = clusters(self.record.cases, self.gates)
        old, new = mean(self.recent[:, self.gates]), mean(self.fresh[:, self.gates])
        found = paired_difference(old, new, clusters=groups)
        both = ~np.isnan(old) & ~np.isnan(new)
        return Difference(
            float(old[both].mean()), float(new[both].mean()), found.low, found.high, found.n, found.dropped,
            found.method, found.reason,
        )  # fmt: skip

    def drift(self) -> float | None:
        before, now = mean(self.anchor[:, self.gates]), self.first[0][self.gates]
        apart = now - before
        return None if np.isnan(apart).all() else float(np.nanmean(apart))

    def falls_behind(self) -> bool:
        """Whether the run is worse than the anchor: then the baseline takes it in no more."""
        if self.record.baseline.anchor == self.record.baseline.recent:
            return False
        p = self._tested(self.anchor, self.first, True, DRAWS[0])
        return p is not None and p <= LEVELS[1]

    # Beside it

    def moved(self) -> tuple[Moved, ...]:
        """Of each metric that was told before and now; each side of each has its share of the level."""
        values: dict[str, list[ValueRow]] = defaultdict(list)
        for row in self.record.values:
            values[row.metric].append(row)
        tables = {name: self._told_of(name, rows) for name, rows in sorted(values.items())}
        found = (self._moved(name, table, worse) for name, table in tables.items() for worse in (True, False))
        return tuple(one for one in found if one)

    def _told_of(self, name: str, rows: Sequence[ValueRow]) -> Table:
        """A column a case, or of what scenarios spent a column a scenario."""
        return Table(self.record, rows, {row.case_id for row in rows} if name in SPENT else None)

    def _moved(self, name: str, table: Table, worse: bool) -> Moved | None:
        metric = METRICS[name]
        nights = table.nights(self.record.baseline.recent)
        trials = [table.trials(self.record.run_id)[:1], *(table.trials(look) for look in self.record.looks)]
        upward, smallest = worse == (metric.better == "lower"), metric.smallest_change
        if metric.unit == "ms" and nights.size:
            smallest = max(smallest, NOISE_MS / max(float(np.nanmedian(nights)), 1e-3))
        tests = [
            shift_test(nights, fresh, smallest=smallest, upward=upward, relative=metric.relative)
            for fresh in trials
        ]
        agree = [test.rejects(level / FAMILY) for test, level in zip(tests, self.levels, strict=False)]
        if not all(agree) or tests[0].change is None:
            return None
        return Moved(name, tests[0].change, worse, STAGES[min(len(tests), len(STAGES)) - 1])

    def beats_dense(self) -> Mapping[str, str]:
        """By tag, '' for all cases: is the pass rate above that of a plain vector store?"""
        if self.record.dense is None:
            return {}
        now = mean(self.fresh)
        other = np.array([float(self.record.dense.get(case.id, np.nan)) for case in self.record.cases])
        members: dict[str, list[int]] = defaultdict(list)
        for column, case in enumerate(self.record.cases):
            for tag in (EVERY, *case.tags):
                members[tag].append(column)
        groups = clusters(self.record.cases, np.ones(len(now), dtype=bool))
        return {
            tag: _beats(other[columns], now[columns], None if groups is None else groups[columns])
            for tag, columns in sorted(members.items())
        }

    # Put together

    def nothing_to_tell(self) -> Verdict:
        untold = dict.fromkeys(("difference", "blind_spot", "drift", "leak"))
        return self._as("cannot_tell", "", accepted=True, reason=self.reason, moved=(), **untold)

    def verdict(self, word: Word, stage: Stage, leak: Leak | None) -> Verdict:
        at_rest, moved = word == "unchanged", self.moved()
        drop = smallest_visible_drop(self.history[:, self.gates], levels=self.levels) if at_rest else None
        return self._as(
            word,
            stage,
            accepted=word in ("unchanged", "better") and not (slower(moved) or self.falls_behind()),
            reason=None,
            difference=self.difference(),
            blind_spot=drop.drop if drop else None,
            drift=self.drift(),
            moved=moved,
            leak=leak,
        )

    def _as(self, word: Word, stage: Stage, **told: Any) -> Verdict:
        run = self.record
        return Verdict(
            verdict=word,
            stage=stage,
            provisional=run.baseline.provisional,
            looks=self.looks,
            lost=self.lost,
            gained=self.gained,
            critical=self.critical,
            beats_dense=self.beats_dense(),
            cases=int(self.gates.sum()),
            nights=len(self.recent),
            days=run.baseline.days,
            baseline=run.baseline.recent,
            anchor=run.baseline.anchor,
            missing=run.missing,
            deterministic=self.deterministic,
            seed=SEED,
            version=VERSION,
            aside=self._named(~self.gates & ~np.isnan(self.fresh).all(axis=0)),
            level=self.levels[0],
            control=read(run.control, run.run_id, word, stage, told["moved"]) if run.control else None,
            **told,
        )


def slower(moved: Sequence[Moved]) -> bool:
    """Whether a metric beside the pass rate got worse, and not only at first sight: a baseline that took such
    a night in would have the next one pass."""
    return any(one.worse and one.stage != "suspicion" for one in moved)


def clusters(cases: Sequence[AskedCase], gates: Flags) -> Indices | None:
    """A number for each case that decides; None where every case stands for itself."""
    if not any(case.cluster for case in cases):
        return None
    names = [case.cluster or case.name for case, gate in zip(cases, gates, strict=True) if gate]
    return np.unique(names, return_inverse=True)[1]


def _beats(other: Floats, now: Floats, groups: Indices | None) -> str:
    """Interval and test must agree: of few cases the interval alone promises too much."""
    found = paired_difference(other, now, groups)
    if found.low is None or found.high is None or found.p is None or found.p > 1 - found.level:
        return "cannot tell"
    if found.low > 0:
        return "yes"
    return "no" if found.high <= 0 else "cannot tell"
