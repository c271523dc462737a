"""Who is told and how that went: channels, their budgets of false alarms, messages, proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import configuration, data, health_tables, incidents, parts, tables
from dashboard.parts import plain
from store import alert_budget, alert_titles, health_words, queries, words
from store.alert_budget import FIRST_LEVEL, Watched
from store.queries import ChannelRow, DeliveryRow, Judged, ProofRow
from store.sections import ChannelSection

SPAN = timedelta(days=90)
"""Over which budgets and precision are reckoned."""
NOBODY = Judged(0, 0, 0)
DELIVERY_COLOURS = {"failed": "red", "queued": "blue", "claimed": "blue", "dropped": "orange", "sent": ""}
PROOF_COLOURS = {"failed": "red", "under way": "blue", "arrived": ""}
CONFIGURE = '[channels.team]\ntype = "slack"\nurl_file = "/run/secrets/slack-url"'


def precision() -> None:
    """How often the alarms were right."""
    found = data.ask(queries.judged, _since())
    st.markdown(f":material/target: {plain(alert_titles.precision(found))}.")


def _since() -> Any:
    return (parts.now() - SPAN).replace(hour=0, minute=0, second=0, microsecond=0)


def channels() -> None:
    """A row a channel that is configured, and what it has come to."""
    known = configuration.settings().channels
    rows = data.now(queries.channel_rows, list(known), _since())
    with parts.heading("Channels"):
        if rows:
            tables.download("CSV", "channels.csv", lambda: health_tables.rows_csv(rows))
    if not rows:
        st.markdown("Nobody is told of anything: no channel is configured. In memtrend.toml:")
        st.code(CONFIGURE, language="toml", width=480)
        st.markdown("Then `memtrend alerts test team` sends a message to see that it arrives.")
        return
    for row in rows:
        _off(row)
    told = data.ask(queries.judged_by_channel, _since())
    frame = pd.DataFrame([_channel(row, known[row.name], told.get(row.name, NOBODY)) for row in rows])
    health_tables.table(frame, "channels", _channel_columns())
    st.caption(f"Sent and failed: the last {SPAN.days} days. False alarms are those that people call noise.")
    for budget in alert_budget.budgets(known, _watched()):
        said = plain(alert_budget.told(budget))
        st.markdown(f":small[:gray[{said}]]" if budget.kept else f":small[:orange[{said}]]")


def _watched() -> list[Watched]:
    """Suites on backends whose runs may raise an alarm, with their looks of the last month."""
    since = (parts.now() - alert_titles.MONTH).replace(hour=0, minute=0, second=0, microsecond=0)
    suites = configuration.settings().suites
    return [
        Watched(suite, backend, owner, n, suites[suite].confirm.level if suite in suites else FIRST_LEVEL)
        for suite, backend, owner, n in data.ask(queries.looks_a_month, since)
    ]


def _off(row: ChannelRow) -> None:
    """A channel that takes nothing is said before all else."""
    if row.disabled_at is None:
        return
    said = f"Channel {row.name} is {alert_titles.channel(row, parts.moment(row.disabled_at))}."
    with st.container(border=True, gap="xsmall"):
        st.markdown(f":material/notifications_off: :violet[{plain(said)}] Nobody hears anything through it.")
        st.markdown("Mend its address in memtrend.toml, and try it:")
        st.code(f"memtrend alerts test {row.name}", language="bash", width=480)


def _channel(row: ChannelRow, section: ChannelSection, judged: Judged) -> dict[str, Any]:
    over = alert_titles.is_overdrawn(section.budget, judged.noise, SPAN)
    off = row.disabled_at is not None
    return {
        "channel": row.name,
        "type": section.type,
        "state": ["off" if off else "failing" if row.last_error else "waiting" if row.waiting else "ready"],
        "sent": row.sent,
        "waiting": row.waiting,
        "failed": row.failed,
        "last": row.last_sent.astimezone(parts.zone()) if row.last_sent else None,
        "error": row.last_error or row.reason,
        "budget": alert_titles.budget(section.budget, judged.noise, SPAN) + (": overdrawn" if over else ""),
        "judged": _judged(judged),
    }


def _judged(found: Judged) -> str:
    n = found.real + found.noise
    return f"{found.real} of {n} real" if n else ""


def _channel_columns() -> dict[str, Any]:
    column = st.column_config
    states = {"off": "red", "failing": "orange", "waiting": "blue", "ready": ""}
    return {
        "channel": column.TextColumn("Channel", width=110),
        "type": column.TextColumn("Type", width=70),
        "state": health_tables.badges("State", states, 80),
        "sent": column.NumberColumn("Sent", width=50),
        "waiting": column.NumberColumn("Waiting", width=60),
        "failed": column.NumberColumn("Failed", width=60),
        "last": health_tables.moment_column("Last sent"),
        "error": column.TextColumn("Last error", width=190),
        "budget": column.TextColumn("Budget", width=210),
        "judged": column.TextColumn("Judged", width=90),
    }


# Messages -------------------------------------------------------------------------------------------------


def deliveries(rows: Sequence[DeliveryRow], key: str, *, alerts: bool = True) -> None:
    """Messages with what came of each. `alerts`: whether to tell which alert each was about."""
    frame = pd.DataFrame([_delivery(row, alerts) for row in rows])
    column = st.column_config
    health_tables.table(
        frame, key,
        {
            "alert": column.TextColumn("Alert", width=60), "channel": column.TextColumn("Channel", width=100),
            "what": column.TextColumn("What", width=70), "at": health_tables.moment_column("At"),
            "state": health_tables.badges("State", DELIVERY_COLOURS, 76),
            "detail": column.TextColumn("Detail", width=190),
        },
    )  # fmt: skip


def _delivery(row: DeliveryRow, alerts: bool) -> dict[str, Any]:
    of = {"alert": incidents.number(row.alert_id) if row.alert_id else None} if alerts else {}
    at = row.sent_at or row.queued_at
    return {
        **of,
        "channel": row.channel,
        "what": row.kind,
        "at": at.astimezone(parts.zone()),
        "state": [row.state],
        "detail": alert_titles.delivery(row),
    }


# Proofs ---------------------------------------------------------------------------------------------------


def dead_man() -> None:
    """When the address that is pinged was last reached, where one is configured."""
    if configuration.settings().alerts.dead_man_url is None:
        return
    beats = data.now(queries.heartbeats)
    answered = next((beat.at for beat in beats if beat.name == health_words.DEAD_MAN), None)
    st.markdown(f":material/monitor_heart: {plain(alert_titles.dead_man(answered, parts.now()))}.")


def proof_line() -> None:
    """How old the newest proof of the whole path is."""
    newest = next(iter(data.now(queries.proofs, 1)), None)
    said = plain(alert_titles.proof(newest, parts.now()))
    if newest is not None and newest.passed:
        st.markdown(f":material/verified: {said}", width="content")
    elif newest is not None and newest.error is None:
        st.markdown(f":material/hourglass_top: {said}", width="content")
    else:
        st.markdown(f":material/gpp_maybe: :violet[{said}]: `memtrend alerts proof`", width="content")


def proofs(most: int = 10) -> None:
    """Drills, which put a fault into a backend and wait until a channel has told of it."""
    rows = data.now(queries.proofs, most)
    with parts.heading("Proofs that an alarm arrives"):
        if rows:
            tables.download("CSV", "proofs.csv", lambda: health_tables.rows_csv(rows))
    if not rows:
        st.markdown(
            "Never tried. `memtrend alerts proof` puts a fault into a backend and waits until a channel has "
            'told of it; a schedule with `kind = "proof"` does so by itself.'
        )
        return
    column = st.column_config
    health_tables.table(
        pd.DataFrame([_proof(row) for row in rows]), "proofs",
        {
            "at": health_tables.moment_column("Begun"),
            "result": health_tables.badges("Result", PROOF_COLOURS, 84),
            "error": column.TextColumn("Error", width=150),
            "detected": column.TextColumn("Detected", width=76),
            "confirmed": column.TextColumn("Confirmed", width=76),
            "delivered": column.TextColumn("Delivered", width=76),
            "channel": column.TextColumn("Channel", width=90),
        },
    )  # fmt: skip


def _proof(row: ProofRow) -> dict[str, Any]:
    under_way = row.finished_at is None and row.error is None
    took: Mapping[str, float | None] = {
        "detected": row.detected_s, "confirmed": row.confirmed_s, "delivered": row.delivered_s
    }  # fmt: skip
    return {
        "at": row.started_at.astimezone(parts.zone()),
        "result": ["arrived" if row.passed else "under way" if under_way else "failed"],
        "error": row.error,
        **{name: words.duration(seconds) if seconds is not None else None for name, seconds in took.items()},
        "channel": row.channel,
    }
