"""Charts as figures: what is on them, and that they cannot mislead."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import plotly.graph_objects as go
import pytest

from dashboard import charts, levels
from dashboard.axes import local
from dashboard.charts import Extras
from dashboard.curves import Alert, Line
from dashboard.figures import Tick, Window
from dashboard.palette import THEMES, Style, styles
from dashboard.strips import Cell, Row
from store.queries import BackendRow, TrendPoint
from store.queries.series import SeriesRun

START = datetime(2026, 11, 1, 3, 0, tzinfo=UTC)
BACKENDS = [BackendRow(i, name, "x", "default", i) for i, name in enumerate(("mem0", "dense", "hybrid"))]
STYLES = styles(BACKENDS, THEMES["light"])


def window(mode: Any = "light", days: int = 30, zone: str = "UTC") -> Window:
    return Window(START, START + timedelta(days=days), ZoneInfo(zone), THEMES[mode])


def line(name: str, means: Sequence[float | None], metric: str = "pass", bold: bool = False) -> Line:
    """A run a night; None is a night without one."""
    points = [
        TrendPoint(night(name, day), metric, 180, mean, mean - 0.04, mean + 0.03)
        for day, mean in enumerate(means)
        if mean is not None
    ]
    return Line(name, STYLES[name], points, bold)


def night(name: str, day: int) -> SeriesRun:
    return SeriesRun(100 + day, 1, 1, name, START + timedelta(days=day), 1, "v", 1)


def row(case: str, outcomes: str, backend: str = "mem0") -> Row:
    cells = [
        Cell(100 + day, START + timedelta(days=day), outcome == "+", outcome != " ")
        for day, outcome in enumerate(outcomes)
    ]
    return Row(case, backend, STYLES[backend], cells)


def traces(figure: go.Figure, kind: str) -> list[Any]:
    return [trace for trace in figure.data if trace.type == kind]


def curve(figure: go.Figure, name: str) -> Any:
    return next(trace for trace in figure.data if trace.name == name and "lines" in (trace.mode or ""))


def heights(trace: Any) -> list[float | None]:
    """Where a trace is; None where it has a gap."""
    return [None if y is None or math.isnan(y) else y for y in trace.y]


def words_on(figure: go.Figure) -> list[str]:
    return [annotation.text for annotation in figure.layout.annotations]


# Verdicts


def test_levels_stand_where_something_changed() -> None:
    """A series that fell has a thick line a level, as high as its mean; one at rest has none."""
    fell, rests = (line("mem0", [0.93, 0.94] * 10 + [0.80, 0.81] * 10), line("dense", [0.80, 0.81] * 20))
    shown = [one._replace(levels=levels.found(one.points, "pass")) for one in (fell, rests)]
    figure = charts.trend(shown, "pass", window(days=40), Extras())
    (drawn,) = [trace for trace in traces(figure, "scatter") if trace.line.width == 3.4]
    assert tuple(drawn.y) == (93.5, 93.5, None, 80.5, 80.5, None)
    assert drawn.x[3] == local(fell.points[20].started_at, ZoneInfo("UTC"))
    assert drawn.line.color == STYLES["mem0"].colour


def test_levels_of_amounts_need_no_counts() -> None:
    """A time that doubled changes its level as well, on nothing but the values."""
    found = levels.found(line("mem0", [10.0, 11.0] * 10 + [20.0, 21.0] * 10, "recall_ms").points, "recall_ms")
    assert [level.mean for level in found] == [10.5, 20.5]


def test_a_ring_opens_its_run() -> None:
    """Where a verdict turned stands a ring in its colour, which a click opens and which says what it is,
    without markup."""
    ring = Alert(107, START, 0.9, "#C0271D", "Worse: <b>x</b>, run 107")
    figure = charts.trend([line("mem0", [0.9])._replace(alerts=[ring])], "pass", window(), Extras())
    (drawn,) = [trace for trace in traces(figure, "scatter") if trace.marker.symbol == "circle-open"]
    assert (drawn.customdata[0][0], drawn.y[0], drawn.marker.line.color) == (107, 90.0, ("#C0271D",))
    assert drawn.hovertext == ("Worse: &lt;b&gt;x&lt;/b&gt;, run 107",)
    assert (len(drawn.customdata[0]), drawn.text) == (1, ("",))


def test_a_ring_opens_its_alert() -> None:
    """Where an alert began its number stands beneath the ring, and a click finds it."""
    ring = Alert(107, START, 0.9, "#C0271D", "A-12: worse", 12)
    figure = charts.trend([line("mem0", [0.9])._replace(alerts=[ring])], "pass", window(), Extras())
    (drawn,) = [trace for trace in traces(figure, "scatter") if trace.marker.symbol == "circle-open"]
    assert (list(drawn.customdata[0]), drawn.text) == ([107, 12], ("A-12",))


def test_a_drift_is_drawn_around_zero() -> None:
    """A difference may be below zero: its axis reaches as far down as up, in points."""
    axis = charts.trend(
        [line("mem0", [0.01, -0.12], "anchor_drift")], "anchor_drift", window(), Extras()
    ).layout.yaxis
    assert axis.range == (-20, 20)
    assert "−12.0 points" in charts.alt("x", [line("mem0", [-0.12], "anchor_drift")], "anchor_drift")


# Axes


@pytest.mark.parametrize("means", [[0.91, 0.912, 0.911], [0.0, 0.0, 0.0], [1.0, 1.0], [0.2, 0.9]])
def test_a_share_axis_spans_twenty_points(means: list[float]) -> None:
    """No share is drawn on less than 20 points, nor beyond 0 and 100, and ticks fall on fives."""
    axis = charts.trend([line("mem0", means)], "pass", window(), Extras()).layout.yaxis
    low, high = axis.range
    assert high - low >= 20
    assert low >= 0
    assert high <= 100
    assert all(low <= mean * 100 <= high for mean in means)
    assert all(tick % 5 == 0 for tick in axis.tickvals)


def test_an_amount_axis_begins_at_zero() -> None:
    """Times and counts are drawn from zero."""
    figure = charts.trend([line("mem0", [310.0, 312.0], "recall_ms")], "recall_ms", window(), Extras())
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.yaxis.range[1] >= 312


def test_no_axis_is_automatic() -> None:
    """Every axis of every chart has a range of its own and cannot be dragged."""
    figures = [
        charts.trend([line("mem0", [0.9] * 5, bold=True)], "pass", window(), everything()),
        charts.each([line("mem0", [0.9] * 5), line("dense", [0.7] * 5)], "pass", window(), []),
        charts.history([row("a", "++-")], window()),
        charts.coverage([("recall", 4), ("time", 2)], THEMES["light"]),
    ]
    for figure in figures:
        named = [name for name in figure.layout if "axis" in name and figure.layout[name].to_plotly_json()]
        assert named
        for name in named:
            assert figure.layout[name].range is not None, name
            assert figure.layout[name].fixedrange, name


def test_panels_of_one_each_have_one_height_in_points() -> None:
    """Side by side, a slope means the same on every backend."""
    figure = charts.each([line("mem0", [0.9, 0.5]), line("dense", [0.7, 0.71])], "pass", window(), [])
    spans = {axis.range[1] - axis.range[0] for axis in (figure.layout.yaxis, figure.layout.yaxis2)}
    assert len(spans) == 1


def test_one_each_draws_a_control_in_the_panel_of_its_backend() -> None:
    """The frozen release is drawn and named in the panel of the backend that it ran beside, which is high
    enough for both, without a band of its own; it has no panel."""
    control = line("hybrid", [0.97, 0.2])._replace(name="control x", control="dense")
    figure = charts.each(
        [line("mem0", [0.9, 0.9]), line("dense", [0.7, 0.71]), control], "pass", window(), []
    )
    drawn = {trace.name: trace.yaxis for trace in figure.data if trace.name}
    assert drawn == {"mem0": "y", "dense": "y2", "control x": "y2"}
    assert figure.layout.yaxis2.range[0] <= 20
    assert figure.layout.yaxis2.range[1] >= 97
    assert sum("control x" in text for text in words_on(figure)) == 1
    assert sorted(trace.yaxis for trace in figure.data if trace.fill == "toself") == ["y", "y2"]


# Lines


def everything() -> Extras:
    return Extras(
        marks=[Tick(START + timedelta(days=2, hours=5), "agent 4.12", "»")],
        changes=[Tick(START + timedelta(days=2), "numpy: 1 → 2")],
        broken=[row("lost-1", "++---"), row("lost-2", "+++--"), row("lost-3", "++++-", "dense")],
        floors={"nothing": 0.111, "everything": 0.278},
    )


def test_a_night_without_a_run_is_a_gap() -> None:
    """A line does not bridge what was not measured."""
    figure = charts.trend([line("mem0", [0.9, 0.9, 0.9, None, 0.9, 0.9])], "pass", window(), Extras())
    assert heights(curve(figure, "mem0")) == [90, 90, 90, None, 90, 90]


def test_a_point_carries_its_run() -> None:
    """What a click opens travels with the point, gaps or not."""
    figure = charts.trend([line("mem0", [0.9, None, None, 0.8])], "pass", window(), Extras())
    trace = curve(figure, "mem0")
    shown = {
        x: run for x, y, run in zip(trace.x, heights(trace), trace.customdata, strict=True) if y is not None
    }
    assert shown == {"2026-11-01T03:00:00": 100, "2026-11-04T03:00:00": 103}


def test_hover_tells_interval_and_n() -> None:
    """Every point tells its value with interval and n."""
    trace = curve(charts.trend([line("mem0", [0.9])], "pass", window(), Extras()), "mem0")
    assert list(trace.text) == ["90.0 % (86.0 to 93.0) · n 180"]
    assert "%{text}" in trace.hovertemplate


@pytest.mark.parametrize(
    ("backends", "runs", "bands"), [(5, 30, 1), (4, 30, 4), (1, 30, 1), (9, 8, 9), (9, 9, 1)]
)
def test_bands_that_hide_each_other_are_left_out(backends: int, runs: int, bands: int) -> None:
    """Every line shows its interval where there are few of them or few runs, else the bold ones alone."""
    quiet = [line("dense", [0.7] * runs) for _ in range(backends - 1)]
    figure = charts.trend([line("mem0", [0.9] * runs, bold=True), *quiet], "pass", window(), Extras())
    colours = [trace.fillcolor for trace in figure.data if trace.fill]
    assert len(colours) == bands
    assert "rgba(0,120,212,0.1)" in colours


def test_a_run_that_stands_alone_has_its_interval() -> None:
    """A first run has a bar from bound to bound, since a band of one run has no width."""
    figure = charts.trend([line("mem0", [0.9])], "pass", window(), Extras())
    assert [86.0, 93.0, None] in [heights(trace) for trace in traces(figure, "scatter")]
    low, high = figure.layout.yaxis.range
    assert low <= 86
    assert high >= 93


@pytest.mark.parametrize("runs", [3, 30])
def test_a_backend_keeps_its_marker(runs: int) -> None:
    """In the main chart, too, a backend is told by marker and dash as well as by colour."""
    lines = [line("mem0", [0.9] * runs), line("dense", [0.7] * runs)]
    figure = charts.trend(lines, "pass", window(), Extras())
    for name in ("mem0", "dense"):
        drawn, style = curve(figure, name), STYLES[name]
        assert (drawn.line.color, drawn.line.dash, drawn.marker.symbol) == style[:3]
        (ends,) = [trace for trace in figure.data if trace.mode == "markers"]
        assert {*ends.x} == {drawn.x[runs - 1]}
        assert (style.marker, style.colour) in zip(ends.marker.symbol, ends.marker.color, strict=True)


def test_few_runs_are_points() -> None:
    """Two runs of one minute make no line that could be seen: they are drawn as points."""
    few = curve(charts.trend([line("mem0", [0.9, 0.8])], "pass", window(), Extras()), "mem0")
    many = curve(charts.trend([line("mem0", [0.9] * 30)], "pass", window(), Extras()), "mem0")
    assert (few.marker.opacity, many.marker.opacity) == (1, 0)


def test_a_clicked_point_fades_nothing() -> None:
    """Selecting a point leaves every other as visible as it was."""
    lines = [line("mem0", [0.9] * 3, bold=True), line("dense", [0.7] * 3)]
    figure = charts.trend(lines, "pass", window(), everything())
    for trace in traces(figure, "scatter"):
        if "markers" in (trace.mode or ""):
            before = trace.marker.opacity if trace.marker.opacity is not None else trace.opacity
            assert trace.unselected.marker.opacity == before


def test_times_are_the_viewers() -> None:
    """A night at 03:00 UTC is drawn at 04:00 in Berlin."""
    figure = charts.trend([line("mem0", [0.9])], "pass", window(zone="Europe/Berlin"), Extras())
    assert curve(figure, "mem0").x[0] == "2026-11-01T04:00:00"


# Around the lines


def test_names_stand_at_the_end_and_apart() -> None:
    """Names are words at the line's end, at least 19 px from each other, in the order of the values."""
    lines = [line("mem0", [0.901]), line("dense", [0.900]), line("hybrid", [0.902])]
    figure = charts.trend(lines, "pass", window(), Extras())
    labels = [a for a in figure.layout.annotations if "<b>" in a.text]
    plot = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    heights = sorted((a.y * plot for a in labels), reverse=True)
    assert [a.text.split("<b>")[1].split("<")[0] for a in sorted(labels, key=lambda a: -a.y)] == [
        "hybrid",
        "mem0",
        "dense",
    ]
    assert all(upper - lower >= 19 - 1e-6 for upper, lower in itertools.pairwise(heights))
    assert not figure.layout.showlegend


