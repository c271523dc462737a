"""An alert as pages show it: its badge, a row with its evidence and trend, and what people do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import streamlit as st

from dashboard import data, parts, sparkline
from dashboard.parts import Colour, plain
from dashboard.sparkline import Dot, Frame
from store import alert_life, alert_titles, alert_words, queries, words, writes
from store.alert_kinds import KINDS
from store.alert_life import TOLD_STATES, Incident, Turned
from store.alert_signals import Signal
from store.metrics import METRICS
from store.queries import AlertRow

AUTHOR = "local"
"""Who acts, as long as nobody is asked for a name."""
SHOWN = timedelta(days=60)
"""So far back a row's chart looks."""
SPARK = 300.0
"""Px."""


class Look(NamedTuple):
    """`sign` stands in tables, where cells have no icons."""

    colour: Colour
    icon: str
    sign: str


_WORSE = Look("red", ":material/trending_down:", "↘")
_SLOW = Look("orange", ":material/speed:", "↘")
_BROKEN = Look("violet", ":material/sensors_off:", "!")
LOOKS = {
    "critical": Look("red", ":material/emergency_home:", "‼"),
    "regression": _WORSE,
    "shrinkage": Look("violet", ":material/inventory_2:", "!"),
    "failing": _BROKEN,
    "missed": Look("violet", ":material/event_busy:", "!"),
    "proof": Look("violet", ":material/notifications_off:", "!"),
    "leak": Look("orange", ":material/water_drop:", "↘"),
    "threshold": Look("red", ":material/vertical_align_bottom:", "↘"),
    "slower": _SLOW,
    "dearer": Look("orange", ":material/payments:", "↘"),
    "judge": Look("violet", ":material/gavel:", "!"),
    "improvement": Look("green", ":material/trending_up:", "↗"),
}
_SUSPICIONS = {
    "suspicion": Look("blue", ":material/help:", "?"),
    "suspected": Look("orange", ":material/search:", "?"),
}


def look(incident: Incident) -> Look:
    """By its kind once somebody was told; before that by how sure it is."""
    return _SUSPICIONS.get(incident.state) or LOOKS[incident.kind.name]


def urgency(row: AlertRow) -> tuple[bool, bool, int]:
    """By which the worst comes first: what is heard of, then what nobody has, then by kind."""
    it = row.incident
    return is_muted(it), it.acknowledged_by is not None, list(KINDS).index(it.kind.name)


def is_muted(incident: Incident) -> bool:
    return incident.muted_until is not None and incident.muted_until > parts.now()


def number(alert_id: int) -> str:
    """How people call it: "A-12"."""
    return f"A-{alert_id}"


def badge(incident: Incident) -> None:
    """Icon and word; grey words once it is over."""
    if incident.state in (*TOLD_STATES, *_SUSPICIONS):
        found = look(incident)
        st.badge(alert_words.badge(incident), icon=found.icon, color=found.colour, width="content")
    else:
        st.caption(alert_words.badge(incident), width="content")


def where(row: AlertRow) -> str:
    """Backend with its marker and suite, or how many of them, as markdown."""
    suites, backends = (
        list(dict.fromkeys(one.key[place] for one in row.incident.signals if one.key[place]))
        for place in (1, 2)
    )
    drawn = parts.styles()
    of = parts.name(drawn[backends[0]], backends[0]) if len(backends) == 1 and backends[0] in drawn else ""
    of = of or plain(_many(backends, "backends"))
    return " · ".join(filter(None, [of, plain(_many(suites, "suites"))]))


def _many(names: Sequence[str], nouns: str) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} {nouns}" if names else ""


def holder(incident: Incident) -> str:
    """Who has it and until when it is muted, as markdown."""
    until = incident.muted_until
    muted = f"muted until {parts.moment(until)}" if until and is_muted(incident) else ""
    drill = "a drill" if incident.drill else ""
    return " · ".join(plain(one) for one in (alert_titles.holder(incident), muted, drill) if one)


# A row ----------------------------------------------------------------------------------------------------


def row(one: AlertRow) -> None:
    """An alert that stands, with its way in."""
    image = chart(one)
    with st.container(border=True):
        widths = [5.0, 2.6, 1.9] if image else [7.6, 1.9]
        told, *drawn, ways = st.columns(widths, vertical_alignment="center", gap="medium")
        with told.container(gap="xxsmall"):
            _told(one)
        for place in drawn:
            with place.container(gap=None):
                st.image(image, width="stretch", alt=f"Its series: {alert_words.title(one.incident)}")
                st.markdown(f":small[:gray[{plain(_drawn(one))}]]")
        with ways.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
            if one.incident.state == "open" and data.may_write():
                st.button("I have it", key=f"have-{one.id}", on_click=acknowledge, args=(one.id,))
            parts.onward("alert", "Open", alert=str(one.id))


