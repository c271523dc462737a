"""What must I do? What is wrong and who has it, what is over, whether the alarms are right, who was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from dashboard import alert_tables, channel_actions, channels, data, incidents, navigation, parts, tables
from store import alert_titles, alert_words, queries, words
from store.alert_kinds import KINDS
from store.alert_life import STANDING_STATES, TOLD_STATES
from store.queries import AlertRow

MOST_ROWS = 12
"""Alerts that stand and are drawn as rows; further ones are in a table."""
MOST = 500
ALL_KINDS, ALL_SUITES, ALL_OWNERS = "all kinds", "all suites", "all owners"
COMMANDS = (
    ("Run the suites and watch what comes of them", "memtrend up"),
    ("See that a channel takes a message", "memtrend alerts test CHANNEL"),
    ("Put a fault into a backend and wait until the alarm has arrived", "memtrend alerts proof"),
)


class Filters(NamedTuple):
    states: list[str]
    kind: str
    backend: str
    suite: str
    owner: str

    @property
    def any(self) -> bool:
        return any(self)


def page() -> None:
    counts = data.ask(queries.count_alerts)
    if not counts:
        _empty()
        return
    st.fragment(_watch, run_every=10)(counts)
    _page()


def _watch(counts: Mapping[str, int]) -> None:
    """Draws the page again, and the number in its tab, once an alert opened or closed meanwhile."""
    if data.ask(queries.count_alerts) != counts:
        st.rerun()


def _empty() -> None:
    text = "An alert opens when a run shows that something got worse, and a later look bears it out."
    parts.nothing_yet(alert_titles.alerts_title([], 0), text, COMMANDS)
    channels.proof_line()
    channel_actions.buttons()
    channels.channels()


def _page() -> None:
    _title()
    chosen = _filters()
    rows = _rows(chosen)
    standing = [row for row in rows if row.incident.state in STANDING_STATES]
    told = sorted((row for row in standing if row.incident.state in TOLD_STATES), key=incidents.urgency)
    _told(told, chosen)
    _suspicions([row for row in standing if row not in told])
    _closed([row for row in rows if row.incident.state not in STANDING_STATES])
    if len(rows) == MOST:
        st.caption(f"No more than {MOST} are shown; the filters narrow them, `memtrend alerts list` has all.")
    _trust()


def _title() -> None:
    standing = data.ask(queries.holders)
    over = sum(n for state, n in data.ask(queries.count_alerts).items() if state not in STANDING_STATES)
    newest = parts.newest(row.last_whole for row in data.ask(queries.overview))
    parts.title(alert_titles.alerts_title(standing, over), newest)


# Filters --------------------------------------------------------------------------------------------------


def _filters() -> Filters:
    """One row, without labels to see; the key of each is its name in the address."""
    quiet: dict[str, Any] = {"label_visibility": "collapsed", "bind": "query-params"}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        states = st.pills("State", _states(), key="state", selection_mode="multi", **quiet)
        kind = st.selectbox("Kind", [ALL_KINDS, *KINDS], key="kind", width=118, **quiet)
        names = [row.name for row in data.ask(queries.backends)]
        backend = st.selectbox("Backend", [parts.ALL_BACKENDS, *names], key="backend", width=132, **quiet)
        suites = [row.name for row in data.ask(queries.suites)]
        suite = st.selectbox("Suite", [ALL_SUITES, *suites], key="suite", width=118, **quiet)
        owners = data.ask(queries.alert_owners)
        owner = st.selectbox("Owner", [ALL_OWNERS, *owners], key="owner", width=118, **quiet)
    all_ = (ALL_KINDS, parts.ALL_BACKENDS, ALL_SUITES, ALL_OWNERS)
    one = ["" if value in all_ else value for value in (kind, backend, suite, owner)]
    return Filters(list(states), *one)


def _states() -> list[str]:
    """In the order of an alert's life."""
    return list(alert_words.STATES)


