"""How did it go? One metric over time, and below it, on the same axis, what changed and which cases broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import charts, data, highlights, levels, listed, navigation, panels, parts, rings, tables
from dashboard.charts import Extras
from dashboard.curves import Alert, Line
from dashboard.figures import Tick, Window, bare, safe
from dashboard.panels import Around
from dashboard.parts import plain
from dashboard.strips import Cell, Row
from store import queries, verdict_titles, verdict_words, words
from store.queries import ControlRow, EnvironmentChange, LostCase, TrendPoint

RANGES = {"30 d": 30, "90 d": 90, "365 d": 365}
TOGETHER, EACH = "Together", "One each"
ALL_TAGS = "all tags"
OTHERS = (
    *("recall@k", "precision@k", "mrr", "unwanted", "unwanted_first", "recall_ms", "returned_tokens"),
    *("abstained", "error_rate", "first_try_errors", "ndcg@k", "returned_n", "plant_ms", "settle_ms"),
    *("ingest_tokens", "ingest_calls", "money", "attempts", "anchor_drift", "pass"),
)
"""The small multiples, those that are looked at most first."""
PANELS = 6
MOST_ROWS = 24
MOST_BOLD = 3
"""Lines of more backends that are bold leave none that stands out."""
SYMBOLS = {"deploy": "»", "upgrade": "↑", "intended": "⚑"}


class Filters(NamedTuple):
    suite: str
    metric: str
    tag: str
    days: int
    view: str
    backends: list[str]
    highlight: list[str]


def page() -> None:
    suites = [suite.name for suite in data.ask(queries.suites)]
    if not suites:
        parts.nothing_yet(
            "Nothing has been measured yet", "The first run draws the first point.", [parts.FIRST_RUN]
        )
        return
    heading = st.container()
    chosen = _filters(suites)
    window = _window(chosen.days)
    place = _place(window)
    measured = _measured(chosen, _shown(chosen.suite)[: PANELS + 1], window)
    if chosen.metric not in measured:
        measured |= _measured(chosen, [chosen.metric], window)
    points = _of(measured[chosen.metric], chosen.backends)
    broken = _broken(chosen, window.start)
    with heading:
        _title(chosen, points, broken)
    if points:
        said = _said(points)
        bright = _main(chosen, measured[chosen.metric], broken, window, said, place)
        around = Around(chosen.suite, window, _marks(window.start), said, bright)
        _others(chosen, measured, around)
    else:
        with place.container():
            _no_points(chosen)


def _place(window: Window) -> DeltaGenerator:
    """Where the chart will stand. A viewer who comes new has its frame at once, with which the browser loads
    what draws it while the record is asked."""
    place = st.empty()
    if "trend" not in st.session_state:
        place.plotly_chart(charts.blank(window), key="blank", theme=None, config=charts.CONFIG)
    return place


# Filters --------------------------------------------------------------------------------------------------


def _filters(suites: Sequence[str]) -> Filters:
    """One row, without labels to see; the key of each is its name in the address."""
    quiet: dict[str, Any] = {"label_visibility": "collapsed", "bind": "query-params"}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        suite = st.selectbox("Suite", suites, key="suite", width=190, **quiet)
        metrics = data.ask(queries.measured_metrics, suite) or ["pass"]
        metric = st.selectbox("Metric", metrics, key="metric", width=150, **quiet)
        tags = [ALL_TAGS, *(row.tag for row in data.ask(queries.suite_tags, suite))]
        tag = st.selectbox("Tag", tags, key="tag", width=150, **quiet)
        days = st.segmented_control(
            "Range", list(RANGES), default="90 d", key="range", required=True, **quiet
        )
        view = st.segmented_control(
            "View", [TOGETHER, EACH], default=TOGETHER, key="view", required=True, **quiet
        )
        st.space("stretch")
        backends, highlight = _backends(parts.contenders(), quiet)
    return Filters(suite, metric, "" if tag == ALL_TAGS else tag, RANGES[days], view, backends, highlight)


def _backends(names: Sequence[str], quiet: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Which are shown, and, where they are too many to tell apart, which of them stand out."""
    pills: dict[str, Any] = {"default": names, "key": "backends", "selection_mode": "multi", **quiet}
    if len(names) <= highlights.MOST:
        return st.pills("Backends", names, **pills) or list(names), []
    with st.popover(f"{len(names)} backends"):
        shown = st.pills("Backends", names, **pills) or list(names)
    return shown, st.multiselect(
        "Highlight", names, key="highlight", max_selections=highlights.MOST, width=330,
        placeholder="Highlight: those with news", **quiet,
    )  # fmt: skip


