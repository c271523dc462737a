"""The report of a run: did it change, how much worse for questions like these, which cases, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from dashboard import incident_chart
from dashboard.curves import Line
from dashboard.figures import Tick, Window
from dashboard.palette import Style, Theme
from dashboard.report.document import (
    Answer,
    Chart,
    Document,
    Listing,
    Name,
    Section,
    Table,
    columns,
    section,
    sections,
)
from dashboard.report.foot import foot
from store import alert_titles, alert_words, changes, run_words, verdict_words, words
from store.licences import credit
from store.queries import CaseRow, RunReport


def document(r: RunReport, made: datetime) -> Document:
    at = r.run.started_at.astimezone(made.tzinfo)
    badge = verdict_words.badge(r.said.content) if r.said else None
    return Document(
        kind=f"Run {r.run.id} · {words.moment(at, made)}",
        title=run_words.title(r),
        badge=badge.text if badge else words.status(r.run.status),
        tone=badge.kind if badge else ("unchanged" if r.run.status == "whole" else "problem"),
        answers=(
            Answer("Did it change?", run_words.changed(r), tuple(run_words.beside(r))),
            Answer("How much worse for questions like these?", run_words.how_much(r)),
        ),
        sections=sections(*_sections(r, made)),
        foot=foot(made, _credit(r), with_texts=r.with_texts),
    )


def _credit(r: RunReport) -> str:
    told = credit(r.suite.licence, r.suite.citation)
    return f"{r.suite.name}: {told}" if told else ""


def _sections(r: RunReport, made: datetime) -> Iterator[Section | None]:
    lost, gained = run_words.turned(r)
    yield section("Lost and gained", _kinds(lost), _cases("Lost", lost, r), _cases("Gained", gained, r))
    yield section("Suspects", Listing(run_words.suspects(r)), _turn(r))
    yield section("Alerts", _alerts(r))
    yield section("Metrics", _metrics(r), _nights(r, made))
    yield section("By tag", _tags(r))
    failed = [row for row in r.cases if row.passed is False]
    yield section("All that failed", _failed(failed, r), words.removed(r.removed).capitalize())
    yield section("Errors", _errors(r), Listing(_error_texts(r)))
    yield section("What changed since the run before", _since(r))
    yield section("The run", Table("Facts", columns("what", "is"), run_words.facts(r)))
    yield section("Environment", Table("What it ran on", columns("name", "value"), run_words.environment(r)))


# Cases ------------------------------------------------------------------------------------------------------


def _kinds(lost: Sequence[CaseRow]) -> str:
    """ "Lost as: stale fact first (2), not stored (1)."."""
    kinds = Counter(row.failure or "not named" for row in lost).most_common()
    return f"Lost as: {', '.join(f'{kind} ({n})' for kind, n in kinds)}." if kinds else ""


def _cases(caption: str, rows: Sequence[CaseRow], r: RunReport) -> Table:
    texts = ("question", "came back first") if r.with_texts else ()
    names = columns("case", "tags", "failure", "passes", *texts, numbers=["passes"])
    return Table(f"{caption}: {words.count(len(rows), 'case')}", names, [_case(row, r) for row in rows])


def _case(row: CaseRow, r: RunReport) -> tuple[str, ...]:
    name = Name(f"{row.case} (critical)" if row.critical else row.case)
    told = (name, ", ".join(row.tags), row.failure or "–", f"{row.passes} of {row.trials}")
    return (*told, row.query, row.first_hit or "nothing") if r.with_texts else told


def _failed(failed: Sequence[CaseRow], r: RunReport) -> Table:
    """Most of them are no news: what the backend never could is lost every night."""
    return _cases("Failed, be it news or not", failed, r)


def _errors(r: RunReport) -> str:
    broken = [row for row in r.cases if row.status == "error"]
    if not broken:
        return ""
    named = words.listed([row.case for row in broken[:5]])
    more = f" and {len(broken) - 5} more" if len(broken) > 5 else ""
    hint = "" if r.with_texts else f" memtrend show {r.run.id} tells what went wrong."
    return f"{words.count(len(broken), 'case')} without an answer: {named}{more}.{hint}"


def _error_texts(r: RunReport) -> list[str]:
    return [f"{words.count(n, 'answer')}: {text}" for text, n in Counter(r.errors).most_common(20)]


# Why --------------------------------------------------------------------------------------------------------


def _turn(r: RunReport) -> str:
    if r.at_turn is None or not r.at_turn.changes.suspects:
        return ""
    return f"From run {r.at_turn.before.id}, the last good one, to run {r.at_turn.after.id}."


def _alerts(r: RunReport) -> Listing:
    return Listing(
        [
            f"Alert {row.id}, {alert_words.STATES[row.incident.state].lower()}: "
            f"{alert_titles.alert_title(row.incident)}; {alert_titles.holder(row.incident)}."
            for row in r.alerts
        ]
    )


def _since(r: RunReport) -> Table | str:
    if r.since_before is None:
        return "There is no whole run before it whose environment is kept." if r.ran_on else ""
    found, before = r.since_before.changes.suspects, r.since_before.before.id
    if not found:
        return f"Nothing that is recorded changed since run {before}."
    shown = [(one.name, one.kind, _value(one.old), _value(one.new)) for one in found]
    return Table(f"Since run {before}", columns("name", "kind", "was", "is"), shown)


def _value(value: object) -> str:
    return "–" if value is None else changes.shown(value)


# Figures ----------------------------------------------------------------------------------------------------


def _metrics(r: RunReport) -> Table:
    since = f"since run {r.before.id}" if r.before else "since before"
    numbers = ("value", "95 % interval", "n", since)
    rows = [
        (row.name, row.value, row.interval or "–", f"{row.n:,}", row.change or "–", row.better)
        for row in run_words.metric_lines(r)
    ]
    names = columns("metric", *numbers, "better", numbers=numbers)
    return Table("Metrics; a difference alone is no verdict", names, rows)


def _tags(r: RunReport) -> Table:
    rows = [(tag, rate, interval, f"{n:,}") for tag, rate, interval, n in run_words.tag_lines(r)]
    numbers = ("pass rate", "95 % interval", "n")
    return Table("Pass rate by tag", columns("tag", *numbers, numbers=numbers), rows)


def _nights(r: RunReport, made: datetime) -> Chart | None:
    """The series that the run stands in."""
    if len(r.points) < 2:
        return None

    def draw(theme: Theme, narrow: bool) -> object:
        marks = [Tick(mark.at, "" if narrow else mark.text) for mark in r.marks]
        return incident_chart.figure(_line(r, theme), "pass", [], _window(r, theme, made), marks)

    first, last = (r.points[place].started_at.astimezone(made.tzinfo) for place in (0, -1))
    span = f"{words.day(first, made)} to {words.day(last, made)}"
    caption = f"Pass rate in % of {words.count(len(r.points), 'night')}, {span}, with 95 % intervals"
    return Chart(caption, run_words.course(r.points), draw)


def _line(r: RunReport, theme: Theme) -> Line:
    style = Style(theme.series[0], "solid", "circle", "●")
    return Line(r.run.backend, style, r.points, bold=True, band=True)


def _window(r: RunReport, theme: Theme, made: datetime) -> Window:
    first, last = r.points[0].started_at, r.points[-1].started_at
    margin = max((last - first) * 0.02, timedelta(minutes=1))
    return Window(first - margin, last + margin, made.tzinfo, theme)
