"""The small parts that charts and cards are made of: places, colours, sparklines."""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dashboard import axes, palette, sparkline
from dashboard.palette import THEMES, styles
from dashboard.sparkline import Dot, Frame
from store.metrics import METRICS
from store.queries import BackendRow
from store.words import DRIFTS

START = datetime(2026, 11, 1, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def backends(*names: str) -> list[BackendRow]:
    kinds = {"nothing": "nothing", "everything": "everything"}
    return [BackendRow(i, name, kinds.get(name, "x"), "default", i) for i, name in enumerate(names)]


# Places


@given(
    some.sampled_from([n for n, metric in METRICS.items() if metric.unit == "share" and n not in DRIFTS]),
    some.lists(some.floats(0, 100), min_size=1, max_size=40),
)
def test_every_share_fits_its_axis(metric: str, values: list[float]) -> None:
    """Whatever the values, the axis holds them, spans 20 points and stays within 0 and 100."""
    axis = axes.axis(metric, values)
    assert 0 <= axis.low <= min(values)
    assert max(values) <= axis.high <= 100
    assert axis.high - axis.low >= 20
    assert axis.ticks
    assert len(axis.ticks) == len(axis.labels)


@given(some.lists(some.floats(0, 1e9, allow_subnormal=False), min_size=1, max_size=40))
def test_every_amount_fits_its_axis(values: list[float]) -> None:
    """Whatever the amounts, the axis begins at zero, holds them, and has a few ticks."""
    axis = axes.axis("recall_ms", values)
    assert axis.low == 0
    assert max(values) <= axis.high * (1 + 1e-9)
    assert 2 <= len(axis.ticks) <= 7


@given(some.lists(some.floats(0, 330), min_size=1, max_size=15))
def test_labels_keep_apart(wanted: list[float]) -> None:
    """Labels keep their order and their distance where there is room for all."""
    placed = axes.apart(wanted, 19, 0, 330)
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    assert all(placed[after] - placed[before] >= 19 - 1e-6 for before, after in pairwise(order))
    assert max(placed) <= 330


def test_cells_do_not_cover_a_gap() -> None:
    """Neighbouring runs share a border; beside a missing night a cell is as wide as the others."""
    times = [START + timedelta(days=day) for day in (0, 1, 2, 5, 6)]
    cells = axes.edges(times)
    assert cells[0][1] == cells[1][0]
    assert cells[2][1] - cells[2][0] == timedelta(days=1)
    assert cells[3][0] - cells[2][1] == timedelta(days=2)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_runs_have_places_too(count: int) -> None:
    """None, one and two runs are drawn like many."""
    times = [START + timedelta(hours=hour) for hour in range(count)]
    assert len(axes.edges(times)) == count
    assert sum(piece.stop - piece.start for piece in axes.segments(times)) == count


def test_a_line_breaks_where_a_night_is_missing() -> None:
    """Stretches end where more than one and a half usual steps pass without a run."""
    times = [START + timedelta(days=day) for day in (0, 1, 2, 4, 5)]
    assert axes.segments(times) == [slice(0, 3), slice(3, 5)]


# Colours


def test_a_backend_keeps_its_colour() -> None:
    """A style hangs on the order of first appearance: a newcomer changes nobody's."""
    before = styles(backends("keyword", "dense"), THEMES["light"])
    after = styles(backends("keyword", "dense", "mem0"), THEMES["light"])
    assert {name: after[name] for name in before} == before


def test_floors_are_grey_and_take_no_place() -> None:
    """The floors have the floor's colour, and the next backend the colour that follows."""
    drawn = styles(backends("keyword", "nothing", "everything", "dense"), THEMES["light"])
    assert drawn["nothing"].colour == drawn["everything"].colour == THEMES["light"].floor
    assert drawn["dense"].colour == THEMES["light"].series[1]


def test_ten_backends_differ_without_colour() -> None:
    """Ten backends have ten markers; by marker and dash no two look alike in print."""
    names = [f"b{number}" for number in range(10)]
    drawn = styles(backends(*names), THEMES["dark"])
    assert len({style.marker for style in drawn.values()}) == 10
    assert len({style.glyph for style in drawn.values()}) == 10


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_forty_backends_are_told_apart(mode: palette.Mode) -> None:
    """However many releases are compared, no two of forty have colour, dash and marker in common."""
    drawn = styles(backends(*(f"b{number}" for number in range(40))), THEMES[mode])
    assert len({(style.colour, style.dash, style.marker) for style in drawn.values()}) == 40


def test_palette_and_theme_file_agree() -> None:
    """Charts and Streamlit's own parts take the same colours."""
    from dashboard.server import config

    shown = config("127.0.0.1", 1)
    for mode, theme in THEMES.items():
        assert tuple(shown[f"theme.{mode}.chartCategoricalColors"]) == theme.series
        assert shown[f"theme.{mode}.backgroundColor"] == theme.background
        assert shown[f"theme.{mode}.textColor"] == theme.text


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_words_can_be_read(mode: palette.Mode) -> None:
    """Text and muted text keep a contrast of 4.5 with the background."""
    theme = THEMES[mode]
    for colour in (theme.text, theme.muted):
        assert _contrast(colour, theme.background) >= 4.5


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


# Sparklines


def dots(*means: float) -> list[Dot]:
    return [
        Dot(START + timedelta(days=day), mean, mean - 0.05, mean + 0.04) for day, mean in enumerate(means)
    ]


def drawn(*means: float, points: float = 20) -> Xml.Element:
    style = styles(backends("mem0"), THEMES["light"])["mem0"]
    end = START + timedelta(days=max(len(means) - 1, 1))
    return Xml.fromstring(
        sparkline.sparkline(dots(*means), style, THEMES["light"], Frame(START, end, points))
    )


def heights(svg: Xml.Element) -> list[float]:
    (path,) = svg.findall(f"{SVG}polyline")
    return [float(corner.split(",")[1]) for corner in path.attrib["points"].split()]


def test_a_sparkline_has_line_band_and_end() -> None:
    """A card's chart shows the line, its interval and where it ends."""
    svg = drawn(0.9, 0.91, 0.9)
    assert len(svg.findall(f"{SVG}polygon")) == 1
    assert len(svg.findall(f"{SVG}polyline")) == 1
    assert len(svg.findall(f"{SVG}circle")) == 1


def test_one_span_makes_slopes_comparable() -> None:
    """A point of pass rate is as high on every card of a suite, wherever the card's middle is."""
    low, high = heights(drawn(0.2, 0.25, 0.25)), heights(drawn(0.9, 0.95, 0.95))
    assert low[0] - low[1] == pytest.approx(high[0] - high[1])
    assert low[0] - low[1] == pytest.approx(0.05 / 0.20 * sparkline.HEIGHT, abs=0.2)


def test_a_sparkline_stays_within_its_frame() -> None:
    """Values beyond the span are drawn at its edge."""
    assert all(0 <= y <= sparkline.HEIGHT for y in heights(drawn(0.0, 1.0, 0.5)))


def test_one_night_is_a_point() -> None:
    """A single run is a marker with its interval; none is an empty picture."""
    assert len(drawn(0.9).findall(f"{SVG}circle")) == 1
    assert list(drawn()) == []


def test_a_first_hour_stands_at_the_end() -> None:
    """Runs of one hour do not fill the chart: it looks back a day, and they are a point at its right."""
    style = styles(backends("mem0"), THEMES["light"])["mem0"]
    first = [Dot(START + timedelta(minutes=minute), 0.9, 0.8, 0.95) for minute in (0, 5)]
    frame = Frame(first[0].at, first[-1].at, 20)
    svg = Xml.fromstring(sparkline.sparkline(first, style, THEMES["light"], frame))
    corners = svg.findall(f"{SVG}polyline")[0].attrib["points"].split()
    assert all(float(corner.split(",")[0]) > sparkline.WIDTH * 0.9 for corner in corners)


@pytest.mark.parametrize(("widths", "expected"), [([], 10), ([0.01], 10), ([0.1, 0.1, 0.1], 18), ([0.4], 72)])
def test_the_span_follows_the_interval(widths: list[float], expected: float) -> None:
    """All charts of a suite are some 1.8 of its usual intervals high, and never less than 10 points."""
    assert sparkline.span(widths) == expected


@pytest.mark.parametrize("place", range(11))
def test_every_marker_is_a_picture(place: int) -> None:
    """Each style has a marker that is well-formed, for cells of tables."""
    names = [f"b{number}" for number in range(10)] + ["nothing"]
    style = styles(backends(*names), THEMES["light"])[names[place]]
    assert len(list(Xml.fromstring(sparkline.mark(style)))) == 1


def test_the_marker_of_a_control_is_a_ring() -> None:
    """A control, of whatever type, has its open circle in cells of tables."""
    control = BackendRow(1, "mem0-control", "mem0", "default", 1, control_of="mem0")
    (ring,) = Xml.fromstring(sparkline.mark(styles([control], THEMES["light"])["mem0-control"]))
    assert ring.attrib["fill"] == "none"
    assert ring.attrib["stroke"] == THEMES["light"].floor
