"""Can the questions be trusted? Coverage, flaky cases, versions and cost of one suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import charts, data, health_tables, navigation, parts, proof, tables
from store import queries, words
from store.queries import CaseStanding, CaseVersion, FindingRow, FlakyCase, LintReport, OverviewRow, SuiteRow

LAST = 30
SHOWN_FLAKY = 12
SHOWN_FINDINGS = 8
CRITICAL = "One lost critical case raises an alarm by itself."


def page() -> None:
    suites = data.ask(queries.suites)
    if not suites:
        parts.nothing_yet(
            "No suite is known yet", "The collector writes the suites that it knows when it starts.", COMMANDS
        )
        return
    heading = st.container()
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        names = [suite.name for suite in sorted(suites, key=lambda suite: suite.origin != "own")]
        chosen = st.segmented_control(
            "Suite", names, default=names[0], key="name", bind="query-params", required=True,
            label_visibility="collapsed",
        )  # fmt: skip
        suite = next(row for row in suites if row.name == chosen)
        st.caption(_facts(suite), width="stretch")
        cases = data.ask(queries.suite_cases, suite.name)
        tables.download("Cases as CSV", f"{suite.name}.csv", lambda: _csv(cases))
    rows = [row for row in data.ask(queries.overview) if row.suite == suite.name]
    flaky = _flaky(suite.name)
    report = data.ask(queries.lint_report, suite.name)
    with heading:
        _title(suite, rows, flaky, report.errors if report else 0)
    _cards(suite, rows, flaky, cases, report)
    left, right = st.columns(2, gap="medium")
    with left:
        _coverage(suite)
        _quarantine(suite)
    with right:
        _flaky_table(flaky)
        _lint(suite, report)
        _versions(suite)
    proof.table(suite.name)
    _cases(cases)


COMMANDS = (parts.FIRST_RUN, ("Write a configuration and a first suite of your own", "memtrend init"))


def _facts(suite: SuiteRow) -> str:
    since = f"version {suite.version[:8]} since {parts.day(suite.since)}"
    planted = f"{words.count(suite.plants, 'memory', 'memories')} planted a run"
    return parts.plain(f"{words.origin(suite.origin)} · {since} · {planted}")


def _title(suite: SuiteRow, rows: Sequence[OverviewRow], flaky: Sequence[FlakyCase], errors: int) -> None:
    tags = data.ask(queries.suite_tags, suite.name)
    runs = sum(len(row.points) for row in rows)
    mixed = len({row.case for row in flaky})
    finding = words.suite_title(suite.name, suite.cases, len(tags), runs, mixed, errors)
    parts.title(finding, parts.newest(row.last_whole for row in rows))


def _flaky(suite: str) -> list[FlakyCase]:
    """Of real backends: a floor that passes by chance says nothing about the question."""
    mixed = data.ask(queries.flaky_cases, suite, last=LAST)
    return [row for row in mixed if row.backend in parts.contenders() and words.is_flaky(row.recent)]


# Cards ----------------------------------------------------------------------------------------------------


def _cards(
    suite: SuiteRow,
    rows: Sequence[OverviewRow],
    flaky: Sequence[FlakyCase],
    cases: Sequence[CaseVersion],
    report: LintReport | None,
) -> None:
    floors = data.ask(queries.floors, suite.name, "pass")
    with st.grid(6, min_column_width=180, gap="small"):
        critical = sum(case.critical for case in cases)
        parts.card(
            "Cases",
            f"{suite.cases}",
            f"{critical} critical · {words.count(suite.versions, 'version')} so far",
        )
        proof.card(suite.name)
        names = {row.case for row in flaky}
        parts.card(
            "Flaky cases",
            f"{len(names)} of {suite.cases}",
            f"turned at least {words.FLAKY_FLIPS} times in {LAST} runs of a backend",
            meaning="Cases that pass one night and fail another while nothing changed: weak witnesses.",
        )
        parts.card("Lint", *_lint_figure(report), meaning="What is wrong with the questions themselves.")
        values = " · ".join(words.bare("pass", rolled.mean) for rolled in floors.values())
        n = max((rolled.n for rolled in floors.values()), default=0)
        parts.card(
            "Floors: " + ", ".join(floors) if floors else "Floors",
            f"{values} %" if values else "–",
            f"n {n}" if n else "not measured yet",
            words.telling(report.telling, report.asked) if report else "",
            meaning="What a memory that returns nothing, and one that returns everything, would pass.",
        )
        parts.card("A run takes", *_cost(rows))


def _lint_figure(report: LintReport | None) -> tuple[str, str]:
    if report is None:
        return "–", "the collector has not looked yet"
    errors, warnings = words.count(report.errors, "error"), words.count(report.warnings, "warning")
    worst, other = (errors, warnings) if report.errors else (warnings, errors)
    return worst, f"{other} · {parts.day(report.at)}"


def _cost(rows: Sequence[OverviewRow]) -> tuple[str, str]:
    """How long the newest whole runs took, and what they cost where they cost anything."""
    runs = [row.last_whole for row in rows if row.last_whole and row.last_whole.finished_at]
    took = {
        run.backend: (run.finished_at - run.started_at).total_seconds() for run in runs if run.finished_at
    }
    if not took:
        return "–", "no whole run yet"
    slowest = max(took, key=lambda name: took[name])
    money = sum(run.metrics["money"].mean * run.metrics["money"].n for run in runs if "money" in run.metrics)
    spent = words.amount("money", money) if money else "no money"
    return words.duration(
        sum(took.values())
    ), f"{words.count(len(took), 'backend')} · longest {slowest}, {words.duration(took[slowest])} · {spent}"


# Tables ---------------------------------------------------------------------------------------------------


def _coverage(suite: SuiteRow) -> None:
    st.subheader("Coverage by tag", anchor=False, help="A case may have several tags.")
    tags = [(row.tag, row.cases) for row in data.ask(queries.suite_tags, suite.name)]
    if not tags:
        st.markdown("No case has a tag.")
        return
    told = ", ".join(f"{tag} {cases}" for tag, cases in tags)
    st.plotly_chart(
        charts.coverage(tags, parts.theme()), key="coverage", theme=None, config=charts.CONFIG,
        alt=f"Cases by tag: {told}",
    )  # fmt: skip
    tables.beneath("Cases with each tag.", "tags.csv", lambda: pd.DataFrame(tags, columns=["tag", "cases"]))


def _flaky_table(flaky: Sequence[FlakyCase]) -> None:
    with parts.heading("Flaky cases", "Passed and failed by turns, while nothing changed."):
        if flaky:
            tables.download("CSV", "flaky.csv", lambda: health_tables.rows_csv(flaky))
    if not flaky:
        st.markdown(f"None turned to and fro in the last {LAST} runs of a backend.")
        return
    cases = {row.case: [other for other in flaky if other.case == row.case] for row in flaky}
    table = [_flaky_row(case, rows) for case, rows in list(cases.items())[:SHOWN_FLAKY]]
    column = st.column_config
    st.dataframe(
        pd.DataFrame(table), key="flaky", hide_index=True, height="content",
        column_config={
            "case": "Case",
            "share": column.ProgressColumn(
                "Runs passed", min_value=0, max_value=100, format="%.0f %%", width=130, color="gray"
            ),
            "recent": column.BarChartColumn(f"Last {LAST} runs", y_min=0, y_max=1, width=170, color="gray"),
            "on": "On",
        },
    )  # fmt: skip
    if len(cases) > SHOWN_FLAKY:
        st.caption(f"The {SHOWN_FLAKY} most mixed of {len(cases)}.")


def _flaky_row(case: str, rows: Sequence[FlakyCase]) -> dict[str, Any]:
    """A case on all backends on which it is flaky; the bars are of the most mixed."""
    passes, runs = (sum(getattr(row, name) for row in rows) for name in ("passes", "runs"))
    on = [row.backend for row in rows]
    return {
        "case": case,
        "share": passes / runs * 100,
        "recent": [int(passed) for passed in rows[0].recent],
        "on": words.listed(on) if len(on) <= 2 else words.count(len(on), "backend"),
    }


def _lint(suite: SuiteRow, report: LintReport | None) -> None:
    if report is None:
        return
    findings = data.ask(queries.findings, suite.name)
    with parts.heading("Lint", "What is wrong with the questions themselves."):
        if findings:
            tables.download("CSV", "lint.csv", lambda: health_tables.rows_csv(findings))
    if not findings:
        st.markdown("Nothing is wrong with the questions, as far as rules can tell.")
        return
    column = st.column_config
    st.dataframe(
        pd.DataFrame([_finding(row) for row in findings]), key="lint", hide_index=True,
        height="content" if len(findings) <= SHOWN_FINDINGS else 320,
        column_config={
            "level": column.MultiselectColumn(
                "Level", options=["error", "warning"], color=["red", "orange"], width=80
            ),
            "where": column.TextColumn("Where", width=120), "case": column.TextColumn("Case", width=130),
            "finding": column.TextColumn("Finding", width=250),
        },
    )  # fmt: skip
    st.caption(f"Why it matters and what to do: {parts.code(f'memtrend lint {suite.name}')}")


def _finding(row: FindingRow) -> dict[str, Any]:
    where = f"{row.file}:{row.line}" if row.line else row.file
    return {"level": [row.severity], "where": where, "finding": row.message, "case": row.case}


def _versions(suite: SuiteRow) -> None:
    rows = [
        {
            "version": row.version[:8],
            "since": parts.day(row.created_at),
            "cases": words.moved(row.added, row.removed, row.changed),
            "why": f"{row.author}: {row.reason}" if row.reason else "",
        }
        for row in data.ask(queries.suite_versions, suite.name)
    ]
    column, frame = st.column_config, pd.DataFrame(rows)
    with parts.heading("Versions", "Cases new, gone and changed against the version before."):
        tables.download("CSV", "versions.csv", lambda: frame)
    st.dataframe(
        frame, key="versions", hide_index=True, height="content", placeholder="nobody said",
        column_config={
            "version": column.TextColumn("Version", width=80), "since": column.TextColumn("Since", width=80),
            "cases": column.TextColumn("Cases", width=150), "why": column.TextColumn("Why", width="large"),
        },
    )  # fmt: skip


def _quarantine(suite: SuiteRow) -> None:
    """What a person decided first; the cases on trial, which may be many, as a number."""
    standings = data.ask(queries.case_standings, suite.name)
    trial = sum(row.standing == "trial" for row in standings)
    rows = [_decided(row) for row in standings if row.standing in _SHOWN] + _gone(suite, standings)
    with parts.heading("Quarantine: listed, charted, not judged"):
        if rows:
            tables.download("CSV", "quarantine.csv", lambda: pd.DataFrame(rows))
    if rows:
        headings = {name: name.capitalize() for name in ("case", "reason", "owner", "ends")}
        st.dataframe(
            pd.DataFrame(rows), key="quarantine", hide_index=True, height="content", column_config=headings
        )
    if trial or not rows:
        st.caption(words.on_trial(trial, queries.TRIAL_RUNS) if trial else "No case is in quarantine.")


def _gone(suite: SuiteRow, standings: Sequence[CaseStanding]) -> list[dict[str, Any]]:
    """Cases of the team's own that were deleted and not retired."""
    if suite.origin != "own":
        return []
    asked = tuple(row.case for row in standings if row.standing != "retired")
    gone = data.ask(queries.deleted_cases, suite.name, asked)
    return [{"case": name, "reason": "gone without a word", "owner": "", "ends": ""} for name in gone]


