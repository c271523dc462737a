"""The buttons of an alert: I have it, mute, intended change, real or noise, resolve. Each asks why, and none
acts by an address: a link opens a form at the most."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import streamlit as st

from dashboard import data, incidents, parts
from store.alert_life import STANDING_STATES, meant
from store.queries import AlertRow

MUTES = {"1 day": 1, "3 days": 3, "1 week": 7, "4 weeks": 28}
ACKNOWLEDGE = "acknowledge"
WHAT_FOR = {
    ACKNOWLEDGE: "You look after it. Nobody is reminded, until it falls further.",
    "mute": "Nothing is said of it until then, whatever becomes of it.",
    "intended": "The change was meant: the baseline begins anew with it, and the alert is over.",
    "resolve": "It is over, before two good runs have shown it.",
    "judge": "Was the alarm right? Of this the precision of all alarms is reckoned.",
}


def buttons(row: AlertRow) -> None:
    """Those that its state allows, none for a drill; without leave to write, the command that does it."""
    it = row.incident
    if it.drill:
        return
    if not data.may_write():
        st.caption(f"These pages may not write here. In a terminal: `memtrend alerts ack {row.id}`")
        return
    with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        if it.state in STANDING_STATES:
            if it.state == "open":
                _acknowledge(row)
            _mute(row)
            if meant(it):
                _intended(row)
        if it.told_at is not None:
            _judge(row)
        if it.state in STANDING_STATES:
            _resolve(row)


def _acknowledge(row: AlertRow) -> None:
    """Open at once for who follows the link of a message; the click remains theirs."""
    key = f"{ACKNOWLEDGE}-{row.id}"
    st.session_state.setdefault(key, st.query_params.get("do") == ACKNOWLEDGE)
    with st.popover("I have it", icon=":material/front_hand:", type="primary", key=key, on_change="rerun"):
        _form(row, ACKNOWLEDGE, "I have it", lambda why: incidents.acknowledge(row.id, why), needed=False)


def _mute(row: AlertRow) -> None:
    if incidents.is_muted(row.incident):
        st.button("Unmute", icon=":material/notifications_active:", on_click=incidents.unmute, args=(row.id,))
        return

    def mute(why: str) -> None:
        days = MUTES[st.session_state[f"days-{row.id}"]]
        incidents.mute(row.id, parts.now() + timedelta(days=days), why)

    with st.popover("Mute", icon=":material/notifications_paused:"):
        _form(row, "mute", "Mute", mute, needed=False, choice=(f"days-{row.id}", list(MUTES)))


def _intended(row: AlertRow) -> None:
    with st.popover("Intended change", icon=":material/flag:"):
        _form(row, "intended", "It was meant", lambda why: incidents.intend(row.id, why))


def _resolve(row: AlertRow) -> None:
    with st.popover("Resolve", icon=":material/task_alt:"):
        _form(row, "resolve", "It is over", lambda why: incidents.resolve(row.id, why))


def _judge(row: AlertRow) -> None:
    def judge(why: str) -> None:
        incidents.judge(row.id, st.session_state[f"judged-{row.id}"], why)

    with st.popover("Real or noise", icon=":material/rule:"):
        choice = (f"judged-{row.id}", ["real", "noise"])
        _form(row, "judge", "Take it down", judge, needed=False, choice=choice)
        st.caption("Noise needs a reason.")


def _form(
    row: AlertRow, name: str, label: str, act: Callable[[str], None], *, needed: bool = True,
    choice: tuple[str, list[str]] | None = None,
) -> None:  # fmt: skip
    key = f"why-{name}-{row.id}"

    def submit() -> None:
        act(str(st.session_state[key]).strip())

    with st.form(f"{name}-form-{row.id}", border=False):
        st.markdown(WHAT_FOR[name])
        if choice:
            st.radio("Choose", choice[1], key=choice[0], horizontal=True, label_visibility="collapsed")
        st.text_input("Reason", key=key, placeholder="why, in a few words" if needed else "why, if it helps")
        st.form_submit_button(label, type="primary", on_click=submit)
        st.caption(parts.SIGNED)
