"""From the answers of two sets of runs to what is said of them. Pure; the types stand in `comparisons.py`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from store.answers import Flags, mean, rows_by_trial
from store.comparisons import (
    FEWEST_FOR_A_VERDICT,
    LEVEL,
    TRIALS,
    WINDOW,
    Comparison,
    Foresight,
    MetricRow,
    RatioRow,
    Reference,
    SideTold,
    TagRow,
    TagWord,
    Turned,
)
from store.metrics import METRICS
from store.queries.comparing import ComparisonRecord, PlayedRow, failure_kinds
from store.queries.runs import RunRow
from store.queries.verdicts import AskedCase
from store.stats.bootstrap import bca
from store.stats.comparisons import orientation, paired_difference, paired_ratio, turned
from store.stats.intervals import Floats, Indices, Interval, normal_quantile, wilson
from store.stats.margins import Migration, cases_for_margin, migration
from store.stats.power import blind_spot_of

CONFIRMED = 0.75
"""Of its trials on a side, a case passes, or fails, in so many before that counts: 3 of 4."""
ASSUMED = 0.1
"""Share of the cases that come out differently, where nothing is known yet."""
RATIO_DRAWS = 4_000
"""Of a ratio that is shown with two decimals."""
APPLIES, ERROR = "does not apply to {}", "got no answer from {}"


def compared(record: ComparisonRecord, margin: float) -> Comparison:
    """`margin`: above 0, the largest loss of the pass rate that is acceptable, a share."""
    return _Compared(record, margin).told()


def foreseen_of(record: ComparisonRecord, margin: float) -> Foresight:
    return _Compared(record, margin).foresight()


def foreseen(
    cases: int, margin: float, discordant: float = ASSUMED, *, assumed: bool = True, alpha: float = 0.05
) -> Foresight:
    """What `cases` can show, when a share `discordant` of them comes out differently without either side
    being better."""
    square = float(normal_quantile(1 - alpha)) ** 2
    return Foresight(
        cases=cases,
        margin=margin,
        enough=cases_for_margin(margin) or cases,
        likely=cases_for_margin(margin, discordant),
        discordant=discordant,
        assumed=assumed,
        smallest_margin=square / (cases + square),
    )


class _Side:
    """The answers of one side as arrays: a row a trial, a column a case."""

    def __init__(self, record: ComparisonRecord, runs: Sequence[RunRow], columns: Mapping[int, int]) -> None:
        self.runs, self.columns, self.ids = runs, columns, {row.id for row in runs}
        own = [row for row in record.results if row.run_id in self.ids]
        self.passes = self._stacked((row.run_id, row.case_id, row.trial, row.passed) for row in own)
        answered = (row for row in own if row.status == "ok")
        self.latency = mean(
            self._stacked((row.run_id, row.case_id, row.trial, row.latency_ms) for row in answered)
        )
        self.statuses: dict[int, Counter[str]] = defaultdict(Counter)
        for row in own:
            self.statuses[row.case_id][row.status] += 1
        self.values = record.values
        self.played = [row for row in record.played if row.run_id in self.ids]
        self.failures = failure_kinds(own)
        self.rate = mean(self.passes)
        self.trials = (~np.isnan(self.passes)).sum(axis=0)
        self.passed = np.nansum(self.passes, axis=0)

    def _stacked(self, rows: Iterable[tuple[Any, ...]]) -> Floats:
        found = rows_by_trial(rows, self.columns)
        return np.stack([*found.values()]) if found else np.full((1, len(self.columns)), np.nan)

    def metric(self, name: str) -> Floats:
        return mean(self._stacked(row for row in self.values.get(name, ()) if row[0] in self.ids))

    def answered_n(self) -> int:
        return int(self.trials.sum())

    def planted(self) -> list[PlayedRow]:
        return [row for row in self.played if row.plants and row.plant_ms]


class _Compared:
    def __init__(self, record: ComparisonRecord, margin: float) -> None:
        self.record, self.margin = record, margin
        columns = {case.id: place for place, case in enumerate(record.cases)}
        self.a, self.b = _Side(record, record.a, columns), _Side(record, record.b, columns)
        self.dropped = dict(self._dropped())
        kept = [case.name not in self.dropped for case in record.cases]
        apart = {case.name for case, one in zip(record.cases, kept, strict=True) if one}
        self.dropped = {name: why for name, why in self.dropped.items() if name not in apart}
        self.kept = np.array(kept, dtype=bool)
        self.cases = [case for case, one in zip(record.cases, kept, strict=True) if one]
        self.before, self.after = self.a.rate[self.kept], self.b.rate[self.kept]
        self.clusters = _clusters(self.cases)
        self.lost, self.gained = tuple(self._turned(losing=True)), tuple(self._turned(losing=False))

    # What is compared

    def _dropped(self) -> Iterator[tuple[str, str]]:
        for place, case in enumerate(self.record.cases):
            if why := self._unfit(place, case):
                yield case.name, why

    def _unfit(self, place: int, case: AskedCase) -> str | None:
        if case.quarantined:
            return "in quarantine"
        for side, name in zip((self.a, self.b), self.record.names, strict=True):
            if not np.isnan(side.rate[place]):
                continue
            statuses = side.statuses.get(case.id)
            if statuses is None:
                return self._missing(case, name)
            return (ERROR if statuses["error"] else APPLIES).format(name)
        return None

    def _missing(self, case: AskedCase, name: str) -> str:
        """The other side was asked: under this name another question, or none."""
        alike = sum(other.name == case.name for other in self.record.cases)
        return "was changed between the two" if alike > 1 else f"was not asked of {name}"

    def _groups(self, columns: Flags | Indices | slice) -> Indices | None:
        return None if self.clusters is None else self.clusters[columns]

    # What came of it

    def told(self) -> Comparison:
        decided = self._migration(slice(None), self.lost)
        suite, version, kind, origin = self.record.suite
        return Comparison(
            suite=suite,
            suite_version=version,
            suite_kind=kind,
            suite_origin=origin,
            a=self._told(self.a, 0),
            b=self._told(self.b, 1),
            migration=decided,
            foresight=self.foresight(),
            cases=len(self.cases),
            clusters=None if self.clusters is None else len(np.unique(self.clusters)),
            dropped=self.dropped,
            metrics=tuple(self._metrics()),
            tags=tuple(self._tags()),
            lost=self.lost,
            gained=self.gained,
            ratios=tuple(self._ratios()),
            references=tuple(self._references()),
            blind_spot=_visible(decided),
            changes=self.record.changes,
            latencies=(self._latencies(self.a), self._latencies(self.b)),
            warnings=tuple(self._warnings()),
        )

    def foresight(self) -> Foresight:
        differing = np.abs(self.after - self.before)
        share = float(differing.mean()) if len(differing) else ASSUMED
        return foreseen(len(self.cases), self.margin, share, assumed=not len(differing))

    def _told(self, side: _Side, place: int) -> SideTold:
        rates = side.rate[self.kept]
        shown = wilson(float(rates.sum()), len(rates)) if len(rates) else None
        return SideTold(
            name=self.record.names[place],
            backend=side.runs[-1].backend,
            release=self.record.releases[place],
            runs=tuple(side.runs),
            trials=len(side.passes),
            rate=float(rates.mean()) if len(rates) else None,
            low=shown.low if shown else None,
            high=shown.high if shown else None,
        )

    def _migration(self, columns: Indices | slice, lost: Iterable[Turned]) -> Migration:
        critical = sum(one.critical and one.confirmed for one in lost)
        return migration(
            self.before[columns],
            self.after[columns],
            self._groups(columns),
            margin=self.margin,
            critical_lost=critical,
        )

    def _turned(self, *, losing: bool) -> Iterator[Turned]:
        from_, to = (self.a, self.b) if losing else (self.b, self.a)
        for place in np.flatnonzero(self.kept):
            case = self.record.cases[place]
            if from_.rate[place] > 0.5 >= to.rate[place]:
                yield Turned(
                    case=case.name,
                    case_id=case.id,
                    query=self.record.queries[case.id],
                    tags=case.tags,
                    critical=case.critical,
                    confirmed=_is_confirmed(from_, to, int(place)),
                    failure=to.failures.get(case.id),
                    a_passes=int(self.a.passed[place]),
                    a_trials=int(self.a.trials[place]),
                    b_passes=int(self.b.passed[place]),
                    b_trials=int(self.b.trials[place]),
                    a_run=self.a.runs[-1].id,
                    b_run=self.b.runs[-1].id,
                )

    def _tags(self) -> Iterator[TagRow]:
        members: dict[str, list[int]] = defaultdict(list)
        for place, case in enumerate(self.cases):
            for tag in case.tags:
                members[tag].append(place)
        for tag, places in sorted(members.items(), key=lambda item: (-len(item[1]), item[0])):
            yield self._tag(tag, np.array(places))

    def _tag(self, tag: str, places: Indices) -> TagRow:
        names = {self.cases[place].name for place in places}
        lost, gained = (
            [one for one in turned if one.case in names and one.confirmed]
            for turned in (self.lost, self.gained)
        )
        found = self._migration(places, lost)
        critical = all(self.cases[place].critical for place in places)
        return TagRow(
            tag=tag,
            n=len(places),
            critical=critical,
            a=float(self.before[places].mean()),
            b=float(self.after[places].mean()),
            difference=float((self.after - self.before)[places].mean()),
            low=found.low,
            high=found.high,
            word=_tag_word(found, len(places), critical, bool(lost)),
            lost=tuple(one.case for one in lost),
            gained=tuple(one.case for one in gained),
        )

    def _metrics(self) -> Iterator[MetricRow]:
        """One draw for all of them, where cases are independent."""
        shares = [name for name, metric in METRICS.items() if metric.unit == "share" and name != "pass"]
        sides = {name: (self._kept(self.a, name), self._kept(self.b, name)) for name in shares}
        asked = {name: pair for name, pair in sides.items() if not np.isnan(pair[1] - pair[0]).all()}
        better = {name: _towards_better(name, *pair) for name, pair in asked.items()}
        drawn = {} if self.clusters is not None else _drawn_together(better)
        for name, (a, b) in asked.items():
            both = ~np.isnan(better[name])
            yield self._metric(name, a[both], b[both], self._groups(both), drawn.get(name))

    def _kept(self, side: _Side, metric: str) -> Floats:
        values: Floats = side.metric(metric)[self.kept]
        return values

    def _metric(
        self, name: str, a: Floats, b: Floats, groups: Indices | None, drawn: Interval | None
    ) -> MetricRow:
        worse, better = (a, b) if METRICS[name].better == "higher" else (b, a)
        means = float(a.mean()), float(b.mean()), float((better - worse).mean())
        if drawn is not None and drawn.low is not None:
            return MetricRow(name, len(a), *means, drawn.low, drawn.high, drawn.method, None)
        found = paired_difference(worse, better, groups, level=LEVEL)
        return MetricRow(name, found.n, *means, found.low, found.high, found.method, found.reason)

    def _references(self) -> Iterator[Reference]:
        for row in self.record.references:
            found = [row.answers[case.id] for case in self.cases if case.id in row.answers]
            if found:
                shown = wilson(sum(found), len(found))
                rate = sum(found) / len(found)
                ends = shown.low or 0.0, 1.0 if shown.high is None else shown.high
                yield Reference(row.name, row.kind, rate, *ends, len(found), row.run_id)  # type: ignore[arg-type]

    # What it costs

    def _latencies(self, side: _Side) -> tuple[float, ...]:
        both = self._timed()
        return tuple(side.latency[both].tolist())

    def _timed(self) -> Indices:
        held = self.kept & ~np.isnan(self.a.latency) & ~np.isnan(self.b.latency)
        return np.flatnonzero(held)

    def _ratios(self) -> Iterator[RatioRow]:
        yield from self._times()
        tokens = [side.metric("returned_tokens")[self.kept] for side in (self.a, self.b)]
        yield from _ratio_of_means("returned_tokens", *tokens)
        yield from self._plants()
        for what, spent in (("ingest_tokens", _tokens), ("money_per_1000", _money)):
            a, b = spent(self.a), spent(self.b)
            if a or b:
                ratio = b / a if a else None
                yield RatioRow(
                    what, a, b, ratio, None, None, len(self.cases), "a sum over the runs, not a sample"
                )

    def _times(self) -> Iterator[RatioRow]:
        timed = self._timed()
        if not len(timed):
            return
        a, b = self.a.latency[timed], self.b.latency[timed]
        groups = None if self.clusters is None else self._groups(np.isin(np.flatnonzero(self.kept), timed))
        found = paired_ratio(a, b, groups, resamples=RATIO_DRAWS)
        if found.reason is not None:
            return
        for what, one in zip(("recall_ms_median", "recall_ms_p95"), found.ratios, strict=True):
            at = float(np.quantile(a, one.share)), float(np.quantile(b, one.share))
            yield RatioRow(what, *at, one.ratio, one.low, one.high, one.n, one.reason)

    def _plants(self) -> Iterator[RatioRow]:
        """Of the scenarios that planted something on both sides."""
        rates = [_plants_per_s(side) for side in (self.a, self.b)]
        both = sorted(rates[0].keys() & rates[1].keys())
        if both:
            a, b = (np.array([rate[name] for name in both]) for rate in rates)
            (one,) = paired_ratio(a, b, shares=(0.5,)).ratios
            at = float(np.median(a)), float(np.median(b))
            yield RatioRow("plants_per_s", *at, one.ratio, one.low, one.high, one.n, one.reason)

    # What to know before trusting it

    def _warnings(self) -> Iterator[str]:
        few = min(len(self.a.passes), len(self.b.passes))
        if few < TRIALS:
            yield f"No loss is confirmed: that takes {TRIALS} trials a side, and one has {few}"
        apart = abs(self.a.runs[-1].started_at - self.b.runs[-1].started_at)
        if apart > WINDOW:
            yield (
                f"The sides were not asked in the same window but {apart.days} days apart: "
                "provider, load and data may differ too"
            )
        for what in ("suite_version", "scorer"):
            if len({getattr(run, what) for run in (*self.a.runs, *self.b.runs)}) > 1:
                yield f"The sides are of more than one {what.partition('_')[0]} version"
        if self.clusters is not None:
            yield "Cases of one conversation are not independent: intervals go by conversations"


def _towards_better(metric: str, a: Floats, b: Floats) -> Floats:
    found: Floats = b - a if METRICS[metric].better == "higher" else a - b
    return found


def _drawn_together(columns: Mapping[str, Floats]) -> dict[str, Interval]:
    """Of each column whose values are fit to be resampled. Turned one way before, so that swapped sides
    mirror their intervals."""
    fit = {name: column for name, column in columns.items() if not _is_of_one_trial(column)}
    if not fit:
        return {}
    ways = {name: orientation(column[~np.isnan(column)]) for name, column in fit.items()}
    matrix = np.stack([ways[name] * column for name, column in fit.items()], axis=1)
    found = zip(fit, bca(matrix, level=LEVEL), strict=True)
    return {name: turned(interval, ways[name]) for name, interval in found}


def _is_of_one_trial(differences: Floats) -> bool:
    """Yes and no alone, to which Newcombe's interval belongs."""
    return bool(np.isin(differences[~np.isnan(differences)], (-1, 0, 1)).all())


