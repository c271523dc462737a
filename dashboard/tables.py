"""Rows in, tables out. A cell of a dataframe is never markup, so text from anywhere may stand in it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import axes, data, parts, sparkline, verdicts
from dashboard.curves import Line
from dashboard.palette import Style
from store import queries, verdict_titles, verdict_words, words
from store.metrics import METRICS
from store.queries import CaseRow, RunRow, VerdictRow

ALL_SUITES = "all suites"
NAMED_ELSEWHERE = ("", queries.CONFIRM)
"""Parts of a suite that need no word in its cell: all of it, and a second look, which its trigger names."""
INTERVAL = (
    "95 % interval: where the true value probably lies, seen so few cases. Wilson's for shares, a bootstrap "
    "for means and medians; n is the number of cases."
)
TURNED = "Cases that the earlier nights had passed and this run lost, or the other way round."
STATE = (
    "What is said of a run; before anything can be: whole (every case was asked), running, or why it does "
    "not count: invalid (too many errors), void (the adapter is broken), interrupted."
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that a spreadsheet computes."""


def download(label: str, file_name: str, frame: Callable[[], pd.DataFrame], key: str | None = None) -> None:
    """A table to take along. It is made when it is asked for. `key`: where a page has several alike."""
    st.download_button(
        label, data=lambda: csv(frame()), file_name=file_name, mime="text/csv", icon=":material/download:",
        on_click="ignore", type="tertiary", key=key,
    )  # fmt: skip


def beneath(note: str, file_name: str, frame: Callable[[], pd.DataFrame]) -> None:
    """What stands beneath a chart: how to read it, and its numbers to take along."""
    with st.container(horizontal=True, vertical_alignment="top", gap="small", wrap=False):
        st.caption(note, width="stretch")
        download("CSV", file_name, frame)


def csv(frame: pd.DataFrame) -> bytes:
    """A table as CSV in which no text is a formula: spreadsheets run what begins like one."""
    return frame.map(_inert).to_csv(index=False).encode()


