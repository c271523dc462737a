"""Which two sides are looked at: chosen from lists, kept in the address, and found in the record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import data, parts
from dashboard.palette import Pair, pair
from store import queries
from store.comparisons import TRIALS, Comparison, taken
from store.queries import AlertRow, SideChoice
from store.sides import Side, side
from store.stats.margins import MARGIN

LABELS = {
    "newest": "{backend}, newest runs",
    "release": "{backend} {what}",
    "before": "{backend} before {what}, {day}",
    "after": "{backend} after {what}, {day}",
    "day": "{backend} on {day}",
    "run": "{backend}, run {what} of {moment}",
}
STANDING = ("open", "acknowledged")
BROUGHT = frozenset({"keyword", "dense", "hybrid", "belief"})
"""Types of backends that come with memtrend: they are seldom what is in use."""


class Chosen(NamedTuple):
    """`a` and `b` name the sides, as `store.sides` reads them, "" where there is none to choose; `margin` in
    points; `told` are the places under A, B and suite, `tools` the one at the row's end."""

    suite: str
    a: str
    b: str
    margin: float
    choices: Sequence[SideChoice]
    told: Sequence[DeltaGenerator]
    tools: DeltaGenerator

    @property
    def command(self) -> str:
        """Which asks both, and compares them."""
        sides = (shlex.quote(side or "NAME") for side in (self.a, self.b))
        return f"memtrend compare {' '.join(sides)} --suite {shlex.quote(self.suite)}" + (
            "" if self.margin == MARGIN * 100 else f" --margin {self.margin / 100:.6g}"
        )


# Choosing -------------------------------------------------------------------------------------------------


def choose(suites: Sequence[str]) -> Chosen:
    """One row: A, B, suite and margin."""
    places = st.columns([2.3, 2.3, 1.4, 1.1, 2.2], gap="small")
    with places[2]:
        suite = st.selectbox("Suite", suites, key="suite", bind="query-params", on_change=_another_suite)
    with places[3]:
        margin = st.number_input(
            "Margin, points", min_value=0.1, max_value=50.0, value=MARGIN * 100, step=0.5, format="%.1f",
            key="margin", bind="query-params",
            help="The largest loss of the pass rate that would be acceptable. Fix it before you look.",
        )  # fmt: skip
    choices = data.ask(queries.side_choices, suite)
    chosen, told = _sides(suite, choices), []
    for which, label, place in zip("ab", ("A, in use now", "B, the candidate"), places, strict=False):
        with place:
            _select(which, label, chosen["ab".index(which)], choices)
            told.append(st.empty())
    with places[4]:
        st.space("small")
        tools = st.container(horizontal=True, gap="small")
        tools.button(
            "Swap", icon=":material/swap_horiz:", type="tertiary", on_click=_swap, help="A becomes B"
        )
    return Chosen(suite, *chosen, margin, choices, [*told, places[2].empty()], tools)


def _select(which: str, label: str, text: str, choices: Sequence[SideChoice]) -> None:
    """The address is what counts, so that Back restores it, and a side written by hand is shown as it is."""
    labels = {choice.text: _label(choice) for choice in choices}
    key = f"side-{which}"
    st.session_state[key] = text or None
    options = [*labels, *([text] if text and text not in labels else [])]
    st.selectbox(
        label, options, key=key, format_func=lambda one: labels.get(one, one), on_change=_keep,
        placeholder="none yet", index=0 if text else None,
    )  # fmt: skip


def _label(choice: SideChoice) -> str:
    at = choice.at or parts.now()
    return LABELS[choice.kind].format(
        backend=choice.backend, what=choice.what, day=parts.day(at), moment=parts.moment(at)
    )


def _keep() -> None:
    for which in "ab":
        if (text := st.session_state.get(f"side-{which}")) is not None:
            st.query_params[which] = text


def _another_suite() -> None:
    """A run is of one suite; a backend or a mark may be known of the next one too."""
    known = {choice.text for choice in data.ask(queries.side_choices, st.session_state["suite"])}
    for which in "ab":
        if st.query_params.get(which) not in known:
            st.query_params.pop(which, None)


