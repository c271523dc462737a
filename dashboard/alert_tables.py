"""The tables of Alerts and Alert: rows in, frames out. A cell is never markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import health_tables, incidents, parts
from store import alert_titles, alert_words
from store.alert_kinds import KINDS
from store.alert_life import Incident
from store.alert_signals import Signal
from store.queries import AlertRow, CaseRow, DeliveryRow, StepRow

SUSPECT, POSSIBLE, UNLIKELY = "suspect", "possible", "unlikely"


# Alerts ---------------------------------------------------------------------------------------------------


def alerts_frame(rows: Sequence[AlertRow]) -> pd.DataFrame:
    return pd.DataFrame([_alert(row) for row in rows])


def _alert(row: AlertRow) -> dict[str, Any]:
    it = row.incident
    end = row.closed_at or parts.now()
    return {
        "alert": incidents.number(row.id),
        "where": _where(it),
        "kind": [kind(it)],
        "evidence": alert_words.evidence(it),
        "state": alert_words.STATES[it.state].lower(),
        "opened": it.opened_at.astimezone(parts.zone()),
        "lasted": alert_titles.lasted(it.opened_at, end),
        "holder": it.acknowledged_by,
        "judged": it.judged or ("not judged" if it.told_at else None),
    }


def _where(it: Incident) -> str:
    found = dict.fromkeys(" · ".join(filter(None, (one.key.backend, one.key.suite))) for one in it.signals)
    names = [name for name in found if name]
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else "schedules"


def kind(it: Incident) -> str:
    """ "↘ Worse"."""
    return f"{incidents.LOOKS[it.kind.name].sign} {it.kind.words}"


def alerts_columns() -> dict[str, Any]:
    column = st.column_config
    colours = {f"{one.sign} {KINDS[name].words}": one.colour for name, one in incidents.LOOKS.items()}
    return {
        "alert": column.TextColumn("Alert", width=56),
        "where": column.TextColumn("Where", width=150),
        "kind": health_tables.badges("Kind", colours, 120),
        "evidence": column.TextColumn("Evidence", width=380),
        "state": column.TextColumn("State", width=96),
        "opened": health_tables.moment_column("Seen first"),
        "lasted": column.TextColumn("For", width=64),
        "holder": column.TextColumn("Who had it", width=80),
        "judged": column.TextColumn("Was it real", width=80),
    }


def alerts_csv(rows: Sequence[AlertRow]) -> pd.DataFrame:
    """Times in UTC."""
    return pd.DataFrame([_alert_csv(row) for row in rows])


def _alert_csv(row: AlertRow) -> dict[str, Any]:
    it = row.incident
    times = {"opened_at": it.opened_at, "told_at": it.told_at, "closed_at": row.closed_at}
    return {
        "id": row.id,
        "kind": it.kind.name,
        "severity": it.kind.severity,
        "state": it.state,
        "suite": row.suite,
        "backend": row.backend,
        "title": alert_words.title(it),
        "evidence": alert_words.evidence(it),
        "cases": " ".join(it.cases),
        "owner": it.owner,
        "acknowledged_by": it.acknowledged_by,
        "judged": it.judged,
        **{name: at.isoformat(timespec="seconds") if at else None for name, at in times.items()},
    }


def deliveries_csv(rows: Sequence[DeliveryRow]) -> pd.DataFrame:
    """Without what they say."""
    return health_tables.rows_csv(rows).drop(columns=["payload"])


# An alert -------------------------------------------------------------------------------------------------


def suspects_frame(suspects: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """What changed between the last good and the first bad run, the likeliest first."""
    return pd.DataFrame([_suspect(one, place) for place, one in enumerate(suspects)])


def _suspect(one: Mapping[str, Any], place: int) -> dict[str, Any]:
    rank = UNLIKELY if one["moved_before"] else SUSPECT if place == 0 else POSSIBLE
    old, new = (None if one[name] is None else str(one[name]) for name in ("old", "new"))
    return {"rank": [rank], "name": one["name"], "was": old, "is": new}


def suspects_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "rank": health_tables.badges("Rank", {SUSPECT: "red", POSSIBLE: "orange", UNLIKELY: ""}, 84),
        "name": column.TextColumn("What", width=120),
        "was": column.TextColumn("Was", width=90),
        "is": column.TextColumn("Is", width=90),
    }


def cases_frame(names: Sequence[str], rows: Mapping[str, CaseRow]) -> pd.DataFrame:
    """`rows`: by name, what came of them in the run looked at."""
    return pd.DataFrame([_case(name, rows.get(name)) for name in names])


def _case(name: str, row: CaseRow | None) -> dict[str, Any]:
    told = (row.failure, row.query, row.first_hit) if row else (None, None, None)
    return {"case": name, **dict(zip(("failure", "asked", "first"), told, strict=True))}


def cases_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "case": column.TextColumn("Case", width=180),
        "failure": column.TextColumn("Why", width=130),
        "asked": column.TextColumn("Asked", width=220),
        "first": column.TextColumn("Came first", width=220),
    }


def signals_frame(signals: Sequence[Signal]) -> pd.DataFrame:
    """All that is wrong in one alert."""
    return pd.DataFrame([_signal(one) for one in signals])


def _signal(one: Signal) -> dict[str, Any]:
    return {
        "kind": [f"{incidents.LOOKS[one.key.kind].sign} {KINDS[one.key.kind].words}"],
        "where": " · ".join(filter(None, one.key[1:])),
        "standing": "over" if one.closed else one.standing,
        "evidence": alert_words.signal_evidence(one),
        "good": one.good,
        "run": one.run_id,
    }


def signals_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "kind": alerts_columns()["kind"],
        "where": column.TextColumn("Where", width=180),
        "standing": column.TextColumn("Standing", width=76),
        "evidence": column.TextColumn("Evidence", width=330),
        "good": column.NumberColumn("Good runs since", width=70),
        "run": health_tables.run_column(),
    }


def steps_frame(row: AlertRow, steps: Sequence[StepRow]) -> pd.DataFrame:
    """Oldest first, so that it reads as a story."""
    first = {"at": row.incident.opened_at, "what": "seen first", "run": row.first_bad_run_id}
    told = [{"at": one.at, "what": alert_titles.step(one), "run": one.run_id} for one in steps]
    frame = pd.DataFrame([{**one, "at": one["at"].astimezone(parts.zone())} for one in [first, *told]])
    return frame.astype({"run": "Int64"})


def steps_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "at": health_tables.moment_column("At"),
        "what": column.TextColumn("What became of it", width=230),
        "run": column.NumberColumn("Run", format="%d", width=46),
    }