def _clusters(cases: Sequence[AskedCase]) -> Indices | None:
    if not any(case.cluster for case in cases):
        return None
    return np.unique([case.cluster or case.name for case in cases], return_inverse=True)[1]


def _is_confirmed(from_: _Side, to: _Side, place: int) -> bool:
    enough = min(from_.trials[place], to.trials[place]) >= TRIALS
    return bool(enough and from_.rate[place] >= CONFIRMED and to.rate[place] <= 1 - CONFIRMED)


def _tag_word(found: Migration, n: int, critical: bool, lost: bool) -> TagWord:
    if n >= FEWEST_FOR_A_VERDICT:
        return found.verdict
    if lost:
        return "lost"
    return "held" if critical else "no_confirmed_loss"


def _visible(found: Migration) -> float | None:
    interval = Interval(found.low, found.high, found.n, found.method, level=1 - 2 * found.alpha)
    return blind_spot_of(interval).drop


def _ratio_of_means(what: str, a: Floats, b: Floats) -> Iterator[RatioRow]:
    """Of sums, which an empty answer does not spoil as it would a quotient of its own."""
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    if not len(a) or not a.sum():
        return
    means = float(a.mean()), float(b.mean())
    if (a <= 0).any():
        yield RatioRow(
            what, *means, means[1] / means[0], None, None, len(a), "an answer of A is empty: no interval"
        )
        return
    (found,) = bca((b)[:, None], a)
    yield RatioRow(what, *means, means[1] / means[0], found.low, found.high, len(a), found.reason)


def _plants_per_s(side: _Side) -> dict[str, float]:
    taken: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in side.planted():
        taken[row.scenario][0] += row.plants
        taken[row.scenario][1] += row.plant_ms or 0.0
    return {name: 1000 * plants / ms for name, (plants, ms) in taken.items()}


def _tokens(side: _Side) -> float:
    """Model tokens to plant one memory."""
    plants = sum(row.plants for row in side.played)
    return sum(row.ingest_tokens for row in side.played) / plants if plants else 0.0


def _money(side: _Side) -> float:
    """USD for a thousand questions, planting included."""
    asked = side.answered_n()
    return 1000 * sum(row.money for row in side.played) / asked if asked else 0.0
