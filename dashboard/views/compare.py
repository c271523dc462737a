"""May B replace A? Two sides on the same cases: the answer, where the difference lies, what it rests on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import (
    compare_tables,
    compared,
    data,
    ecdf,
    forest,
    health_tables,
    navigation,
    parts,
    tables,
)
from dashboard.charts import CONFIG
from dashboard.compared import Chosen
from dashboard.parts import Colour, plain
from store import comparison_words, queries, words
from store.comparisons import LEVEL, TRIALS, Comparison, RatioRow, SideTold, Turned, Word
from store.licences import withheld
from store.sides import BadSide

LOOKS: dict[Word, tuple[Colour, str]] = {
    "better": ("green", ":material/trending_up:"),
    "non_inferior": ("green", ":material/check:"),
    "inferior": ("red", ":material/trending_down:"),
    "inconclusive": ("blue", ":material/help:"),
}
FIRST_TAGS = 12
"""That are drawn before all are asked for."""
LINKS = 40
RATIOS = {
    "Latency p95, B / A": ("recall_ms_p95", "recall_ms_median"),
    "Tokens returned, B / A": ("returned_tokens",),
    "": ("money_per_1000", "ingest_tokens", "plants_per_s"),
}
"""Cards: of each the first that is known."""


def page() -> None:
    suites = [suite.name for suite in data.ask(queries.suites)]
    if not suites:
        parts.nothing_yet(
            "Nothing has been measured yet", "It takes whole runs of two backends, or of one at two times.",
            [parts.FIRST_RUN],
        )  # fmt: skip
        return
    heading = st.container()
    chosen = compared.choose(suites)
    frame = _frame()
    try:
        c = compared.found(chosen) if chosen.a and chosen.b else None
    except (BadSide, queries.NothingToCompare) as error:
        frame.empty()
        _refused(chosen, str(error), heading)
        return
    frame.empty()
    if c is None:
        _one_alone(chosen, heading)
        return
    with heading:
        parts.title(comparison_words.title(c), parts.newest([*c.a.runs, *c.b.runs]))
    _sides(c, chosen)
    with chosen.tools:
        _tools(c, chosen)
    if c.cases:
        _cards(c)
        _warnings(c)
        _differences(c)
        _turned(c)
        _beside(c)
    else:
        _nothing_shared(c, chosen)


def _frame() -> DeltaGenerator:
    """A viewer who comes new has an empty chart at once, with which the browser loads what draws charts while
    the record is asked."""
    place = st.empty()
    if not st.session_state.setdefault("_charts_loaded", False):
        st.session_state["_charts_loaded"] = True
        place.plotly_chart(forest.blank(parts.theme()), key="blank", theme=None, config=CONFIG)
    return place


def _sides(c: Comparison, chosen: Chosen) -> None:
    """What each turned out to be, below where it was chosen."""
    sides = [comparison_words.side(one, parts.zone()) for one in (c.a, c.b)]
    for place, told in zip(chosen.told, [*sides, words.origin(c.suite_origin)], strict=True):
        place.caption(plain(told))


def _tools(c: Comparison, chosen: Chosen) -> None:
    with st.popover("Download", icon=":material/download:", type="tertiary"):
        why = withheld(c.suite, c.suite_origin, c.licence)
        texts = st.checkbox(
            "With questions and answers", key="texts", disabled=bool(why), help=plain(why) or None
        )
        told = c._replace(with_texts=texts and not why)
        kept: dict[str, Any] = {"on_click": "ignore", "type": "tertiary", "icon": ":material/download:"}
        name = re.sub(r"[^\w.-]+", "-", f"{c.suite}-{c.a.name}-{c.b.name}")
        st.download_button(
            "HTML", lambda: _report().html(told), f"{name}.html", "text/html", key="html", **kept
        )
        st.download_button(
            "Markdown", lambda: _report().markdown(told), f"{name}.md", "text/markdown", key="md",
            **kept,
        )  # fmt: skip
    if compared.can_be_asked(chosen):
        with st.popover("Ask both now", icon=":material/play_arrow:", type="tertiary"):
            st.markdown("In turns, in the same hours, each case four times. In a terminal:")
            st.code(chosen.command, language="bash", wrap_lines=True)


def _report() -> Any:
    from dashboard import report  # reads templates: of no use before somebody takes one along

    return report


# Without an answer ----------------------------------------------------------------------------------------


def _refused(chosen: Chosen, why: str, heading: DeltaGenerator) -> None:
    """A side that is none, or has no run. What was wrong may hold a command; it is told as it is."""
    with heading:
        parts.title("These two cannot be compared", None)
    with st.container(border=True, width=720):
        st.badge("No answer", icon=":material/help:", color="blue")
        st.text(why)
        st.markdown("Choose others above, or ask both:")
        st.code(chosen.command, language="bash")


def _one_alone(chosen: Chosen, heading: DeltaGenerator) -> None:
    asked = [choice.backend for choice in chosen.choices if choice.kind == "newest"]
    suite = shlex.quote(chosen.suite)
    with heading:
        who = f"Only {asked[0]} has" if len(asked) == 1 else "No backend has" if not asked else "One side has"
        parts.title(f"{who} answered {chosen.suite} so far", None)
    st.markdown("A comparison takes two sides: another backend, or this one before and after a change.")
    for what, command in (
        ("Ask what another backend answers", f"memtrend run --suite {suite} --backend NAME"),
        ("Ask two in turns, in the same hours, and compare them", chosen.command),
    ):
        with st.container(border=True, width=720):
            st.markdown(what)
            st.code(command, language="bash")


def _nothing_shared(c: Comparison, chosen: Chosen) -> None:
    """Not one case was answered on both sides."""
    with st.container(border=True, width=720):
        st.badge(comparison_words.verdict(c), icon=":material/help:", color="blue")
        st.markdown(plain(comparison_words.sure(c)))
        for line in comparison_words.dropped(c):
            st.markdown(f"- {plain(line)}")
        st.markdown("Ask both anew, in turns:")
        st.code(chosen.command, language="bash")


# The answer -----------------------------------------------------------------------------------------------


def _cards(c: Comparison) -> None:
    answer, figures = st.columns([1, 1.9], gap="small")
    with answer.container(border=True, height="stretch", gap="small"):
        _answer(c)
    with figures, st.grid(3, min_column_width=170, gap="small"):
        for label, value, *notes in _figures(c):
            parts.card(label, value, *notes)


def _answer(c: Comparison) -> None:
    """In words first; what it rests on is a click away."""
    colour, icon = LOOKS[c.migration.verdict]
    st.markdown("May B replace A?")
    st.badge(comparison_words.verdict(c), icon=icon, color=colour, width="content")
    st.markdown(f"**{plain(comparison_words.sure(c))}**")
    st.markdown(f":small[:gray[{plain(comparison_words.evidence(c))}]]")
    if settle := comparison_words.settle(c):
        st.markdown(f":small[{plain(settle)}]")
    with st.popover("Numbers", type="tertiary", on_change="rerun", key="numbers") as shown:
        if shown.open:
            st.table(_numbers(c), border="horizontal", hide_index=True)


def _numbers(c: Comparison) -> list[dict[str, str]]:
    found = c.migration
    rows = {
        "Difference of the pass rates": f"{comparison_words.points(found.difference or 0.0)} points",
        f"{LEVEL * 100:.0f} % interval": comparison_words.interval(found.low, found.high)
        or f"none: {found.reason}",
        "Margin": f"−{comparison_words.margin(found.margin)}, one-sided {found.alpha * 100:.0f} %",
        "Method": found.method,
        "Seed": "none was drawn" if found.seed is None else str(found.seed),
        "Cases": f"{c.cases} compared, {len(c.dropped)} dropped",
        "Trials": f"A {c.a.trials}, B {c.b.trials} of each case",
        "Suite version": c.suite_version[:12],
        **{f"Runs of {which}": ", ".join(str(run.id) for run in one.runs) for which, one in _both(c)},
    }
    if c.clusters is not None:
        rows["Conversations"] = f"{c.clusters}, drawn as wholes"
    return [{"": name, "What it rests on": plain(told)} for name, told in rows.items()]


def _both(c: Comparison) -> tuple[tuple[str, SideTold], tuple[str, SideTold]]:
    return ("A", c.a), ("B", c.b)


def _figures(c: Comparison) -> Iterator[tuple[str, ...]]:
    """Label, value, and what it rests on."""
    found, ratios = c.migration, {row.what: row for row in c.ratios}
    interval = comparison_words.interval(found.low, found.high)
    by = "–" if found.difference is None else f"{comparison_words.points(found.difference)} points"
    yield (
        "B − A, pass rate",
        by,
        f"{LEVEL * 100:.0f} %: {interval} · n {c.cases}" if interval else "no interval",
    )
    yield "Cases", *_counts(c)
    yield "Cannot rule out", *_loss(c)
    for label, known in RATIOS.items():
        if row := next((ratios[what] for what in known if what in ratios), None):
            yield label or comparison_words.ratio_name(row).capitalize(), *_ratio(row)


def _counts(c: Comparison) -> tuple[str, str, str]:
    lost, gained = comparison_words.confirmed(c.lost), comparison_words.confirmed(c.gained)
    sure = min(c.a.trials, c.b.trials) >= TRIALS
    told = (lost, gained) if sure else (c.lost, c.gained)
    critical = sum(one.critical for one in told[0])
    trials = (
        f"{c.a.trials} and {c.b.trials} trials"
        if c.a.trials != c.b.trials
        else words.count(c.a.trials, "trial")
    )
    return (
        f"{len(told[0])} lost, {len(told[1])} gained",
        f"{'confirmed' if sure else 'not confirmed'} · {trials}",
        f"{critical} critical · {len(c.dropped)} dropped",
    )


def _ratio(row: RatioRow) -> tuple[str, str, str]:
    bounds = f"{row.low:.2f} to {row.high:.2f}" if row.low and row.high else "no interval"
    sides = [comparison_words.ratio_amount(row, value) for value in (row.a, row.b)]
    times = "–" if row.ratio is None else f"{row.ratio:.2f} ×"
    if row.what == "money_per_1000":
        return " → ".join(sides), times, f"n {row.n}"
    return times, f"95 %: {bounds} · n {row.n}", " → ".join(sides)


def _loss(c: Comparison) -> tuple[str, str]:
    if c.cannot_rule_out is None:
        return "anything", "there is no interval"
    wide = max((-row.low for row in c.tags if row.low is not None and row.low < 0), default=0.0)
    tags = f"in tags up to {wide * 100:.0f} points"
    if not c.cannot_rule_out:
        return "no loss in all", tags
    told = f"{c.cannot_rule_out * 100:.1f}"
    return f"a loss {'under 0.1' if told == '0.0' else f'of {told}'}", f"points; {tags}"


def _warnings(c: Comparison) -> None:
    for told in c.warnings:
        st.markdown(f":material/warning: {plain(told)}")


# Where it lies --------------------------------------------------------------------------------------------


def _differences(c: Comparison) -> None:
    with parts.heading("Where the difference lies"):
        every = len(c.tags) <= FIRST_TAGS or st.toggle(
            f"All {len(c.tags)} tags", key="tags", bind="query-params"
        )
    narrow = navigation.is_tight()
    figure = forest.figure(
        c, parts.theme(), compared.styles(c), most_tags=None if every else FIRST_TAGS, narrow=narrow
    )
    st.plotly_chart(figure, key="forest", theme=None, config=CONFIG, alt=forest.alt(c))
    note = f"Shaded: losses inside the margin. {comparison_words.no_verdict()}"
    tables.beneath(note, f"{c.suite}-differences.csv", lambda: compare_tables.differences_frame(c))
    with st.expander("The same as a table", on_change="rerun", key="differences") as shown:
        if shown.open:
            frame = compare_tables.differences_frame(c)
            health_tables.table(frame, "differences-table", compare_tables.differences_columns(), most=30)


# Lost and gained ------------------------------------------------------------------------------------------


def _turned(c: Comparison) -> None:
    rows = compare_tables.turned(c)
    with parts.heading("Lost and gained"):
        if rows:
            tables.download("CSV", "turned.csv", lambda: compare_tables.turned_csv(rows), key="turned-csv")
    if not rows:
        st.markdown("No case came out differently.")
        return
    _kinds(c)
    st.session_state["_turned"] = [_where(c, one, change) for change, one in rows]
    st.dataframe(
        compare_tables.turned_frame(rows), key="turned", hide_index=True, on_select=_opened, placeholder="–",
        selection_mode="single-cell", column_config=compare_tables.turned_columns(c),
        height="content" if len(rows) <= 15 else 31 * 16 + 6,
    )  # fmt: skip
    sure = "Lost and gained: in at least 3 of 4 trials on each side; with a question mark: less sure. "
    st.caption(f"{sure}A click on a row opens the case.")
    with st.expander("The same as links", on_change="rerun", key="turned-list") as shown:
        if shown.open:
            _links(rows)


def _kinds(c: Comparison) -> None:
    """Counted above the table that names them."""
    told = [
        f"{what} {len(rows)}, by what went wrong on {which}: {compare_tables.kinds(rows)}"
        for what, which, rows in (("Lost", "B", c.lost), ("Gained", "A", c.gained))
        if rows
    ]
    st.markdown("  \n".join(f":small[{plain(line)}]" for line in told))


def _where(c: Comparison, one: Turned, change: str) -> dict[str, str | int]:
    """On the side that lost it."""
    told, run = (c.b, one.b_run) if change.startswith(compare_tables.LOST) else (c.a, one.a_run)
    return {"suite": c.suite, "case": one.case, "backend": told.backend, "run": run}


def _opened() -> None:
    place = tables.clicked("turned")
    if place is not None:
        navigation.go("case", **st.session_state["_turned"][place])


def _links(rows: Sequence[tuple[str, Turned]]) -> None:
    for (change, one), where in list(zip(rows, st.session_state["_turned"], strict=True))[:LINKS]:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            parts.onward("case", plain(one.case), **{name: str(value) for name, value in where.items()})
            passed = f"A {one.a_passes}/{one.a_trials}, B {one.b_passes}/{one.b_trials}"
            told = f"{change} · {one.failure or 'not named'} · {passed}"
            st.markdown(f":small[:gray[{plain(told)}]]", width="content")
    if len(rows) > LINKS:
        st.caption(f"and {len(rows) - LINKS} more: the table and its CSV have all")


# Beside each other ----------------------------------------------------------------------------------------


def _beside(c: Comparison) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        _latency(c)
        _unseen(c)
    with right:
        _environment(c)
        st.subheader("What to read the rates by", anchor=False)
        st.table(compare_tables.references(c), border="horizontal", hide_index=True)


def _latency(c: Comparison) -> None:
    st.subheader("Latency and cost", anchor=False)
    if all(c.latencies):
        figure = ecdf.figure(c, parts.theme(), compared.styles(c))
        st.plotly_chart(figure, key="latency", theme=None, config=CONFIG, alt=ecdf.alt(c))
        st.caption(
            f"Share of answers that had come by a time; marked: median and p95. n {len(c.latencies[0])}."
        )
    if c.ratios:
        st.table(compare_tables.ratios(c), border="horizontal", hide_index=True)


def _environment(c: Comparison) -> None:
    st.subheader("What differs in the environment", anchor=False)
    if c.changes is None:
        st.markdown("What one of the two ran on was not recorded.")
        return
    if compare_tables.differing(c.changes):
        frame = compare_tables.environment_frame(c.changes)
        health_tables.table(frame, "environment", compare_tables.environment_columns(), most=10)
    else:
        st.markdown("Nothing that is recorded.")
    newest = [one.runs[-1].environment_id for one in (c.a, c.b)]
    a, b = (data.ask(queries.environment, one) if one is not None else {} for one in newest)
    if alike := compare_tables.same(a or {}, b or {}):
        st.caption(f"Same in both: {plain(alike)}")


def _unseen(c: Comparison) -> None:
    st.subheader("What this could not have seen", anchor=False)
    open_ = c.migration.verdict == "inconclusive"
    lines = [
        comparison_words.blind_spot(c),
        *(comparison_words.foresight(c.foresight) if open_ else []),
        *(f"Left out: {line}" for line in comparison_words.dropped(c)),
    ]
    st.markdown("\n".join(f"- {plain(line)}" for line in lines))


page()
