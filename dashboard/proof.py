"""Does a suite notice a broken memory? What it made of each fault that was put into a backend."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, health_tables, parts, tables
from store import queries
from store.queries import MutantRow

MEANING = "A healthy backend is broken on purpose in every known way: does the suite notice?"


def card(suite: str) -> None:
    mutants = data.ask(queries.mutants, suite)
    if not mutants:
        parts.card("Faults caught", "–", "not tried yet: memtrend mutants", meaning=MEANING)
        return
    caught = sum(row.detected for row in mutants)
    right = sum(row.kind_right for row in mutants)
    parts.card(
        "Faults caught",
        f"{caught} of {len(mutants)} mutants",
        f"{right} called by their right name",
        f"put into {mutants[0].backend}",
        meaning=MEANING,
    )


def table(suite: str) -> None:
    """Those that were missed first: they are why to look."""
    mutants = data.ask(queries.mutants, suite)
    with parts.heading("Mutants: does the suite notice a broken memory?", MEANING):
        if mutants:
            tables.download("CSV", "mutants.csv", lambda: health_tables.rows_csv(mutants))
    if not mutants:
        st.markdown("Not tried on this version yet: `memtrend mutants` puts every fault into a backend.")
        return
    rows = [_row(row) for row in sorted(mutants, key=lambda row: (row.detected, row.kind_right))]
    column = st.column_config
    st.dataframe(
        pd.DataFrame(rows), key="mutants", hide_index=True, height=420, placeholder="–",
        column_config={
            "fault": column.TextColumn("Fault put in", width=250),
            "result": column.MultiselectColumn(
                "Result", options=["caught", "missed"], color=["gray", "red"], width=70
            ),
            "kind": column.TextColumn("Named as", width=190),
            "lost": column.NumberColumn("Cases lost", width=70),
            "right": column.TextColumn("Kind right", width=70),
        },
    )  # fmt: skip
    st.caption(f"Put into {mutants[0].backend}, {parts.day(max(row.at for row in mutants))}.")


def _row(row: MutantRow) -> dict[str, Any]:
    return {
        "fault": row.meaning,
        "result": ["caught" if row.detected else "missed"],
        "kind": row.kind,
        "lost": row.lost,
        "right": "yes" if row.kind_right else "no",
    }
