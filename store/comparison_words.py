"""What a comparison says, as sentences, so that page, command line and reports say the same. Pure.

A is in use, B the candidate; both are called by the names they were asked by.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import tzinfo

from store import words
from store.comparisons import (
    FEWEST_FOR_A_VERDICT,
    TRIALS,
    Comparison,
    Foresight,
    MetricRow,
    RatioRow,
    Reference,
    SideTold,
    TagRow,
    Turned,
    Word,
)
from store.queries.runs import RunRow

_VERDICTS: dict[Word, str] = {
    "better": "Better",
    "non_inferior": "Not worse by more than {}",
    "inferior": "Worse",
    "inconclusive": "Cannot tell",
}
_RATIOS = {
    "recall_ms_median": "recall time, median",
    "recall_ms_p95": "recall time, p95",
    "returned_tokens": "tokens returned",
    "plants_per_s": "memories planted a second",
    "ingest_tokens": "model tokens to plant one memory",
    "money_per_1000": "money for 1,000 questions",
}
_UNITS = {"recall_ms_median": " ms", "recall_ms_p95": " ms"}


# The answer -----------------------------------------------------------------------------------------------


def title(c: Comparison) -> str:
    """ "hybrid can replace mem0 on golden, but 3 speaker cases would be lost"."""
    told = {
        "better": f"{c.b.name} is better than {c.a.name} on {c.suite}",
        "non_inferior": f"{c.b.name} can replace {c.a.name} on {c.suite}",
        "inferior": f"{c.b.name} is worse than {c.a.name} on {c.suite}",
        "inconclusive": f"Cannot tell yet whether {c.b.name} can replace {c.a.name} on {c.suite}",
    }[c.migration.verdict]
    return told + _but(c)


def _but(c: Comparison) -> str:
    """What is lost all the same; of what is worse anyway, how much."""
    lost = confirmed(c.lost)
    critical = [one for one in lost if one.critical]
    if critical:
        return f": {words.count(len(critical), 'critical case')} would be lost"
    if c.open:
        are = "is" if len(c.open) == 1 else "are"
        return f": {words.count(len(c.open), 'critical case')} {are} in doubt"
    if not lost:
        return "" if c.migration.verdict != "inferior" else f": {_points(c)}"
    joined = ": " if c.migration.verdict == "inferior" else ", but "
    return f"{joined}{_of_tag(lost)} would be lost"


def _of_tag(lost: Sequence[Turned]) -> str:
    """ "3 speaker cases" where all of them have a tag in common."""
    tags = Counter(tag for one in lost for tag in one.tags)
    shared = next((tag for tag, n in tags.most_common() if n == len(lost)), "")
    return words.count(len(lost), f"{shared} case".strip())


def _points(c: Comparison) -> str:
    if c.migration.difference is None:
        return "nothing could be compared"
    return f"{words.difference('pass', 0.0, c.migration.difference)} of the pass rate"


def verdict(c: Comparison) -> str:
    """In a few words, for a badge."""
    return _VERDICTS[c.migration.verdict].format(margin(c.migration.margin))


def margin(share: float) -> str:
    """ "3 points"."""
    return f"{share * 100:.3g} {'point' if share == 0.01 else 'points'}"


def evidence(c: Comparison) -> str:
    """Why it is so, in a sentence."""
    found, fixed = c.migration, margin(c.migration.margin)
    if found.low is None or found.high is None:
        return f"There is no interval: {found.reason or 'no case was answered on both sides'}."
    critical = [one.case for one in confirmed(c.lost) if one.critical]
    if critical:
        return f"Critical cases that were lost decide, whatever the mean says: {words.listed(critical)}."
    if is_withheld(c):
        return f"Nothing else speaks against {c.b.name}, but {found.reason}."
    ends = f"The difference lies between {_signed(found.low)} and {_signed(found.high)} points"
    return {
        "better": f"{ends}: all of it above 0.",
        "non_inferior": f"{ends}: all of it above the margin of −{fixed}.",
        "inferior": f"{ends}: all of it below the margin of −{fixed}.",
        "inconclusive": f"{ends}, and the margin of −{fixed} lies inside.",
    }[found.verdict]


def is_withheld(c: Comparison) -> bool:
    """Whether the interval lies above the margin, and something that is open forbids to say so."""
    found = c.migration
    return found.verdict == "inconclusive" and found.low is not None and found.low > -found.margin


def _signed(share: float) -> str:
    text = f"{share * 100:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def interval(low: float | None, high: float | None) -> str:
    """Of a difference of shares, in points: "−2.1 to +4.4"; "" where there is none."""
    return "" if low is None or high is None else f"{_signed(low)} to {_signed(high)}"


def points(share: float) -> str:
    """Of a difference: "+1.1"."""
    return _signed(share)


def sure(c: Comparison) -> str:
    """The same for whoever is no statistician: cases, counted."""
    lost, gained = confirmed(c.lost), confirmed(c.gained)
    if not c.cases:
        return "No case was answered on both sides."
    if min(c.a.trials, c.b.trials) < TRIALS:
        return (
            f"Of {words.count(c.cases, 'case')}, {c.a.name} passed {len(c.lost)} that {c.b.name} failed, and "
            f"{c.b.name} passed {len(c.gained)} that {c.a.name} failed; with fewer than {TRIALS} trials a "
            "side, chance may have done that."
        )
    if not lost and not gained:
        return f"Not one of {words.count(c.cases, 'case')} turned for sure, in either direction."
    fails = "fails" if len(lost) == 1 else "fail"
    return (
        f"Of {words.count(c.cases, 'case')}, {len(lost)} that {c.a.name} passes at least 3 of 4 times "
        f"{fails} on {c.b.name} at least 3 of 4 times; {len(gained)} the other way round."
    )


def confirmed(turned: Iterable[Turned]) -> list[Turned]:
    return [one for one in turned if one.confirmed]


def unconfirmed(turned: Iterable[Turned]) -> list[Turned]:
    return [one for one in turned if not one.confirmed]


def blind_spot(c: Comparison) -> str:
    """What the suite could not have seen."""
    if c.blind_spot is None or c.cannot_rule_out is None:
        return "What these cases would have missed cannot be told."
    ruled = (
        "A loss of the mean is ruled out"
        if not c.cannot_rule_out
        else f"A loss of {c.cannot_rule_out * 100:.1f} points cannot be ruled out"
    )
    return f"{ruled}; losses under {c.blind_spot * 100:.1f} points would probably have gone unseen."


def settle(c: Comparison) -> str | None:
    """What would settle an inconclusive comparison; None of any other."""
    if c.migration.verdict != "inconclusive":
        return None
    if is_withheld(c):
        return f"Asking {c.b.name} again would settle it, with at least {TRIALS} trials and without errors."
    fixed, low = margin(c.migration.margin), c.cannot_rule_out
    met = math.floor(low * 1000 + 1) / 10 if low else 0.0  # beyond the limit, which is not above itself
    wider = f"; a margin of {met:.1f} points would have been met" if low else ""
    needed = c.migration.needed
    if needed is None:
        return f"No number of cases like these would settle a margin of {fixed}{wider}."
    more = max(needed - c.cases, 1)
    return (
        f"{needed:,} cases like these would settle a margin of {fixed}: {more:,} more than there are{wider}."
    )


# Before anything is run -----------------------------------------------------------------------------------


def foresight(f: Foresight) -> list[str]:
    """Whether suite and margin can conclude, and what would be enough."""
    fixed, n = margin(f.margin), words.count(f.cases, "case")
    if f.can_conclude:
        first = f"{n} can settle a margin of {fixed}: it takes {f.enough:,} where not one is lost"
    else:
        first = (
            f"{n} cannot settle a margin of {fixed}, whatever comes back: it takes {f.enough:,} where not "
            f"one is lost. These can rule out a loss of {f.smallest_margin * 100:.1f} points at best"
        )
    if f.clusters:
        first += f" (of {f.clusters:,} conversations, each counted as one case until more is known)"
    share = f"{f.discordant * 100:.0f} % of them come out differently"
    of = f"If {share}, as is assumed" if f.assumed else f"Where {share}, as in the newest runs"
    enough = "no number does" if f.likely is None else f"it takes {f.likely:,}"
    return [f"{first}.", f"{of}, {enough}."] if f.discordant else [f"{first}."]


def again(run: RunRow) -> str:
    """The command that made this side, and that goes on with what was interrupted."""
    return str(run.meta.get("command", f"memtrend compare --help, for {run.backend} on {run.suite}"))


# Its parts ------------------------------------------------------------------------------------------------


def tag_word(row: TagRow) -> str:
    """At the end of a tag's row."""
    names = {
        "better": "better",
        "non_inferior": "not worse",
        "inferior": "worse",
        "inconclusive": "cannot tell",
        "held": "all held",
        "open": "in doubt: ask again",
        "no_confirmed_loss": "no confirmed loss",
        "lost": f"{len(row.lost)} lost, named below",
    }
    gained = f"{len(row.gained)} gained, 0 lost" if row.gained and not row.lost else ""
    return gained if row.word == "no_confirmed_loss" and gained else names[row.word]


