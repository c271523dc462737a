"""The tables of Compare: rows in, frames out. A cell is never markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import health_tables
from dashboard.forest import told_first
from store import comparison_words, words
from store.changes import Change, Changes
from store.comparisons import Comparison, SideTold, Turned

LOST, GAINED, PERHAPS_LOST, PERHAPS_GAINED = "lost", "gained", "lost?", "gained?"
TREE = "of_backend."
"""What says which packages are the backend's: they stand there themselves."""


# Where the difference lies --------------------------------------------------------------------------------


def differences_frame(c: Comparison) -> pd.DataFrame:
    """Every figure of the forest plot: rates in per cent, differences in points."""
    found = c.migration
    whole = _difference(
        "all", c.suite, c.cases, (c.a.rate, c.b.rate), found.difference, (found.low, found.high),
        comparison_words.verdict(c),
    )  # fmt: skip
    metrics = [
        _difference(
            "metric", row.metric, row.n, (row.a, row.b), row.better_by, (row.low, row.high),
            comparison_words.metric_word(row),
        )
        for row in c.metrics
    ]  # fmt: skip
    tags = [
        _difference(
            "tag", row.tag, row.n, (row.a, row.b), row.difference, (row.low, row.high),
            comparison_words.tag_word(row),
        )
        for row in told_first(c.tags)
    ]  # fmt: skip
    return pd.DataFrame([whole, *metrics, *tags])


def _difference(
    kind: str,
    name: str,
    n: int,
    rates: tuple[float | None, float | None],
    by: float | None,
    ends: tuple[float | None, float | None],
    word: str,
) -> dict[str, Any]:
    a, b, by, low, high = (None if one is None else round(one * 100, 2) for one in (*rates, by, *ends))
    return {
        "of": kind, "name": name, "n": n, "a": a, "b": b, "better_by": by, "low": low, "high": high,
        "says": word,
    }  # fmt: skip


def differences_columns() -> dict[str, Any]:
    column, points = st.column_config, "%+.1f"
    return {
        "of": column.TextColumn("Of", width=56),
        "name": column.TextColumn("Name", width=130),
        "n": column.NumberColumn("n", width=50),
        "a": column.NumberColumn("A %", format="%.1f", width=60),
        "b": column.NumberColumn("B %", format="%.1f", width=60),
        "better_by": column.NumberColumn("B better by", format=points, width=84),
        "low": column.NumberColumn("from", format=points, width=60),
        "high": column.NumberColumn("to", format=points, width=60),
        "says": column.TextColumn("Says", width=150),
    }


# Lost and gained ------------------------------------------------------------------------------------------


def turned(c: Comparison) -> list[tuple[str, Turned]]:
    """With what it was: the confirmed ones first, and of each the lost ones."""
    sure, perhaps = comparison_words.confirmed, comparison_words.unconfirmed
    groups = (
        (LOST, sure(c.lost)),
        (GAINED, sure(c.gained)),
        (PERHAPS_LOST, perhaps(c.lost)),
        (PERHAPS_GAINED, perhaps(c.gained)),
    )
    return [
        (change, one) for change, rows in groups for one in sorted(rows, key=lambda row: not row.critical)
    ]


def turned_frame(rows: Iterable[tuple[str, Turned]], texts: bool = True) -> pd.DataFrame:
    """`texts`: with what the backends answered."""
    return pd.DataFrame([_turned(change, one, texts) for change, one in rows])


def _turned(change: str, one: Turned, texts: bool) -> dict[str, Any]:
    answers = {"a_hit": one.a_hit, "b_hit": one.b_hit} if texts else {}
    return {
        "change": [change],
        "case": one.case,
        "tags": ", ".join([*(["critical"] if one.critical else []), *one.tags]),
        "failure": one.failure,
        "asked": one.query,
        **answers,
        "a_passed": f"{one.a_passes}/{one.a_trials}",
        "b_passed": f"{one.b_passes}/{one.b_trials}",
    }


def turned_csv(rows: Iterable[tuple[str, Turned]]) -> pd.DataFrame:
    """Without what the backends answered: a memory's text leaves the page only where that is asked for."""
    rows = list(rows)
    return turned_frame(rows, texts=False).assign(change=[change for change, _ in rows])