def test_floors_beyond_the_axis_are_said() -> None:
    """A floor that the axis does not reach is a sentence; one that it reaches is a line with its name."""
    far = charts.trend([line("mem0", [0.9, 0.92])], "pass", window(), everything())
    assert "↓ floors lie below this axis: nothing 11.1 %, everything 27.8 %" in words_on(far)
    near = charts.trend([line("mem0", [0.1, 0.3])], "pass", window(), everything())
    assert "floor: nothing 11.1" in words_on(near)
    assert not any("below" in text for text in words_on(near))


def test_a_mark_stands_before_the_first_run_that_saw_it() -> None:
    """A mark lies between the last run that had not seen it and the first that had."""
    figure = charts.trend([line("mem0", [0.9] * 5)], "pass", window(), everything())
    (mark,) = [shape for shape in figure.layout.shapes if shape.y0 == 0]
    assert "2026-11-03T03:00" < mark.x0 < "2026-11-04T03:00"
    assert "» agent 4.12" in words_on(figure)


def test_crowded_marks_do_not_overlap() -> None:
    """Marks of one hour share two lanes; the rest are lines without words."""
    marks = [Tick(START + timedelta(days=2, minutes=minute), f"deploy {minute}", "»") for minute in range(6)]
    figure = charts.trend([line("mem0", [0.9] * 9)], "pass", window(), Extras(marks=marks))
    labels = [a for a in figure.layout.annotations if "deploy" in a.text]
    assert len({(a.x, a.yshift) for a in labels}) == len(labels) == 2
    assert len([shape for shape in figure.layout.shapes if shape.y0 == 0]) == 6


