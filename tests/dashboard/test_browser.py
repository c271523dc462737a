"""What only a browser shows: addresses, history, clicks, colours. Every page leaves a picture in
screenshots/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from store import queries
from store.database import open_database
from tests.dashboard.browser import CHROMIUM, TALLEST, chromium, new_context, picture, served, settled
from tests.dashboard.conftest import Seeded
from tests.dashboard.facts import HOSTILE, HOSTILE_CASE
from tests.dashboard.seed import seed

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium to look with: apt install chromium"),
    pytest.mark.timeout(90),
]

expect.set_options(timeout=20_000)
PICTURES = Path(__file__).parent.parent.parent / "screenshots"


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


def path(page: Page) -> str:
    return urlsplit(page.url).path


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def at(page: Page, where: str) -> None:
    """Waits until the page of this path has been drawn."""
    page.wait_for_url(lambda url: urlsplit(url).path == f"/{where}")
    settled(page)


def click_point(page: Page, trace: str) -> None:
    """Clicks the last point of a line, found by plotly's own trace."""
    box = page.locator(".js-plotly-plot").first.bounding_box()
    assert box is not None
    x, y = page.locator(".js-plotly-plot").first.evaluate(
        """(plot, name) => {
            const trace = plot._fullData.find(trace => trace.name === name && trace.mode.includes('markers'));
            const last = trace.x.length - 2, layout = plot._fullLayout;
            const y = layout[trace.yaxis.replace('y', 'yaxis')];
            return [layout.xaxis.d2p(trace.x[last]) + layout.xaxis._offset, y.d2p(trace.y[last]) + y._offset];
        }""",
        trace,
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.click(box["x"] + x, box["y"] + y)


def click_row(page: Page, table: int, row: int) -> None:
    """Clicks the box before a row of a table, drawn on a canvas."""
    box = page.locator('[data-testid="stDataFrame"]').nth(table).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 32 + 31 * row + 15)


# Pictures -------------------------------------------------------------------------------------------------

ADDRESSES = {
    "overview": "",
    "trends": "trends",
    "trends-each": "trends?view=One+each",
    "runs": "runs",
    "run": "run?run={mem0}",
    "run-invalid": "run?run={invalid}",
    "case": "case?suite=golden&case={broken}&backend=mem0",
    "suites": "suites",
}
LIGHT_ONLY = ("trends-each", "run-invalid")
"""Nothing on these is coloured otherwise than on their neighbours."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_drawn(
    scheme: Literal["light", "dark"], browser: Browser, address: str, seeded: Seeded
) -> None:
    """Every page opens by its address in light and in dark, without an error, on its own background."""
    page = new_context(browser, scheme, TALLEST).new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    known = {"mem0": newest(seeded).id, "invalid": seeded.world.invalid_run, "broken": seeded.world.broken[0]}
    for name, where in ADDRESSES.items():
        if scheme == "dark" and name in LIGHT_ONLY:
            continue
        page.goto(f"{address}/{where.format(**known)}")
        picture(page, PICTURES / f"{name}-{scheme}.png")
        assert page.locator('[data-testid="stException"]').count() == 0, name
    background = page.locator('[data-testid="stApp"]').evaluate(
        "app => getComputedStyle(app).backgroundColor"
    )
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[scheme]
    assert problems == []
    page.context.close()


def newest(seeded: Seeded) -> queries.RunRow:
    database = open_database(seeded.url)
    rows = queries.runs(database, suites=["golden"], backends=["mem0"], statuses=["whole"], limit=1)
    database.close()
    return rows[0]


def test_every_chart_has_words(page: Page, address: str) -> None:
    """Charts and images can be read by those who do not see them."""
    page.goto(f"{address}/trends")
    settled(page)
    labels = page.locator(
        '[data-testid="stPlotlyChart"] [aria-label], [data-testid="stPlotlyChart"][aria-label]'
    )
    expect(labels.first).to_have_attribute(
        "aria-label", re.compile(r"pass rate of golden: .*hybrid [0-9.]+ % \(n 29\)")
    )
    page.goto(address)
    settled(page)
    expect(page.get_by_role("img", name=re.compile("^Pass rate of .+ over 3[0-9] runs: "))).to_have_count(10)


# Ways through ---------------------------------------------------------------------------------------------


def test_from_overview_to_a_case_and_back(page: Page, address: str, seeded: Seeded) -> None:
    """Overview, trend, run, case: each a click and one entry in the history, and Back retraces them."""
    page.goto(address)
    settled(page)
    start = page.evaluate("history.length")
    page.get_by_role("link", name="Trend").nth(3).click()
    at(page, "trends")
    page.get_by_role("radio", name="30 d").click()
    page.wait_for_url("**range=30*")
    settled(page)
    click_point(page, "mem0")
    at(page, "run")
    assert query(page) == {"run": [str(newest(seeded).id)]}
    page.get_by_role("radio", name="failed").click()
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
    assert query(page) == {"range": ["30 d"]}
    expect(page.get_by_role("radio", name="30 d")).to_be_checked()
    page.go_back()
    at(page, "")
    page.go_forward()
    at(page, "trends")
    expect(page.get_by_role("radio", name="30 d")).to_be_checked()


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


def test_filters_live_in_the_address(page: Page, address: str) -> None:
    """A filter writes the address, the address alone brings it back, and no entry is added to the history."""
    page.goto(f"{address}/trends")
    settled(page)
    before = page.evaluate("history.length")
    page.get_by_role("radio", name="One each").click()
    page.wait_for_url("**view=One*")
    page.get_by_role("button", name="keyword").click()
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
    """A click on a row of the runs opens that run; Back brings the filtered table."""
    page.goto(f"{address}/runs?state=invalid")
    settled(page)
    click_row(page, 0, 0)
    at(page, "run")
    assert query(page) == {"run": [str(seeded.world.invalid_run)]}
    page.go_back()
    at(page, "runs")
    assert query(page) == {"state": ["invalid"]}


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


def test_run_now_writes_a_request(page: Page, address: str, seeded: Seeded) -> None:
    """Run now leaves a request for the collector, which is shown, and says when no collector is there."""
    page.goto(f"{address}/runs")
    settled(page)
    page.get_by_role("button", name="Run now").click()
    page.get_by_role("button", name="Ask the collector").click()
    expect(page.get_by_text("Queued")).to_be_visible()
    database = open_database(seeded.url)
    asked = queries.requests(database, states=["queued"])
    database.close()
    assert [(row.kind, row.payload, row.author) for row in asked] == [
        ("run", {"suite": "golden", "backend": "keyword", "trials": 1}, "local")
    ]


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
    picture(page, PICTURES / "case-hostile.png")
    shown = page.locator('[data-testid="stMain"]').inner_text().replace("\u2060", "")
    assert shown.count(HOSTILE) >= 3
    assert HOSTILE_CASE in shown
    inside = page.locator('[data-testid="stMain"]')
    assert inside.locator('script, img[src="x"], a[href*="evil"], .katex').count() == 0
    assert inside.get_by_text("bold", exact=True).count() == 0
    assert dialogs == []
