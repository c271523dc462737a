"""The report of a comparison: may B replace A, how sure is that, and what would be lost?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from dashboard import ecdf, forest
from dashboard.palette import Theme
from dashboard.report.document import (
    Answer,
    Chart,
    Document,
    Listing,
    Name,
    Section,
    Table,
    columns,
    section,
    sections,
)
from dashboard.report.foot import foot
from store import changes, words
from store import comparison_words as said
from store.comparisons import Comparison, MetricRow, Turned
from store.licences import credit
from store.metrics import METRICS

_TONES = {"better": "better", "non_inferior": "unchanged", "inferior": "worse", "inconclusive": "unknown"}
MOST_TAGS = 24
"""Of a chart that must fit on a page; the table has them all."""


def document(c: Comparison, made: datetime) -> Document:
    settle = said.settle(c)
    how_sure = tuple(filter(None, [said.sure(c), settle, *c.warnings]))
    told = credit(c.licence, c.citation)
    return Document(
        kind=f"{c.a.name} and {c.b.name} on {c.suite}",
        title=said.title(c),
        badge=said.verdict(c),
        tone=_TONES[c.migration.verdict],
        answers=(
            Answer(f"May {c.b.name} replace {c.a.name}?", f"{said.verdict(c)}. {said.evidence(c)}", how_sure),
            Answer("What could have gone unseen?", said.blind_spot(c)),
        ),
        sections=sections(*_sections(c, made)),
        foot=foot(made, f"{c.suite}: {told}" if told else "", with_texts=c.with_texts),
    )


def _sections(c: Comparison, made: datetime) -> Iterator[Section | None]:
    yield section("The two sides", _sides(c, made), _references(c))
    yield section("Differences", _forest(c), _metrics(c), _tags(c))
    yield section("Lost and gained", _kinds(c), *_turned(c))
    yield section("Speed and money", _ecdf(c), _ratios(c))
    yield section("What differs between them", _changes(c))
    yield section("Left out", Listing(said.dropped(c)))
    yield section("Before it was run", Listing(said.foresight(c.foresight)))


def _sides(c: Comparison, made: datetime) -> Table:
    rows = [
        (
            letter, told.backend, said.side(told, made.tzinfo), str(told.trials),
            "–" if told.rate is None else words.amount("pass", told.rate),
            words.interval("pass", told.low, told.high) or "–", f"{c.cases:,}",
        )
        for letter, told in (("A, in use", c.a), ("B, the candidate", c.b))
    ]  # fmt: skip
    numbers = ("trials", "pass rate", "95 % interval", "n")
    return Table(
        "Over the cases that both answered",
        columns("side", "backend", "runs", *numbers, numbers=numbers),
        rows,
    )


def _references(c: Comparison) -> Table:
    rows = [
        (
            row.name, said.reference(row), words.amount("pass", row.rate),
            words.interval("pass", row.low, row.high), f"{row.n:,}",
        )
        for row in c.references
    ]  # fmt: skip
    numbers = ("pass rate", "95 % interval", "n")
    return Table("Lines to read them by", columns("name", "what it is", *numbers, numbers=numbers), rows)


def _forest(c: Comparison) -> Chart:
    def draw(theme: Theme, narrow: bool) -> object:
        return forest.figure(c, theme, most_tags=MOST_TAGS, narrow=narrow)

    caption = "B better by, in points, with 90 % intervals; shaded: what the margin still allows"
    return Chart(f"{caption}. {said.no_verdict()}", forest.alt(c), draw)


_COMPARED = ("n", "A", "B", "B better by", "90 % interval")


def _metrics(c: Comparison) -> Table:
    """The pass rate, of which the verdict is, and the others, each in its own unit."""
    names = columns("metric", *_COMPARED, "word", numbers=_COMPARED)
    return Table("By metric", names, [_pass_rate(c), *map(_metric, c.metrics)])


def _pass_rate(c: Comparison) -> tuple[str, ...]:
    found = c.migration
    rates = ["–" if rate is None else words.amount("pass", rate) for rate in (c.a.rate, c.b.rate)]
    by = "–" if found.difference is None else f"{said.points(found.difference)} points"
    word = said.verdict(c).lower()
    return ("pass rate", f"{c.cases:,}", *rates, by, said.interval(found.low, found.high) or "–", word)


def _metric(row: MetricRow) -> tuple[str, ...]:
    amounts = [words.amount(row.metric, value) for value in (row.a, row.b)]
    by = words.difference(row.metric, 0.0, row.better_by)
    bounds = said.interval if METRICS[row.metric].unit == "share" else partial(words.interval, row.metric)
    interval = bounds(row.low, row.high) or "–"
    return (said.metric(row), f"{row.n:,}", *amounts, by, interval, said.metric_word(row))


def _tags(c: Comparison) -> Table:
    rows = [
        (
            f"{row.tag} (critical)" if row.critical else row.tag, f"{row.n:,}", words.amount("pass", row.a),
            words.amount("pass", row.b), f"{said.points(row.difference)} points",
            said.interval(row.low, row.high) or "–", said.tag_word(row),
        )
        for row in forest.told_first(c.tags)
    ]  # fmt: skip
    return Table("Pass rate by tag", columns("tag", *_COMPARED, "word", numbers=_COMPARED), rows)


# Cases ------------------------------------------------------------------------------------------------------


def _kinds(c: Comparison) -> str:
    kinds = said.failure_kinds(said.confirmed(c.lost))
    return f"Lost as: {', '.join(f'{kind} ({n})' for kind, n in kinds)}." if kinds else ""


def _turned(c: Comparison) -> Iterator[Table]:
    for word, rows in (("Lost", c.lost), ("Gained", c.gained)):
        yield _cases(f"{word} for sure", said.confirmed(rows), c)
        yield _cases(f"{word} perhaps: not in 3 of 4 trials a side", said.unconfirmed(rows), c)


def _cases(caption: str, rows: Sequence[Turned], c: Comparison) -> Table:
    texts = ("question", "A gave first", "B gave first") if c.with_texts else ()
    names = columns(
        "case", "tags", "failure", "A passed", "B passed", *texts, numbers=("A passed", "B passed")
    )
    return Table(f"{caption}: {words.count(len(rows), 'case')}", names, [_case(row, c) for row in rows])


def _case(row: Turned, c: Comparison) -> tuple[str, ...]:
    told = (
        Name(f"{row.case} (critical)" if row.critical else row.case), ", ".join(row.tags), row.failure or "–",
        f"{row.a_passes} of {row.a_trials}", f"{row.b_passes} of {row.b_trials}",
    )  # fmt: skip
    return (*told, row.query, row.a_hit or "nothing", row.b_hit or "nothing") if c.with_texts else told


# The rest ---------------------------------------------------------------------------------------------------


def _ecdf(c: Comparison) -> Chart | None:
    if not all(c.latencies):
        return None
    caption = "Share of the answers that had come by a time; median and p95 are marked"
    return Chart(caption, ecdf.alt(c), lambda theme, _narrow: ecdf.figure(c, theme))


def _ratios(c: Comparison) -> Table:
    rows = [
        (
            said.ratio_name(row), said.ratio_amount(row, row.a), said.ratio_amount(row, row.b),
            said.ratio(row), f"{row.n:,}", row.reason or "",
        )
        for row in c.ratios
    ]  # fmt: skip
    numbers = ("A", "B", "B / A (95 %)", "n")
    return Table("What an answer takes", columns("what", *numbers, "note", numbers=numbers), rows)


def _changes(c: Comparison) -> Table | str:
    if c.changes is None:
        return "What one of the sides ran on is not recorded."
    rows = [(one.name, one.kind, _value(one.old), _value(one.new)) for one in c.changes.suspects]
    if not rows:
        return "Nothing that is recorded differs."
    return Table("From A to B, the likeliest to matter first", columns("name", "kind", "A", "B"), rows)


def _value(value: object) -> str:
    return "–" if value is None else changes.shown(value)