def metric_word(row: MetricRow) -> str:
    """A metric is no verdict of its own: which way it lies, where the interval is on one side of 0."""
    if row.low is None or row.high is None:
        return "too few to decide" if row.reason else "cannot tell"
    if row.low > 0:
        return "better"
    return "worse" if row.high < 0 else "no difference seen"


def metric(row: MetricRow) -> str:
    """ "unwanted (lower is better)"."""
    direction = words.direction(row.metric)
    return f"{words.label(row.metric)} ({direction})" if direction else words.label(row.metric)


def side(told: SideTold, zone: tzinfo) -> str:
    """ "mem0 · 2.0.20 · nights 27 to 30 Nov"."""
    first, last = (told.runs[place].started_at.astimezone(zone) for place in (0, -1))
    if first.date() == last.date():
        when = words.moment(last, last)
    else:
        start = (
            f"{first.day}" if (first.year, first.month) == (last.year, last.month) else words.day(first, last)
        )
        when = f"nights {start} to {words.day(last, last)}"
    runs = f"run {told.runs[0].id}" if len(told.runs) == 1 else f"{len(told.runs)} runs"
    release = "" if told.release in told.name else told.release
    return " · ".join(filter(None, [told.name, release, when, "" if told.name.endswith(runs) else runs]))


