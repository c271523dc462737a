"""From one lost case of a run to the next."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import data, navigation
from store import queries
from store.queries import RunRow


def onward(run: RunRow, name: str) -> None:
    """The way to the next case that the run lost; nothing where there is no other."""
    names = lost(run, name)
    others = [one for one in names if one != name]
    if not others:
        return
    following = next((one for one in names if one > name), names[0])
    label = f"Next lost case, {names.index(following) + 1} of {len(names)}"
    # A link to a page's own address looks pressed: a button goes there.
    st.button(
        label, icon=":material/arrow_forward:", icon_position="right", type="tertiary",
        on_click=navigation.go, args=("case",), kwargs={"case": following, "run": run.id},
    )  # fmt: skip


def lost(run: RunRow, name: str) -> Sequence[str]:
    """Those that its verdict names, where the case looked at is one of them; else all that failed."""
    said = data.ask(queries.verdict, run.id)
    told = sorted(said.content["lost"]) if said else []
    if name in told:
        return told
    return sorted(row.case for row in data.ask(queries.run_cases, run.id, only="lost", with_hits=False))
