"""What did this run come to? Its figures, what changed since the run before, and its cases."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, findings, incidents, navigation, parts, tables
from dashboard.parts import plain
from store import queries, run_words, words
from store.alert_life import TOLD_STATES
from store.metrics import METRICS
from store.queries import AlertRow, CaseRow, RunRow, VerdictRow

LOST, CHANGED, FAILED = "lost", "changed", "failed"
ERRORS, SKIPPED, ALL = "errors", "not applicable", "all"
CARDS = ("pass", "recall@k", "unwanted_first", "recall_ms")


def page() -> None:
    run = data.asked_run()
    if run is None:
        _unknown()
        return
    before = data.ask(queries.previous_run, run.id)
    cases = data.ask(queries.run_cases, run.id)
    old = {row.case: row for row in data.ask(queries.run_cases, before.id, with_hits=False)} if before else {}
    said = data.ask(queries.verdict, run.id)
    _facts(run)
    title = words.run_title(run_words.finding(run, before, cases, old, said))
    parts.title(title, run.finished_at or run.started_at)
    if run.status == "running":
        st.fragment(_live, run_every=2)(run.id)
    if run.status in words.PROBLEMS:
        _problem(run)
    if said:
        findings.cards(run, said)
    _beside(run)
    for alert in _alerts(run, said):
        incidents.link(alert)
    _removed(run)
    if run.metrics:
        _cards(run, before)
    left, right = st.columns([1.55, 1], gap="medium")
    with left:
        _metrics(run, before)
        _cases(run, cases, before, old, frozenset(said.content["lost"] if said else ()))
    with right:
        _environment(run, before)
        _compare(run, before, said)
        _tags(run, before)
        _journal(run)


def _alerts(run: RunRow, said: VerdictRow | None) -> list[AlertRow]:
    """Those that name the run; of one that is worse also those of its series that stand, whose first bad run
    may be weeks back."""
    own = data.ask(queries.alerts, run_id=run.id)
    if said is None or said.content["verdict"] != "worse":
        return own
    standing = data.ask(queries.alerts, states=TOLD_STATES, suite=run.suite, backend=run.backend)
    return list({row.id: row for row in [*own, *standing]}.values())


def _unknown() -> None:
    parts.title("There is no such run", None)
    st.markdown("The address names none, or one that this record does not hold.")
    st.page_link("views/runs.py", label="All runs", icon=":material/arrow_back:")


def _live(run_id: int) -> None:
    run = data.now(queries.run, run_id)
    if run is None or run.status != "running":
        st.rerun()
        return
    parts.live(run)


# Above ----------------------------------------------------------------------------------------------------


def _facts(run: RunRow) -> None:
    ended = f" to {run.finished_at.astimezone(parts.zone()):%H:%M}" if run.finished_at else ""
    facts = [
        f"run {run.id}",
        parts.name(parts.styles()[run.backend], run.backend),
        f"{plain(run.suite)} {plain(run.suite_version[:8])}",
        f"{parts.moment(run.started_at)}{ended}",
        plain(words.trigger(run.trigger)),
        plain(words.part(run.subset)),
        words.count(run.trials, "trial"),
        *(f"{plain(str(key))} {plain(str(value))}" for key, value in run.meta.items()),
    ]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.page_link("views/runs.py", label="Runs", icon=":material/arrow_back:")
        st.markdown(f":small[:gray[{' · '.join(facts)}]]", width="content")
        parts.onward("trends", "Trend", suite=run.suite, backends=run.backend)


def _removed(run: RunRow) -> None:
    if taken := words.removed(data.ask(queries.removals, run.id)):
        st.caption(f":material/auto_delete: Its {taken}; verdict and figures stay.")


def _beside(run: RunRow) -> None:
    """What a run was for that is no night of the team's own: a look at another, or its control."""
    if run.subset == queries.CONFIRM:
        about = run.trigger.rpartition(":")[2]
        _stands_at("This run asked once more what another had asked; what came of it stands there.", about)
    if run.subset == queries.COMPARED:
        st.markdown("This run is a side of a comparison, and no night of its series.")
    if run.control_of is not None:
        told = "A frozen release made this run in the same hours, to be compared with."
        _stands_at(told, run.control_of)


