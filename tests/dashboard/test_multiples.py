"""Small multiples: that they are pictures, and show what was measured and nothing else."""

from __future__ import annotations

import re
from datetime import timedelta
from xml.etree import ElementTree

import pytest

from dashboard.curves import Line
from dashboard.figures import Tick
from dashboard.multiples import HEIGHT, WIDTH, multiple
from tests.dashboard.test_charts import START, STYLES, line, window

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: Line, metric: str = "pass", marks: tuple[Tick, ...] = ()) -> ElementTree.Element:
    return ElementTree.fromstring(multiple(lines, metric, window(), marks))


def curve(picture: ElementTree.Element, one: Line) -> str:
    colour = one.style.colour
    return next(p.attrib["d"] for p in picture.iter(f"{SVG}path") if p.attrib["stroke"] == colour)


def corners(path: str) -> list[tuple[float, float]]:
    numbers = [float(number) for number in re.findall(r"[\d.]+", path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_a_higher_value_stands_higher_and_a_later_one_further_right() -> None:
    """A line goes from its first run to its last, by time and value, and stays inside the picture."""
    one = line("mem0", [0.8, 0.9, 0.85] * 4)
    found = corners(curve(drawn(one), one))
    assert [x for x, _ in found] == sorted(x for x, _ in found)
    assert found[1][1] > found[2][1] < found[3][1]  # its beginning stands there twice
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in found)


def test_a_night_without_a_run_is_a_gap() -> None:
    """A line does not bridge what was not measured, and a run alone between two gaps is a dot."""
    one = line("mem0", [0.9] * 5 + [None, 0.9, None, None] + [0.9] * 4)
    begun = curve(drawn(one), one).split("M")[1:]
    assert len(begun) == 3
    (alone,) = {*corners(begun[1])}
    assert begun[1].startswith(f"{alone[0]} {alone[1]} L")


def test_few_runs_are_points() -> None:
    """Each of a few runs is a marker; of many, the last one."""
    for runs, markers in ((3, 3), (30, 1)):
        assert len(list(drawn(line("mem0", [0.9] * runs)).iter(f"{SVG}circle"))) == markers


def test_each_line_keeps_its_style() -> None:
    """Colour and dash are those of the backend on every page."""
    picture = drawn(line("mem0", [0.9] * 9), line("dense", [0.8] * 9))
    dashes = {p.attrib["stroke"]: p.attrib.get("stroke-dasharray") for p in picture.iter(f"{SVG}path")}
    assert dashes[STYLES["mem0"].colour] is None
    assert dashes[STYLES["dense"].colour] == STYLES["dense"].dash.replace("px", "")


def test_the_ends_say_when() -> None:
    """Below stand the day of the first run and of the last, not the ends of the range; of one day its
    hours."""
    words = [text.text for text in drawn(line("mem0", [0.9] * 9)).iter(f"{SVG}text")]
    assert words[-2:] == ["1 Nov", "9 Nov"]
    words = [text.text for text in drawn(line("mem0", [0.9])).iter(f"{SVG}text")]
    assert words[-2:] == ["1 Nov, 03:00"] * 2


def test_marks_are_lines() -> None:
    """A mark stands between the runs that it parted."""
    one = line("mem0", [0.9] * 9)
    mark = Tick(START + timedelta(days=2, hours=5), "agent 4.12")
    picture = drawn(one, marks=(mark,))
    (at,) = [float(p.attrib["d"][1:].split()[0]) for p in picture.iter(f"{SVG}path") if "V" in p.attrib["d"]]
    places = [x for x, _ in corners(curve(picture, one))[1:]]
    assert places[2] < at < places[3]


@pytest.mark.parametrize("lines", [(), (line("mem0", []),)])
def test_nothing_is_an_empty_picture(lines: tuple[Line, ...]) -> None:
    """Without a run it is still a picture."""
    assert drawn(*lines).tag == f"{SVG}svg"


def test_names_cannot_be_markup() -> None:
    """What comes from outside never gets into the picture."""
    evil = line("mem0", [0.9])._replace(name="<script>x</script>")
    assert "script" not in multiple([evil], "pass", window(), [Tick(START, "<script>")])
