"""What only a browser shows of alerts: forms, links from messages, addresses, keys, a telephone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from store import queries
from store.database import open_database
from tests.dashboard.alarmed import CHANNELS, Alarmed
from tests.dashboard.browser import CHROMIUM, at, chromium, click_row, new_context, query, served, settled
from tests.dashboard.facts import HOSTILE, HOSTILE_CASE
from tests.dashboard.test_browser import WORDLESS

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium to look with: apt install chromium"),
    pytest.mark.timeout(240),
]


@pytest.fixture(scope="module")
def record(alarmed: tuple[Path, Alarmed], tmp_path_factory: pytest.TempPathFactory) -> str:
    """One copy for this file: each test that writes has an alert of its own."""
    return f"sqlite:///{shutil.copy(alarmed[0], tmp_path_factory.mktemp('alerts') / 'copy.db')}"


@pytest.fixture(scope="module")
def address(record: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served-alerts")
    (folder / "memtrend.toml").write_text(CHANNELS)
    with served(record, folder) as address:
        yield address


@pytest.fixture(scope="module")
def viewer() -> Iterator[BrowserContext]:
    with chromium() as browser:
        yield new_context(browser)


@pytest.fixture
def page(viewer: BrowserContext) -> Iterator[Page]:
    opened = viewer.new_page()
    yield opened
    opened.close()


def steps(record: str, alert_id: int) -> list[tuple[str, str, str | None]]:
    with closing(open_database(record)) as db:
        return [(step.action, step.author, step.reason) for step in queries.alert_steps(db, alert_id)]


@pytest.fixture
def ids(alarmed: tuple[Path, Alarmed]) -> Alarmed:
    return alarmed[1]


def test_a_link_from_a_message_opens_the_form(page: Page, address: str, record: str, ids: Alarmed) -> None:
    """The acknowledge link changes nothing by itself; a click does, and the tab counts one less."""
    before = steps(record, ids.open)
    page.goto(f"{address}/alert?alert={ids.open}&do=acknowledge")
    settled(page)
    form = page.get_by_test_id("stForm").filter(has_text="You look after it")
    expect(form).to_be_visible()
    assert steps(record, ids.open) == before
    expect(page.get_by_role("link", name="Alerts (3)")).to_be_visible()
    form.get_by_role("textbox", name="Reason").fill("looking at the upgrade")
    form.get_by_role("button", name="I have it").click()
    expect(page.get_by_text("local has it")).to_be_visible()
    assert steps(record, ids.open)[-1] == ("acknowledged", "local", "looking at the upgrade")
    expect(page.get_by_role("link", name="Alerts (2)")).to_be_visible()


def test_what_was_meant_needs_a_reason(page: Page, address: str, record: str, ids: Alarmed) -> None:
    """Without a reason an intended change is refused in words; with one the alert is over."""
    page.goto(f"{address}/alert?alert={ids.acknowledged}")
    settled(page)
    page.get_by_role("button", name="Intended change").click()
    form = page.get_by_test_id("stForm").filter(has_text="The change was meant")
    form.get_by_role("button", name="It was meant").click()
    expect(page.get_by_text("say why")).to_be_visible()
    form.get_by_role("textbox", name="Reason").fill("a smaller store")
    form.get_by_role("button", name="It was meant").click()
    expect(page.get_by_text("over since")).to_be_visible()
    assert steps(record, ids.acknowledged)[-1] == ("intended", "local", "a smaller store")


def test_filters_live_in_the_address(page: Page, address: str, ids: Alarmed) -> None:
    """A filter writes the address, and the address alone brings it back; a click on a row opens its alert,
    and Back leads to the filtered page."""
    page.goto(f"{address}/alerts")
    settled(page)
    page.get_by_role("button", name="retracted").click()
    page.wait_for_url("**state=retracted*")
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    settled(page)
    expect(page.get_by_text("No open alert fits these filters.")).to_be_visible()
    click_row(page, 0, 0)
    at(page, "alert")
    assert query(page) == {"alert": [str(ids.retracted)]}
    page.go_back()
    at(page, "alerts")
    assert query(page) == {"state": ["retracted"]}


def test_the_keyboard_alone(page: Page, address: str, record: str, ids: Alarmed) -> None:
    """Who has no mouse reaches the button of a row and presses it."""
    page.goto(f"{address}/alerts?kind=failing")
    settled(page)
    page.keyboard.press("Tab")
    for _ in range(60):
        if page.evaluate("document.activeElement.innerText") == "I have it":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("You have it.")).to_be_visible()
    assert steps(record, ids.failing)[-1] == ("acknowledged", "local", None)


@pytest.mark.parametrize("where", ["alerts", "alert?alert={open}"])
def test_a_telephone_shows_all_of_it(where: str, page: Page, address: str, ids: Alarmed) -> None:
    """On 390 px nothing stands beside the page."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/{where.format(**ids._asdict())}")
    settled(page)
    parts = "h1, h3, img, :is([data-testid=stButton], [data-testid=stPopover]) button, .js-plotly-plot"
    inside = page.locator(f'[data-testid="stMainBlockContainer"] :is({parts})')  # pills scroll by themselves
    edges = inside.evaluate_all("parts => parts.map(part => part.getBoundingClientRect().right)")
    assert max(edges) <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_text_from_outside_stays_text(page: Page, address: str, ids: Alarmed) -> None:
    """Names and reasons that try to be script, picture and link appear as the characters they are made
    of; charts and images have words for those who do not see them."""
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for where in (f"alert?alert={ids.hostile}", "alerts", ""):
        page.goto(f"{address}/{where}")
        settled(page)
        inside = page.locator('[data-testid="stMain"]')
        assert inside.locator('script, img[src="x"], a[href*="evil"], .katex').count() == 0
        assert page.locator('[data-testid="stException"]').count() == 0
        assert page.evaluate(WORDLESS) == 0
    page.goto(f"{address}/alert?alert={ids.hostile}")
    settled(page)
    shown = page.locator('[data-testid="stMain"]').inner_text().replace("\u2060", "")
    assert HOSTILE_CASE in shown
    assert HOSTILE in shown
    assert dialogs == []