def _stands_at(said: str, about: int | str) -> None:
    """What the run was for, with the way to the run that it is about."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(said)
        open_ = {"on_click": navigation.go, "args": ("run",), "kwargs": {"run": about}}
        st.button(f"Run {plain(str(about))}", icon=":material/chevron_right:", type="tertiary", **open_)


def _problem(run: RunRow) -> None:
    with st.container(border=True):
        parts.state(run.status)
        st.markdown(plain(run_words.reason(run)))
        if run.status == "interrupted":
            st.code(run_words.again(run), language="bash", width=420)
        else:
            st.markdown("Is the backend as its adapter expects it? This asks it a little, and says:")
            st.code(f"memtrend doctor {shlex.quote(run.backend)}", language="bash", width=420)


def _cards(run: RunRow, before: RunRow | None) -> None:
    shown = [name for name in CARDS if name in run.metrics]
    with st.grid(len(shown) + 1, min_column_width=200, gap="small"):
        for name in shown:
            now, old = run.metrics[name], before.metrics.get(name) if before else None
            bounds = words.interval(name, now.low, now.high)
            change = (
                f"{words.difference(name, old.mean, now.mean)} since run {before.id}"
                if before and old
                else ""
            )
            parts.card(
                words.label(name).capitalize(), words.amount(name, now.mean), f"{bounds} · n {now.n}", change,
                meaning=METRICS[name].meaning,
            )  # fmt: skip
        asked = f"{run.trials} × {words.count(run.cases_total // run.trials, 'case')}"
        parts.card("Took", _took(run), asked, words.count(run.errors, "error") if run.errors else "no error")


def _took(run: RunRow) -> str:
    return words.duration((run.finished_at - run.started_at).total_seconds()) if run.finished_at else "–"


# Left -----------------------------------------------------------------------------------------------------


def _metrics(run: RunRow, before: RunRow | None) -> None:
    if not run.metrics:
        return
    frame = tables.metrics_frame(run, before)
    with parts.heading("Metrics"):
        tables.download("CSV", f"run-{run.id}-metrics.csv", lambda: frame)
    st.dataframe(
        frame, key="metrics", hide_index=True, height="content", placeholder="–",
        column_config=tables.metrics_columns(before),
    )  # fmt: skip
    st.caption("Differences are plain numbers: only a verdict says better or worse.", help=tables.INTERVAL)
    with st.expander("What these mean"):
        st.markdown("\n".join(
            f"- **{plain(words.label(name))}**: {plain(METRICS[name].meaning)}"
            for name in METRICS if name in run.metrics
        ))  # fmt: skip


def _cases(
    run: RunRow,
    cases: Sequence[CaseRow],
    before: RunRow | None,
    old: Mapping[str, CaseRow],
    lost: Collection[str],
) -> None:
    st.subheader("Cases", anchor=False)
    if not cases:
        st.markdown("No case was asked.")
        return
    groups = _groups(cases, old, lost)
    labels = [name for name, rows in groups.items() if rows or name in (FAILED, ALL)]
    order = (ERRORS, FAILED, ALL) if run.status == "invalid" else (LOST, CHANGED, FAILED, ERRORS, ALL)
    start = next(name for name in order if groups[name])
    chosen = st.segmented_control(
        "Cases", labels, default=start, key="cases", bind="query-params", required=True,
        label_visibility="collapsed",
    )  # fmt: skip
    rows = groups[chosen]
    st.session_state["_cases"] = [row.case for row in rows]
    st.session_state["_run"] = run.id
    if not rows:
        st.markdown("None.")
        return
    st.dataframe(
        tables.cases_frame(rows, old), key="case-table", hide_index=True, on_select=_opened, placeholder="–",
        selection_mode="single-cell", column_config=tables.cases_columns(before),
        height="content" if len(rows) <= 15 else 540,
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        shown = f"{words.count(len(rows), 'case')} of {len(cases)}. A click on a row opens the case."
        st.caption(shown, width="content")
        tables.opener("Or open one by name", [row.case for row in rows], "open-case", _open)
        tables.download("Cases as CSV", f"run-{run.id}.csv", lambda: tables.cases_frame(cases, old))


def _groups(
    cases: Sequence[CaseRow], old: Mapping[str, CaseRow], lost: Collection[str]
) -> dict[str, list[CaseRow]]:
    """`lost` are those that the verdict names; what changed did so since the run before."""

    def changed(row: CaseRow) -> bool:
        before = old.get(row.case)
        return before is not None and None not in (before.passed, row.passed) and before.passed != row.passed

    return {
        LOST: [row for row in cases if row.case in lost],
        CHANGED: [row for row in cases if changed(row)],
        FAILED: [row for row in cases if row.passed is False],
        ERRORS: [row for row in cases if row.status == "error"],
        SKIPPED: [row for row in cases if row.status == "skipped"],
        ALL: list(cases),
    }


def _opened() -> None:
    place = tables.clicked("case-table")
    if place is not None:
        _open(place)


def _open(place: int) -> None:
    navigation.go("case", case=st.session_state["_cases"][place], run=st.session_state["_run"])


# Right ----------------------------------------------------------------------------------------------------


def _environment(run: RunRow, before: RunRow | None) -> None:
    st.subheader("What changed since the run before", anchor=False)
    if run.environment_id is None:
        st.markdown("The environment of this run was not recorded.")
        return
    changes = next(
        (c.changes for c in data.ask(queries.environment_changes, run.suite) if c.run_id == run.id), []
    )
    if before is None:
        st.markdown("There is no whole run before it.")
    elif not changes:
        st.markdown(f"Nothing: same packages, models and configuration as in run {before.id}.")
    else:
        rows = [{"name": name, "was": _text(old), "is": _text(new)} for name, old, new in changes]
        headings = {"name": "Name", "was": "Was", "is": "Is"}
        st.dataframe(
            pd.DataFrame(rows), key="changes", hide_index=True, column_config=headings, placeholder="–",
            height="content" if len(rows) <= 15 else 540,
        )  # fmt: skip
    with st.expander("The whole environment", on_change="rerun", key="environment") as whole:
        if whole.open:
            st.json(data.ask(queries.environment, run.environment_id), expanded=2)


def _compare(run: RunRow, before: RunRow | None, said: VerdictRow | None) -> None:
    """With the last run that its verdict was held against; without one with the run before."""
    good = [id for id in said.content["baseline"] if id > 0] if said else []  # of a file there are no runs
    other = good[-1] if good else before and before.id
    if run.status == "whole" and not run.subset and other:
        which = "last good run" if good else "run before"
        sides = {"suite": run.suite, "a": str(other), "b": str(run.id)}
        parts.onward("compare", f"Compare with the {which} ({other})", **sides)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _tags(run: RunRow, before: RunRow | None) -> None:
    rows = [row for row in data.ask(queries.run_tags, run.id) if row.metric == "pass"]
    if not rows:
        return
    old = (
        {row.tag: row.mean for row in data.ask(queries.run_tags, before.id) if row.metric == "pass"}
        if before
        else {}
    )
    table = [
        {
            "tag": row.tag,
            "n": row.n,
            "now": row.mean * 100,
            "interval": words.interval("pass", row.low, row.high),
            "before": old[row.tag] * 100 if row.tag in old else None,
        }
        for row in sorted(rows, key=lambda row: (-row.n, row.tag))
    ]
    column, frame = st.column_config, pd.DataFrame(table)
    with parts.heading("By tag"):
        tables.download("CSV", f"run-{run.id}-tags.csv", lambda: frame)
    st.dataframe(
        frame, key="tags", hide_index=True, height="content", placeholder="–",
        column_config={
            "tag": "Tag", "n": column.NumberColumn("n", width=50),
            "now": column.NumberColumn("Pass %", format="%.1f", width=70),
            "interval": column.TextColumn("95 % interval", width=110),
            "before": before and column.NumberColumn(f"Run {before.id}", format="%.1f", width=80),
        },
    )  # fmt: skip


def _journal(run: RunRow) -> None:
    """Text of somebody else's process: shown as it is, and never as anything else."""
    told = data.ask(queries.journal, run.id)
    if told:
        st.subheader("Told beside the answers", anchor=False)
        refused = [line for line in told.splitlines() if line.startswith("refused: ")]
        if refused:
            st.caption("Addresses that its worker asked for and was refused come first.")
        with st.expander(f"{words.count(len(told.splitlines()), 'line')} of its processes"):
            st.code(told, language=None, wrap_lines=True)


page()
