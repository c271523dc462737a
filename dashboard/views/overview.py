"""Is everything all right now? A card a backend in every suite, the backend always in the same column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from dashboard import (
    axes,
    channels,
    configuration,
    data,
    incidents,
    levels,
    parts,
    sparkline,
    tables,
    verdicts,
)
from dashboard.curves import Line
from dashboard.parts import plain
from dashboard.sparkline import Dot, Frame
from store import queries, verdict_titles, verdict_words, words
from store.alert_life import TOLD_STATES
from store.queries import OverviewRow, RunRow, SuiteRow, VerdictRow
from store.sections import ConfirmSection, time_of
from store.verdict_titles import Series

MOST_ALERTS = 3
MOST_CARDS, FEWEST_CARDS = 10, 5
"""Of a suite. Of more backends those with news have a card at once, filled up to a row; the rest are a click
away."""
PAGE_WIDTH, GAP, PADDING = 1300, 16, 32
"""Px on a screen of usual width: a card's chart is drawn as wide as its card, so that its lines are not
stretched."""

FAILING = ("invalid", "void")
"""States in which it was the instrument that failed."""

COMMANDS = (
    ("See what is configured and what is missing", "memtrend doctor"),
    ("Run the shipped starter suites against the built-in backends", "memtrend run"),
    ("Write a configuration and a first suite of your own", "memtrend init"),
)


def page() -> None:
    """Drawn again by itself: often while something runs or the first results are awaited, seldom
    otherwise."""
    running = bool(data.now(queries.progress))
    awaited = running or not data.ask(queries.overview)
    st.fragment(_page, run_every=2 if awaited else 10)(running)


def _page(was_running: bool) -> None:
    running = data.now(queries.progress)
    if bool(running) != was_running:
        st.rerun()  # the timer changes with it
    rows = data.ask(queries.overview)
    if not rows:
        _empty()
        return
    said = _said(rows)
    series = [_series(row, running, said) for row in rows]
    parts.title(verdict_titles.overview_title(series), parts.newest(row.last_whole for row in rows))
    _facts(rows)
    _alerts()
    parts.problems()
    for run in running:
        parts.live(run)
    suites = [suite for suite in data.ask(queries.suites) if any(row.suite == suite.name for row in rows)]
    _notice(suites)
    for suite in suites:
        _suite(suite, [row for row in rows if row.suite == suite.name], running, said)


def _empty() -> None:
    text = "Three commands give this page its first cards, in about a minute and without a key."
    parts.nothing_yet(verdict_titles.overview_title([]), text, COMMANDS)
    parts.problems()
    st.caption(
        "The starter suites are synthetic. Your own conversations make better questions; until then every "
        "number here says so."
    )


def _said(rows: Sequence[OverviewRow]) -> dict[int, VerdictRow]:
    """By run: what is said of the newest whole runs."""
    return data.ask(queries.verdicts, sorted(row.last_whole.id for row in rows if row.last_whole))


def _series(row: OverviewRow, running: Sequence[RunRow], said: Mapping[int, VerdictRow]) -> Series:
    going = any((run.suite, run.backend) == (row.suite, row.backend) for run in running)
    floor = row.backend not in parts.contenders()
    verdict = verdicts.kind(_content(row, said))
    silent = not going and _is_silent(row)
    return Series(row.suite, row.backend, row.latest and row.latest.status, going, floor, verdict, silent)


def _is_silent(row: OverviewRow) -> bool:
    """Whether its next run is overdue, so that what was said of it is no news of today."""
    newest = row.latest.started_at if row.latest else None
    if newest is None:
        return False
    return axes.is_silent(sorted({*(point.started_at for point in row.points), newest}), parts.now())


def _content(row: OverviewRow | None, said: Mapping[int, VerdictRow]) -> dict[str, Any] | None:
    """The evidence of the newest whole run."""
    found = said.get(row.last_whole.id) if row and row.last_whole else None
    return found and found.content


# Above the cards ------------------------------------------------------------------------------------------


def _facts(rows: Sequence[OverviewRow]) -> None:
    with st.container(horizontal=True, gap="medium"):
        st.markdown(f":material/task_alt: {_last_day(rows)}", width="content")
        st.markdown(f":material/schedule: {_next_run()}", width="content")
        parts.collector()
        channels.proof_line()


def _alerts() -> None:
    """Those that are open, the worst first."""
    found = data.ask(queries.alerts, states=TOLD_STATES, limit=None)
    if not found:
        return
    with st.container(border=True, gap="xsmall"):
        for row in sorted(found, key=incidents.urgency)[:MOST_ALERTS]:
            incidents.link(row)
        if len(found) > MOST_ALERTS:
            parts.onward("alerts", f"{len(found) - MOST_ALERTS} more that stand")


def _last_day(rows: Sequence[OverviewRow]) -> str:
    since = (parts.now() - timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
    closed = [run for run in data.ask(queries.runs, since=since, limit=None) if run.status != "running"]
    if not closed:
        return "No run in the last 24 hours"
    whole = sum(run.status == "whole" for run in closed)
    ended = parts.newest(closed)
    return f"Last 24 hours: **{whole} of {len(closed)}** runs whole" + (
        f", done {ended.astimezone(parts.zone()):%H:%M}" if ended else ""
    )


def _next_run() -> str:
    expected = data.now(queries.next_expected)
    if expected is None:
        return "No run is scheduled"
    return f"Next run {parts.moment(expected.at)} ({plain(expected.schedule)})"


def _notice(suites: Sequence[SuiteRow]) -> None:
    if all(suite.origin == "starter" for suite in suites):
        st.markdown(
            ":small[:material/science: All numbers here come from synthetic starter suites: they compare "
            "backends, they do not speak for your users. `memtrend suite draft` makes a case of "
            "your own of a conversation, `memtrend init` a file to put it in.]"
        )


# Cards ----------------------------------------------------------------------------------------------------


class Shared(NamedTuple):
    """What the cards of a suite share: what runs, what is said by run, and when it is asked again, by
    backend."""

    suite: str
    frame: Frame
    running: Sequence[RunRow]
    said: Mapping[int, VerdictRow]
    asks: Mapping[str, datetime]


def _suite(
    suite: SuiteRow,
    rows: Sequence[OverviewRow],
    running: Sequence[RunRow],
    said: Mapping[int, VerdictRow],
) -> None:
    names = parts.contenders()
    by_backend = {row.backend: row for row in rows}
    dots = [dot for name in names if name in by_backend for dot in _dots(by_backend[name])]
    shared = Shared(suite.name, _frame(dots, len(names)), running, said, _asks(suite.name))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f"**{plain(suite.name)}** :small[:gray[{_line(suite, rows, shared.frame)}]]", width="stretch"
        )
        tables.download("CSV", f"{suite.name}.csv", lambda: _csv(rows), key=f"csv-{suite.name}")
    first = _first(names, by_backend, said)
    _cards(first, by_backend, shared)
    if rest := [name for name in names if name not in first]:
        more = st.expander(_more(rest, by_backend, said), key=f"more-{suite.name}", on_change="rerun")
        if more.open:
            with more:
                _cards(rest, by_backend, shared)


def _cards(names: Sequence[str], by_backend: Mapping[str, OverviewRow], shared: Shared) -> None:
    with st.grid(_columns(len(parts.contenders())), min_column_width=205, gap="small"):
        for name in names:
            with st.container(border=True, gap="xsmall", height="stretch"):
                _card(name, by_backend.get(name), shared)


def _first(
    names: Sequence[str], by_backend: Mapping[str, OverviewRow], said: Mapping[int, VerdictRow]
) -> list[str]:
    """Whose cards are seen at once, each in its place."""
    if len(names) <= MOST_CARDS:
        return list(names)
    loud = [name for name in names if name in by_backend and _is_loud(by_backend[name], said)]
    quiet = [name for name in names if name not in loud]
    shown = [*loud, *quiet[: max(FEWEST_CARDS - len(loud), 0)]]
    return [name for name in names if name in shown]


def _is_loud(row: OverviewRow, said: Mapping[int, VerdictRow]) -> bool:
    broken = row.latest is not None and row.latest.status in words.PROBLEMS
    return broken or _is_silent(row) or verdicts.is_news(_content(row, said))


def _more(names: Sequence[str], by_backend: Mapping[str, OverviewRow], said: Mapping[int, VerdictRow]) -> str:
    """ "15 more: 12 no change seen, 3 no run yet"."""
    states = Counter(
        verdicts.word(_content(by_backend[name], said)) if name in by_backend else "No run yet"
        for name in names
    )
    if len(states) == 1:
        return f"{len(names)} more: {next(iter(states)).lower()}"
    told = ", ".join(f"{n} {state.lower()}" for state, n in states.most_common())
    return f"{len(names)} more: {told}"


def _dots(row: OverviewRow) -> list[Dot]:
    return [Dot(point.started_at, point.mean, point.low, point.high) for point in row.points]


def _csv(rows: Sequence[OverviewRow]) -> pd.DataFrame:
    """What the charts draw, floors among it."""
    styles = parts.styles()
    return tables.lines_frame([Line(row.backend, styles[row.backend], row.points) for row in rows], "pass")


def _asks(suite: str) -> dict[str, datetime]:
    """By backend: when what is suspected of it is looked at again."""
    sections = configuration.settings().suites
    after = time_of((sections[suite].confirm if suite in sections else ConfirmSection()).after)
    owed = data.ask(queries.owed_looks)
    return {look.backend: look.ended_at + after for look in owed if look.suite == suite}


def _columns(backends: int) -> int:
    return min(max(backends, 2), 5)


def _frame(dots: Sequence[Dot], backends: int) -> Frame:
    """One range of time and one height for all cards of a suite, as wide as a card has room for."""
    widths = [dot.high - dot.low for dot in dots if dot.high is not None and dot.low is not None]
    start, end = (choose((dot.at for dot in dots), default=parts.now()) for choose in (min, max))
    columns = _columns(backends)
    return Frame(start, end, sparkline.span(widths), (PAGE_WIDTH - GAP * (columns - 1)) / columns - PADDING)


def _line(suite: SuiteRow, rows: Sequence[OverviewRow], frame: Frame) -> str:
    floors = [
        f"{plain(row.backend)} {words.amount('pass', row.last_whole.metrics['pass'].mean)}"
        for row in rows
        if row.backend not in parts.contenders() and row.last_whole and "pass" in row.last_whole.metrics
    ]
    nights = max((len(row.points) for row in rows), default=0)
    facts = [
        words.origin(suite.origin),
        words.count(suite.cases, "case"),
        f"floors: {', '.join(floors)}" if floors else "floors not measured yet",
        f"{words.count(nights, 'run')} since {parts.day(frame.start)}" if nights else "",
    ]
    height = f", each chart {frame.points:g} points high" if nights else ""
    return " · ".join(filter(None, facts)) + height


def _card(name: str, row: OverviewRow | None, shared: Shared) -> None:
    going = next((run for run in shared.running if (run.suite, run.backend) == (shared.suite, name)), None)
    content, style = _content(row, shared.said), parts.styles()[name]
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(parts.name(style, name), width="content")
        _card_state(row, going, content)
    latest, whole = (row.latest, row.last_whole) if row else (None, None)
    _card_value(latest, whole)
    if row and whole:
        steps = levels.found(row.points, "pass") if verdicts.is_news(content) else []
        image = sparkline.sparkline(_dots(row), style, parts.theme(), shared.frame, steps)
        st.image(image, width="stretch", alt=_alt(shared.suite, name, row))
    if content:
        _card_verdict(name, content, shared)
    with st.container(horizontal=True, vertical_alignment="center", gap="xxsmall"):
        _card_foot(latest, whole, going)
        if content:
            verdicts.numbers(content, f"why-{shared.suite}-{name}", "Why")
        parts.onward("trends", "Trend", suite=shared.suite, backends=name)


def _card_verdict(name: str, content: Mapping[str, Any], shared: Shared) -> None:
    """What changed, in a sentence; how it stands beside the plain vector store, and what the suite could not
    have seen."""
    reference = any(one.name == name and one.type == "dense" for one in data.ask(queries.backends))
    with st.container(gap=None):
        if verdicts.is_news(content):
            st.markdown(f":small[{plain(verdict_words.evidence(content))}]")
        if verdicts.kind(content) == "suspected" and name in shared.asks:
            _card_note(f"asking again {_at(shared.asks[name])}")
        for note in verdict_titles.card_notes(content, reference=reference):
            if note != verdict_titles.turned(content):  # the sentence has it
                _card_note(note)


def _at(when: datetime) -> str:
    """ "at 05:00", with the day when it is another; "now" once it is time."""
    if when <= parts.now():
        return "now"
    same = when.astimezone(parts.zone()).date() == parts.now().date()
    return f"at {when.astimezone(parts.zone()):%H:%M}" if same else f"on {parts.moment(when)}"


def _card_state(row: OverviewRow | None, going: RunRow | None, content: Mapping[str, Any] | None) -> None:
    if row and row.latest and row.latest.status in FAILING:
        st.badge("Collector failing", icon=":material/sensors_off:", color="violet", width="content")
    elif row and row.latest and _is_silent(row) and not going:
        since = f"No data since {parts.day(row.latest.started_at)}"
        st.badge(since, icon=":material/event_busy:", color="violet", width="content")
    elif row and row.latest and row.latest.status == "whole":
        verdicts.show(content)
    elif row and row.latest:
        parts.state(row.latest.status)
    elif going:
        parts.state("running")
    else:
        st.caption("No run yet", width="content")


def _card_value(latest: RunRow | None, whole: RunRow | None) -> None:
    """The newest value; where the newest run does not count, that, and the last value with its date."""
    rolled = whole.metrics.get("pass") if whole else None
    value, note = "–", ""
    if latest is not None and latest.status in words.PROBLEMS:
        value = "no run"
        note = (
            f"{words.amount('pass', rolled.mean)} on {parts.day(whole.started_at)}"
            if whole and rolled
            else ""
        )
    elif rolled:
        value = words.amount("pass", rolled.mean)
        note = f"{words.interval('pass', rolled.low, rolled.high)} · n {rolled.n}"
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.metric("Pass rate", value, label_visibility="collapsed", width="content")
        st.caption(note, width="content")


def _card_foot(latest: RunRow | None, whole: RunRow | None, going: RunRow | None) -> None:
    """What the card rests on, and the way to the cases that failed."""
    if going:
        _card_note(f"running: {going.cases_done} of {going.cases_total} cases")
    elif latest is not None and latest.status in words.PROBLEMS:
        _card_note(latest.reason or words.status(latest.status))
    elif whole and "pass" in whole.metrics:
        rolled = whole.metrics["pass"]
        with st.container(horizontal=True, vertical_alignment="center", gap="xxsmall"):
            st.markdown(f":small[:gray[{parts.day(whole.started_at)}]]", width="content")
            parts.failed(whole.id, f"{rolled.n - round(rolled.mean * rolled.n)} fail")
    else:
        _card_note("waits for its first run")


def _card_note(text: str) -> None:
    st.markdown(f":small[:gray[{plain(text)}]]", width="stretch", wrap=False)


def _alt(suite: str, name: str, row: OverviewRow | None) -> str:
    points = row.points if row else []
    values = (
        f"{words.amount('pass', points[0].mean)} to {words.amount('pass', points[-1].mean)}" if points else ""
    )
    return f"Pass rate of {name} on {suite} over {words.count(len(points), 'run')}: {values}"


page()