def _inert(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def marker(style: Style) -> str:
    """A backend's marker as an image for a cell: text in cells has no colour."""
    return "data:image/svg+xml;base64," + base64.b64encode(sparkline.mark(style).encode()).decode()


def clicked(key: str) -> int | None:
    """The row in which a table (`selection_mode="single-cell"`) was clicked: rows that can be chosen as such
    answer to a box before them alone."""
    cells = st.session_state[key].selection.cells
    return cells[0][0] if cells else None


def opener(what: str, names: Sequence[str], key: str, go: Callable[[int], None]) -> None:
    """The way into a row for who has no pointer: in a table each arrow key would be a click. `go` takes the
    place of the row among `names`."""

    def chosen() -> None:
        place = st.session_state[key]
        if place is not None:
            go(place)

    st.selectbox(
        what, range(len(names)), index=None, key=key, format_func=lambda place: names[place],
        placeholder=what, label_visibility="collapsed", width=200, on_change=chosen,
    )  # fmt: skip


def lines_frame(lines: Sequence[Line], metric: str) -> pd.DataFrame:
    """What a chart draws, a row a run and backend: shares in per cent."""
    factor, unit = axes.scale(metric), words.unit(metric).strip()
    return pd.DataFrame(
        [
            {
                "metric": metric, "backend": line.name, "run": point.run_id,
                "started_at": point.started_at.isoformat(timespec="seconds"), "value": point.mean * factor,
                "low": None if point.low is None else point.low * factor,
                "high": None if point.high is None else point.high * factor, "unit": unit, "n": point.n,
            }
            for line in lines
            for point in line.points
        ]
    )  # fmt: skip


# Runs -----------------------------------------------------------------------------------------------------


def runs_frame(rows: Sequence[RunRow], said: Mapping[int, VerdictRow]) -> pd.DataFrame:
    """`said`: by run, the verdict in force."""
    styles = parts.styles()
    news = _news({row.suite for row in rows})
    return pd.DataFrame([_run(row, styles[row.backend], news.get(row.id), said.get(row.id)) for row in rows])


def _run(row: RunRow, style: Style, news: str | None, said: VerdictRow | None) -> dict[str, Any]:
    passed = row.metrics.get("pass")
    verdict = verdicts.cell(said.content) if said else None
    return {
        "run": row.id,
        "started": row.started_at.astimezone(parts.zone()),
        "mark": marker(style),
        "backend": row.backend,
        "suite": row.suite + (f" ({words.part(row.subset)})" if row.subset not in NAMED_ELSEWHERE else ""),
        "state": [verdict[0] if verdict else row.status],
        "pass": round(passed.mean * 100, 1) if passed else None,
        "interval": words.interval("pass", passed.low, passed.high) if passed else "",
        "n": passed.n if passed else None,
        "turned": verdict_titles.turned(said.content) if said else "",
        "trigger": words.trigger(row.trigger),
        "trials": row.trials,
        "took": words.duration((row.finished_at - row.started_at).total_seconds()) if row.finished_at else "",
        "note": row.reason or news or "",
    }


def _news(suites: set[str]) -> dict[int, str]:
    """Run id -> what its environment has that the run before had not."""
    changes = [change for suite in sorted(suites) for change in data.ask(queries.environment_changes, suite)]
    return {change.run_id: words.environment_news(change.changes) for change in changes}


def runs_columns(said: Mapping[int, VerdictRow]) -> dict[str, Any]:
    column = st.column_config
    return {
        "run": column.NumberColumn("Run", format="%d", width=60),
        "started": column.DatetimeColumn(
            "Started", format="D MMM, HH:mm", timezone=parts.zone().key, width=105
        ),
        "mark": column.ImageColumn("", width=34),
        "backend": column.TextColumn("Backend", width=90),
        "suite": column.TextColumn("Suite", width=90),
        "state": state_column(said),
        "pass": column.NumberColumn("Pass %", format="%.1f", width=66),
        "interval": column.TextColumn("95 % interval", width=90, help=INTERVAL),
        "n": column.NumberColumn("n", width=50),
        "turned": column.TextColumn("Lost, gained", width=90, help=TURNED),
        "trigger": column.TextColumn("Started by", width=122),
        "trials": column.NumberColumn("Trials", width=50, help="How often each case was planted and asked."),
        "took": column.TextColumn("Took", width=56),
        "note": column.TextColumn("New in environment, or why it does not count", width=270),
    }


def narrow_runs() -> list[str]:
    """The columns in an order in which a phone shows the verdict without scrolling."""
    first = ["run", "mark", "backend", "state", "pass"]
    return [*first, *(name for name in runs_columns({}) if name not in first)]


def state_column(said: Mapping[int, VerdictRow]) -> Any:
    """What is said of a run, or its state. The quiet ones have no colour."""
    clear = "#00000000" if parts.theme().mode == "dark" else "#ffffff00"
    found = {cell for row in said.values() if (cell := verdicts.cell(row.content))}
    told = {text: clear if colour == "gray" else colour for text, colour in sorted(found)}
    colours = {"whole": clear, "running": "blue", **dict.fromkeys(words.PROBLEMS, "violet"), **told}
    return st.column_config.MultiselectColumn(
        "Verdict", options=list(colours), color=list(colours.values()), width=130, help=STATE
    )


def runs_csv(rows: Sequence[RunRow], said: Mapping[int, VerdictRow]) -> pd.DataFrame:
    """Every figure of every run, one row each."""
    return pd.DataFrame([_run_csv(row, said.get(row.id)) for row in rows])


def _run_csv(row: RunRow, said: VerdictRow | None) -> dict[str, Any]:
    facts = (
        "id",
        "suite",
        "suite_version",
        "backend",
        "status",
        "reason",
        "trigger",
        "subset",
        "trials",
        "errors",
    )
    times = {name: _iso(getattr(row, name)) for name in ("started_at", "finished_at")}
    figures = {
        f"{name}_{field}": getattr(rolled, field)
        for name, rolled in sorted(row.metrics.items())
        for field in ("mean", "low", "high", "n")
    }
    verdict = verdict_words.badge(said.content).text if said else None
    return {**{name: getattr(row, name) for name in facts}, "verdict": verdict, **times, **figures}


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")


# A run ----------------------------------------------------------------------------------------------------


def metrics_frame(run: RunRow, before: RunRow | None) -> pd.DataFrame:
    known = [name for name in METRICS if name in run.metrics]
    return pd.DataFrame([_metric(name, run, before) for name in known])


def _metric(name: str, run: RunRow, before: RunRow | None) -> dict[str, Any]:
    now, old = run.metrics[name], before.metrics.get(name) if before else None
    note = words.direction(name)
    return {
        "metric": words.label(name) + (f", {note}" if note else ""),
        "now": words.amount(name, now.mean),
        "interval": words.interval(name, now.low, now.high),
        "n": now.n,
        "before": words.amount(name, old.mean) if old else "",
        "difference": words.difference(name, old.mean, now.mean) if old else "",
    }


def metrics_columns(before: RunRow | None) -> dict[str, Any]:
    """What compares is hidden where there is nothing to compare with."""
    column = st.column_config
    return {
        "metric": column.TextColumn("Metric", width=200),
        "now": column.TextColumn("Now", width=80),
        "interval": column.TextColumn("95 % interval", width=100, help=INTERVAL),
        "n": column.NumberColumn("n", width=50),
        "before": before and column.TextColumn(f"Run {before.id}", width=80),
        "difference": before and column.TextColumn("Difference", width=100),
    }


def cases_frame(rows: Sequence[CaseRow], before: Mapping[str, CaseRow]) -> pd.DataFrame:
    return pd.DataFrame([_case(row, before.get(row.case)) for row in rows])


def _case(row: CaseRow, old: CaseRow | None) -> dict[str, Any]:
    return {
        "case": row.case,
        "outcome": outcome(row),
        "failure": row.failure,
        "asked": row.query,
        "first": row.first_hit,
        "before": outcome(old) if old else None,
        "tags": ", ".join([*row.tags, *(["critical"] if row.critical else [])]),
        "latency": row.latency_ms,
    }


def outcome(row: CaseRow) -> str:
    if row.passed is None:
        return "error" if row.status == "error" else "not applicable"
    if row.trials > 1:
        return f"passed {row.passes} of {row.trials}"
    return "passed" if row.passed else "failed"


def cases_columns(before: RunRow | None) -> dict[str, Any]:
    column = st.column_config
    return {
        "case": column.TextColumn("Case", width=170),
        "outcome": column.TextColumn("Outcome", width=72),
        "failure": column.TextColumn("Why lost", width=130),
        "asked": column.TextColumn("Asked", width=210),
        "first": column.TextColumn("Came first", width=210),
        "before": before and column.TextColumn("Run before", width=76),
        "tags": column.TextColumn("Tags", width=110),
        "latency": column.NumberColumn("ms", format="%.2f", width=60),
    }