def _window(days: int) -> Window:
    """Whole days, so that the questions stay the same for the caches."""
    zone = parts.zone()
    end = parts.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return Window(end - timedelta(days=days), end, zone, parts.theme(), *navigation.room())


def _shown(suite: str) -> list[str]:
    """What the suite is measured by, that which is looked at most first."""
    known = data.ask(queries.measured_metrics, suite)
    return [name for name in ("pass", *OTHERS) if name in known]


def _measured(chosen: Filters, metrics: Sequence[str], window: Window) -> dict[str, list[TrendPoint]]:
    """By metric. Asked for several at once and for all backends, whichever are chosen: to look at another of
    them is answered without the record."""
    found: dict[str, list[TrendPoint]] = {name: [] for name in metrics}
    for point in data.ask(queries.trends, chosen.suite, metrics, tag=chosen.tag, since=window.start):
        found[point.metric].append(point)
    return found


def _of(points: Sequence[TrendPoint], names: Collection[str]) -> list[TrendPoint]:
    return [point for point in points if point.backend in names]


# Title ----------------------------------------------------------------------------------------------------


def _title(chosen: Filters, points: Sequence[TrendPoint], broken: Sequence[Row]) -> None:
    newest = {point.backend: point for point in points}
    standings = [words.Standing(name, point.mean) for name, point in newest.items()]
    counts, news = _told(chosen, newest, Counter(row.backend for row in broken))
    finding = words.trends_title(chosen.suite, chosen.metric, standings, counts, news)
    parts.title(finding, max((point.started_at for point in points), default=None))


def _told(
    chosen: Filters, newest: Mapping[str, TrendPoint], counts: Mapping[str, int]
) -> tuple[dict[str, int], list[str]]:
    """The broken cases to count in the title, by backend, and what else is new: as the verdicts in force say.
    They are of the whole suite, so of a tag nothing is known but the count."""
    if chosen.metric != "pass" or chosen.tag:
        return dict(counts), []
    content = _said(list(newest.values()))
    news = {name: verdict_titles.trend_news(name, content.get(name), counts.get(name, 0)) for name in newest}
    return {name: n for name, n in counts.items() if news.get(name) == ""}, [*filter(None, news.values())]


def _said(points: Sequence[TrendPoint]) -> dict[str, dict[str, Any]]:
    """By backend: the evidence of its newest run, of all metrics of the whole suite."""
    newest = {point.backend: point.run_id for point in points}
    found = data.ask(queries.verdicts, list(newest.values()))
    return {name: found[run_id].content for name, run_id in newest.items() if run_id in found}


def _no_points(chosen: Filters) -> None:
    st.markdown("Choose a longer range or another tag, or ask for a run:")
    st.code(f"memtrend run --suite {chosen.suite}", language="bash", width=720)


# Main chart -----------------------------------------------------------------------------------------------


def _main(
    chosen: Filters,
    measured: Sequence[TrendPoint],
    broken: Sequence[Row],
    window: Window,
    said: Mapping[str, dict[str, Any]],
    place: DeltaGenerator,
) -> set[str]:
    """Draws it in its place, and beneath it what it says in words; gives the backends that stand out."""
    points = _of(measured, chosen.backends)
    ends = [points[0].started_at, points[-1].started_at]
    marks, changes, fitted = _marks(window.start), _changes(chosen, window), charts.fitted(window, ends)
    told = said if chosen.metric == rings.METRIC and not chosen.tag else {}
    lines = _drawn_lines(chosen, measured, broken, told)
    bright = highlights.names(lines, chosen.highlight)
    drawn = highlights.highlighted(lines, bright, window.theme)
    if chosen.view == TOGETHER:
        counts = Counter(row.backend for row in broken)
        extras = Extras(marks, changes, _drawn(broken), counts, _floors(chosen))
        figure = charts.trend(drawn, chosen.metric, fitted, extras)
    else:
        figure = charts.each(lines, chosen.metric, fitted, marks)
    with place.container():
        _first_day(chosen, points)
        if window.narrow:
            parts.key({line.name: line.style for line in drawn if not line.muted})
        st.plotly_chart(
            figure, key="trend", on_select=_opened, selection_mode="points", theme=None, config=charts.CONFIG,
            alt=charts.alt(f"{words.label(chosen.metric)} of {chosen.suite}", lines, chosen.metric),
        )  # fmt: skip
    name = f"{chosen.suite}-{chosen.metric}.csv"
    tables.beneath(_legend(chosen, broken, lines), name, lambda: tables.lines_frame(lines, chosen.metric))
    listed.news(drawn, told)
    dated = [*marks, *(change._replace(text=bare(change.text)) for change in changes)]
    listed.everything(lines, chosen.metric, told, _drawn(broken), dated)
    return bright


