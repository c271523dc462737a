"""The two answers on a run's page, beside each other: did it change, and how much worse is it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, navigation, parts, tables, verdicts
from dashboard.parts import plain
from store import changes, queries, verdict_words, words, writes
from store.baselines import Action, Baseline
from store.errors import StoreError
from store.queries import RunRow, VerdictRow

LINKS = 4
"""Cases that a card links to; the table below has the rest."""
SUSPECTS = 3
P = "How often chance alone would do as much, were nothing changed: 0.0005 is once in 2,000 times."
PAIRED = "Of the same cases, all trials of all looks together; the title counts the first look alone."
PIN: tuple[Action, str] = ("pin", "Pin as anchor")
INTENDED: tuple[Action, str] = ("intended", "Intended change")
WHAT_FOR = {
    "pin": "Later runs must not fall behind this one.",
    "intended": "The change that came with this run was meant: the baseline begins with it.",
}
DECIDED = {
    "pin": "pinned as anchor",
    "hold": "held still",
    "intended": "begun anew for an intended change",
    "reset": "begun anew",
}


def cards(run: RunRow, said: VerdictRow) -> None:
    """Evidence first, numbers one click away."""
    baseline = data.now(queries.run_baseline, run.id)
    left, right = st.columns(2, gap="small")
    with left.container(border=True, height="stretch", gap="small"):
        _changed(run, said, baseline)
    with right.container(border=True, height="stretch", gap="small"):
        _how_much(run, said.content)


# Did it change? -------------------------------------------------------------------------------------------


def _changed(run: RunRow, said: VerdictRow, baseline: Baseline | None) -> None:
    content = said.content
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("Did it change?", width="content")
        verdicts.show(content)
    st.markdown(f"**{plain(verdict_words.evidence(content))}**")
    _control(content)
    sure, blind = verdict_words.how_sure(content), verdict_words.blind_spot(content)
    notes = [sure, blind, *map(_sentence, verdict_words.moved(content))]
    for note in filter(None, notes):
        st.markdown(f":small[:gray[{plain(note)}]]")
    st.markdown(f":small[:gray[{_held(content, baseline)}]]")
    with st.expander("The numbers, and every earlier run", on_change="rerun", key="numbers") as numbers:
        if numbers.open:
            _looks(run, content)
            _earlier(content, baseline)
    _decide(run)


def _control(content: Mapping[str, Any]) -> None:
    """What the frozen release beside it says, with the way to its run; a shared cause stands out."""
    told = verdict_words.control(content)
    if not told:
        return
    icon = ":material/hub:" if verdict_words.is_shared(content) else ":material/compare_arrows:"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"{icon} {plain(told)}")
        run_id = content["control"]["run_id"]
        open_ = {"on_click": navigation.go, "args": ("run",), "kwargs": {"run": run_id}}
        st.button(f"The control's run {run_id}", icon=":material/chevron_right:", type="tertiary", **open_)


def _sentence(phrase: str) -> str:
    return f"Beside it: {phrase}."


def _held(content: Mapping[str, Any], baseline: Baseline | None) -> str:
    """What the run was compared with, and who decided that last, as markdown."""
    told = f"Held against {verdict_words.held_against(content)}."
    if baseline is None or baseline.decision is None:
        return plain(told)
    made = baseline.decision
    who = f"by {made.author}, {parts.moment(made.at)}: {made.reason}"
    return plain(f"{told} Its baseline was {DECIDED.get(made.action, made.action)} {who}.")


def _looks(run: RunRow, content: Mapping[str, Any]) -> None:
    looks = content["looks"]
    if not looks:
        st.markdown("No look was taken: there was nothing to compare.")
        return
    column = st.column_config
    st.session_state["_looks"] = [look["run_id"] for look in looks]
    st.dataframe(
        pd.DataFrame(looks)[["number", "run_id", "trials", "p_worse", "p_better"]], key="looks",
        hide_index=True, on_select=_opener("looks"), selection_mode="single-cell", placeholder="–",
        height="content",
        column_config={
            "number": column.NumberColumn("Look", width=50), "run_id": column.NumberColumn("Run", width=60),
            "trials": column.NumberColumn("Trials", width=60),
            "p_worse": column.NumberColumn("p, worse", format="%.4f", width=80, help=P),
            "p_better": column.NumberColumn("p, better", format="%.4f", width=80, help=P),
        },
    )  # fmt: skip


def _earlier(content: Mapping[str, Any], baseline: Baseline | None) -> None:
    """Every run of the series before this one: first those of the baseline, then the others with why not,
    each newest first. A click opens one."""
    left_out = {one.run_id: one.why for one in baseline.left_out} if baseline else {}
    compared, anchor = set(content["baseline"]), set(content["anchor"])
    ids = sorted(compared | anchor | left_out.keys(), reverse=True)
    if not ids:
        return
    found = data.ask(queries.runs, ids=ids, limit=None)
    rows = sorted(found, key=lambda row: row.id not in compared)
    st.session_state["_earlier"] = [row.id for row in rows]
    table = [
        {
            "run": row.id,
            "started": row.started_at.astimezone(parts.zone()),
            "pass": row.metrics["pass"].mean * 100 if "pass" in row.metrics else None,
            "part": _part(row.id, compared, anchor, left_out),
        }
        for row in rows
    ]
    column, started = st.column_config, "D MMM, HH:mm"
    st.dataframe(
        pd.DataFrame(table), key="earlier", hide_index=True, on_select=_opener("earlier"), placeholder="–",
        selection_mode="single-cell", height="content" if len(table) <= 12 else 430,
        column_config={
            "run": column.NumberColumn("Run", format="%d", width=60),
            "started": column.DatetimeColumn("Started", format=started, timezone=parts.zone().key, width=105),
            "pass": column.NumberColumn("Pass %", format="%.1f", width=70),
            "part": column.TextColumn("Part in the baseline, or why not", width=330),
        },
    )  # fmt: skip


def _part(run_id: int, compared: set[int], anchor: set[int], left_out: Mapping[int, str]) -> str:
    roles = [name for name, ids in (("compared with", compared), ("anchor", anchor)) if run_id in ids]
    return " and ".join(roles) or f"left out: {left_out[run_id]}"


def _opener(key: str) -> Any:
    def opened() -> None:
        place = tables.clicked(key)
        if place is not None:
            navigation.go("run", run=st.session_state[f"_{key}"][place])

    return opened


# How much? ------------------------------------------------------------------------------------------------


def _how_much(run: RunRow, content: Mapping[str, Any]) -> None:
    found = content["difference"]
    better = verdicts.kind(content) == "better" or bool(found and found["new"] > found["old"])
    st.markdown(f"How much{',' if better else ' worse'} for questions like these?")
    difference(content)
    if verdicts.kind(content) == "unchanged" and found and found["new"] != found["old"]:
        st.markdown(":small[:gray[So much comes and goes by chance: no verdict rests on it.]]")
    for names, which in (("lost", "Lost"), ("gained", "Gained")):
        _cases(run, content[names], which)
    if verdicts.kind(content) not in (None, "unchanged", "provisional"):
        _suspects(run)


def difference(content: Mapping[str, Any]) -> None:
    """How far the pass rate moved, with its interval."""
    found = content["difference"]
    if found is None:
        st.markdown(f"**No answer**: {plain(content['reason'] or 'nothing could be compared')}.")
        return
    interval = words.interval("pass", found["low"], found["high"])
    bounds = f"95 % interval {interval} · n {found['n']}" if interval else f"no interval: {found['reason']}"
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        apart = words.difference("pass", found["old"], found["new"])
        st.metric("Difference", apart, label_visibility="collapsed", width="content")
        how = f"How the interval was reckoned: {found['method']}." if interval else None
        st.caption(plain(bounds), width="content", help=how)
    old, new = (words.amount("pass", found[when]) for when in ("old", "new"))
    st.markdown(f"{plain(f'{old} → {new}')} :small[:gray[on the same cases, in all trials]]", help=PAIRED)


def _cases(run: RunRow, names: Sequence[str], which: str) -> None:
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":gray[{which} {len(names)}:]", width="content")
        for name in names[:LINKS]:
            where = {"suite": run.suite, "case": name, "backend": run.backend, "run": str(run.id)}
            st.page_link("views/case.py", label=plain(name), query_params=where)
        if len(names) > LINKS:
            st.markdown(f":gray[and {len(names) - LINKS} more]", width="content")


def _suspects(run: RunRow) -> None:
    """What changed between the last good and the first bad run, the likeliest cause first."""
    try:
        found = data.ask(queries.changes_to, run.id)
    except queries.NothingToCompare as error:
        st.markdown(f":gray[Suspects:] {plain(str(error))}")
        return
    told, span = plain(changes.title(found.changes, SUSPECTS)), f"{found.before.id} to {found.after.id}"
    at = parts.moment(found.after.started_at)
    began = f"It began in run {found.after.id}, {at}. " if found.after.id != run.id else ""
    st.markdown(f":gray[{plain(f'{began}Changed from run {span}, likeliest cause first:')}] **{told}**")
    for mark in found.changes.marks:
        st.markdown(f":small[:gray[{plain(f'{mark.kind} {mark.text}, {parts.moment(mark.at)}')}]]")


# What people decide ---------------------------------------------------------------------------------------


def _decide(run: RunRow) -> None:
    """Two decisions about the baseline, each with its reason."""
    if not data.may_write():
        return
    with st.container(horizontal=True, gap="small"):
        for (action, label), icon in ((PIN, ":material/push_pin:"), (INTENDED, ":material/flag:")):
            with st.popover(label, icon=icon), st.form(f"decide-{action}", border=False):
                st.markdown(WHAT_FOR[action])
                st.text_input("Reason", key=f"reason-{action}", placeholder="why, in a few words")
                st.form_submit_button(label, type="primary", on_click=decide, args=(run, action))
                st.caption(parts.SIGNED)


def decide(run: RunRow, action: Action) -> None:
    """Write it down with the reason that stands in the form; a blank one is refused."""
    reason = str(st.session_state[f"reason-{action}"]).strip()
    if not data.may_write():
        return
    try:
        writes.decide_baseline(data.database(), run.suite, run.backend, action, [run.id], reason, "local")
    except StoreError as error:
        st.toast(plain(str(error)), icon=":material/error:")
        return
    st.toast("Taken down. It holds from the next run on.", icon=":material/check:")
