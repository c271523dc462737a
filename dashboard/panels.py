"""The other metrics of a suite, each as a small chart with what is known of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from dashboard import charts, multiples, tables
from dashboard.curves import Line
from dashboard.figures import Tick, Window
from dashboard.parts import plain
from store import verdict_words, words
from store.metrics import METRICS

Series = Mapping[str, Sequence[Line]]
"""By metric."""


class Around(NamedTuple):
    """What the charts share. `said`: by backend, the newest verdict's evidence, which tells of other metrics
    than the pass rate that moved; `bright`: those that stand out."""

    suite: str
    window: Window
    marks: Sequence[Tick]
    said: Mapping[str, Mapping[str, Any]]
    bright: Collection[str]


def grid(series: Series, around: Around) -> None:
    with st.grid(3, min_column_width=300, gap="small"):
        for name, lines in series.items():
            with st.container(border=True, gap="xsmall"):
                if lines:
                    _panel(name, lines, around)
                else:
                    st.markdown(f"**{plain(words.label(name))}** :small[:gray[no run here has it]]")


def _panel(name: str, lines: Sequence[Line], around: Around) -> None:
    facts = ", ".join(filter(None, [charts.unit(name), charts.ns(lines), words.direction(name)]))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            f"**{plain(words.label(name))}**", key=f"large-{name}", type="tertiary", on_click=_choose,
            args=(name,), help=f"{METRICS[name].meaning} Click to draw it large.",
        )  # fmt: skip
        st.markdown(f":small[:gray[{facts}]]")
    st.markdown(_told(name, lines, around))
    ends = [point.started_at for line in lines for point in (line.points[0], line.points[-1])]
    drawn = multiples.multiple(lines, name, charts.fitted(around.window, ends), around.marks)
    st.image(drawn, width="stretch", alt=charts.alt(f"{words.label(name)} of {around.suite}", lines, name))


def _told(name: str, lines: Sequence[Line], around: Around) -> str:
    """Which backends moved, as their verdicts say, else who stands where; as markdown."""
    moved = {line.name: _moved(name, around.said.get(line.name)) for line in lines}
    news = "; ".join(plain(f"{backend}: {told}") for backend, told in moved.items() if told)
    newest = [words.Standing(line.name, line.points[-1].mean) for line in lines]
    return f":small[:orange[{news}]]" if news else f":small[{plain(words.spread(name, newest))}]"


def _moved(name: str, content: Mapping[str, Any] | None) -> str:
    found = [one for one in content["moved"] if one["metric"] == name] if content else []
    return ", ".join(verdict_words.moved({**content, "moved": found})) if content and found else ""


def _choose(metric: str) -> None:
    st.session_state.metric = metric


def frame(series: Series) -> pd.DataFrame:
    """All that the charts draw."""
    return pd.concat([tables.lines_frame(lines, name) for name, lines in series.items()], ignore_index=True)