def _drawn_lines(
    chosen: Filters, measured: Sequence[TrendPoint], broken: Sequence[Row], said: Mapping[str, dict[str, Any]]
) -> list[Line]:
    """With what is known of each, and of the frozen releases that ran beside them."""
    points = _of(measured, chosen.backends)
    alerts = _rings(chosen, points)
    counts = Counter(row.backend for row in broken)
    bold = {name for name, _ in counts.most_common(MOST_BOLD)} | alerts.keys()
    own = [
        line._replace(
            levels=levels.found(line.points, chosen.metric),
            alerts=alerts.get(line.name, ()),
            note=verdict_words.short(said[line.name]) if line.name in said else "",
        )
        for line in _lines(points, chosen.backends, bold)
    ]
    return [*own, *_controls(chosen, measured)]


def _first_day(chosen: Filters, points: Sequence[TrendPoint]) -> None:
    """Says why the axis shows hours where days were chosen."""
    first, last = (points[place].started_at.astimezone(parts.zone()) for place in (0, -1))
    if told := words.first_day(first, last, parts.now(), chosen.days):
        st.markdown(f":material/hourglass_top: :small[{plain(told)}]")


def _drawn(broken: Sequence[Row]) -> list[Row]:
    """As many rows as can be read, in the order that they have: those that broke last."""
    last = sorted(broken, key=_fell)[-MOST_ROWS:]
    return [row for row in broken if row in last]


def _lines(points: Sequence[TrendPoint], names: Sequence[str], bold: set[str]) -> list[Line]:
    styles = parts.styles()
    known = {name: found for name, found in _by_backend(points, names).items() if found}
    return [Line(name, styles[name], found, name in bold or len(known) == 1) for name, found in known.items()]


def _by_backend(points: Sequence[TrendPoint], names: Sequence[str]) -> dict[str, list[TrendPoint]]:
    found: dict[str, list[TrendPoint]] = {name: [] for name in names}
    for point in points:
        found[point.backend].append(point)
    return found


def _controls(chosen: Filters, measured: Sequence[TrendPoint]) -> list[Line]:
    """The frozen releases that ran beside the backends, each as a line of its own."""
    known = [one for one in data.ask(queries.controls) if one.backend in chosen.backends]
    of = {one.name: one for one in known}
    return [
        line._replace(name=_label(of[line.name], known), bold=False, control=of[line.name].backend)
        for line in _lines(_of(measured, of), list(of), set())
    ]


def _label(control: ControlRow, known: Sequence[ControlRow]) -> str:
    """ "control mem0ai 2.0.0", of which backend only where two have the same."""
    alike = sum(one.release == control.release for one in known) > 1
    of = f" of {control.backend}" if alike else ""
    return f"control {verdict_words.release(control.release)}{of}"


def _rings(chosen: Filters, points: Sequence[TrendPoint]) -> dict[str, list[Alert]]:
    """By backend. Verdicts are of the whole suite, so of a tag there are none."""
    if chosen.metric != rings.METRIC or chosen.tag:
        return {}
    return rings.found(chosen.suite, _by_backend(points, chosen.backends))


def _opened() -> None:
    """A point opens its run, a square its case, a ring its alert."""
    for point in st.session_state.trend.selection.points:
        opened = point["customdata"]
        run_id, *case = opened if isinstance(opened, list) else [opened]
        if len(case) == 2 and isinstance(case[1], str):
            navigation.go("case", case=case[0], run=run_id)
        elif len(case) == 1:
            navigation.go("alert", alert=case[0])
        else:
            navigation.go("run", run=run_id)


def _marks(since: datetime) -> list[Tick]:
    return [
        Tick(mark.at, mark.text, SYMBOLS.get(mark.kind, "•")) for mark in data.ask(queries.marks, since=since)
    ]


def _floors(chosen: Filters) -> dict[str, float]:
    """How far a floor has drifted is nothing to be compared with."""
    if chosen.metric in words.DRIFTS:
        return {}
    found = data.ask(queries.floors, chosen.suite, chosen.metric, tag=chosen.tag)
    return {name: rolled.mean for name, rolled in found.items()}


