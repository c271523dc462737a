"""A comparison as a person reads it on the terminal, in 80 columns. What a script reads stands in
`store/shapes.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from collectors.tables import plain_table, wide_console
from store import comparison_words as said
from store import words
from store.changes import sentence
from store.comparisons import FEWEST_FOR_A_VERDICT, Comparison, Reference, SideTold, TagRow, Turned

MOST = 100
"""Rows of a table that a person may not want all of."""


def print_comparison(c: Comparison) -> None:
    console = wide_console()
    for line in _answer(c):
        console.print(Text(line))
    for title, table in _tables(c):
        console.print()
        console.print(Text(title), Padding.indent(table, 2), sep="\n")
    _print_lines(console, "differs between the two", _differences(c))
    _print_lines(console, "not compared", said.dropped(c))


def _print_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        console.print()
        console.print(Text(title))
        for line in lines:
            console.print(Padding.indent(Text(line), 2))


def _answer(c: Comparison) -> Iterator[str]:
    yield f"{said.verdict(c)}: {said.title(c)}"
    yield said.evidence(c)
    yield said.sure(c)
    yield said.blind_spot(c)
    if what := said.settle(c):
        yield what
    yield from (f"! {warning}" for warning in c.warnings)


def _tables(c: Comparison) -> Iterator[tuple[str, Table]]:
    yield f"pass rate of {words.count(c.cases, 'case')}", _rates(c)
    for title, turned in (("lost", c.lost), ("gained", c.gained)):
        if turned:
            yield _turned_title(title, turned), _turned(c, turned)
    if c.tags:
        yield "by tag: how B differs from A, in points", _tags(c.tags)
    if c.ratios:
        yield "time, tokens and money", _ratios(c)
    if c.metrics:
        yield "other metrics of quality", _metrics(c)


def _rates(c: Comparison) -> Table:
    table = plain_table("", "%", "95 % interval", "n", "what")
    for letter, side in (("A", c.a), ("B", c.b)):
        table.add_row(letter, *_rate(side.rate, side.low, side.high), str(c.cases), Text(_who(side)))
    for row in c.references:
        table.add_row("", *_rate(row.rate, row.low, row.high), str(row.n), Text(_reference(row)))
    return table


def _who(side: SideTold) -> str:
    return f"{said.side(side, UTC)}, {words.count(side.trials, 'trial')}"


def _reference(row: Reference) -> str:
    return f"{row.name}: {said.reference(row)}"


def _rate(rate: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    return "–" if rate is None else words.bare("pass", rate), words.interval("pass", low, high)


def _turned_title(what: str, turned: Sequence[Turned]) -> str:
    sure = len(said.confirmed(turned))
    kinds = ", ".join(f"{n} {kind}" for kind, n in said.failure_kinds(turned))
    return f"{what}: {sure} of {len(turned)} for sure, in 3 of 4 trials on each side ({kinds})"


def _turned(c: Comparison, turned: Sequence[Turned]) -> Table:
    """With what was asked and what came back, where texts were asked for."""
    table = plain_table("case", "A", "B", "why lost", *(["asked, and what came back first"] * c.with_texts))
    shown = [*said.confirmed(turned), *said.unconfirmed(turned)]
    for one in shown[:MOST]:
        sure = "" if one.confirmed else " ?"
        name = f"{one.case} (critical){sure}" if one.critical else f"{one.case}{sure}"
        passes = f"{one.a_passes}/{one.a_trials}", f"{one.b_passes}/{one.b_trials}"
        texts = [Text("\n".join(_texts(c, one)))] if c.with_texts else []
        table.add_row(Text(name), *passes, Text(one.failure or ""), *texts)
    if shown[MOST:]:
        table.add_row(f"and {len(shown) - MOST} more; --json tells all")
    return table


def _texts(c: Comparison, one: Turned) -> Iterator[str]:
    yield one.query
    for side, hit in ((c.a, one.a_hit), (c.b, one.b_hit)):
        if hit is not None:
            yield f"{side.name}: {hit}"


def _tags(rows: Sequence[TagRow]) -> Table:
    """With intervals where a tag is large enough for a verdict of its own."""
    large = any(_is_large(row) for row in rows)
    table = plain_table("tag", "n", "A %", "B %", "B − A", *(["90 % interval"] * large), "")
    for row in rows:
        rates = (words.bare("pass", rate) for rate in (row.a, row.b))
        ends = [said.interval(row.low, row.high) if _is_large(row) else ""] if large else []
        told = f"{len(row.lost)} lost" if row.word == "lost" else said.tag_word(row)
        table.add_row(Text(row.tag), str(row.n), *rates, said.points(row.difference), *ends, Text(told))
    return table


def _is_large(row: TagRow) -> bool:
    return row.n >= FEWEST_FOR_A_VERDICT


def _ratios(c: Comparison) -> Table:
    table = plain_table("", "A", "B", "B / A")
    for row in c.ratios:
        amounts = (said.ratio_amount(row, value) for value in (row.a, row.b))
        table.add_row(said.ratio_name(row), *amounts, said.ratio(row))
    return table


def _metrics(c: Comparison) -> Table:
    table = plain_table("", "A", "B", "B better by", "90 % interval", "")
    for row in c.metrics:
        values = (words.amount(row.metric, value) for value in (row.a, row.b))
        ends = said.interval(row.low, row.high)
        table.add_row(said.metric(row), *values, said.points(row.better_by), ends, said.metric_word(row))
    return table


def _differences(c: Comparison) -> list[str]:
    """By kind, the likeliest reason for a loss first."""
    if c.changes is None:
        return ["what a side ran on was not kept"]
    kinds = groupby(c.changes.suspects, key=lambda change: change.kind)
    return [
        f"{kind}: {words.listed([sentence(change) for change in changes])}" for kind, changes in kinds
    ] or ["nothing that is recorded"]
