"""What only a browser shows: addresses, history, clicks, colours."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from store import queries
from store.database import open_database
from tests.dashboard.browser import (
    CHROMIUM,
    at,
    chromium,
    click_point,
    click_row,
    new_context,
    query,
    served,
    settled,
)
from tests.dashboard.conftest import Seeded
from tests.dashboard.facts import HOSTILE, HOSTILE_CASE
from tests.dashboard.seed import seed

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium to look with: apt install chromium"),
    pytest.mark.timeout(240),
]

expect.set_options(timeout=40_000)


@pytest.fixture(scope="module")
def address(seeded: Seeded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(seeded.url, tmp_path_factory.mktemp("served")) as at:
        yield at


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def viewer(browser: Browser) -> BrowserContext:
    """Kept over the tests of this file, so that scripts of megabytes are loaded once."""
    return new_context(browser)


@pytest.fixture
def page(viewer: BrowserContext) -> Iterator[Page]:
    opened = viewer.new_page()
    yield opened
    opened.close()


# Pages ----------------------------------------------------------------------------------------------------

ADDRESSES = {
    "light": (
        "", "trends", "compare?suite=golden&a=mem0&b=hybrid", "runs", "run?run={mem0}",
        "run?run={invalid}", "suites", "health", "settings",
        "case?suite=golden&case={broken}&backend=mem0",
    ),
    "dark": ("", "trends", "health"),
}  # fmt: skip
"""In the dark those on which colour says most; `make screenshots` draws them all."""
BACKGROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}
WORDLESS = """
() => [...document.querySelectorAll('[data-testid=stPlotlyChart], [data-testid=stImage] img')].filter(
    shown => !shown.closest('[aria-label]') && !shown.querySelector('[aria-label]') && !shown.alt).length
"""
ICONS = "() => [...document.querySelectorAll('link[rel~=icon]')].map(link => link.href)"
"""A tab's icon is fetched without a word to the page."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_drawn(
    scheme: Literal["light", "dark"], page: Page, address: str, seeded: Seeded
) -> None:
    """Every page opens by its address, without an error, on its own background, and each of its charts and
    images has words for those who do not see it; nothing, no icon and no font, comes from elsewhere than
    this machine."""
    problems: list[str] = []
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.emulate_media(color_scheme=scheme)
    known = {"mem0": newest(seeded).id, "invalid": seeded.world.invalid_run, "broken": seeded.world.broken[0]}
    for where in ADDRESSES[scheme]:
        page.goto(f"{address}/{where.format(**known)}")
        settled(page)
        assert page.locator('[data-testid="stException"]').count() == 0, where
        assert page.evaluate(WORDLESS) == 0, where
        asked.update(page.evaluate(ICONS))
        background = page.locator('[data-testid="stApp"]').evaluate(
            "app => getComputedStyle(app).backgroundColor"
        )
        assert background == BACKGROUND[scheme], where
    assert problems == []
    assert {urlsplit(url).hostname for url in asked if not url.startswith(("data:", "blob:"))} == {
        "127.0.0.1"
    }


def newest(seeded: Seeded) -> queries.RunRow:
    database = open_database(seeded.url)
    rows = queries.runs(database, suites=["golden"], backends=["mem0"], statuses=["whole"])
    database.close()
    return next(row for row in rows if not row.subset)


# Ways through ---------------------------------------------------------------------------------------------


def test_from_overview_to_a_case_and_back(page: Page, address: str, seeded: Seeded) -> None:
    """Overview, trend, run, case: each a click and one entry in the history, and Back retraces them."""
    page.goto(address)
    settled(page)
    start = page.evaluate("history.length")
    page.locator("a[href*='suite=golden&backends=mem0']").first.click()
    at(page, "trends")
    assert query(page) == {"backends": ["mem0"]}  # the first suite is chosen without a word
    page.get_by_role("radio", name="30 d").click()
    page.wait_for_url("**range=30*")
    settled(page)
    click_point(page, "mem0")
    at(page, "run")
    assert query(page) == {"run": [str(newest(seeded).id)]}
    passed, asked = map(int, re.findall(r"\d+", page.locator("h1").inner_text())[:2])
    page.get_by_role("radio", name="failed").click()
    expect(page.get_by_text(f"{asked - passed} cases of ")).to_be_visible()
    settled(page)
    click_row(page, 1, 0)
    at(page, "case")
    assert query(page)["run"] == [str(newest(seeded).id)]
    expect(page.locator("h1")).to_contain_text("mem0")
    assert page.evaluate("history.length") == start + 3
    page.go_back()
    at(page, "run")
    page.go_back()
    at(page, "trends")
    assert query(page) == {"range": ["30 d"], "backends": ["mem0"]}
    expect(page.get_by_role("radio", name="30 d")).to_be_checked()
    page.go_back()
    at(page, "")
    page.go_forward()
    at(page, "trends")
    expect(page.get_by_role("radio", name="30 d")).to_be_checked()