def _changes(chosen: Filters, window: Window) -> list[Tick]:
    """Environment changes, those of one moment together."""
    found = data.ask(queries.environment_changes, chosen.suite, since=window.start)
    nights: dict[tuple[datetime, tuple[str, ...]], list[EnvironmentChange]] = {}
    for change in (change for change in found if change.backend in chosen.backends):
        told = tuple(
            f"{safe(name)}: {safe(str(old))} → {safe(str(new))}" for name, old, new in change.changes
        )
        night = change.at.astimezone(window.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        nights.setdefault((night, told), []).append(change)
    return [_change(told, changes) for (_, told), changes in nights.items()]


def _change(told: Sequence[str], changes: Sequence[EnvironmentChange]) -> Tick:
    names = words.listed(sorted({change.backend for change in changes}))
    more = [f"and {len(told) - 8} more"] if len(told) > 8 else []
    return Tick(
        min(change.at for change in changes), "<br>".join([f"<b>{safe(names)}</b>", *told[:8], *more])
    )


# Broken cases ---------------------------------------------------------------------------------------------


def _broken(chosen: Filters, since: datetime) -> list[Row]:
    """The cases that had passed in the range and fail now, a backend's together, the first to break on
    top."""
    asked = {
        case.name for case in data.ask(queries.suite_cases, chosen.suite) if chosen.tag in ("", *case.tags)
    }
    lost = data.ask(queries.lost_cases, chosen.suite, backends=parts.contenders(), since=since)
    rows = [_row(case) for case in lost if case.case in asked and case.backend in chosen.backends]
    order = {name: place for place, name in enumerate(chosen.backends)}
    return sorted(rows, key=lambda row: (order[row.backend], _fell(row)))


def _row(case: LostCase) -> Row:
    cells = [Cell(*outcome) for outcome in case.outcomes]
    return Row(case.case, case.backend, parts.styles()[case.backend], cells)


def _fell(row: Row) -> datetime:
    """Since when it has failed without a pass between."""
    last_pass = max(
        (cell.at for cell in row.cells if cell.passes == cell.trials > 0), default=row.cells[0].at
    )
    return min((cell.at for cell in row.cells if cell.at > last_pass), default=last_pass)


def _legend(chosen: Filters, broken: Sequence[Row], lines: Sequence[Line]) -> str:
    bounded = any(point.low is not None for line in lines for point in line.points)
    shaded = {
        EACH: "Shaded: 95 % interval; every panel has the same height in points, around its own middle.",
        TOGETHER: _shaded(bool(broken), charts.banded(lines), bounded),
    }[chosen.view]
    squares = "a square for its case" if broken and chosen.view == TOGETHER else ""
    clicks = " and ".join(filter(None, ["Click a point for its run", squares]))
    kinds = "⚑ intended change, » deploy, ↑ upgrade."
    drawn = (
        f"Of {len(broken)} broken cases the {MOST_ROWS} that broke last are drawn. "
        if len(broken) > MOST_ROWS
        else ""
    )
    level = "Thick: level between two changes. " if any(line.levels for line in lines) else ""
    control = (
        "Grey dashes: the control, a frozen release run in the same hours. "
        if any(line.control for line in lines)
        else ""
    )
    ring = (
        "Ring: the first night told worse, with the number of its alert. "
        if any(line.alerts for line in lines)
        else ""
    )
    gaps = "Not smoothed; a gap is a time without a whole run."
    return f"{shaded} {level}{ring}{control}{drawn}{gaps} {kinds} {clicks}."


def _shaded(broken: bool, banded: bool, bounded: bool) -> str:
    bold = "a backend that fails cases which it had passed."
    if not bounded:
        return f"Bold: {bold}" if broken else ""
    if banded:
        return f"Shaded, or a bar: 95 % intervals.{f' Bold: {bold}' if broken else ''}"
    fewer = f"With {charts.MOST_BANDS} backends or fewer every line has one."
    return f"Bold, with its 95 % interval: {bold} {fewer}" if broken else f"Intervals are left out. {fewer}"


# Other metrics --------------------------------------------------------------------------------------------


def _others(chosen: Filters, measured: Mapping[str, Sequence[TrendPoint]], around: Around) -> None:
    names = [name for name in _shown(chosen.suite) if name != chosen.metric]
    if not names:
        return
    first = _series(chosen, {name: measured[name] for name in names[:PANELS]}, around)
    with parts.heading("Other metrics"):
        tables.download("CSV", f"{chosen.suite}-metrics.csv", lambda: panels.frame(first))
    panels.grid(first, around)
    if len(names) > PANELS:
        more = st.expander(f"{len(names) - PANELS} more metrics", on_change="rerun", key="more")
        if more.open:
            with more:
                panels.grid(_series(chosen, _measured(chosen, names[PANELS:], around.window), around), around)


def _series(
    chosen: Filters, measured: Mapping[str, Sequence[TrendPoint]], around: Around
) -> dict[str, list[Line]]:
    """By metric, the lines of the backends chosen."""
    of = {
        name: _lines(_of(every, chosen.backends), chosen.backends, set()) for name, every in measured.items()
    }
    return {
        name: highlights.highlighted(lines, around.bright, around.window.theme) for name, lines in of.items()
    }


page()