def turned_columns(c: Comparison) -> dict[str, Any]:
    column = st.column_config
    colours = {LOST: "red", GAINED: "green", PERHAPS_LOST: "", PERHAPS_GAINED: ""}
    return {
        "change": health_tables.badges("Change", colours, 80),
        "case": column.TextColumn("Case", width=160),
        "tags": column.TextColumn("Tags", width=110),
        "failure": column.TextColumn("Failure kind", width=140),
        "asked": column.TextColumn("Asked", width=200),
        "a_hit": column.TextColumn(f"A: {c.a.name}", width=220),
        "b_hit": column.TextColumn(f"B: {c.b.name}", width=220),
        "a_passed": column.TextColumn("A passed", width=70),
        "b_passed": column.TextColumn("B passed", width=70),
    }


def kinds(rows: Sequence[Turned]) -> str:
    """ "stale fact first 3, wrong speaker 1"."""
    return ", ".join(f"{kind} {n}" for kind, n in comparison_words.failure_kinds(rows))


# Beside each other ----------------------------------------------------------------------------------------


def ratios_frame(c: Comparison) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "what": comparison_words.ratio_name(row).capitalize(),
                "a": comparison_words.ratio_amount(row, row.a),
                "b": comparison_words.ratio_amount(row, row.b),
                "ratio": comparison_words.ratio(row),
                "n": row.n,
                "note": row.reason,
            }
            for row in c.ratios
        ]
    )


def ratios_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "what": column.TextColumn("What", width=190),
        "a": column.TextColumn("A", width=70),
        "b": column.TextColumn("B", width=70),
        "ratio": column.TextColumn("B / A, 95 % interval", width=140),
        "n": column.NumberColumn("n", width=50),
        "note": column.TextColumn("Why no interval", width=180),
    }


def references_frame(c: Comparison) -> pd.DataFrame:
    """The two sides, and the lines to read them by, on the same cases."""
    sides = [_side(one, which, c.cases) for which, one in (("A", c.a), ("B", c.b)) if one.rate is not None]
    lines = [_rate(row.name, row.rate, (row.low, row.high), row.n, comparison_words.reference(row))
             for row in c.references]  # fmt: skip
    return pd.DataFrame([*sides, *lines])


def _side(one: SideTold, which: str, n: int) -> dict[str, Any]:
    return _rate(f"{which}: {one.name}", one.rate or 0.0, (one.low, one.high), n, f"{one.trials} trials")


def _rate(
    name: str, rate: float, ends: tuple[float | None, float | None], n: int, note: str
) -> dict[str, Any]:
    return {"name": name, "pass": rate * 100, "interval": words.interval("pass", *ends), "n": n, "note": note}


def references_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "name": column.TextColumn("On the same cases", width=150),
        "pass": column.NumberColumn("Pass %", format="%.1f", width=66),
        "interval": column.TextColumn("95 % interval", width=96),
        "n": column.NumberColumn("n", width=50),
        "note": column.TextColumn("What it is", width=220),
    }


# The environment ------------------------------------------------------------------------------------------


def environment_frame(found: Changes) -> pd.DataFrame:
    """What differs, the likeliest cause of a difference first."""
    return pd.DataFrame([_change(one) for one in differing(found)])


def differing(found: Changes) -> list[Change]:
    return [one for one in found.suspects if not one.path.startswith(TREE)]


def _change(one: Change) -> dict[str, Any]:
    old, new = (None if value is None else str(value) for value in (one.old, one.new))
    return {"what": one.name, "a": old, "b": new, "kind": one.kind}


def environment_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "what": column.TextColumn("What", width=150),
        "a": column.TextColumn("A", width=130),
        "b": column.TextColumn("B", width=130),
        "kind": column.TextColumn("Kind", width=90),
    }


def same(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """ "62 packages, Python 3.11.7, wordllama": what both environments have alike; "" for nothing."""
    return ", ".join(_same(a, b))


def _same(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    packages = a.get("packages", {}).items() & b.get("packages", {}).items()
    if packages:
        yield words.count(len(packages), "package")
    for key, told in (
        ("python", "Python {}"),
        ("os", "{}"),
        ("embedder", "embedder {}"),
        ("judge", "judge {}"),
    ):
        value = a.get(key)
        if value and value == b.get(key):
            yield told.format(value.get("name", "") if isinstance(value, Mapping) else value).strip()
