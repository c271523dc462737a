"""A trend as a list with links: what its chart shows, for those who read, or who have no pointer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import navigation, parts, verdicts
from dashboard.curves import Alert, Line
from dashboard.figures import Tick
from dashboard.parts import plain
from dashboard.strips import Row
from store import verdict_titles, verdict_words, words

MOST = 3
"""Backends of which it is said at once what became of them."""

Said = Mapping[str, Mapping[str, Any]]
"""By backend, the evidence of what is said of its newest run."""


def news(lines: Sequence[Line], said: Said) -> None:
    """What became of those that changed, in a sentence each."""
    told = [line for line in lines if verdicts.is_news(said.get(line.name)) and not line.muted]
    for line in told[:MOST]:
        _sentence(line, said[line.name])


def _sentence(line: Line, content: Mapping[str, Any]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(parts.name(line.style, line.name), width="content")
        verdicts.show(content)
        st.markdown(plain(verdict_words.evidence(content)), width="content")
        verdicts.numbers(content, f"news-{line.name}")


def everything(
    lines: Sequence[Line], metric: str, said: Said, broken: Sequence[Row], dated: Sequence[Tick]
) -> None:
    """All of it, drawn when it is asked for: newest values, alerts, broken cases, and what changed when."""
    shown = st.expander("The same as a list, with links", on_change="rerun", key="listed")
    if not shown.open:
        return
    with shown:
        for line in lines:
            _line(line, metric, said.get(line.name))
        _cases(broken)
        _dated(dated)


def _line(line: Line, metric: str, content: Mapping[str, Any] | None) -> None:
    last = line.points[-1]
    bounds = words.interval(metric, last.low, last.high)
    facts = " · ".join(filter(None, [bounds, f"n {last.n}", parts.moment(last.started_at)]))
    with st.container(gap=None):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(parts.name(line.style, line.name), width="content")
            told = f"{plain(words.amount(metric, last.mean))} :small[:gray[{plain(facts)}]]"
            st.markdown(told, width="content")
            if content:
                verdicts.show(content)
            parts.onward("run", f"Run {last.run_id}", run=str(last.run_id))
            for alert in line.alerts:
                _alert(alert)
        if content:
            _notes(line, content)


def _notes(line: Line, content: Mapping[str, Any]) -> None:
    told = " · ".join([verdict_words.evidence(content), *verdict_titles.card_notes(content)])
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":small[:gray[{plain(told)}]]", width="content")
        verdicts.numbers(content, f"listed-{line.name}")


def history(case: str, rows: Sequence[Row]) -> None:
    """How a case fared on each backend, with the way to its newest answer and to its last other one."""
    shown = st.expander("The same as a list, with links", on_change="rerun", key="listed")
    if not shown.open:
        return
    with shown:
        for row in rows:
            _fate(case, row)


def _fate(case: str, row: Row) -> None:
    newest = row.cells[-1]
    other = next((cell for cell in reversed(row.cells) if cell.passes != newest.passes), None)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(parts.name(row.style, row.backend), width="content")
        st.markdown(plain(row.words), width="content")
        for cell in filter(None, (newest, other)):
            outcome = "no answer" if not cell.trials else f"passed {cell.passes} of {cell.trials}"
            st.button(  # a link to a page's own address looks pressed
                f"{parts.day(cell.at)}: {outcome}", icon=":material/chevron_right:", icon_position="right",
                type="tertiary", key=f"fate-{cell.run_id}", on_click=navigation.go, args=("case",),
                kwargs={"case": case, "run": cell.run_id},
            )  # fmt: skip


def _alert(alert: Alert) -> None:
    if alert.alert_id:
        parts.onward("alert", f"A-{alert.alert_id}", alert=str(alert.alert_id))


def _cases(broken: Sequence[Row]) -> None:
    if not broken:
        return
    st.markdown("**Cases that broke**")
    with st.container(horizontal=True, gap="small"):
        for row in broken:
            run = row.cells[-1].run_id
            parts.onward("case", plain(f"{row.case} on {row.backend}"), case=row.case, run=str(run))


def _dated(dated: Sequence[Tick]) -> None:
    """Marks and changes of the environment, the newest first."""
    if not dated:
        return
    st.markdown("**What changed when**")
    with st.container(gap=None):
        for tick in sorted(dated, reverse=True):
            told = plain(f"{tick.symbol} {tick.text}".strip())
            st.markdown(f":small[:gray[{parts.moment(tick.at)}] {told}]")
