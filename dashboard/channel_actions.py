"""Whether an alarm would arrive: a test through one channel, and a drill of the whole path."""

from __future__ import annotations

import streamlit as st

from dashboard import configuration, data, parts
from dashboard.parts import plain
from store import queries, writes
from store.settings import Settings

CHANNEL = "test-channel"
PAIR = ("smoke", "hybrid")
"""Suite and backend of a drill where no schedule says others."""


def buttons() -> None:
    """Where there is a channel and pages may write; otherwise the commands do it."""
    of = configuration.settings()
    if not of.channels or not data.may_write():
        return
    with st.popover("Send a test alert", icon=":material/send:"):
        st.markdown("A real message goes through the channel. What becomes of it stands below.")
        st.selectbox("Channel", list(of.channels), key=CHANNEL)
        st.button("Send it", type="primary", key="send-test", on_click=_send_test)
    suite, backend = _pair(of)
    if backend in of.backends and any(channel.drills for channel in of.channels.values()):
        with st.popover("Hold a drill", icon=":material/verified:"):
            st.markdown(
                f"A fault is put into {plain(backend)} while {plain(suite)} is played apart: is it told?"
            )
            st.button(
                "Hold it", type="primary", key="hold-drill", on_click=_hold_drill, args=(suite, backend)
            )


def _pair(of: Settings) -> tuple[str, str]:
    """What the schedule of drills names."""
    drills = (section for section in of.schedules.values() if section.kind == "proof")
    return next(((one.suites[0], one.backends[0]) for one in drills if one.suites and one.backends), PAIR)


def _send_test() -> None:
    name = st.session_state[CHANNEL]
    if name in queries.disabled_channels(data.database()):
        st.toast(f"{plain(name)} is off: `memtrend alerts test {name}` tries it", icon=":material/error:")
        return
    parts.attempt(
        lambda: writes.send_later(data.database(), [writes.a_test(name)]), "The collector sends it."
    )


def _hold_drill(suite: str, backend: str) -> None:
    pair = {"suite": suite, "backend": backend}
    parts.attempt(lambda: writes.add_request(data.database(), "proof", pair), "The collector holds it.")
