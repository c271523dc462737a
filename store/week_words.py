"""A week as sentences and rows, for a meeting. Pure.

Text that comes back holds names as they are: who shows it escapes it. Times are told in the zone that is
given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from store import alert_titles, alert_words, verdict_titles, verdict_words, words
from store.queries.alerts import AlertRow
from store.queries.operation import FireRow
from store.week import SeriesWeek, Spent, Turn, Upgrade, Week, by_origin, counted, turns

FIRES = {"missed": "missed", "invalid": "not whole", "late": "late"}
BLOCKS = "▁▂▃▄▅▆▇█"


def heading(w: Week, zone: tzinfo) -> str:
    """ "Week from 23 Nov to 30 Nov"."""
    first, last = (at.astimezone(zone) for at in (w.since, w.until))
    return f"Week from {words.day(first, last)} to {words.day(last, last)} {last.year}"


def title(w: Week) -> str:
    """What happened, of the team's own cases first and of synthetic ones apart."""
    groups = by_origin(w.series)
    if not groups:
        return "No suite was run as a whole this week"
    told = {origin: _found(rows) for origin, rows in groups.items()}
    if len(told) == 1:
        return next(iter(told.values()))
    return ". ".join(f"{_capital(words.origin(origin))}: {_small(said)}" for origin, said in told.items())


def _found(rows: Sequence[SeriesWeek]) -> str:
    return verdict_titles.overview_title([row.title_row for row in rows])


def _small(text: str) -> str:
    """Unless it begins with a name."""
    first = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first.isalpha() and first.istitle() else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def origin(value: str) -> str:
    """Over the table of one kind of suites."""
    return {"own": "Your cases", "starter": "Synthetic suites", "published": "Published benchmarks"}[value]


def told(w: Week) -> str:
    """What happened with alerts, in a sentence."""
    n = words.spelled
    counts = [(len(w.opened), "opened"), (len(w.closed), "closed")]
    moved = words.listed([f"{n(count)} {word}" for count, word in counts if count])
    stand = f"{words.count(len(w.standing), 'alert')} {'stands' if len(w.standing) == 1 else 'stand'} now"
    return f"{_capital(moved)} this week; {stand}." if moved else f"No alert was opened or closed; {stand}."


def series_word(row: SeriesWeek) -> str:
    """Its state at the end of the week."""
    if row.newest.status in words.PROBLEMS:
        return words.PROBLEMS[row.newest.status]
    return row.badge.text if row.badge else words.NO_BASELINE


def nights(row: SeriesWeek) -> str:
    """ "3 worse, 4 no change seen, 1 invalid"."""
    broken = words.listed([f"{len(row.broken)} not whole"] if row.broken else [])
    return ", ".join([*(f"{n} {word.lower()}" for word, n in counted(row)), *filter(None, [broken])]) or "–"


def rate(row: SeriesWeek) -> str:
    """ "86.2 % (69.4 to 94.5), n 29"."""
    if row.now is None:
        return "–"
    bounds = words.interval("pass", row.now.low, row.now.high)
    return f"{words.amount('pass', row.now.mean)}{f' ({bounds})' if bounds else ''}, n {row.now.n}"


def since_before(row: SeriesWeek) -> str:
    """Since the run before the week: a plain difference, which is no verdict."""
    return words.difference("pass", row.before.mean, row.now.mean) if row.before and row.now else "–"


def against_baseline(row: SeriesWeek) -> str:
    """For questions like these, with its interval."""
    told = verdict_words.how_much(row.verdicts[-1].content) if row.verdicts else ""
    return told.partition(", n ")[0] or "–"


