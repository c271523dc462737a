"""How a verdict is shown: a badge, a word in a table, a ring on a chart. Grey is the good state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import streamlit as st

from dashboard.parts import Colour, plain
from store import verdict_titles, verdict_words, words
from store.verdict_words import Kind


class Look(NamedTuple):
    """`sign` stands in tables, where cells have no icons."""

    colour: Colour
    icon: str
    sign: str


LOOKS: dict[Kind, Look] = {
    "worse": Look("red", ":material/trending_down:", "↘"),
    "suspected": Look("orange", ":material/search:", "↘"),
    "leak": Look("orange", ":material/water_drop:", "↘"),
    "better": Look("green", ":material/trending_up:", "↗"),
    "unknown": Look("blue", ":material/help:", "?"),
    "provisional": Look("blue", ":material/hourglass_empty:", "…"),
    "unchanged": Look("gray", "", ""),
}
QUIET = (None, "unchanged", "provisional")


def kind(content: Mapping[str, Any] | None) -> Kind | None:
    """None where nothing was said, or there was nothing to compare with."""
    found = verdict_titles.badge(content) if content else None
    return found and found.kind


def word(content: Mapping[str, Any] | None) -> str:
    found = verdict_titles.badge(content) if content else None
    return found.text if found else words.NO_BASELINE


def show(content: Mapping[str, Any] | None) -> None:
    """Icon and word on the verdict's colour; grey words where all is well, or nothing is known yet."""
    found = verdict_titles.badge(content) if content else None
    if found is None:
        st.caption(words.NO_BASELINE, width="content")
    elif found.kind == "unchanged":
        st.caption(found.text, width="content")
    else:
        look = LOOKS[found.kind]
        st.badge(found.text, icon=look.icon, color=look.colour, width="content")


def numbers(content: Mapping[str, Any], key: str, label: str = "Numbers") -> None:
    """A button that shows what a verdict rests on: read only once it is pressed, since pages have dozens."""
    with st.popover(label, type="tertiary", key=key, on_change="rerun") as shown:
        if shown.open:
            told = [verdict_words.evidence(content), verdict_words.how_sure(content)]
            st.markdown(plain(" ".join(filter(None, told))))
            rows = [
                {"": one.what, "What it rests on": plain(one.value)} for one in verdict_words.numbers(content)
            ]
            st.table(rows, border="horizontal", hide_index=True)


def is_news(content: Mapping[str, Any] | None) -> bool:
    """Whether it says more than that nothing is known to have changed."""
    return kind(content) not in QUIET


def cell(content: Mapping[str, Any] | None) -> tuple[str, Colour] | None:
    """The same for a table, with its colour: "↘ Worse"."""
    found = verdict_titles.badge(content) if content else None
    if found is None:
        return None
    look = LOOKS[found.kind]
    return f"{look.sign} {found.text}".strip(), look.colour
