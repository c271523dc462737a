"""May the candidate replace what runs now? Two sets of runs of one suite, held against each other. Pure.

A is in use, B the candidate. Unlike a verdict, which asks whether a backend changed, this asks how much worse
B would be for questions like these: paired by case, with an interval, against a margin that was fixed before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from store.changes import Changes
from store.queries.runs import RunRow

if TYPE_CHECKING:  # scipy, which words about a comparison do not need
    from store.stats.margins import Migration

LEVEL = 0.9
"""Of the intervals: one-sided 5 %, as non-inferiority is asked."""
FEWEST_FOR_A_VERDICT = 90
"""Cases of a tag: with fewer, not even none lost would rule out a loss of three points."""
TRIALS = 4
"""Trials a side by which a loss is confirmed: in three of them."""
WINDOW = timedelta(hours=24)
"""Runs that lie further apart may have met another provider, another load."""
VERSION = "2"
"""Rises when the same answers may be told otherwise."""

Word = Literal["better", "non_inferior", "inferior", "inconclusive"]
TagWord = Literal[
    "better", "non_inferior", "inferior", "inconclusive", "held", "lost", "open", "no_confirmed_loss"
]
"""Of a tag with too few cases for a verdict: `lost` where something was, by name; `open` where a critical
case was neither kept nor lost for sure; `held` where each is critical, was answered, and was not lost."""


def taken(rows: Sequence[RunRow], trials: int) -> tuple[RunRow, ...]:
    """The newest of them that have so many trials together, oldest first; none where all have fewer."""
    found = 0
    for place in range(len(rows) - 1, -1, -1):
        found += rows[place].trials
        if found >= trials:
            return tuple(rows[place:])
    return ()


def windows_apart(a: Sequence[RunRow], b: Sequence[RunRow]) -> timedelta:
    """How far the run of either side that is alone the most lies from the nearest one of the other side."""
    return max(
        min(abs(one.started_at - other.started_at) for other in others)
        for rows, others in ((a, b), (b, a))
        for one in rows
    )


class SideTold(NamedTuple):
    """One side as it was found. `name`: as it was asked for; `release`: version of the backend's own package,
    '' where it has none; `runs`, oldest first; `trials` of each case in all of them; `rate` with its Wilson
    interval, over the cases that are compared."""

    name: str
    backend: str
    release: str
    runs: tuple[RunRow, ...]
    trials: int
    rate: float | None
    low: float | None
    high: float | None


class MetricRow(NamedTuple):
    """A metric on both sides. `better_by`: by how much B is better, in the metric's unit, whichever way is
    better for it, with the interval `low` to `high` at `LEVEL`; None where `reason` says why."""

    metric: str
    n: int
    a: float
    b: float
    better_by: float
    low: float | None
    high: float | None
    method: str
    reason: str | None


class TagRow(NamedTuple):
    """The pass rate of a tag's cases. `lost` and `gained`: names of cases, confirmed ones alone."""

    tag: str
    n: int
    critical: bool
    a: float
    b: float
    difference: float
    low: float | None
    high: float | None
    word: TagWord
    lost: tuple[str, ...]
    gained: tuple[str, ...]


class Turned(NamedTuple):
    """A case that came out differently. `confirmed`: passed on the one side and lost on the other in at least
    three of four trials each; `failure`: kind of the loss, on whichever side lost it. `a_hit`, `b_hit`: what
    came back first, texts of memories; None where nothing did or they were not asked for."""

    case: str
    case_id: int
    query: str
    tags: tuple[str, ...]
    critical: bool
    confirmed: bool
    failure: str | None
    a_passes: int
    a_trials: int
    b_passes: int
    b_trials: int
    a_hit: str | None = None
    b_hit: str | None = None
    a_run: int = 0
    b_run: int = 0


class RatioRow(NamedTuple):
    """Of times, tokens or money: `a` and `b` in the metric's unit, and b / a with its 95 % interval. `what`:
    recall_ms_median, recall_ms_p95, returned_tokens, ingest_tokens, money_per_1000 or plants_per_s."""

    what: str
    a: float
    b: float
    ratio: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None


class Reference(NamedTuple):
    """A line to read the rates by, over the compared cases that it was asked too: a floor (`nothing`,
    `everything`), `dense`, or a `ceiling` (a belief store)."""

    name: str
    kind: str
    rate: float
    low: float | None
    high: float | None
    n: int
    run_id: int


class Foresight(NamedTuple):
    """What can be known before anything is run. `cases` that would be compared; `enough`: cases it takes
    where not one is lost; `likely`: cases it takes where a share `discordant` comes out differently, None
    where 100,000 do not do; `discordant`: of the two sides' newest runs, or what is assumed where `assumed`;
    `smallest_margin`: what these cases can rule out at best, no case being lost; `clusters`: of how many
    conversations they are, None where each stands for itself."""

    cases: int
    margin: float
    enough: int
    likely: int | None
    discordant: float
    assumed: bool
    smallest_margin: float
    clusters: int | None = None

    @property
    def can_conclude(self) -> bool:
        return self.cases >= self.enough


class Comparison(NamedTuple):
    """`migration`: verdict and interval of the pass rate; `cases` compared, `dropped`: case -> why it was not
    (asked on one side alone, changed between, an error, in quarantine); `blind_spot`: the smallest loss that
    these cases would have shown with 80 % power; `changes`: from A's newest environment to B's, None where
    one was not kept, and `suspects` of a loss among them; `latencies`: each side's, one value a case, ms;
    `warnings`: what to know before trusting it, as sentences; `licence` and `citation` of the suite;
    `with_texts`: whether texts of memories were asked for, and may be shown; `open`: critical cases that A
    passes and of which it is not known whether B does, for which no verdict calls B as good."""

    suite: str
    suite_version: str
    suite_kind: str
    suite_origin: str
    a: SideTold
    b: SideTold
    migration: Migration
    foresight: Foresight
    cases: int
    clusters: int | None
    dropped: Mapping[str, str]
    metrics: tuple[MetricRow, ...]
    tags: tuple[TagRow, ...]
    lost: tuple[Turned, ...]
    gained: tuple[Turned, ...]
    ratios: tuple[RatioRow, ...]
    references: tuple[Reference, ...]
    blind_spot: float | None
    changes: Changes | None
    latencies: tuple[tuple[float, ...], tuple[float, ...]]
    warnings: tuple[str, ...]
    licence: str = ""
    citation: str = ""
    with_texts: bool = False
    open: tuple[str, ...] = ()

    @property
    def cannot_rule_out(self) -> float | None:
        """A loss of the pass rate up to this, as a share; 0 where B is better for sure."""
        low = self.migration.low
        return None if low is None else max(0.0, -low)