def spark(values: Sequence[float]) -> str:
    """As blocks, from the lowest to the highest of them; level where they are all alike."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high == low:
        return BLOCKS[3] * len(values)
    return "".join(BLOCKS[round((value - low) / (high - low) * (len(BLOCKS) - 1))] for value in values)


def turn_lines(w: Week, zone: tzinfo) -> list[str]:
    """What changed its state, oldest first: "25 Nov, 23:00: mem0 on golden (run 508): worse. 3 of 29 ..."."""
    found = [(row, turn) for row in w.series if not row.floor for turn in turns(row)]
    found.sort(key=lambda item: (item[1].said.started_at, item[1].said.run_id))
    return [_turn_line(row, turn, zone) for row, turn in found]


def _turn_line(row: SeriesWeek, turn: Turn, zone: tzinfo) -> str:
    said, at = turn.said, turn.said.started_at.astimezone(zone)
    was = f", after {turn.was.text.lower()}" if turn.was else ""
    what = f"{row.backend} on {row.suite} (run {said.run_id}): {turn.badge.text.lower()}{was}"
    return f"{words.moment(at, at)}: {what}. {verdict_words.evidence(said.content)}"


def alert_cells(row: AlertRow, w: Week, zone: tzinfo) -> tuple[str, str, str, str, str]:
    """(alert, since, what, state, who)."""
    it, now = row.incident, w.until.astimezone(zone)
    over = f", closed {words.moment(row.closed_at.astimezone(zone), now)}" if row.closed_at else ""
    return (
        str(row.id),
        words.moment(it.opened_at.astimezone(zone), now),
        alert_titles.alert_title(it),
        alert_words.STATES[it.state].lower() + over,
        alert_titles.holder(it),
    )


def upgrade_cells(one: Upgrade, zone: tzinfo) -> tuple[str, str, str, str]:
    """(seen, backend, first run, what changed)."""
    at = one.at.astimezone(zone)
    return words.moment(at, at), one.backend, str(one.run_id), words.environment_news(one.changes)


def fire_cells(one: FireRow, zone: tzinfo) -> tuple[str, str, str, str]:
    """(schedule, for when, what, why)."""
    at = one.scheduled_for.astimezone(zone)
    return one.schedule, words.moment(at, at), FIRES[one.state], one.reason or "–"


def spent_cells(one: Spent) -> tuple[str, str, str, str]:
    """(kind of suites, runs, time, money)."""
    money = words.amount("money", one.money) if one.money else "none known"
    return origin(one.origin), f"{one.runs:,}", words.duration(one.seconds), money


# What to decide ---------------------------------------------------------------------------------------------


def decisions(w: Week, zone: tzinfo) -> list[str]:
    """What somebody should decide, the most urgent first; each with the command that does it."""
    return [*_unheld(w), *_worse(w), *_broken(w), *_missed(w), *_unsure(w), *_unjudged(w), *_ending(w, zone)]


def _unheld(w: Week) -> Iterator[str]:
    for row in w.standing:
        if row.incident.acknowledged_by is None:
            what = alert_words.title(row.incident)
            yield f"Who takes alert {row.id}, {what}? (memtrend alerts ack {row.id})"


def _worse(w: Week) -> Iterator[str]:
    """Of what fell, whether it is to be mended or was meant; first somebody must take it."""
    unheld = {(row.suite, row.backend) for row in w.standing if row.incident.acknowledged_by is None}
    for row in _standing(w, "worse", "leak"):
        if (row.suite, row.backend) in unheld:
            continue
        said = f"{row.backend} on {row.suite} is worse: go back, mend it, or was it meant?"
        run = row.verdicts[-1].run_id
        yield f"{said} (memtrend report {run} has cases and suspects; memtrend baseline intended accepts it)"


def _broken(w: Week) -> Iterator[str]:
    for row in w.series:
        if row.newest.status in words.PROBLEMS:
            what = f"the newest run of {row.suite} on {row.backend} is {row.newest.status}"
            yield f"Who mends the measuring? {_capital(what)}. (memtrend show {row.newest.id} says why)"


def _missed(w: Week) -> Iterator[str]:
    n = sum(one.state == "missed" for one in w.missed)
    if n:
        yield f"Why did {words.count(n, 'run')} on schedule not happen? (memtrend doctor)"


def _unsure(w: Week) -> Iterator[str]:
    for row in _standing(w, "suspected", "unknown"):
        run = row.verdicts[-1].run_id
        yield (
            f"{row.backend} on {row.suite} may have changed: look once more? (memtrend verdict {run} --look)"
        )


def _unjudged(w: Week) -> Iterator[str]:
    """Alarms that nobody called right or wrong, of which the rate of false ones is made."""
    ids = [str(row.id) for row in w.closed if row.incident.judged is None]
    if ids:
        each = "memtrend alerts real ID, or noise ID"
        yield f"Was the alarm right? Nobody has said so of {words.listed(ids)}. ({each})"


def _ending(w: Week, zone: tzinfo) -> Iterator[str]:
    for suite, case in w.ending:
        until = _day(case.expires, zone) if case.expires else ""
        whose = f", {case.owner}'s" if case.owner else ""
        yield f"The quarantine of {case.case} in {suite}{whose}, ends on {until}: is it mended?"


def _day(at: datetime, zone: tzinfo) -> str:
    local = at.astimezone(zone)
    return words.day(local, local)


def _standing(w: Week, *kinds: str) -> list[SeriesWeek]:
    return [row for row in w.series if not row.floor and row.badge and row.badge.kind in kinds]
