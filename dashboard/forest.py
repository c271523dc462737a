"""Where the difference between two sides lies: all cases, by metric, by tag, each with its interval. Pure.

A row says in numbers what its line shows, so that nobody has to measure a line. Shares are drawn in points,
and "B better by" has its sign turned where lower is better. Widths and heights in px.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import plotly.graph_objects as go

from dashboard import axes, palette
from dashboard.figures import annotate, frame, note, safe
from dashboard.palette import Pair, Theme
from store import comparison_words, words
from store.comparisons import FEWEST_FOR_A_VERDICT, Comparison, MetricRow, TagRow

ROW, LOW_ROW, HEAD, AXIS = 26, 46, 34, 24
"""Of a row, of one whose words stand above its line, of the heading, of the numbers beneath."""
LEFT, RIGHT = 520, 170
"""For the columns before the plot, and for the word behind it."""
COLUMNS = {"n": 214, "a": 274, "b": 332, "by": 404, "interval": 506}
"""Right edges, from where the names begin."""
LONGEST = {False: 32, True: 26}
"""Characters of a name, in a wide figure and in a narrow one."""
REACH = 40.0
"""Points beyond which an interval of few cases is cut, with an arrow: it would squeeze all others."""
LEAST = 10.0

Tone = Literal["plain", "good", "bad", "quiet"]
TONES: dict[str, Tone] = {
    "better": "good", "inferior": "bad", "worse": "bad", "lost": "bad", "non_inferior": "plain",
}  # fmt: skip
"""By the word of a verdict or of a metric; the rest is quiet."""


class Row(NamedTuple):
    """`name` as it is; `better_by`, `low`, `high` and the rates as shares; `shape` of its marker; a `heading`
    has a name alone."""

    name: str
    n: int = 0
    a: float = 0.0
    b: float = 0.0
    better_by: float = 0.0
    low: float | None = None
    high: float | None = None
    word: str = ""
    tone: Tone = "quiet"
    shape: Literal["diamond", "square", "square-open"] = "square-open"
    heading: bool = False


class _Place(NamedTuple):
    """A row and its middle, from the top of the plot downwards."""

    row: Row
    y: float


# What it shows --------------------------------------------------------------------------------------------


def rows(c: Comparison, most_tags: int | None = None) -> list[Row]:
    """All cases first, then metrics, then at most so many tags, those that lost or gained the most first."""
    metrics, tags = [_metric(row) for row in c.metrics], [_tag(row) for row in told_first(c.tags)[:most_tags]]
    return [
        _whole(c),
        *([Row("by metric", heading=True)] if metrics else []),
        *metrics,
        *([Row("by tag", heading=True)] if tags else []),
        *tags,
    ]


def told_first(tags: Iterable[TagRow]) -> list[TagRow]:
    """Those that tell something before those that do not, what is critical first; of the rest the largest."""

    def place(row: TagRow) -> tuple[bool, int, int, int, str]:
        return not (row.critical and row.lost), -len(row.lost), -len(row.gained), -row.n, row.tag

    return sorted(tags, key=place)


def _whole(c: Comparison) -> Row:
    found, rates = c.migration, (c.a.rate or 0.0, c.b.rate or 0.0)
    by = found.difference or 0.0
    told = TagRow(
        f"All {c.suite} cases", c.cases, False, *rates, by, found.low, found.high, found.verdict, (), ()
    )
    return _tag(told)._replace(shape="diamond")


def _metric(row: MetricRow) -> Row:
    word = comparison_words.metric_word(row)
    told = TONES.get(word, "plain") if row.n >= FEWEST_FOR_A_VERDICT else "quiet"
    figures = row.n, row.a, row.b, row.better_by, row.low, row.high
    return Row(comparison_words.metric(row), *figures, word, told, _shape(row.n))


def _tag(row: TagRow) -> Row:
    name = row.tag + (", critical" if row.critical else "")
    figures = row.n, row.a, row.b, row.difference, row.low, row.high
    return Row(name, *figures, comparison_words.tag_word(row), TONES.get(row.word, "quiet"), _shape(row.n))


def _shape(n: int) -> Literal["square", "square-open"]:
    return "square" if n >= FEWEST_FOR_A_VERDICT else "square-open"


# How it is drawn ------------------------------------------------------------------------------------------


def figure(
    c: Comparison,
    theme: Theme,
    styles: Pair | None = None,
    *,
    most_tags: int | None = None,
    narrow: bool = False,
) -> go.Figure:
    """`styles`: of A and B; `narrow`: for 300 px and more, the words above each line, in place of columns
    beside it for 900 and more."""
    shown = rows(c, most_tags)
    places, height = _places(shown, narrow)
    reach = _reach(shown)
    drawn = _Drawn(theme, styles or palette.pair(theme), places, height, reach, c.migration.margin * 100)
    chart = go.Figure(layout=_layout(drawn, narrow))
    chart.layout.shapes = tuple(_shapes(drawn, narrow))
    chart.add_traces([*_intervals(drawn), _arrows(drawn), _markers(drawn)])
    annotate(chart, [*_axis_notes(drawn), *(_narrow_notes(drawn) if narrow else _wide_notes(drawn))])
    return chart


def blank(theme: Theme) -> go.Figure:
    """The frame of what is to come."""
    hidden = {"visible": False, "fixedrange": True}
    return go.Figure(layout={**frame(theme, 12 * ROW), "xaxis": hidden, "yaxis": hidden})


class _Drawn(NamedTuple):
    """What all its parts go by. `margin` in points."""

    theme: Theme
    styles: Pair
    places: Sequence[_Place]
    height: float
    reach: float
    margin: float

    @property
    def lines(self) -> list[_Place]:
        return [place for place in self.places if not place.row.heading]

    def colour(self, row: Row) -> str:
        tones = {"good": self.theme.better, "bad": self.theme.worse, "plain": self.theme.text}
        return tones.get(row.tone, self.theme.muted)

    def inside(self, value: float) -> float:
        return min(max(value * 100, -self.reach), self.reach)


def _places(shown: Sequence[Row], narrow: bool) -> tuple[list[_Place], float]:
    places, top = [], 0.0
    for row in shown:
        height = ROW if row.heading or not narrow else LOW_ROW
        places.append(_Place(row, top + (height / 2 if row.heading or not narrow else height - 12)))
        top += height
    return places, top


def _reach(shown: Sequence[Row]) -> float:
    """Half of the axis, in points, to the next ten: all of what has a verdict, of the rest up to `REACH`."""
    ends = [(row, 100 * max(abs(row.low or 0.0), abs(row.high or 0.0), abs(row.better_by))) for row in shown]
    sure = [end for row, end in ends if row.shape != "square-open"]
    rest = [min(end, REACH) for row, end in ends if row.shape == "square-open"]
    return math.ceil(max([LEAST, *sure, *rest]) / 10) * 10.0


def _layout(drawn: _Drawn, narrow: bool) -> dict[str, Any]:
    step = axes.nice_step(drawn.reach / (2 if narrow else 4))
    ticks = [step * place for place in range(-int(drawn.reach // step), int(drawn.reach // step) + 1)]
    return {
        **frame(drawn.theme, drawn.height + HEAD + AXIS),
        "margin": {"l": 4 if narrow else LEFT, "r": 8 if narrow else RIGHT, "t": HEAD, "b": AXIS},
        "xaxis": {
            "range": [-drawn.reach * 1.02, drawn.reach * 1.02], "tickvals": ticks,
            "ticktext": [f"{tick:g}".replace("-", "−") for tick in ticks], "gridcolor": drawn.theme.grid,
            "zeroline": False, "fixedrange": True, "ticks": "",
        },
        "yaxis": {"range": [drawn.height, 0], "visible": False, "fixedrange": True},
    }  # fmt: skip


def _shapes(drawn: _Drawn, narrow: bool) -> Iterator[go.layout.Shape]:
    """The margin: shaded what would still do."""
    shade, line = {"yref": "paper", "y0": 0, "y1": 1, "layer": "below"}, drawn.theme.mark
    yield go.layout.Shape(
        type="rect", x0=-drawn.margin, x1=0, fillcolor=drawn.theme.mark, opacity=0.14, line={"width": 0},
        **shade,
    )  # fmt: skip
    for x, dash in ((-drawn.margin, "6px,4px"), (0, "solid")):
        yield go.layout.Shape(
            type="line", x0=x, x1=x, line={"color": line, "width": 1.4, "dash": dash},
            **{**shade, "y1": 1 + (0 if narrow else 16 / drawn.height)},
        )  # fmt: skip


def _intervals(drawn: _Drawn) -> Iterator[go.Scatter]:
    """A line each: its width and colour say how much it counts."""
    for row, y in drawn.lines:
        if row.low is not None and row.high is not None:
            yield go.Scatter(
                x=[drawn.inside(row.low), drawn.inside(row.high)], y=[y, y], mode="lines", hoverinfo="skip",
                line={"color": drawn.colour(row), "width": 3 if row.shape == "diamond" else 1.8},
            )  # fmt: skip


def _arrows(drawn: _Drawn) -> go.Scatter:
    """Where an interval goes on beyond the axis."""
    ends = [
        (side * drawn.reach, y, drawn.colour(row), "triangle-right" if side > 0 else "triangle-left")
        for row, y in drawn.lines
        for side, end in ((-1, row.low), (1, row.high))
        if end is not None and side * end * 100 > drawn.reach
    ]
    x, y, colours, symbols = zip(*ends, strict=True) if ends else ((), (), (), ())
    return go.Scatter(
        x=x, y=y, mode="markers", hoverinfo="skip", cliponaxis=False,
        marker={"symbol": symbols, "color": colours, "size": 8},
    )  # fmt: skip


def _markers(drawn: _Drawn) -> go.Scatter:
    lines = [place for place in drawn.lines if abs(place.row.better_by) * 100 <= drawn.reach]
    return go.Scatter(
        x=[row.better_by * 100 for row, _ in lines], y=[y for _, y in lines], mode="markers",
        cliponaxis=False, text=[_hover(row) for row, _ in lines], hovertemplate="%{text}<extra></extra>",
        marker={
            "opacity": 1,
            "symbol": [row.shape for row, _ in lines],
            "size": [13 if row.shape == "diamond" else 9 for row, _ in lines],
            "color": [drawn.colour(row) for row, _ in lines],
            "line": {"width": 1.8, "color": [drawn.colour(row) for row, _ in lines]},
        },
    )  # fmt: skip


def _hover(row: Row) -> str:
    interval = comparison_words.interval(row.low, row.high)
    rates = f"A {words.amount('pass', row.a)}, B {words.amount('pass', row.b)} · n {row.n}"
    by = f"B better by {comparison_words.points(row.better_by)}{f' ({interval})' if interval else ''}"
    return f"<b>{safe(row.name)}</b> · {safe(row.word)}<br>{rates}<br>{by}"


# Words ----------------------------------------------------------------------------------------------------


def _axis_notes(drawn: _Drawn) -> Iterator[go.layout.Annotation]:
    above: dict[str, Any] = {"y": 1, "yref": "paper", "yshift": 15, "xref": "x"}
    yield note("margin", drawn.theme, x=-drawn.margin, xanchor="right", xshift=-4, **above)
    yield note("B better, points →", drawn.theme, x=0, xanchor="left", xshift=5, **above)


def _wide_notes(drawn: _Drawn) -> Iterator[go.layout.Annotation]:
    yield from _headings(drawn)
    for row, y in drawn.places:
        yield _cell(drawn, row, y, _cut(row.name, LONGEST[False]), 0, drawn.theme.text)
        if row.heading:
            continue
        cells = {
            "n": str(row.n),
            "a": words.bare("pass", row.a),
            "b": words.bare("pass", row.b),
            "by": comparison_words.points(row.better_by),
            "interval": comparison_words.interval(row.low, row.high),
        }
        for column, text in cells.items():
            colour = drawn.theme.muted if column in ("n", "interval") else drawn.theme.text
            yield _cell(drawn, row, y, text, COLUMNS[column], colour)
        behind = {"x": 1, "xanchor": "left", "xshift": 16, "y": y, "yref": "y"}
        yield note(_bold(row, safe(row.word)), drawn.theme, color=drawn.colour(row), **behind)


def _headings(drawn: _Drawn) -> Iterator[go.layout.Annotation]:
    a, b = drawn.styles
    texts = {
        "n": ("n", ""),
        "a": (f"{a.glyph} <b>A</b> %", a.colour),
        "b": (f"{b.glyph} <b>B</b> %", b.colour),
        "by": ("B better by", ""),
        "interval": ("90 % interval", ""),
    }
    for column, (text, colour) in texts.items():
        yield note(
            text, drawn.theme, color=colour, x=0, xanchor="right", xshift=COLUMNS[column] - LEFT, y=1,
            yref="paper", yshift=15,
        )  # fmt: skip


def _cell(
    drawn: _Drawn, row: Row, y: float, text: str, edge: float, colour: str
) -> go.layout.Annotation:  # fmt: skip
    """At its column's right edge; the name, which has none, from the left."""
    if row.heading:
        colour = drawn.theme.muted
    return note(
        _bold(row, safe(text)), drawn.theme, color=colour, x=0, xanchor="right" if edge else "left",
        xshift=edge - LEFT + (0 if edge else 4), y=y, yref="y",
    )  # fmt: skip