def _told(one: AlertRow) -> None:
    it = one.incident
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        badge(it)
        st.markdown(" · ".join(filter(None, [where(one), number(one.id)])), width="content")
    st.markdown(plain(alert_words.evidence(it)))
    since = alert_titles.since(it, parts.moment(it.opened_at), parts.now())
    st.markdown(f":small[:gray[{plain(since)} · {holder(it)}]]")


def _drawn(one: AlertRow) -> str:
    signal = alert_words.lead(one.incident)
    metric = metric_of(signal)
    began = _began(signal, series(signal, metric, parts.now() - SHOWN))
    dotted = "; dotted: it began" if began else ""
    return f"{words.label(metric)}, last {SHOWN.days} days, with its 95 % interval{dotted}"


def _began(signal: Signal, points: Sequence[queries.TrendPoint]) -> datetime | None:
    return next((point.started_at for point in points if point.run_id == signal.first_run_id), None)


def chart(one: AlertRow) -> str:
    """The series of its worst signal as SVG, with a line where it began; "" where there is none to draw."""
    signal = alert_words.lead(one.incident)
    metric, style = metric_of(signal), parts.styles().get(signal.key.backend)
    if metric not in METRICS or METRICS[metric].unit != "share" or style is None:
        return ""
    points = series(signal, metric, parts.now() - SHOWN)
    if len(points) < 2:
        return ""
    dots = [Dot(point.started_at, point.mean, point.low, point.high) for point in points]
    widths = [dot.high - dot.low for dot in dots if dot.high is not None and dot.low is not None]
    frame = Frame(dots[0].at, dots[-1].at, sparkline.span(widths), SPARK, _began(signal, points))
    return sparkline.sparkline(dots, style, parts.theme(), frame)


def metric_of(signal: Signal) -> str:
    """What its series is drawn by: its own metric, or the pass rate; "" where it has no series."""
    if signal.key.subject in METRICS:
        return signal.key.subject
    return "leg_count" if signal.key.kind == "shrinkage" else "pass" if signal.key.suite else ""


def series(signal: Signal, metric: str, since: datetime) -> list[queries.TrendPoint]:
    """Whole days, so that the question stays the same for the caches."""
    day = since.replace(hour=0, minute=0, second=0, microsecond=0)
    return data.ask(queries.trend, signal.key.suite, metric, backends=[signal.key.backend], since=day)


def link(one: AlertRow) -> None:
    """A line on the page of something that an alert is about."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        badge(one.incident)
        told = f"{number(one.id)}: {alert_titles.alert_title(one.incident)}"
        st.markdown(f"{plain(told)} :small[:gray[· {holder(one.incident)}]]", width="content")
        parts.onward("alert", "Open", alert=str(one.id))


# What people do -------------------------------------------------------------------------------------------


def act(alert_id: int, change: Callable[[Incident], Turned], said: str) -> None:
    """Do it and say so, or say why not. The one place through which pages change an alert."""
    parts.attempt(lambda: writes.act_on_alert(data.database(), alert_id, change), said)


def acknowledge(alert_id: int, reason: str = "") -> None:
    act(alert_id, lambda it: alert_life.acknowledge(it, AUTHOR, reason), "You have it.")


def mute(alert_id: int, until: datetime, reason: str) -> None:
    said = f"Nothing is said of it until {parts.moment(until)}."
    act(alert_id, lambda it: alert_life.mute(it, until, parts.now(), AUTHOR, reason), said)


def unmute(alert_id: int) -> None:
    act(alert_id, lambda it: alert_life.unmute(it, AUTHOR), "It is heard again.")


def judge(alert_id: int, judged: Literal["real", "noise"], reason: str) -> None:
    act(alert_id, lambda it: alert_life.judge(it, judged, AUTHOR, reason), f"Taken down as {judged}.")


def resolve(alert_id: int, reason: str) -> None:
    act(alert_id, lambda it: alert_life.close(it, "resolved", AUTHOR, reason), "It is resolved.")


def intend(alert_id: int, reason: str) -> None:
    said = "Taken down. Later runs are held against the new state."
    parts.attempt(lambda: writes.intend_alert(data.database(), alert_id, AUTHOR, reason), said)
