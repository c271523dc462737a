"""Twenty backends on one chart, and five suites of them on one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from dashboard import charts, data, highlights
from dashboard.charts import Extras
from dashboard.curves import Line
from dashboard.palette import THEMES, Style
from store import queries
from store.database import open_database
from tests.dashboard.browser import CHROMIUM, chromium, new_context, served, settled
from tests.dashboard.conftest import Open
from tests.dashboard.crowded import SUITES, crowd
from tests.dashboard.test_charts import line, traces, window, words_on
from tests.dashboard.test_multiples import drawn
from tests.dashboard.test_pages import text, title

THEME = THEMES["light"]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('crowded')}/memtrend.db"
    with closing(open_database(url)) as database:
        crowd(database, nights=9)
    return url


def lines(n: int, *bold: int) -> list[Line]:
    """Of backends that differ by a point, the first one worst."""
    style = Style("#123456", "solid", "circle", "●")
    made = [line("mem0", [0.5 + number / 100] * 12) for number in range(n)]
    return [one._replace(name=f"b{i}", style=style, bold=i in bold) for i, one in enumerate(made)]


# Which stand out


def test_few_lines_all_stand_out() -> None:
    """As many as can be told apart keep their colours, whoever is chosen."""
    few = lines(highlights.MOST, 3)
    assert highlights.highlighted(few, highlights.names(few, ["b1"]), THEME) == few


@pytest.mark.parametrize(
    ("bold", "chosen", "expected"),
    [((4, 7), (), {"b4", "b7"}), ((4,), ("b2",), {"b2"}), ((), (), {"b0", "b19"})],
)
def test_of_many_those_with_news_stand_out(
    bold: tuple[int, ...], chosen: tuple[str, ...], expected: set[str]
) -> None:
    """Whom the viewer chooses stands out; else who has news; else the best and the worst."""
    assert highlights.names(lines(20, *bold), chosen) == expected


def test_the_others_are_grey_and_answer_the_pointer() -> None:
    """A line in grey lies below the coloured ones, has no name at its end, and still tells name and run."""
    many = highlights.highlighted(lines(20, 4), {"b4"}, THEME)
    figure = charts.trend(many, "pass", window(), Extras())
    curves = [trace for trace in traces(figure, "scatter") if trace.name]
    assert Counter(trace.line.color for trace in curves) == {THEME.context: 19, "#123456": 1}
    assert curves[-1].name == "b4"
    assert all("click opens it" in trace.hovertemplate for trace in curves)
    named = [word for word in words_on(figure) if "<b>b" in word]
    assert named == ["● <b>b4</b> 54.0"]
    assert "19 more in grey: point at one" in words_on(figure)


def test_a_control_is_as_bright_as_its_backend() -> None:
    """The frozen release beside a grey line is grey, that beside a bright one is not."""
    pair = [lines(1)[0]._replace(name="control", control=name) for name in ("b4", "b5")]
    found = highlights.highlighted([*lines(20), *pair], {"b4"}, THEME)
    assert [one.muted for one in found[-2:]] == [False, True]


def test_small_multiples_follow() -> None:
    """Where a line is grey in the large chart it is grey in the small ones, without a marker, and below."""
    bright, grey = highlights.highlighted(lines(2), {"b0"}, THEME)
    picture = drawn(bright, grey)
    strokes = [path.attrib["stroke"] for path in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert strokes[-2:] == [THEME.context, "#123456"]
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}circle"))) == 1


# Pages


def test_choosing_whom_to_highlight_asks_the_record_nothing(
    crowded: str, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another highlight is drawn from what is known: no question reaches the record, and the caption's list
    follows."""
    at = open_page("trends", crowded, suite="golden")
    assert title(at)
    asked: list[str] = []

    def spied(question: str) -> Callable[..., Any]:
        put = getattr(queries, question)

        @wraps(put)
        def noted(*args: Any, **kwargs: Any) -> Any:
            asked.append(question)
            return put(*args, **kwargs)

        return noted

    for question in ("trends", "lost_cases", "verdicts", "floors", "alerts", "environment_changes", "marks"):
        monkeypatch.setattr(queries, question, spied(question))
    version = data._version()
    monkeypatch.setattr(data, "_version", lambda: version)
    at.multiselect(key="highlight").set_value(["hybrid", "candidate-04"]).run()
    assert not at.exception
    assert asked == []
    assert '"candidate-04"' in at.get("plotly_chart")[0].proto.spec


def test_an_overview_of_a_hundred_cards(crowded: str, open_page: Open) -> None:
    """Of twenty backends those that changed have a card at once, filled up to a row; how the rest stand is
    said, and their cards are a click away."""
    at = open_page("overview", crowded)
    assert "mem0" in title(at) or "backends got worse" in title(at)
    cards = [
        link.proto.query_string for link in at.get("page_link") if "backends=" in link.proto.query_string
    ]
    assert Counter(card.partition("&")[0] for card in cards) == {f"suite={name}": 5 for name in SUITES}
    assert "suite=golden&backends=mem0" in cards
    assert [e.label for e in at.expander if "more:" in e.label][1] == "15 more: no baseline yet"


def test_every_verdict_is_a_sentence(crowded: str, open_page: Open) -> None:
    """A card that changed says in words how many cases turned, and so does the trend beneath its chart."""
    sentence = "cases that had passed in"
    assert sentence in text(open_page("overview", crowded))
    assert sentence in text(open_page("trends", crowded, suite="golden"))


# In a browser

LABELS = """
plot => [...plot.querySelectorAll('.annotation-text')]
    .filter(text => /^\\S (?!\\d).+ [\\d.]+$/.test(text.textContent))
    .map(text => [text.textContent, text.getBoundingClientRect().y])
"""
COLOURS = """
plot => plot._fullData.filter(trace => trace.name.match(/^[a-z]/) && !trace.name.startsWith('trace'))
    .map(trace => [trace.name, trace.line.color])
"""


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium to look with: apt install chromium")
@pytest.mark.timeout(240)
def test_a_highlight_is_chosen_by_keyboard(crowded: str, tmp_path: Path) -> None:
    """Typing a name lights its line up, writes the address, and leaves the names at the lines' ends apart."""
    expect.set_options(timeout=40_000)
    with served(crowded, tmp_path) as at, chromium() as browser:
        page = new_context(browser).new_page()
        page.goto(f"{at}/trends?suite=golden&highlight=hybrid&highlight=keyword")
        settled(page)
        page.get_by_role("combobox", name="Highlight").focus()
        page.keyboard.type("candidate-15")
        page.keyboard.press("Enter")
        page.wait_for_url("**highlight=candidate-15*")
        settled(page)
        plot = page.locator(".js-plotly-plot").first
        lit = {name for name, colour in plot.evaluate(COLOURS) if colour != THEME.context}
        places = sorted(y for _, y in plot.evaluate(LABELS))
        page.goto("about:blank")  # a page that polls a server that stops would say so in the log
    assert lit == {"hybrid", "keyword", "candidate-15"}
    assert len(places) == 3
    assert all(after - before >= 18 for before, after in pairwise(places))
