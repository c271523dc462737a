"""The tables of Compare: rows in, frames out. A cell of a frame is never markup; rows of a plain table are
escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import health_tables
from dashboard.forest import told_first
from dashboard.parts import plain
from store import comparison_words, words
from store.changes import Change, Changes
from store.comparisons import Comparison, Turned

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
    """`texts`: with what was asked and what the backends answered."""
    return pd.DataFrame([_turned(change, one, texts) for change, one in rows])


def _turned(change: str, one: Turned, texts: bool) -> dict[str, Any]:
    told = {"asked": one.query, "a_hit": one.a_hit, "b_hit": one.b_hit} if texts else {}
    return {
        "change": [change],
        "case": one.case,
        "tags": ", ".join([*(["critical"] if one.critical else []), *one.tags]),
        "failure": one.failure,
        **told,
        "a_passed": f"{one.a_passes}/{one.a_trials}",
        "b_passed": f"{one.b_passes}/{one.b_trials}",
    }


def turned_csv(rows: Iterable[tuple[str, Turned]]) -> pd.DataFrame:
    """Without a question or an answer: they leave the page only where that is asked for."""
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


def ratios(c: Comparison) -> list[dict[str, str]]:
    return [
        {
            "": comparison_words.ratio_name(row).capitalize(),
            "A": _kept(comparison_words.ratio_amount(row, row.a)),
            "B": _kept(comparison_words.ratio_amount(row, row.b)),
            "B / A, 95 % interval": _kept(comparison_words.ratio(row)),
            "n": str(row.n),
            "Why no interval": plain(row.reason or "") if row.low is None else "",
        }
        for row in c.ratios
    ]


def _kept(figure: str) -> str:
    """On one line with its unit; a dollar begins no formula."""
    return figure.replace(" ", "\N{NO-BREAK SPACE}").replace("$", "\\$")


def references(c: Comparison) -> list[dict[str, str]]:
    """The two sides, and the lines to read them by, on the same cases."""
    sides = [
        _rate(
            f"{which}: {one.name}", one.rate, (one.low, one.high), c.cases, words.count(one.trials, "trial")
        )
        for which, one in (("A", c.a), ("B", c.b))
        if one.rate is not None
    ]
    lines = [
        _rate(row.name, row.rate, (row.low, row.high), row.n, comparison_words.reference(row))
        for row in c.references
    ]
    return [*sides, *lines]


def _rate(
    name: str, rate: float, ends: tuple[float | None, float | None], n: int, note: str
) -> dict[str, str]:
    return {
        "": plain(name),
        "Pass rate": words.amount("pass", rate),
        "95 % interval": words.interval("pass", *ends),
        "n": str(n),
        "What it is": note,
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