def test_a_count_of_failures_opens_them(page: Page, address: str, seeded: Seeded) -> None:
    """What a card says fails is a click away, and Back leads to the card again."""
    page.goto(address)
    settled(page)
    start = page.evaluate("history.length")
    page.locator(f"a[href*='run={newest(seeded).id}&cases=failed']").click()
    at(page, "run")
    expect(page.get_by_role("radio", name="failed")).to_be_checked()
    assert page.evaluate("history.length") == start + 1
    page.go_back()
    at(page, "")


def test_a_square_opens_its_case(page: Page, address: str) -> None:
    """A failed night in the strip of broken cases opens that case, in that run, on that backend."""
    page.goto(f"{address}/trends")
    settled(page)
    plot = page.locator(".js-plotly-plot").first
    box = plot.bounding_box()
    assert box is not None
    x, y = plot.evaluate(
        """plot => {
            const trace = plot._fullData.findLast(trace => trace.customdata?.[0]?.length === 3);
            const layout = plot._fullLayout, y = layout[trace.yaxis.replace('y', 'yaxis')], last =
            trace.x.length - 1; return [layout.xaxis.d2p(trace.x[last]) + layout.xaxis._offset,
            y.d2p(trace.y[last]) + y._offset];
        }"""
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.click(box["x"] + x, box["y"] + y)
    at(page, "case")
    assert set(query(page)) == {"case", "run"}
    expect(page.locator("h1")).to_contain_text("fails it since")


FOCUSED = "() => getComputedStyle(document.activeElement).outlineStyle"


def test_a_trend_is_read_and_left_by_keyboard(page: Page, address: str) -> None:
    """What the chart shows is a list as well: Tab and Enter open it and follow its links, and a link that has
    the focus is outlined."""
    page.goto(f"{address}/trends?suite=golden")
    settled(page)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('summary')"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_text("Cases that broke")).to_be_visible()
    settled(page)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('details a')"):
            break
    assert page.evaluate(FOCUSED) == "solid"
    page.keyboard.press("Enter")
    at(page, "run")


def test_filters_live_in_the_address(page: Page, address: str) -> None:
    """A filter writes the address, the address alone brings it back, and no entry is added to the history."""
    page.goto(f"{address}/trends")
    settled(page)
    before = page.evaluate("history.length")
    page.get_by_role("radio", name="One each").click()
    page.wait_for_url("**view=One*")
    page.get_by_role("button", name="keyword", exact=True).click()
    page.wait_for_url("**backends=*")
    assert page.evaluate("history.length") == before
    shared = page.url
    settled(page)
    page.goto("about:blank")
    page.goto(shared)
    settled(page)
    expect(page.get_by_role("radio", name="One each")).to_be_checked()
    names = page.locator(".js-plotly-plot").first.evaluate(
        """plot => [...new Set(plot._fullData.map(trace => trace.name))]
            .filter(name => !name.startsWith('trace'))"""
    )
    assert sorted(names) == ["dense", "hybrid", "mem0", "notes"]


def test_a_row_opens_its_run(page: Page, address: str, seeded: Seeded) -> None:
    """A click anywhere on a row of the runs opens that run, and so does another; Back brings the filtered
    table, each time by one entry of the history."""
    page.goto(f"{address}/runs?state=invalid")
    settled(page)
    start = page.evaluate("history.length")
    for across in (0.03, 0.5, 0.5, 0.9):
        click_row(page, 0, 0, across)
        at(page, "run")
        assert query(page) == {"run": [str(seeded.world.invalid_run)]}
        assert page.evaluate("history.length") == start + 1
        page.go_back()
        at(page, "runs")
        assert query(page) == {"state": ["invalid"]}


def test_a_row_of_a_suite_opens_its_case(page: Page, address: str) -> None:
    """A click on a question in Suites opens that case."""
    page.goto(f"{address}/suites")
    settled(page)
    click_row(page, -1, 0)  # the last table
    at(page, "case")
    assert query(page)["suite"] == ["golden"]


def test_the_tools_of_the_table_cover_no_button(page: Page, address: str) -> None:
    """On a narrow screen "Run now" can still be pressed while the table below shows its tools."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}/runs")
    settled(page)
    page.locator('[data-testid="stDataFrame"]').hover(position={"x": 1000, "y": 50})
    tools = page.locator('[data-testid="stElementToolbar"]').first
    expect(tools).to_be_visible()
    over, button = tools.bounding_box(), page.get_by_role("button", name="Run now").bounding_box()
    assert over is not None
    assert button is not None
    assert button["y"] + button["height"] <= over["y"]


def test_another_backend_of_the_same_case(page: Page, address: str, seeded: Seeded) -> None:
    """On a case another backend is a click away, and the address says which is shown."""
    page.goto(f"{address}/case?suite=golden&case={seeded.world.broken[0]}&backend=mem0")
    settled(page)
    page.get_by_role("radio", name="hybrid").click()
    page.wait_for_url("**backend=hybrid*")
    expect(page.locator("h1")).to_contain_text("hybrid")


def test_links_work_cold_in_the_viewers_zone(page: Page, address: str, seeded: Seeded) -> None:
    """A link opened in a new browser shows its run, with times where the viewer is."""
    run = newest(seeded)
    page.goto(f"{address}/run?run={run.id}")
    settled(page)
    from zoneinfo import ZoneInfo

    expect(
        page.get_by_text(f"{run.started_at.astimezone(ZoneInfo('Europe/Berlin')):%H:%M} to")
    ).to_be_visible()


# Doing ----------------------------------------------------------------------------------------------------


def test_run_now_writes_a_request(page: Page, tmp_path: Path, seeded: Seeded) -> None:
    """Run now leaves a request for the collector, which is shown, and says when no collector is there."""
    shutil.copy(seeded.path, tmp_path / "copy.db")
    url = f"sqlite:///{tmp_path}/copy.db"
    with served(url, tmp_path) as at_:
        page.goto(f"{at_}/runs")
        settled(page)
        page.get_by_role("button", name="Run now").click()
        page.get_by_role("button", name="Ask the collector").click()
        expect(page.get_by_text("Queued")).to_be_visible()
    database = open_database(url)
    asked = queries.requests(database, states=["queued"])
    database.close()
    assert [(row.kind, row.payload, row.author) for row in asked] == [
        ("run", {"suite": "golden", "backend": "keyword", "trials": 1}, "local")
    ]


def test_the_numbers_are_a_click_away(page: Page, address: str, seeded: Seeded) -> None:
    """On a run that got worse one click shows looks and earlier runs, and another opens one of them; a lost
    case is a click away too."""
    run = newest(seeded)
    page.goto(f"{address}/run?run={run.id}")
    settled(page)
    expect(page.get_by_text(re.compile("Worse$")).first).to_be_visible()
    before = page.locator('[data-testid="stDataFrame"]').count()
    page.get_by_text("The numbers, and every earlier run").click()
    expect(page.locator('[data-testid="stDataFrame"]')).to_have_count(before + 2)
    settled(page)
    click_row(page, 1, 0, 0.1)
    page.wait_for_url(lambda url: f"run={run.id}" not in url)
    at(page, "run")
    page.go_back()
    page.wait_for_url(f"**run={run.id}*")
    settled(page)
    page.locator(f"a[href*='case={sorted(seeded.world.broken)[0]}']").click()
    at(page, "case")
    expect(page.locator("h1")).to_contain_text("mem0 fails it since")


def test_a_decision_needs_a_reason(page: Page, tmp_path: Path, seeded: Seeded) -> None:
    """Pinning without a reason is refused in words; with one it is written, and stands on the page."""
    shutil.copy(seeded.path, tmp_path / "copy.db")
    url = f"sqlite:///{tmp_path}/copy.db"
    with served(url, tmp_path) as at_:
        page.goto(f"{at_}/run?run={newest(seeded).id}")
        settled(page)
        page.get_by_role("button", name="Pin as anchor").click()
        form = page.get_by_test_id("stForm")
        form.get_by_role("button", name="Pin as anchor").click()
        expect(page.get_by_text("needs a reason")).to_be_visible()
        form.get_by_role("textbox", name="Reason").fill("release 4.12")
        form.get_by_role("button", name="Pin as anchor").click()
        expect(page.get_by_text("pinned as anchor by local")).to_be_visible()
        page.goto("about:blank")  # a page that polls a server that stops would say so in the log
    database = open_database(url)
    made = queries.baseline_decisions(database, "golden", "mem0")
    database.close()
    assert [(one.action, one.reason, one.author) for one in made] == [("pin", "release 4.12", "local")]


def test_first_results_appear_by_themselves(page: Page, tmp_path: Path) -> None:
    """Whoever opens the dashboard before anything ran sees the first results come in, without a reload."""
    url = f"sqlite:///{tmp_path}/new.db"
    with served(url, tmp_path) as at_:
        page.goto(at_)
        expect(page.locator("h1")).to_have_text("Nothing has been measured yet")
        database = open_database(url)
        seed(database, nights=1, cases=13, hostile=False)
        database.close()
        expect(page.get_by_text("No baseline yet")).to_have_count(7, timeout=30_000)
        expect(page.get_by_text("no run", exact=True)).to_have_count(3)
        page.goto("about:blank")  # a page that polls a server that stops would say so in the log


# Text from outside ----------------------------------------------------------------------------------------


def test_text_from_outside_stays_text(page: Page, address: str, seeded: Seeded) -> None:
    """A case that tries to be script, picture, link and formula appears as the characters it is made of."""
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(
        f"{address}/case?suite=golden&case={HOSTILE_CASE}&backend=mem0".replace("<", "%3C").replace(
            ">", "%3E"
        )
    )
    settled(page)
    shown = page.locator('[data-testid="stMain"]').inner_text().replace("\u2060", "")
    assert shown.count(HOSTILE) >= 3
    assert HOSTILE_CASE in shown
    inside = page.locator('[data-testid="stMain"]')
    assert inside.locator('script, img[src="x"], a[href*="evil"], .katex').count() == 0
    assert inside.get_by_text("bold", exact=True).count() == 0
    assert dialogs == []


# Health ---------------------------------------------------------------------------------------------------

CELL = """
(plot, run) => {
    const { xaxis, yaxis } = plot._fullLayout;
    for (const trace of plot._fullData.filter(trace => trace.customdata)) {
        const place = trace.customdata.findIndex(([id]) => id === run);
        if (place >= 0)
            return [xaxis.d2p(trace.x[place]) + xaxis._offset, yaxis.d2p(trace.y[place]) + yaxis._offset];
    }
}
"""
"""Where the cell of a run is, by plotly's own axes."""


@pytest.fixture(scope="module")
def watched(watched_record: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(f"sqlite:///{watched_record}", tmp_path_factory.mktemp("watched-served")) as at:
        yield at


def test_a_cell_of_the_calendar_opens_its_run(page: Page, watched: str, seeded: Seeded) -> None:
    """A click on what became of a night opens the run that it was made of."""
    page.goto(f"{watched}/health")
    settled(page)
    plot = page.locator(".js-plotly-plot").first
    plot.scroll_into_view_if_needed()
    x, y = plot.evaluate(CELL, seeded.world.invalid_run)
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.click(box["x"] + x, box["y"] + y)
    at(page, "run")
    assert query(page)["run"] == [str(seeded.world.invalid_run)]


@pytest.mark.parametrize("where", ["health", "settings"])
def test_a_telephone_shows_all_of_it(where: str, page: Page, watched: str) -> None:
    """On 390 px nothing stands beside the page: tables scroll by themselves, the calendar fits."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{watched}/{where}")
    settled(page)
    parts = page.locator('[data-testid="stMainBlockContainer"] :is(h1, h3, [data-testid=stPlotlyChart])')
    edges = parts.evaluate_all("parts => parts.map(part => part.getBoundingClientRect().right)")
    assert max(edges) <= 390