def _rows(chosen: Filters) -> list[AlertRow]:
    return data.ask(
        queries.alerts, states=tuple(chosen.states) or None, kinds=(chosen.kind,) if chosen.kind else None,
        suite=chosen.suite or None, backend=chosen.backend or None, owner=chosen.owner or None, limit=MOST,
    )  # fmt: skip


# What stands ----------------------------------------------------------------------------------------------


def _told(rows: Sequence[AlertRow], chosen: Filters) -> None:
    if not rows:
        fits = " fits these filters" if chosen.any else ""
        st.markdown(f":gray[No open alert{fits}.]")
        return
    for row in rows[:MOST_ROWS]:
        incidents.row(row)
    if len(rows) > MOST_ROWS:
        _table("And more that are open", rows[MOST_ROWS:], "open-alerts")


def _suspicions(rows: Sequence[AlertRow]) -> None:
    """Nobody was told of these: only a channel that asks for suspicions."""
    if not rows:
        return
    _table("Suspicions, not told", rows, "suspicions")
    st.caption(
        "A later look bears a suspicion out or not. Only channels with `suspicions = true` hear of it."
    )


def _closed(rows: Sequence[AlertRow]) -> None:
    if rows:
        _table("Closed", rows, "closed")


def _table(heading: str, rows: Sequence[AlertRow], key: str) -> None:
    frame = alert_tables.alerts_frame(rows)
    with parts.heading(f"{heading}: {words.count(len(rows), 'alert')}"):
        names = [f"{incidents.number(row.id)}: {alert_words.title(row.incident)}" for row in rows]
        tables.opener("Open one by name", names, f"open-{key}", partial(_open, key))
        tables.download("CSV", f"{key}.csv", lambda: alert_tables.alerts_csv(rows))
    st.session_state[f"_{key}"] = [row.id for row in rows]
    st.dataframe(
        frame, key=key, hide_index=True, placeholder="–", on_select=_opener(key),
        height="content" if len(rows) <= 12 else 400, selection_mode="single-cell",
        column_config=alert_tables.alerts_columns(),
    )  # fmt: skip


def _opener(key: str) -> Any:
    def opened() -> None:
        place = tables.clicked(key)
        if place is not None:
            _open(key, place)

    return opened


def _open(key: str, place: int) -> None:
    navigation.go("alert", alert=st.session_state[f"_{key}"][place])


# Can they be trusted? -------------------------------------------------------------------------------------


def _trust() -> None:
    st.subheader("Can the alarms be trusted?", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        channels.precision()
        channels.proof_line()
        channel_actions.buttons()
    channels.channels()
    left, right = st.columns([1.3, 1], gap="medium")
    with left:
        _undelivered()
    with right:
        channels.proofs()
        _drills()


def _undelivered() -> None:
    """What did not arrive, or waits."""
    rows = data.now(queries.undelivered)
    with parts.heading("Messages that did not arrive, or wait"):
        if rows:
            tables.download("CSV", "messages.csv", lambda: alert_tables.deliveries_csv(rows))
    if rows:
        channels.deliveries(rows, "undelivered")
    else:
        st.markdown("None: whatever was to be told has arrived.")


def _drills() -> None:
    """Alerts of drills, apart from all others."""
    rows = data.ask(queries.alerts, drills=True, limit=20)
    if not rows:
        return
    st.session_state["_drills"] = [row.id for row in rows]
    frame: pd.DataFrame = alert_tables.alerts_frame(rows)[["alert", "where", "state", "opened"]]
    st.dataframe(
        frame, key="drills", hide_index=True, height="content" if len(rows) <= 6 else 220, placeholder="–",
        on_select=_opener("drills"), selection_mode="single-cell",
        column_config=alert_tables.alerts_columns(),
    )  # fmt: skip
    st.caption("Alerts that drills raised on purpose; they count nowhere else.")


page()
