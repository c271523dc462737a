"""Why? One case: how it fared on every backend, what it asks, what came back, where the answer was lost.

The address names `case`, and the suite by `suite` or by the suite of `run`. Links from pages that keep a
filter `suite` give the run alone: Streamlit drops a parameter whose name was a filter on the page before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby

import pandas as pd
import streamlit as st

from dashboard import axes, charts, data, incidents, listed, lost_cases, navigation, parts, stories, tables
from dashboard.figures import Tick, Window
from dashboard.parts import plain
from dashboard.strips import Cell, Row
from store import queries, trial_words, words
from store.alert_life import STANDING_STATES
from store.queries import Again, CaseResult, CaseVersion, HistoryPoint, RunRow

BESIDE = 6
"""Answers of other backends that are seen at once; the rest are a click away."""

TONES: dict[str, tuple[str, parts.Colour]] = {
    "wanted": ("wanted", "green"),
    "unwanted": ("unwanted", "orange"),
}
LIMIT: tuple[str, parts.Colour] = ("limit", "gray")


def page() -> None:
    asked = data.asked_run()
    suite = st.query_params.get("suite", "") or (asked.suite if asked else "")
    name = st.query_params.get("case", "")
    versions = data.ask(queries.case, suite, name)
    if not versions:
        _unknown()
        return
    history = data.ask(queries.case_history, suite, name)
    facts = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    with facts:
        back, text = st.empty(), st.empty()
        st.space("stretch")
        onward = st.empty()
        backend = _backend(history, asked)
    run = asked if asked and asked.backend == backend else _newest_run(history, backend)
    version = _version(versions, history, run)
    results = data.ask(queries.case_results, version.case_id, run.id) if run else []
    beside = dict.fromkeys([*parts.contenders(), backend])
    again = data.ask(queries.asked_again, suite, name)
    rows = [_row(of, [point for point in history if point.backend == of], again) for of in beside]
    if run:
        back.page_link(
            "views/run.py",
            label=f"Run {run.id}",
            icon=":material/arrow_back:",
            query_params={"run": str(run.id)},
        )
        with onward:
            lost_cases.onward(run, name)
    text.markdown(_facts(version, run, _tried(history, run, again)), width="content")
    _title(backend, history, results, run)
    _alerts(suite, name, backend)
    _history(name, [row for row in rows if row.cells], history, suite, backend)
    with st.grid(2, min_column_width=420, gap="medium"):
        left, right = st.container(), st.container()
    with left:
        _story(version)
        _diagnosis(results, version.k)
    with right:
        _came_back(version, results, run, history, backend)
    _elsewhere(version, history, backend)


def _unknown() -> None:
    parts.title("There is no such case", None)
    st.markdown("The address names none, or one that this record does not hold. Choose one:")
    whole = data.ask(queries.runs, backends=parts.contenders(), statuses=["whole"], limit=1)
    for run in whole:
        what = f"{plain(run.backend)} on {plain(run.suite)}"
        label = f"Those that failed in run {run.id}, the newest whole one: {what}"
        parts.failed(run.id, label)
    parts.onward("suites", "All cases, by suite")


def _backend(history: Sequence[HistoryPoint], asked: RunRow | None) -> str:
    """The one in the address, else that of the run in the address, else the first that fails the case now.
    Floors and controls are there to choose where the address names them."""
    names = [backend.name for backend in data.ask(queries.backends)]
    asked_of = {point.backend for point in history}
    named = {st.query_params.get("backend"), asked and asked.backend, *parts.contenders()}
    shown = [name for name in names if name in named]
    failing = [name for name in shown if name in asked_of and _fails(history, name)]
    start = asked.backend if asked else next(iter(failing or shown), "")
    return st.segmented_control(
        "Backend", shown, default=start, key="backend", bind="query-params", required=True,
        label_visibility="collapsed",
    )  # fmt: skip


def _fails(history: Sequence[HistoryPoint], backend: str) -> bool:
    newest = [point for point in history if point.backend == backend][-1]
    return newest.passes < newest.trials


def _newest_run(history: Sequence[HistoryPoint], backend: str) -> RunRow | None:
    ids = [point.run_id for point in history if point.backend == backend]
    return data.ask(queries.run, ids[-1]) if ids else None


def _version(
    versions: Sequence[CaseVersion], history: Sequence[HistoryPoint], run: RunRow | None
) -> CaseVersion:
    """The case as the run asked it."""
    asked = next((point.hash for point in history if run and point.run_id == run.id), None)
    return next((version for version in versions if version.hash == asked), versions[0])


# Above ----------------------------------------------------------------------------------------------------


def _row(name: str, points: Sequence[HistoryPoint], again: Mapping[int, Again]) -> Row:
    cells = [
        Cell(
            p.run_id, p.started_at, p.passes, 0 if p.status in ("error", "skipped") else p.trials,
            trial_words.asked_again(*again[p.run_id]) if p.run_id in again else "",
        )
        for p in points
    ]  # fmt: skip
    return Row("", name, parts.styles()[name], cells, _streak(points).words)


def _tried(history: Sequence[HistoryPoint], run: RunRow | None, again: Mapping[int, Again]) -> str:
    """How it fared in all trials of the run, those that asked again in doubt among them."""
    point = next((point for point in history if run and point.run_id == run.id), None)
    if point is None or point.status != "ok":
        return ""
    more = again.get(point.run_id, Again(0, 0))
    return trial_words.trials(point.passes + more.passes, point.trials + more.trials)


def _streak(points: Sequence[HistoryPoint]) -> words.Streak:
    if points and all(point.status == "skipped" for point in points):
        return words.INAPPLICABLE
    judged = [point for point in points if point.status == "ok"]
    if not judged and any(point.status == "error" for point in points):
        return words.ERRORED
    zone = parts.zone()
    return words.streak(
        [(p.started_at.astimezone(zone), 2 * p.passes > p.trials) for p in judged], parts.now()
    )


def _facts(version: CaseVersion, run: RunRow | None, tried: str) -> str:
    facts = [
        plain(version.name),
        plain(version.suite),
        plain(", ".join(version.tags)),
        "**critical**" if version.critical else "not critical",
        tried,
        f"run {run.id}, {parts.moment(run.started_at)}" if run else "not asked yet",
    ]
    return f":small[:gray[{' · '.join(filter(None, facts))}]]"


def _title(
    backend: str, history: Sequence[HistoryPoint], results: Sequence[CaseResult], run: RunRow | None
) -> None:
    streaks = {
        name: _streak([point for point in history if point.backend == name])
        for name in {backend, *parts.contenders()}
    }
    own = streaks.pop(backend)
    failure = next((result.failure for result in results if result.failure), None)
    parts.title(words.case_title(backend, own, failure, list(streaks.values())), run and run.started_at)


def _alerts(suite: str, name: str, backend: str) -> None:
    """Those that stand and name it."""
    found = data.ask(queries.alerts, suite=suite, backend=backend, states=STANDING_STATES, limit=None)
    for row in found:
        if name in row.incident.cases:
            incidents.link(row)


# History --------------------------------------------------------------------------------------------------


def _history(
    name: str, rows: Sequence[Row], history: Sequence[HistoryPoint], suite: str, backend: str
) -> None:
    if not rows:
        return
    shown = [point for point in history if any(row.backend == point.backend for row in rows)]
    times = sorted(point.started_at for point in shown)
    steps = [axes.usual_step([cell.at for cell in row.cells]) for row in rows]
    margin = min(max(steps) / 2, timedelta(days=1))
    window = Window(times[0] - margin, times[-1] + margin, parts.zone(), parts.theme(), *navigation.room())
    own = [point.started_at for point in history if point.backend == backend]
    told = "; ".join(f"{row.backend}: {row.words}" for row in rows)
    figure = charts.history(rows, window, _changes(suite, backend, own or times))
    if window.narrow:
        parts.key({row.backend: row.style for row in rows})
    st.plotly_chart(
        figure, key="history", on_select=_opened, selection_mode="points", theme=None, config=charts.CONFIG,
        alt=f"Outcome of the case in every run. {told}",
    )  # fmt: skip
    tables.beneath(_history_note(shown, backend, window.theme.mode), f"{name}.csv", lambda: _csv(shown))
    listed.history(name, rows)


def _csv(history: Sequence[HistoryPoint]) -> pd.DataFrame:
    """A row a run and backend."""
    return pd.DataFrame(
        [
            {**point._asdict(), "started_at": point.started_at.isoformat(timespec="seconds")}
            for point in history
        ]
    )


def _changes(suite: str, backend: str, times: Sequence[datetime]) -> list[Tick]:
    """What changed in the environment of the backend looked at: the first suspects. Each stands where the
    cell of the first run that had it begins."""
    changes = data.ask(queries.environment_changes, suite, backends=[backend], since=times[0])
    half = axes.usual_step(times) / 2
    return [Tick(change.at - half, words.environment_news(change.changes)) for change in changes]


def _history_note(history: Sequence[HistoryPoint], backend: str, mode: str) -> str:
    failed, passed = ("Dark", "Light") if mode == "light" else ("Bright", "Dim")
    versions = [hash_ for hash_, _ in groupby(point.hash for point in history)]
    same = (
        "The question was the same in all of them."
        if len(set(versions)) == 1
        else (f"The question was edited meanwhile: {len(set(versions))} versions of it are shown together.")
    )
    runs = words.count(len({point.run_id for point in history}), "run")
    lines = f"Dated lines: what changed in the environment of {plain(backend)}."
    colours = f"{failed}: failed. {passed}: passed. {runs}, a gap where there was no answer."
    return f"{colours} {same} {lines} A click on a failure opens it."


def _opened() -> None:
    for point in st.session_state.history.selection.points:
        navigation.go("case", case=st.query_params.get("case", ""), run=point["customdata"][0])


# What it asks ---------------------------------------------------------------------------------------------


def _story(version: CaseVersion) -> None:
    st.subheader("The story", anchor=False)
    with st.container(border=True, gap="small"):
        for line in stories.told(version.story):
            _line(line.when, line.text, line.where)
        _line("asked", version.query, stories.question(version.story), strong=True)
        for one in stories.expected(version.story):
            _expectation(one)
    if version.source:
        st.caption(plain(f"Source: {version.source}"))


def _line(when: str, text: str, where: str = "", strong: bool = False) -> None:
    date, told = st.columns([1, 4.6], gap="small")
    date.caption(plain(when))
    with told.container(gap=None):
        if strong:
            st.markdown(f"**{plain(text)}**")
        else:
            st.text(text)
        if where:
            st.caption(plain(where))


def _expectation(one: stories.Expected) -> None:
    tone, told = st.columns([1, 4.6], gap="small")
    word, color = TONES.get(one.tone, LIMIT)
    tone.badge(word, color=color)
    told.markdown(f":small[:gray[{plain(one.rule)}]] {' '.join(map(parts.code, one.items))}")


# What came back -------------------------------------------------------------------------------------------


def _came_back(
    version: CaseVersion,
    results: Sequence[CaseResult],
    run: RunRow | None,
    history: Sequence[HistoryPoint],
    backend: str,
) -> None:
    st.subheader("What came back", anchor=False)
    if not results or run is None:
        taken = words.removed(data.ask(queries.removals, run.id)) if run else ""
        st.markdown(
            f"Run {run.id}: {taken}." if run and taken else f"{plain(backend)} has not been asked this."
        )
        return
    passed = _last_pass(history, backend, run)
    if passed is None:
        for result in results:
            _answer(version, result, run)
        return
    with st.grid(2, min_column_width=230, gap="small"):
        before, now = st.container(), st.container()
    with before:
        _answer(version, data.ask(queries.case_results, version.case_id, passed.id)[0], passed)
    with now:
        for result in results:
            _answer(version, result, run)


def _last_pass(history: Sequence[HistoryPoint], backend: str, run: RunRow) -> RunRow | None:
    """For a lost case, the last run before in which it passed, asked the same, with its answer kept."""
    this = next((point for point in history if point.run_id == run.id), None)
    if this is None or this.passes == this.trials:
        return None
    passed = [
        point.run_id
        for point in history
        if (point.backend, point.hash) == (backend, this.hash)
        and point.started_at < this.started_at
        and point.passes == point.trials
    ]
    return data.ask(queries.run, passed[-1]) if passed else None


def _answer(version: CaseVersion, result: CaseResult, run: RunRow, of: str = "") -> None:
    """`of`: whose it is, where that is told."""
    with st.container(border=True, gap="xsmall", height="stretch" if of else "content"):
        if of:
            st.markdown(parts.name(parts.styles()[of], of))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            trial = f", trial {result.trial}" if run.trials > 1 else ""
            st.markdown(f"**{parts.day(run.started_at)}** :gray[run {run.id}{trial}]", width="content")
            _outcome(result)
        if result.failure:
            st.markdown(f":orange[{plain(result.failure)}]")
        for kind in ("error", "skipped", "reply"):
            if result.detail.get(kind):
                st.caption({"skipped": "not applicable: the backend lacks"}.get(kind, kind))
                st.text(str(result.detail[kind]))
        hits = stories.returned(result.detail, version.k)
        _hits(hits)
        if not hits and result.status != "skipped":
            st.caption(_why_nothing(result, run))
        _cost(result)


def _why_nothing(result: CaseResult, run: RunRow) -> str:
    if result.status == "error":
        return words.ERRORED.words
    if taken := words.removed(data.ask(queries.removals, run.id)):
        return f"Its {taken}."
    return "The answer was not kept." if result.returned_n else "Nothing came back."


def _outcome(result: CaseResult) -> None:
    if result.status == "error":
        st.badge("error", color="violet", width="content")
    elif result.status == "skipped":
        st.badge("not applicable", color="gray", width="content")
    elif result.scores.get("pass", 0) > 0.5:
        st.badge("passed", color="green", width="content")
    else:
        st.badge("failed", color="red", width="content")


def _hits(hits: Sequence[stories.Returned]) -> None:
    for hit in hits:
        with st.container(horizontal=True, gap="small"):
            st.caption(str(hit.rank), width=20)
            with st.container(gap=None, width="stretch"):
                st.text(hit.text)
                if hit.tone:
                    word, color = TONES[hit.tone]
                    st.badge(word if hit.within else f"{word}, beyond k", color=color)
            st.caption("" if hit.score is None else f"{hit.score:.3g}", width=36)


def _cost(result: CaseResult) -> None:
    took = f"{words.amount('recall_ms', result.latency_ms)}" if result.latency_ms is not None else ""
    calls = words.count(result.attempts, "call")
    st.caption(
        " · ".join(
            filter(
                None, [took, calls, f"{result.returned_n} returned" if result.returned_n is not None else ""]
            )
        )
    )


def _diagnosis(results: Sequence[CaseResult], k: int) -> None:
    found = stories.newest_first([result.detail for result in results])
    lines = stories.diagnosis(found)
    if not lines:
        return
    st.subheader("Diagnosis", anchor=False)
    if told := stories.summary(found, k):
        st.markdown(plain(told))
    marks = {True: ":material/check:", False: ":material/close:", None: ":material/search:"}
    table = [
        {"Asked again": f"{marks[line.good]} {plain(line.what)}", "Found": plain(line.found)}
        for line in lines
    ]
    st.table(table, border="horizontal", hide_index=True)


def _elsewhere(version: CaseVersion, history: Sequence[HistoryPoint], backend: str) -> None:
    """The newest answers of the other backends to the same question, beside each other."""
    newest = {
        point.backend: point for point in history if point.backend != backend and point.hash == version.hash
    }
    shown = [newest[name] for name in parts.contenders() if name in newest]
    if not shown:
        return
    st.subheader("The same case elsewhere", anchor=False)
    _beside(version, shown[:BESIDE])
    if rest := shown[BESIDE:]:
        more = st.expander(f"{len(rest)} more backends", key="elsewhere", on_change="rerun")
        if more.open:
            with more:
                _beside(version, rest)


def _beside(version: CaseVersion, points: Sequence[HistoryPoint]) -> None:
    """Of a run of several trials the first that was lost, else the first."""
    with st.grid(min(max(len(points), 2), 4), min_column_width=280, gap="small"):
        for point in points:
            run = data.ask(queries.run, point.run_id)
            results = data.ask(queries.case_results, version.case_id, point.run_id)
            if run and results:
                told = next((one for one in results if one.failure), results[0])
                _answer(version, told, run, point.backend)


page()
