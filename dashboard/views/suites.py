"""Can the questions be trusted? Coverage, flaky cases, versions and cost of one suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import charts, data, navigation, parts, tables
from store import queries, words
from store.queries import CaseVersion, FlakyCase, OverviewRow, SuiteRow

LAST = 30
SHOWN_FLAKY = 12


def page() -> None:
    suites = data.ask(queries.suites)
    if not suites:
        parts.nothing_yet(
            "No suite is known yet", "The collector writes the suites that it knows when it starts.", COMMANDS
        )
        return
    heading = st.container()
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        names = [suite.name for suite in suites]
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
    with heading:
        _title(suite, rows, flaky)
    _cards(suite, rows, flaky, cases)
    left, right = st.columns(2, gap="medium")
    with left:
        _coverage(suite)
    with right:
        _flaky_table(flaky)
        _versions(suite)
    _cases(cases)


COMMANDS = (parts.FIRST_RUN, ("Write a configuration and a first suite of your own", "memtrend init"))


def _facts(suite: SuiteRow) -> str:
    since = f"version {suite.version[:8]} since {parts.day(suite.since)}"
    planted = f"{words.count(suite.plants, 'memory', 'memories')} planted a run"
    return parts.plain(f"{words.origin(suite.origin)} · {since} · {planted}")


def _title(suite: SuiteRow, rows: Sequence[OverviewRow], flaky: Sequence[FlakyCase]) -> None:
    tags = data.ask(queries.suite_tags, suite.name)
    runs = sum(len(row.points) for row in rows)
    finding = words.suite_title(suite.name, suite.cases, len(tags), runs, len({row.case for row in flaky}))
    parts.title(finding, parts.newest(row.last_whole for row in rows))


def _flaky(suite: str) -> list[FlakyCase]:
    """Of real backends: a floor that passes by chance says nothing about the question."""
    mixed = data.ask(queries.flaky_cases, suite, last=LAST)
    return [row for row in mixed if row.backend in parts.contenders() and words.is_flaky(row.recent)]


# Cards ----------------------------------------------------------------------------------------------------


def _cards(
    suite: SuiteRow, rows: Sequence[OverviewRow], flaky: Sequence[FlakyCase], cases: Sequence[CaseVersion]
) -> None:
    floors = data.ask(queries.floors, suite.name, "pass")
    with st.grid(4, min_column_width=220, gap="small"):
        critical = sum(case.critical for case in cases)
        parts.card(
            "Cases",
            f"{suite.cases}",
            f"{critical} critical · {words.count(suite.versions, 'version')} so far",
        )
        names = {row.case for row in flaky}
        parts.card(
            "Flaky cases",
            f"{len(names)} of {suite.cases}",
            f"turned at least {words.FLAKY_FLIPS} times in {LAST} runs of a backend",
        )
        values = " · ".join(words.bare("pass", rolled.mean) for rolled in floors.values())
        n = max((rolled.n for rolled in floors.values()), default=0)
        parts.card(
            "Floors: " + ", ".join(floors) if floors else "Floors",
            f"{values} %" if values else "–",
            f"n {n}" if n else "not measured yet",
        )
        parts.card("A run takes", *_cost(rows))


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
    ), f"all {len(took)} backends · longest {slowest}, {words.duration(took[slowest])} · {spent}"


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


def _flaky_table(flaky: Sequence[FlakyCase]) -> None:
    st.subheader("Flaky cases", anchor=False)
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


def _versions(suite: SuiteRow) -> None:
    st.subheader("Versions", anchor=False)
    rows = [
        {"version": row.version[:8], "since": parts.day(row.created_at)}
        | {name: getattr(row, name) for name in ("cases", "added", "removed", "changed")}
        for row in data.ask(queries.suite_versions, suite.name)
    ]
    headings = {
        name: name.capitalize() for name in ("version", "since", "cases", "added", "removed", "changed")
    }
    st.dataframe(
        pd.DataFrame(rows), key="versions", hide_index=True, height="content", column_config=headings
    )


def _cases(cases: Sequence[CaseVersion]) -> None:
    st.subheader("Cases", anchor=False)
    st.session_state["_suite_cases"] = [(case.suite, case.name) for case in cases]
    column = st.column_config
    st.dataframe(
        pd.DataFrame([_case(case) for case in cases]), key="suite-cases", hide_index=True, on_select=_opened,
        selection_mode="single-cell", height="content" if len(cases) <= 20 else 620, placeholder="–",
        column_config={
            "case": column.TextColumn("Case", width=190), "asked": column.TextColumn("Asked", width=360),
            "tags": column.TextColumn("Tags", width=190), "critical": column.TextColumn("Critical", width=70),
            "k": column.NumberColumn("k", width=40), "source": column.TextColumn("Source", width="large"),
        },
    )  # fmt: skip
    st.caption("A click on a row opens the case.")


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
        suite, case = st.session_state["_suite_cases"][place]
        navigation.go("case", suite=suite, case=case)


page()
