"""What changed in a week, by suite and backend. Pure.

Synthetic suites, a team's own and published benchmarks are told apart throughout: no number is of two of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from store import verdict_titles
from store.queries.alerts import AlertRow
from store.queries.common import Rolled
from store.queries.operation import FireRow
from store.queries.policy import CaseStanding
from store.queries.runs import RunRow
from store.queries.said import VerdictRow
from store.queries.series import MarkRow, TrendPoint
from store.queries.suites import SuiteRow
from store.verdict_words import Badge

ORIGINS = ("own", "published", "starter")
"""What a team cares for first."""
UNDECIDED = ("suspected", "unknown")


class SeriesWeek(NamedTuple):
    """A suite on a backend. `before`: the pass rate of the last whole run before the week, `now` of the last
    one in it; `verdicts`, oldest first, `earlier` the last one before; `broken`: runs of the week that are
    not whole; `points`: pass rates of the last nights."""

    suite: str
    backend: str
    origin: str
    floor: bool
    whole: int
    broken: tuple[RunRow, ...]
    newest: RunRow
    before: Rolled | None
    now: Rolled | None
    earlier: VerdictRow | None
    verdicts: tuple[VerdictRow, ...]
    points: tuple[TrendPoint, ...]

    @property
    def badge(self) -> Badge | None:
        """What the newest verdict says; None where there is none, or nothing to compare with."""
        said = self.verdicts[-1] if self.verdicts else None
        return verdict_titles.badge(said.content) if said else None

    @property
    def title_row(self) -> verdict_titles.Series:
        kind = self.badge.kind if self.badge else None
        return verdict_titles.Series(self.suite, self.backend, self.newest.status, False, self.floor, kind)


class Turn(NamedTuple):
    """A run whose verdict is another one than that of the run before it."""

    said: VerdictRow
    badge: Badge
    was: Badge | None


class Upgrade(NamedTuple):
    """What changed in the environment of a backend, (name, old, new) with dotted names, since which run."""

    backend: str
    run_id: int
    at: datetime
    changes: tuple[tuple[str, object, object], ...]


class Spent(NamedTuple):
    """What all runs of suites of one origin took: looks, parts of suites and controls too."""

    origin: str
    runs: int
    seconds: float
    money: float


class Week(NamedTuple):
    """`since` to `until`, 7 days. Alerts are those that somebody was told of: `opened` and `closed` in the
    week, `standing` at its end. `missed`: fires that ran late, badly or not at all; `ending`:
    quarantines that end within the 7 days after, by suite; `suites`: those that were run."""

    since: datetime
    until: datetime
    series: tuple[SeriesWeek, ...]
    opened: tuple[AlertRow, ...]
    closed: tuple[AlertRow, ...]
    standing: tuple[AlertRow, ...]
    marks: tuple[MarkRow, ...]
    upgrades: tuple[Upgrade, ...]
    missed: tuple[FireRow, ...]
    spent: tuple[Spent, ...]
    ending: tuple[tuple[str, CaseStanding], ...]
    suites: tuple[SuiteRow, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened at all."""
        return not (self.series or self.opened or self.closed or self.missed or self.marks)


def by_origin(series: Iterable[SeriesWeek]) -> dict[str, list[SeriesWeek]]:
    """The team's own first, each with its series; what has none is left out."""
    found: dict[str, list[SeriesWeek]] = {origin: [] for origin in ORIGINS}
    for one in series:
        found.setdefault(one.origin, []).append(one)
    return {origin: rows for origin, rows in found.items() if rows}


def turns(series: SeriesWeek) -> Iterator[Turn]:
    """Where the series changed its state in the week, oldest first."""
    was = verdict_titles.badge(series.earlier.content) if series.earlier else None
    for said in series.verdicts:
        badge = verdict_titles.badge(said.content)
        if badge is None:
            continue
        if badge.kind != (was.kind if was else "unchanged") and {badge.kind, was and was.kind} != _QUIET:
            yield Turn(said, badge, was)
        was = badge


_QUIET = {"unchanged", "provisional"}


def counted(series: SeriesWeek) -> list[tuple[str, int]]:
    """How many nights ended in which word, the worst first."""
    found: dict[str, int] = {}
    for said in series.verdicts:
        badge = verdict_titles.badge(said.content)
        word = badge.text if badge else "No baseline yet"
        found[word] = found.get(word, 0) + 1
    return sorted(found.items(), key=lambda item: _place(item[0]))


_WORDS = ("Worse", "Slow leak", "Suspected", "Suspicion", "Cannot tell", "Better")


def _place(word: str) -> int:
    return _WORDS.index(word) if word in _WORDS else len(_WORDS)


def merged(upgrades: Sequence[Upgrade]) -> tuple[Upgrade, ...]:
    """The same change of a backend once, though every suite that it ran saw it."""
    first: dict[tuple[str, str], Upgrade] = {}
    for one in sorted(upgrades, key=lambda one: (one.at, one.run_id)):
        first.setdefault((one.backend, repr(one.changes)), one)
    return tuple(first.values())
