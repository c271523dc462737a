"""The two figures of a comparison: where its difference lies, and how fast each side answers."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from dashboard import ecdf, forest
from dashboard.palette import THEMES
from store.comparisons import MetricRow
from tests.dashboard.comparing import comparison, tag
from tests.dashboard.facts import HOSTILE

LIGHT = THEMES["light"]
TWENTY_SIX = tuple(tag(f"tag-{place:02}", 40 - place) for place in range(26))


def texts(figure: go.Figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def markers(figure: go.Figure) -> go.Scatter:
    return next(trace for trace in figure.data if trace.hovertemplate)


def hollow(figure: go.Figure) -> list[bool]:
    return [symbol == "square-open" for symbol in markers(figure).marker.symbol]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_row_says_its_word_beside_its_line(mode, narrow):
    """All cases, each metric and each tag have a name, a figure and a word, on any screen and in both
    themes: colour alone tells nothing."""
    c = comparison()
    figure = forest.figure(c, THEMES[mode], narrow=narrow)
    told = " | ".join(texts(figure))
    for row in forest.rows(c):
        assert row.name[:12] in told
        assert row.word in told
    assert "+1.1" in told
    assert len(markers(figure).x) == 5
    assert figure.layout.margin.l == (4 if narrow else forest.LEFT)


def test_few_cases_are_hollow():
    """All cases and metrics of 90 cases are filled, what rests on fewer is hollow."""
    assert hollow(forest.figure(comparison(), LIGHT)) == [False, False, True, True, True]


def test_better_lies_to_the_right_whichever_way_a_metric_counts():
    """A metric of which less is better lies on B's side when B has less of it, and says so."""
    figure = forest.figure(comparison(), LIGHT)
    place = next(i for i, text in enumerate(markers(figure).text) if "lower is better" in text)
    assert markers(figure).x[place] == pytest.approx(7.5)


def test_a_metric_that_is_worse_is_red_and_says_so():
    """Where enough cases stand behind it; of few the word alone says it."""
    rows = [MetricRow("mrr", n, 0.9, 0.8, -0.1, -0.15, -0.05, "BCa bootstrap", None) for n in (180, 20)]
    c = comparison(metrics=tuple(rows), tags=())
    sure, few = list(markers(forest.figure(c, LIGHT)).marker.color)[1:]
    assert (sure, few) == (LIGHT.worse, LIGHT.muted)
    assert forest.alt(c).endswith("worse: mrr −10.0")


def test_the_margin_is_shaded_up_to_nothing():
    """From minus the margin to 0 lies what would still do."""
    rectangle = next(
        shape for shape in forest.figure(comparison(), LIGHT).layout.shapes if shape.type == "rect"
    )
    assert (rectangle.x0, rectangle.x1) == (-3.0, 0)


def test_what_a_few_cases_leave_open_squeezes_nothing():
    """An interval of few cases that reaches beyond 40 points ends in an arrow there; one that a verdict rests
    on is never cut."""
    wide = tag("tiny", 1, 0.0, low=-0.9, high=0.9)
    figure = forest.figure(comparison(tags=(wide,)), LIGHT)
    assert figure.layout.xaxis.range[1] < 45
    arrows = next(trace for trace in figure.data if "triangle-left" in (trace.marker.symbol or ()))
    assert list(arrows.x) == [-40.0, 40.0]
    sure = MetricRow("recall@k", 400, 0.9, 0.2, -0.7, -0.75, -0.6, "BCa bootstrap", None)
    figure = forest.figure(comparison(metrics=(sure,), tags=(wide,)), LIGHT)
    assert figure.layout.xaxis.range[0] <= -75


def test_tags_that_tell_something_come_first():
    """Of many tags a critical one that lost something is drawn first, then those that lost more, then those
    that gained, then the rest."""
    lost = (
        tag("gone", 1, lost=("y", "z"), word="lost"),
        tag("grave", 1, lost=("v",), word="lost", critical=True),
    )
    c = comparison(tags=(*TWENTY_SIX, tag("won", 2, gained=("x",)), *lost))
    names = [row.name for row in forest.rows(c, 5) if not row.heading]
    assert names[-5:] == ["grave, critical", "gone", "won", "tag-00", "tag-01"]
    assert len(forest.rows(c)) == len(forest.rows(c, 5)) + 24


@pytest.mark.parametrize("narrow", [False, True])
def test_many_tags_have_a_line_each(narrow):
    """Twenty-six tags are as far apart as few are."""
    few, many = (forest.figure(comparison(tags=TWENTY_SIX[:n]), LIGHT, narrow=narrow) for n in (2, 26))
    row = forest.LOW_ROW if narrow else forest.ROW
    assert many.layout.height - few.layout.height == 24 * row


@pytest.mark.parametrize("narrow", [False, True])
def test_long_names_stay_apart(narrow):
    """Two long names that differ at their ends alone are still two, and neither is written in full."""
    alike = tuple(tag(f"what the team of the warehouse in the north asks, part {n}") for n in (1, 2))
    told = texts(forest.figure(comparison(tags=alike), LIGHT, narrow=narrow))
    names = {text.split(" +")[0].split(" 0.0")[0] for text in told if text.startswith("what the")}
    assert len(names) == 2
    assert all(len(name) <= forest.LONGEST[narrow] for name in names)


def test_names_are_text():
    """Whatever a tag is called, plotly finds no tag in it."""
    figure = forest.figure(comparison(tags=(tag(HOSTILE), tag("<b>x</b>"))), LIGHT)
    told = [*texts(figure), *markers(figure).text]
    assert not any("<script" in text or "<img" in text or "<b>x" in text for text in told)
    assert any("&lt;b&gt;x" in text for text in told)


def test_who_does_not_see_it_is_told():
    """The words for a screen reader have the difference with its interval, and name what is worse."""
    told = forest.alt(comparison())
    assert "+1.1 points on all 180 cases" in told
    assert "interval −2.0 to +4.4" in told
    assert told.endswith("worse: speaker −12.5")
    assert forest.alt(comparison(tags=())).endswith("no metric and no tag is worse")


# How fast -------------------------------------------------------------------------------------------------


def test_median_and_p95_are_marked():
    """Each side's line has its median and its 95th percentile, with the figure on hover."""
    figure = ecdf.figure(comparison(), LIGHT)
    fast, slow = [trace for trace in figure.data if trace.mode == "markers"]
    assert list(fast.y) == [0.5, 0.95]
    assert fast.x[0] == pytest.approx(90, rel=0.02)
    assert slow.x[0] == pytest.approx(200, rel=0.02)
    assert "p95" in slow.text[1]
    assert "n 180" in ecdf.alt(comparison())


@pytest.mark.parametrize(("low", "high"), [(0.2, 3000), (231.0, 262.0), (0.6, 0.9), (12, 60)])
def test_a_time_axis_always_has_numbers(low, high):
    """However near or far the times lie, two of them at the least are written down, all within."""
    ticks = ecdf._ticks(low, high)
    assert len(ticks) >= 2
    assert all(low <= tick <= high for tick in ticks)


def test_without_a_time_there_is_a_frame():
    """Sides that share no answered case draw no line, and the words say so."""
    none = comparison(latencies=((), ()))
    assert not ecdf.figure(none, LIGHT).data
    assert "None was taken" in ecdf.alt(none)


def test_one_time_is_a_line_too():
    """A single case draws."""
    assert len(ecdf.figure(comparison(latencies=((3.0,), (0.0,))), LIGHT).data) == 4
