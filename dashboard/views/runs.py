"""What happened? What runs now, what was asked for, and every run there was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import data, navigation, parts, tables
from dashboard.parts import plain
from store import health_words, queries, words, writes
from store.queries import RunFilter, RunRow
from store.records import RequestRow

PAGE = 20
ANY = "any state"
STATES = ("whole", "running", *words.PROBLEMS)
OPEN_REQUESTS = ("queued", "claimed")
COMMANDS = (
    parts.FIRST_RUN,
    ("Or write a configuration and three cases of your own to begin with", "memtrend init"),
    ("Or see a full record before connecting anything", "memtrend demo"),
)
KEPT_REQUESTS = timedelta(minutes=10)


def page() -> None:
    heading = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    live = bool(data.now(queries.progress) or _open_requests())
    st.fragment(_live, run_every=1.5 if live else 5)(live)
    chosen = _filters() if data.ask(queries.count_runs) else RunFilter()
    total = data.ask(queries.count_runs, **chosen)
    with heading:  # above all: the tools of the table appear where its last filter ends
        _title()
        _run_now()
    if not total:
        _empty(chosen)
        return
    slot = st.empty()
    shown, ways = _pager(total, chosen)
    rows = data.ask(queries.runs, **chosen, limit=PAGE, offset=(shown - 1) * PAGE)
    with slot:
        _table(rows)
    with ways:
        names = [f"run {row.id}: {row.backend} on {row.suite}" for row in rows]
        tables.opener("Or open one by name", names, "open-run", _open)


def _title() -> None:
    since = (parts.now() - timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
    recent = data.ask(queries.runs, since=since, limit=None)
    newest = next(iter(recent or data.ask(queries.runs, limit=1)), None)
    closed = Counter(run.status for run in recent if run.status != "running")
    running = len(data.now(queries.progress))
    said = data.ask(queries.verdicts, [run.id for run in recent])
    worse = sum(row.content["verdict"] == "worse" for row in said.values())
    finding = words.runs_title(closed, running, newest and parts.day(newest.started_at), worse)
    parts.title(finding, parts.newest(recent) or (newest and newest.started_at))


def _empty(chosen: RunFilter) -> None:
    if any(chosen.values()):
        st.markdown("No run fits these filters.")
        return
    st.markdown("The first run appears here while it goes on. In a terminal:")
    parts.steps(COMMANDS)


# Running and asked for ------------------------------------------------------------------------------------


def _live(was_live: bool) -> None:
    running = data.now(queries.progress)
    waiting = _open_requests()
    if bool(running or waiting) != was_live:
        st.rerun()
    for run in running:
        parts.live(run)
    for request in [*waiting, *_failed_requests()]:
        _request(request)
    parts.problems()
    if waiting and not health_words.is_alive(parts.heartbeat_age()):
        st.warning(
            "No collector is running, so this waits. Start one: `memtrend collect`",
            icon=":material/heart_broken:",
        )


def _open_requests() -> list[RequestRow]:
    return data.now(queries.requests, states=OPEN_REQUESTS)


def _failed_requests() -> list[RequestRow]:
    failed = data.now(queries.requests, states=["failed"], limit=5)
    return [row for row in failed if row.finished_at and parts.now() - row.finished_at < KEPT_REQUESTS]


def _request(request: RequestRow) -> None:
    told = [request.payload.get(key) for key in ("suite", "backend")]
    what = " · ".join(map(str, filter(None, told))) or f"run {request.payload.get('run', '')} once more"
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(request.kind.capitalize())}** {plain(what)}", width="content")
        if request.state == "failed":
            st.badge("Failed", icon=":material/error:", color="violet", width="content")
        else:
            st.badge(
                request.state.capitalize(), icon=":material/hourglass_top:", color="blue", width="content"
            )
        st.caption(
            f"asked by {plain(request.author)}, {words.ago(request.created_at, parts.now())}", width="content"
        )
        if request.error:
            st.text(request.error)


# Filters --------------------------------------------------------------------------------------------------


def _filters() -> RunFilter:
    quiet: dict[str, Any] = {"label_visibility": "collapsed", "bind": "query-params"}
    suites = [suite.name for suite in data.ask(queries.suites)]
    backends = [backend.name for backend in data.ask(queries.backends)]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        suite = st.selectbox("Suite", [tables.ALL_SUITES, *suites], key="suite", width=170, **quiet)
        names = st.pills("Backends", backends, key="backends", selection_mode="multi", **quiet)
        state = st.selectbox("State", [ANY, *STATES], key="state", width=130, **quiet)
        text = st.text_input("Search", key="q", placeholder="run, trigger, commit", width=170, **quiet)
    return RunFilter(
        suites=None if suite == tables.ALL_SUITES else [suite],
        backends=list(names) or None,
        statuses=None if state == ANY else [state],
        text=text.strip() or None,
    )


def _run_now() -> None:
    if not data.may_write():
        st.caption(
            "Read only here", width="content", help="Set writes = true under [dashboard] to ask for runs."
        )
        return
    suites, backends = _to_ask_for()
    with st.popover(
        "Run now", icon=":material/play_arrow:", type="primary", disabled=not (suites and backends)
    ):
        suite = st.selectbox("Suite", suites, key="ask-suite")
        backend = st.selectbox("Backend", backends, key="ask-backend")
        trials = st.number_input(
            "Trials", 1, 20, 1, key="ask-trials", help="Each trial plants and asks anew."
        )
        st.button("Ask the collector", type="primary", on_click=_ask, args=(suite, backend, int(trials)))


def _to_ask_for() -> tuple[list[str], list[str]]:
    """Suites, and backends; a control runs beside its backend, and never by itself."""
    backends = [row.name for row in data.ask(queries.backends) if not row.control_of]
    return [row.name for row in data.ask(queries.suites)], backends


def _ask(suite: str, backend: str, trials: int) -> None:
    """The options of a widget bind only the browser: what is asked for is checked against the record."""
    suites, backends = _to_ask_for()
    if data.may_write() and suite in suites and backend in backends:
        payload = {"suite": suite, "backend": backend, "trials": trials}
        writes.add_request(data.database(), "run", payload, author="local")


# Table ----------------------------------------------------------------------------------------------------


def _pager(total: int, chosen: RunFilter) -> tuple[int, DeltaGenerator]:
    """The page that is shown, and the place beside the note for other ways into a run."""
    pages = max((total + PAGE - 1) // PAGE, 1)
    with st.container(horizontal=True, vertical_alignment="center"):
        note, ways = st.empty(), st.container(width="content")
        st.space("stretch")
        tables.download("Runs as CSV", "runs.csv", lambda: _every(chosen))
        shown = st.pagination(pages, key="page", bind="query-params", width=330) if pages > 1 else 1
    first = (shown - 1) * PAGE + 1
    span = f"{first} to {min(first + PAGE - 1, total)} of {words.count(total, 'run')}"
    note.caption(f"{span}. A click on a row opens the run.", width="content")
    return int(shown), ways


def _every(chosen: RunFilter) -> pd.DataFrame:
    """Every run that fits the filters, not those of this page alone."""
    rows = data.now(queries.runs, **chosen, limit=None)
    return tables.runs_csv(rows, data.now(queries.verdicts, [row.id for row in rows]))


def _table(rows: Sequence[RunRow]) -> None:
    st.session_state["_run_ids"] = [row.id for row in rows]
    said = data.ask(queries.verdicts, [row.id for row in rows])
    st.dataframe(
        tables.runs_frame(rows, said), key="runs", hide_index=True, height="content", on_select=_opened,
        selection_mode="single-cell", placeholder="–", column_config=tables.runs_columns(said),
        column_order=tables.narrow_runs() if navigation.is_narrow() else None,
    )  # fmt: skip


def _opened() -> None:
    place = tables.clicked("runs")
    if place is not None:
        _open(place)


def _open(place: int) -> None:
    navigation.go("run", run=st.session_state["_run_ids"][place])


page()
