"""The chart of an alert: before and since, and the cases that broke, on one time axis."""

from __future__ import annotations

from datetime import timedelta
from xml.etree import ElementTree as Xml

from dashboard import incident_chart, sparkline
from dashboard.figures import Tick
from dashboard.palette import THEMES
from dashboard.sparkline import Dot, Frame
from tests.dashboard.test_charts import START, STYLES, line, row, traces, window, words_on

FELL = line("mem0", [0.94, 0.92, 0.94, 0.81, 0.79])


def test_levels_before_and_since() -> None:
    """The mean of the runs before it began, and of those from then on."""
    found = incident_chart.levels(FELL.points, START + timedelta(days=3))
    assert [round(level.mean, 3) for level in found] == [0.933, 0.8]
    assert found[1].first == START + timedelta(days=3)


def test_a_level_ends_with_the_last_bad_run() -> None:
    """Of an alert that is over, what came after the mend is no part of how bad it was."""
    mended = line("mem0", [0.94, 0.92, 0.94, 0.81, 0.79, 0.95, 0.95])
    began, ended = (START + timedelta(days=day) for day in (3, 4))
    found = incident_chart.levels(mended.points, began, ended)
    assert [round(level.mean, 3) for level in found] == [0.933, 0.8]
    assert found[1].last == ended


def test_no_levels_without_two_sides() -> None:
    """Where nothing is known of before, or of when it began, nothing is compared."""
    assert incident_chart.levels(FELL.points, START) == []
    assert incident_chart.levels(FELL.points, None) == []


def test_lost_cases_stand_below_by_name() -> None:
    """Every lost case has its row on the same time axis, named without markup, long names cut."""
    shown = FELL._replace(levels=incident_chart.levels(FELL.points, START + timedelta(days=3)))
    rows = [row("odd-<b>name</b>", "+++--"), row("x" * 40, "+++--")]
    marks = [Tick(START + timedelta(days=3), "mem0ai 2.0.0 → 2.0.20")]
    figure = incident_chart.figure(shown, "pass", rows, window(days=6), marks)
    told = words_on(figure)
    assert "odd-&lt;b&gt;name&lt;/b&gt;" in told
    assert "x" * 23 + "…" in told
    assert any("93.3 %" in text and "before" in text for text in told)
    assert any("80.0 %" in text and "since" in text for text in told)
    assert len(traces(figure, "heatmap")) == 1
    assert [list(found) for found in traces(figure, "heatmap")[0].z] == [[0, 0, 0, 1, 1]] * 2


def test_without_cases_there_is_no_strip() -> None:
    """A series whose alert names no case is drawn alone, and its words say what it shows."""
    figure = incident_chart.figure(FELL, "pass", [], window(days=6), [])
    assert traces(figure, "heatmap") == []
    assert incident_chart.alt(FELL, "pass", []) == "pass rate of mem0: over time"


def test_a_sparkline_shows_where_it_began() -> None:
    """A line stands in a row's chart at the run with which the alert began, and none where that is not
    known."""
    dots = [Dot(point.started_at, point.mean, point.low, point.high) for point in FELL.points]
    frame = Frame(dots[0].at, dots[-1].at, 20.0)

    def lines(mark: Frame) -> list[Xml.Element]:
        svg = Xml.fromstring(sparkline.sparkline(dots, STYLES["mem0"], THEMES["light"], mark))
        return [one for one in svg if one.tag.endswith("line") and not one.tag.endswith("polyline")]

    (drawn,) = lines(frame._replace(mark=dots[2].at))
    assert drawn.get("x1") == drawn.get("x2")
    assert 90 < float(drawn.get("x1") or 0) < 120
    assert lines(frame) == []