_SHOWN = {"quarantine": "", "expired": "ended ", "retired": "retired "}


def _decided(row: CaseStanding) -> dict[str, Any]:
    day = row.at if row.standing == "retired" else row.expires
    ends = f"{_SHOWN[row.standing]}{parts.day(day)}" if day else ""
    return {"case": row.case, "reason": row.reason, "owner": row.owner or row.author, "ends": ends}


def _cases(cases: Sequence[CaseVersion]) -> None:
    st.subheader("Cases", anchor=False)
    st.session_state["_suite_cases"] = [(case.suite, case.name) for case in cases]
    column = st.column_config
    st.dataframe(
        pd.DataFrame([_case(case) for case in cases]), key="suite-cases", hide_index=True, on_select=_opened,
        selection_mode="single-cell", height="content" if len(cases) <= 20 else 620, placeholder="–",
        column_config={
            "case": column.TextColumn("Case", width=190), "asked": column.TextColumn("Asked", width=360),
            "tags": column.TextColumn("Tags", width=190),
            "critical": column.TextColumn("Critical", width=70, help=CRITICAL),
            "k": column.NumberColumn("k", width=40, help="So many of the first hits count."),
            "source": column.TextColumn("Source", width="large"),
        },
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption("A click on a row opens the case.", width="content")
        tables.opener("Or open one by name", [case.name for case in cases], "open-case", _open)


def _case(case: CaseVersion) -> dict[str, Any]:
    return {
        "case": case.name,
        "asked": case.query,
        "tags": ", ".join(case.tags),
        "critical": "critical" if case.critical else "",
        "k": case.k,
        "source": case.source,
    }


def _csv(cases: Sequence[CaseVersion]) -> pd.DataFrame:
    rows: list[Mapping[str, Any]] = [
        _case(case) | {"hash": case.hash, "since": case.since.isoformat()} for case in cases
    ]
    return pd.DataFrame(rows)


def _opened() -> None:
    place = tables.clicked("suite-cases")
    if place is not None:
        _open(place)


def _open(place: int) -> None:
    suite, case = st.session_state["_suite_cases"][place]
    navigation.go("case", suite=suite, case=case)


page()