def test_rows_below_share_the_time_axis() -> None:
    """Environment changes and broken cases stand on the axis of the lines, and do not overlap them."""
    figure = charts.trend([line("mem0", [0.9] * 5, bold=True)], "pass", window(), everything())
    domains = [figure.layout[name].domain for name in ("yaxis", "yaxis2", "yaxis3")]
    assert all(upper[0] > lower[1] for upper, lower in itertools.pairwise(domains))
    assert {trace.xaxis for trace in figure.data} <= {None, "x"}
    assert {"<b>2</b> mem0 cases broke", "<b>1</b> dense case broke"} <= set(words_on(figure))


def test_a_square_carries_its_case() -> None:
    """A failed cell opens its case in its run; so does the newest cell."""
    figure = charts.trend([line("mem0", [0.9] * 5, bold=True)], "pass", window(), everything())
    squares = figure.data[-1].customdata
    assert [104, "lost-1", "mem0"] in [list(square) for square in squares]
    assert len(squares) == 3 + 2 + 1


# Strips


def test_a_cell_without_an_answer_has_no_colour() -> None:
    """An error is neither a pass nor a failure, and a missing night no cell."""
    (cells,) = traces(charts.history([row("", "+- +")], window()), "heatmap")
    assert [None if math.isnan(share) else share for share in cells.z[0]] == [0, 1, None, 0]