def _narrow_notes(drawn: _Drawn) -> Iterator[go.layout.Annotation]:
    for row, y in drawn.places:
        above: dict[str, Any] = {"y": y, "yref": "y", "yshift": 0 if row.heading else 17}
        name, ink = (
            safe(_cut(row.name, LONGEST[True])),
            drawn.theme.muted if row.heading else drawn.theme.text,
        )
        told = name if row.heading else f"{_bold(row, name)} {comparison_words.points(row.better_by)}"
        yield note(told, drawn.theme, color=ink, x=0, xanchor="left", **above)
        if not row.heading:
            colour = drawn.colour(row)
            yield note(safe(row.word), drawn.theme, color=colour, x=1, xanchor="right", **above)


def _bold(row: Row, text: str) -> str:
    return f"<b>{text}</b>" if row.shape == "diamond" else text


def _cut(name: str, longest: int) -> str:
    """In the middle: long names of one kind begin alike, and differ at their ends."""
    half = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half:]}"


def alt(c: Comparison) -> str:
    """For those who do not see it."""
    whole, *others = [row for row in rows(c) if not row.heading]
    told = f"B is better by {comparison_words.points(whole.better_by)} points on all {whole.n} cases"
    interval = (
        f", interval {comparison_words.interval(whole.low, whole.high)}" if whole.low is not None else ""
    )
    worse = [f"{row.name} {comparison_words.points(row.better_by)}" for row in others if row.tone == "bad"]
    return f"{told}{interval}; " + (
        f"worse: {words.listed(worse)}" if worse else "no metric and no tag is worse"
    )
