"""The report of a week: a page for a meeting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from dashboard.report.document import (
    Answer,
    Document,
    Listing,
    Section,
    Spark,
    Table,
    columns,
    section,
    sections,
)
from dashboard.report.foot import foot
from dashboard.sparkline import Dot
from store import run_words, week_words, words
from store.licences import credit
from store.queries import AlertRow
from store.week import SeriesWeek, Week, by_origin

BLOCKS = 14
"""Nights in a cell where nothing can be drawn."""
_TONES = ("worse", "leak", "suspected", "unknown", "better")
"""The worst first: of all series, the tone of the page."""


def document(w: Week, made: datetime) -> Document:
    zone, tone = made.tzinfo, _tone(w)
    decide = week_words.decisions(w, zone)
    return Document(
        kind=week_words.heading(w, zone),
        title=week_words.title(w),
        badge=_WORDS[tone],
        tone=tone,
        answers=(
            Answer("What happened?", week_words.told(w)),
            Answer(
                "What is to be decided?",
                f"{words.count(len(decide), 'thing')}, the most urgent first:" if decide else "Nothing.",
                tuple(decide),
            ),
        ),
        sections=sections(*_sections(w, made)),
        foot=foot(made, " · ".join(_credits(w)), with_texts=False),
    )


_WORDS = {
    "worse": "Worse",
    "leak": "Slow leak",
    "suspected": "Suspected",
    "unknown": "Cannot tell",
    "better": "Better",
    "unchanged": "No change seen",
}


def _tone(w: Week) -> str:
    found = {row.badge.kind for row in w.series if row.badge and not row.floor}
    return next((kind for kind in _TONES if kind in found), "unchanged")


def _credits(w: Week) -> Iterator[str]:
    """Each licence once, with the suites that are under it."""
    found: dict[str, list[str]] = {}
    for suite in w.suites:
        if told := credit(suite.licence, suite.citation):
            found.setdefault(told, []).append(suite.name)
    return (f"{words.listed(names)}: {told}" for told, names in found.items())


def _sections(w: Week, made: datetime) -> Iterator[Section | None]:
    zone = made.tzinfo
    yield section("What turned", Listing(week_words.turn_lines(w, zone)))
    for origin, rows in by_origin(w.series).items():
        yield section(week_words.origin(origin), *_series(rows))
    yield section(
        "Alerts",
        _alerts("Opened this week", w.opened, w, made),
        _alerts("Closed this week", w.closed, w, made),
        _alerts("Standing", [row for row in w.standing if row not in w.opened], w, made),
    )
    upgrades = [week_words.upgrade_cells(one, zone) for one in w.upgrades]
    marks = [(words.moment(one.at.astimezone(zone), made), one.text) for one in w.marks]
    yield section(
        "Marks and upgrades",
        Table("Marks", columns("when", "what"), marks),
        Table("What changed in the environments", columns("seen", "backend", "run", "what"), upgrades),
    )
    fires = [week_words.fire_cells(one, zone) for one in w.missed]
    yield section(
        "Schedules", Table("Runs missed, late or not whole", columns("schedule", "for", "what", "why"), fires)
    )
    spent = [week_words.spent_cells(one) for one in w.spent]
    names = columns("suites", "runs", "time", "money", numbers=("runs", "time", "money"))
    yield section("Time and money", Table("What all runs took, looks and controls too", names, spent))


def _series(rows: Sequence[SeriesWeek]) -> Iterator[Table]:
    """A table a suite: no number is of two."""
    numbers = ("pass rate (95 %)", "since last week", "against its baseline (95 %)")
    names = columns("backend", "now", *numbers, "this week", "last nights", numbers=numbers)
    for suite in dict.fromkeys(row.suite for row in rows):
        own = sorted((row for row in rows if row.suite == suite), key=lambda row: row.floor)
        yield Table(suite, names, [_cells(row) for row in own])


def _cells(row: SeriesWeek) -> tuple[str | Spark, ...]:
    return (
        f"{row.backend} (floor)" if row.floor else row.backend,
        week_words.series_word(row),
        week_words.rate(row),
        week_words.since_before(row),
        week_words.against_baseline(row),
        week_words.nights(row),
        _spark(row),
    )


def _spark(row: SeriesWeek) -> Spark:
    dots = tuple(Dot(one.started_at, one.mean, one.low, one.high) for one in row.points)
    newest = [one.mean for one in row.points[-BLOCKS:]]
    return Spark(dots, week_words.spark(newest), run_words.course(row.points))


def _alerts(caption: str, rows: Sequence[AlertRow], w: Week, made: datetime) -> Table:
    cells = [week_words.alert_cells(row, w, made.tzinfo) for row in rows]
    return Table(caption, columns("alert", "since", "what", "state", "who"), cells)