def _swap() -> None:
    other_way = [st.session_state.get(f"side-{which}") for which in "ba"]
    for which, text in zip("ab", other_way, strict=True):
        if text is not None:
            st.query_params[which] = text


def _sides(suite: str, choices: Sequence[SideChoice]) -> tuple[str, str]:
    """As the address says; else as they were chosen last; else those that make most sense."""
    a, b = (st.query_params.get(name, "") for name in "ab")
    last = st.session_state.setdefault("_sides", {})
    if not (a and b):
        kept = last.get(suite) or default(suite, choices)
        a = a or next((one for one in kept if one and one != b), "")
        b = b or next((one for one in reversed(kept) if one and one != a), "")
    last[suite] = (a, b)
    return a, b


def default(suite: str, choices: Sequence[SideChoice]) -> tuple[str, str]:
    """The backend that alerts, else the first of the team's own, against the best other one; where there is
    no other, before its turn against after it."""
    run = {choice.backend for choice in choices}
    own = [name for name in parts.contenders() if name in run]
    alert, kinds = _alert(suite, own), {one.name: one.type for one in data.ask(queries.backends)}
    if not own:
        return "", ""
    a = alert.backend if alert else next((name for name in own if kinds[name] not in BROUGHT), own[0])
    if others := [name for name in own if name != a]:
        rates = _rates(suite)
        return a, max(others, key=lambda name: rates.get(name, 0.0))
    if alert and alert.incident.last_good_run_id and alert.first_bad_run_id:
        return str(alert.incident.last_good_run_id), str(alert.first_bad_run_id)
    return a, ""


def _alert(suite: str, own: Sequence[str]) -> AlertRow | None:
    found = data.ask(queries.alerts, states=STANDING, suite=suite)
    return next(
        (one for one in found if one.backend in own and one.incident.kind.name != "improvement"), None
    )


def _rates(suite: str) -> dict[str, float]:
    """By backend, the pass rate of its newest whole run."""
    newest = [row.last_whole for row in data.ask(queries.overview) if row.suite == suite]
    return {run.backend: run.metrics["pass"].mean for run in newest if run and "pass" in run.metrics}


# Finding --------------------------------------------------------------------------------------------------


def found(chosen: Chosen) -> Comparison:
    """Raises `BadSide` and `NothingToCompare`."""
    named = [side(text) for text in (chosen.a, chosen.b)]
    runs = [_runs(chosen.suite, one) for one in named]
    ids = [tuple(row.id for row in rows) for rows in runs]
    if set(ids[0]) & set(ids[1]):
        raise queries.NothingToCompare(
            "A and B are made of the same runs: choose two backends, or one before and after"
        )
    told = data.ask(
        queries.comparison, chosen.suite, *ids, margin=round(chosen.margin / 100, 6),
        names=(name(named[0], runs[0][-1].backend), name(named[1], runs[1][-1].backend)), with_texts=True,
    )  # fmt: skip
    return told


def _runs(suite: str, one: Side) -> Sequence[queries.RunRow]:
    """Of what may still be asked, no more than a comparison takes: what lies further back is another time."""
    rows = data.ask(queries.side_runs, suite, one)
    return rows if one.is_past else taken(rows, TRIALS) or rows


def name(one: Side, backend: str) -> str:
    """What a side is called in sentences."""
    if one.run_ids:
        runs = "run" if len(one.run_ids) == 1 else "runs"
        return f"{backend} {runs} {', '.join(map(str, one.run_ids))}"
    return f"{one.backend} {_RELATIONS[one.relation]}{one.what}".strip()


_RELATIONS = {"newest": "", "at": "", "before": "before ", "after": "after "}


def can_be_asked(chosen: Chosen) -> bool:
    """Whether both sides are backends as they are now."""
    return not any(side(text).is_past for text in (chosen.a, chosen.b))


def styles(c: Comparison) -> Pair:
    """Those of the two backends, where they are two of the team's own."""
    own = parts.contenders()
    if c.a.backend != c.b.backend and {c.a.backend, c.b.backend} <= set(own):
        drawn = parts.styles()
        return Pair(drawn[c.a.backend], drawn[c.b.backend])
    return pair(parts.theme())