def ratio_name(row: RatioRow) -> str:
    return _RATIOS[row.what]


def ratio_amount(row: RatioRow, value: float) -> str:
    """ "312 ms", "$1.92", "46.0"."""
    if row.what == "money_per_1000":
        return f"${value:,.2f}"
    number = f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"
    return number + _UNITS.get(row.what, "")


def ratio(row: RatioRow) -> str:
    """ "0.45 × (0.41 to 0.50)"; "–" where there is none."""
    if row.ratio is None:
        return "–"
    ends = "" if row.low is None or row.high is None else f" ({row.low:.2f} to {row.high:.2f})"
    return f"{row.ratio:.2f} ×{ends}"


def dropped(c: Comparison) -> list[str]:
    """ "14 cases: does not apply to hybrid (forget-01, forget-02, …)", the commonest reason first."""
    reasons: dict[str, list[str]] = {}
    for name, why in c.dropped.items():
        reasons.setdefault(why, []).append(name)
    return [
        f"{words.count(len(names), 'case')}: {why} ({', '.join(names[:3])}{', …' if names[3:] else ''})"
        for why, names in sorted(reasons.items(), key=lambda item: -len(item[1]))
    ]


def failure_kinds(turned: Iterable[Turned]) -> list[tuple[str, int]]:
    """Of the losses, the commonest first."""
    return Counter(one.failure or "not named" for one in turned).most_common()


def reference(row: Reference) -> str:
    """What a line is to be read as."""
    return {
        "floor": "a floor: nobody should be proud to beat it",
        "dense": "a plain vector store, which a real system should beat",
        "ceiling": "a ceiling: structured beliefs",
    }[row.kind]


def no_verdict() -> str:
    """Why small tags are hollow."""
    return f"Hollow: fewer than {FEWEST_FOR_A_VERDICT} cases, too few for a verdict; read the names instead."