def test_a_history_names_every_backend() -> None:
    """Each row has its backend at the left and what became of the case at the right."""
    rows = [
        row("", "++-")._replace(words="failing since 3 Nov"),
        row("", "+++", "dense")._replace(words="passes"),
    ]
    shown = words_on(charts.history(rows, window()))
    assert {"● mem0", "◆ dense", "failing since 3 Nov", "passes"} <= set(shown)


def test_trials_shade_a_cell() -> None:
    """Two failures in four trials are half the colour."""
    half = Row("", "mem0", STYLES["mem0"], [Cell(1, START, 2, 4)])
    (cells,) = traces(charts.history([half], window()), "heatmap")
    assert cells.z[0][0] == 0.5


# All


def test_names_cannot_be_markup() -> None:
    """Plotly reads tags in texts: a name with tags keeps its characters."""
    style = Style("#000000", "solid", "circle", "●")
    evil = '<a href="http://evil.example">x</a>'
    hostile = line("mem0", [0.9])._replace(name=evil, style=style)
    extras = Extras([Tick(START, evil)], [], [row(evil, "+-")._replace(backend=evil)], {evil: 0.1})
    for figure in (
        charts.trend([hostile], "pass", window(), extras),
        charts.each([hostile], "pass", window(), [Tick(START, evil)]),
        charts.history([row("", "+-")._replace(backend=evil, words=evil)], window()),
        charts.coverage([(evil, 1)], THEMES["light"]),
    ):
        shown = json.loads(figure.to_json())
        for trace in shown["data"]:
            trace.pop("customdata", None)  # carried, never drawn
        assert "<a" not in json.dumps(shown)


def test_alt_tells_value_and_n() -> None:
    """A chart in words names the newest value and n of each line."""
    assert charts.alt("pass rate of golden", [line("mem0", [0.8, 0.9])], "pass") == (
        "pass rate of golden: mem0 90.0 % (n 180)"
    )
    assert charts.alt("pass rate of golden", [], "pass") == "pass rate of golden: no data"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_colours_are_those_of_the_theme(mode: Any) -> None:
    """Grid and words take the colours of the page."""
    figure = charts.trend([line("mem0", [0.9])], "pass", window(mode), everything())
    assert figure.layout.yaxis.gridcolor == THEMES[mode].grid
    assert figure.layout.font.color == THEMES[mode].muted
    assert figure.layout.plot_bgcolor == "rgba(0,0,0,0)"


def test_many_runs_stay_small() -> None:
    """A year of twenty backends leaves as less than a megabyte."""
    means = [0.9 + 0.05 * ((day * 7) % 11) / 11 for day in range(365)]
    lines = [line("mem0", means) for _ in range(20)]
    assert len(charts.trend(lines, "pass", window(days=365), Extras()).to_json()) < 1_000_000
