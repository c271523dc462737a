"""May B replace A: from the answers of two sets of runs to what is said of them. Pure.

The types stand in `comparisons.py`. A candidate is called as good only where nothing critical is open: what
it failed now and then, or never answered, withholds that word until it is asked again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import ceil

import numpy as np

from store.compared_sides import APPLIES, CHANGED, ERROR, UNASKED, AskedSide, Paired, clusters
from store.comparison_figures import latencies, metrics, rate, ratios, references
from store.comparisons import (
    FEWEST_FOR_A_VERDICT,
    TRIALS,
    WINDOW,
    Comparison,
    Foresight,
    SideTold,
    TagRow,
    TagWord,
    Turned,
    windows_apart,
)
from store.queries.comparing import ComparisonRecord
from store.queries.verdicts import AskedCase
from store.stats.intervals import Indices, Interval, normal_quantile
from store.stats.margins import Migration, cases_for_margin, migration
from store.stats.power import MOST_CASES, blind_spot_of
from store.words import count, listed

CONFIRMED = 0.75
"""Of its trials on a side, a case passes, or fails, in so many before that counts: 3 of 4."""
ASSUMED = 0.1
"""Share of the cases that come out differently, where nothing is known yet."""
AS_GOOD = ("better", "non_inferior")


def compared(record: ComparisonRecord, margin: float) -> Comparison:
    """`margin`: above 0, the largest loss of the pass rate that is acceptable, a share."""
    return _Compared(Paired(record), margin).told()


def foreseen_of(record: ComparisonRecord, margin: float) -> Foresight:
    return _foresight(Paired(record), margin)


def _foresight(pairs: Paired, margin: float) -> Foresight:
    differing = np.abs(pairs.after - pairs.before)
    share = float(differing.mean()) if len(differing) else ASSUMED
    groups = None if pairs.clusters is None else len(np.unique(pairs.clusters))
    return foreseen(len(pairs.cases), margin, share, clusters=groups, assumed=not len(differing))


def foreseen(
    cases: int,
    margin: float,
    discordant: float = ASSUMED,
    *,
    clusters: int | None = None,
    assumed: bool = True,
    alpha: float = 0.05,
) -> Foresight:
    """What `cases` can show, when a share `discordant` of them comes out differently without either side
    being better. The cases of a conversation, of which there are `clusters`, count as one: how much they have
    in common is known only afterwards."""
    alike = cases / clusters if clusters else 1.0
    square = float(normal_quantile(1 - alpha)) ** 2
    return Foresight(
        cases=cases,
        margin=margin,
        enough=_scaled(cases_for_margin(margin), alike) or cases,
        likely=_scaled(cases_for_margin(margin, discordant), alike),
        discordant=discordant,
        assumed=assumed,
        smallest_margin=square / (cases / alike + square) if cases else 1.0,
        clusters=clusters,
    )


def _scaled(cases: int | None, alike: float) -> int | None:
    needed = None if cases is None else ceil(cases * alike)
    return None if needed is None or needed > MOST_CASES else needed


class _Compared:
    def __init__(self, pairs: Paired, margin: float) -> None:
        self.pairs, self.margin, self.names = pairs, margin, pairs.record.names
        self.lost, self.gained = tuple(self._turned(losing=True)), tuple(self._turned(losing=False))
        self.open = frozenset(case.name for case in self._open_cases())

    # What came of it

    def told(self) -> Comparison:
        pairs, decided = self.pairs, self._decided()
        suite, version, kind, origin = pairs.record.suite
        return Comparison(
            suite=suite,
            suite_version=version,
            suite_kind=kind,
            suite_origin=origin,
            a=self._told(pairs.a, 0),
            b=self._told(pairs.b, 1),
            migration=decided,
            foresight=_foresight(pairs, self.margin),
            cases=len(pairs.cases),
            clusters=None if pairs.clusters is None else len(np.unique(pairs.clusters)),
            dropped=pairs.dropped,
            metrics=tuple(metrics(pairs)),
            tags=tuple(self._tags()),
            lost=self.lost,
            gained=self.gained,
            ratios=tuple(ratios(pairs)),
            references=tuple(references(pairs)),
            blind_spot=_visible(decided),
            changes=pairs.record.changes,
            latencies=latencies(pairs),
            warnings=tuple(self._warnings()),
            open=tuple(sorted(self.open)),
        )

    def _told(self, side: AskedSide, place: int) -> SideTold:
        rates = side.rate[self.pairs.kept]
        return SideTold(
            self.names[place], side.runs[-1].backend, self.pairs.record.releases[place], tuple(side.runs),
            len(side.passes), *rate(rates, self.pairs.clusters),
        )  # fmt: skip

    def _turned(self, *, losing: bool) -> Iterator[Turned]:
        pairs = self.pairs
        from_, to = pairs.sides if losing else pairs.sides[::-1]
        for place in map(int, np.flatnonzero(pairs.kept)):
            case = pairs.record.cases[place]
            if from_.rate[place] > 0.5 >= to.rate[place]:
                yield Turned(
                    case=case.name,
                    case_id=case.id,
                    query=pairs.record.queries[case.id],
                    tags=case.tags,
                    critical=case.critical,
                    confirmed=_is_confirmed(from_, to, place),
                    failure=to.failures.get(case.id),
                    a_passes=int(pairs.a.passed[place]),
                    a_trials=int(pairs.a.trials[place]),
                    b_passes=int(pairs.b.passed[place]),
                    b_trials=int(pairs.b.trials[place]),
                    a_run=pairs.a.runs[-1].id,
                    b_run=pairs.b.runs[-1].id,
                )

    # The verdict

    def _decided(self) -> Migration:
        """Of all cases, withheld also where B's errors, were they losses, would be too many."""
        found = self._migration(np.arange(len(self.pairs.cases)), self.lost, self.open)
        if found.verdict in AS_GOOD and self.pairs.b.errors.any():
            low = self._at_worst()
            if low is None or low <= -self.margin:
                b = self.names[1]
                return _withheld(found, f"what {b} did not answer would be too much, were it lost")
        return found

    def _at_worst(self) -> float | None:
        """Where the difference begins if each of B's errors were a loss."""
        pairs = self.pairs
        after = pairs.b.counting_errors()
        asked = ~(np.isnan(pairs.a.rate) | np.isnan(after))
        fit = [place for place in np.flatnonzero(asked) if not pairs.record.cases[place].quarantined]
        groups = clusters([pairs.record.cases[place] for place in fit])
        return migration(pairs.a.rate[fit], after[fit], groups, margin=self.margin).low

    def _migration(self, places: Indices, lost: Iterable[Turned], open_: Iterable[str]) -> Migration:
        pairs = self.pairs
        found = migration(
            pairs.before[places],
            pairs.after[places],
            pairs.groups(places),
            margin=self.margin,
            critical_lost=sum(one.critical and one.confirmed for one in lost),
        )
        names = sorted(open_)
        if found.verdict not in AS_GOOD or not names:
            return found
        are = "is" if len(names) == 1 else "are"
        told = f"{count(len(names), 'critical case')} {are} neither kept nor lost for sure"
        return _withheld(found, f"{told}: {listed(names)}")

    def _open_cases(self) -> Iterator[AskedCase]:
        """Critical ones that A passes, of which it is not known whether B does: it failed them in some of its
        trials, answered none, or was not asked."""
        doubtful = {one.case for one in self.lost if one.critical and not one.confirmed}
        unanswered = (ERROR.format(self.names[1]), UNASKED.format(self.names[1]))
        for place, case in enumerate(self.pairs.record.cases):
            missed = self.pairs.dropped.get(case.name) in unanswered and self.pairs.a.rate[place] > 0.5
            if case.name in doubtful or (case.critical and missed):
                yield case

    # By tag

    def _tags(self) -> Iterator[TagRow]:
        members: dict[str, list[int]] = defaultdict(list)
        for place, case in enumerate(self.pairs.cases):
            for tag in case.tags:
                members[tag].append(place)
        for tag, places in sorted(members.items(), key=lambda item: (-len(item[1]), item[0])):
            yield self._tag(tag, np.array(places))

    def _tag(self, tag: str, places: Indices) -> TagRow:
        pairs = self.pairs
        of_tag = {case.name: case for case in pairs.record.cases if tag in case.tags}
        lost, gained = (
            [one for one in turned if one.case in of_tag and one.confirmed]
            for turned in (self.lost, self.gained)
        )
        open_ = self.open & of_tag.keys()
        found = self._migration(places, lost, open_)
        critical = all(pairs.cases[place].critical for place in places)
        whole = not pairs.dropped.keys() & of_tag.keys()
        return TagRow(
            tag=tag,
            n=len(places),
            critical=critical,
            a=float(pairs.before[places].mean()),
            b=float(pairs.after[places].mean()),
            difference=float((pairs.after - pairs.before)[places].mean()),
            low=found.low,
            high=found.high,
            word=_tag_word(found, len(places), critical and whole, lost=bool(lost), open_=bool(open_)),
            lost=tuple(one.case for one in lost),
            gained=tuple(one.case for one in gained),
        )

    # What to know before trusting it

    def _warnings(self) -> Iterator[str]:
        pairs = self.pairs
        few = min(len(side.passes) for side in pairs.sides)
        if few < TRIALS:
            yield f"No loss is confirmed: that takes {TRIALS} trials a side, and one has {few}"
        apart = windows_apart(pairs.record.a, pairs.record.b)
        if apart > WINDOW:
            yield (
                f"The sides were not all asked in the same window, but up to {_days(apart.days)} apart: "
                "provider, load and data may differ too"
            )
        for what in ("suite_version", "scorer"):
            if len({getattr(run, what) for run in (*pairs.record.a, *pairs.record.b)}) > 1:
                yield f"The sides are of more than one {what.partition('_')[0]} version"
        yield from self._unanswered()
        if pairs.clusters is not None:
            yield "Cases of one conversation are not independent: intervals go by conversations"

    def _unanswered(self) -> Iterator[str]:
        for side, name in zip(self.pairs.sides, self.names, strict=True):
            none, some = (
                int(np.count_nonzero((side.errors > 0) & (side.trials == 0))),
                int(np.count_nonzero((side.errors > 0) & (side.trials > 0))),
            )
            if none or some:
                told = f"{count(none, 'case')} got no answer from {name}" if none else ""
                also = f"{count(some, 'case')} none in some of the trials on {name}" if some else ""
                yield "; ".join(filter(None, [told, also]))
        critical = {case.name for case in self.pairs.record.cases if case.critical}
        for why in (*(APPLIES.format(name) for name in self.names), CHANGED):
            apart = [name for name, told in self.pairs.dropped.items() if told == why and name in critical]
            if apart:
                yield f"Critical and not compared, since it {why}: {listed(sorted(apart))}"


def _days(n: int) -> str:
    return count(n, "day")


def _withheld(found: Migration, why: str) -> Migration:
    return found._replace(verdict="inconclusive", needed=None, reason=why)


def _is_confirmed(from_: AskedSide, to: AskedSide, place: int) -> bool:
    """Of all trials, also of those that ended in an error, which count as neither passed nor failed."""
    asked = [int(side.trials[place] + side.errors[place]) for side in (from_, to)]
    failed = to.trials[place] - to.passed[place]
    sure = from_.passed[place] >= CONFIRMED * asked[0] and failed >= CONFIRMED * asked[1]
    return bool(min(asked) >= TRIALS and sure)


def _tag_word(found: Migration, n: int, guarded: bool, *, lost: bool, open_: bool) -> TagWord:
    """`guarded`: each of its cases is critical, and was answered by both."""
    if n >= FEWEST_FOR_A_VERDICT:
        return found.verdict
    if lost:
        return "lost"
    if open_:
        return "open"
    return "held" if guarded else "no_confirmed_loss"


def _visible(found: Migration) -> float | None:
    interval = Interval(found.low, found.high, found.n, found.method, level=1 - 2 * found.alpha)
    return blind_spot_of(interval).drop
