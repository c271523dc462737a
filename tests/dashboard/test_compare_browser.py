"""Compare in Chromium: by keyboard, by clicks, on a small screen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.browser import CHROMIUM, at, chromium, click_row, new_context, query, served, settled
from tests.dashboard.conftest import Seeded

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium to look with: apt install chromium"),
    pytest.mark.timeout(240),
]
expect.set_options(timeout=40_000)

ADDRESS = "compare?suite=golden&a=mem0&b=hybrid"
FOREST = "document.querySelector('.st-key-forest .js-plotly-plot')"


@pytest.fixture(scope="module")
def address(seeded: Seeded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(seeded.url, tmp_path_factory.mktemp("served")) as where:
        yield where


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = new_context(browser, height=2400)
    yield context.new_page()
    context.close()


def test_sides_are_chosen_and_cases_opened_without_a_pointer(page: Page, address: str) -> None:
    """Tab reaches both sides; arrows and Enter choose another one, which the address keeps; the list beneath
    the table leads to a case by its link, and Back leads here again."""
    page.goto(f"{address}/{ADDRESS}")
    settled(page)
    finding = page.locator("h1").inner_text()
    reached: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('aria-label') || ''"))
        if "B, the candidate" in reached[-1]:
            break
    assert any("A, in use now" in label for label in reached)
    page.keyboard.type("dense, newest")
    page.keyboard.press("Enter")
    page.wait_for_url("**b=dense**")
    settled(page)
    assert query(page)["a"] == ["mem0"]
    assert page.locator("h1").inner_text() != finding
    page.locator("summary", has_text="The same as links").focus()
    page.keyboard.press("Enter")
    page.locator("[data-testid=stExpander] a[href*='case=']").first.focus()
    page.keyboard.press("Enter")
    at(page, "case")
    page.go_back()
    at(page, "compare")
    assert query(page)["b"] == ["dense"]


def test_a_click_on_a_row_opens_the_case(page: Page, address: str) -> None:
    """On the side that lost it."""
    page.goto(f"{address}/{ADDRESS}")
    settled(page)
    click_row(page, 0, 0)
    at(page, "case")
    expect(page.locator("h1")).to_contain_text("hybrid")


def test_a_small_screen_has_words_above_lines(page: Page, address: str) -> None:
    """Where there is no room for columns, the plot takes the width, each line with its words above it; and
    the page is no wider than the screen."""
    page.goto(f"{address}/{ADDRESS}")
    settled(page)
    wide = page.evaluate(f"{FOREST}._fullLayout.margin.l")
    page.set_viewport_size({"width": 390, "height": 2400})
    page.reload()
    page.wait_for_function(f"{FOREST}?._fullLayout?.margin.l < {wide} / 10")
    settled(page)
    assert page.evaluate(f"{FOREST}._fullLayout._size.w") > 300
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    words = f"[...{FOREST}.querySelectorAll('.annotation text')]"
    assert page.evaluate(f"Math.max(...{words}.map(one => one.getBoundingClientRect().right))") <= 391
