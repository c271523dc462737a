"""A report says the same in every form, opens without a network, and holds no text that nobody asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard import report
from dashboard.report import Told, as_markdown
from dashboard.report.document import Answer, Document, Listing, Name, Section, Table, columns, plain
from tests.dashboard.alarmed import Alarmed
from tests.dashboard.browser import CHROMIUM, chromium
from tests.dashboard.facts import HOSTILE
from tests.dashboard.reporting import (
    KINDS,
    MADE,
    NUMBER,
    TEXTS,
    all_told,
    as_json,
    markdown_tables,
)
from tests.dashboard.reporting import Page as Read

MOST_BYTES = 6_000_000
PAPER = (718, 1016)
"""Px between the margins of A4: 190 mm, and 269 mm."""
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="no Chromium to look with: apt install chromium")


@pytest.fixture(scope="module")
def reports(alarmed: tuple[Path, Alarmed]) -> dict[str, Told]:
    return all_told(alarmed[0])


@pytest.fixture(scope="module")
def pages(reports: dict[str, Told]) -> dict[str, str]:
    return {kind: report.html(one, MADE) for kind, one in reports.items()}


# What it says -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_page_and_markdown_say_the_same(reports: dict[str, Told], pages: dict[str, str], kind: str) -> None:
    """Each table of the page stands in the Markdown with the same cells, but for the drawn ones."""
    read = Read(pages[kind])
    drawn = {"", *re.findall("[▁▂▃▄▅▆▇█]+", report.markdown(reports[kind], MADE))}
    found = [
        [[cell for cell in row if cell not in drawn] for row in table]
        for table in markdown_tables(report.markdown(reports[kind], MADE))
    ]
    assert found == [[[cell for cell in row if cell not in drawn] for row in one] for one in _tables(read)]
    assert len(found) >= 5


def _tables(read: Read) -> Iterator[list[list[str]]]:
    for table in read.tables.values():
        yield [[cell.strip() for cell in row] for row in table]


@pytest.mark.parametrize("kind", KINDS)
def test_json_has_the_numbers(reports: dict[str, Told], kind: str) -> None:
    """Every pass rate of the tables is one of the JSON, and so is every case that is named."""
    told, document = report.document(reports[kind], MADE), as_json(reports[kind])
    shares = {f"{100 * float(number):.1f}" for number in re.findall(r"(?<=[ \[])-?[01]\.\d+", document)}
    shares |= {"0.0", "100.0"}
    tables = [block for part in told.sections for block in part.blocks if isinstance(block, Table)]
    for table in tables:
        places = [place for place, column in enumerate(table.columns) if "pass rate" in column.name]
        rates = [str(row[place]) for row in table.rows for place in places if row[place] != "–"]
        assert {NUMBER.findall(rate)[0] for rate in rates} <= shares, table.caption
        names = [str(row[0]).removesuffix(" (critical)") for row in table.rows if isinstance(row[0], Name)]
        assert all(f'"{name}"' in document for name in names)


@pytest.mark.parametrize("kind", KINDS)
def test_text_says_it_too(reports: dict[str, Told], kind: str) -> None:
    """The title, every answer and every section stand in the text for a terminal, without a control."""
    text, told = report.text(reports[kind], MADE), report.document(reports[kind], MADE)
    flat = " ".join(text.split())
    assert all(plain(one.answer) in flat for one in told.answers)
    assert all(part.heading.upper() in text for part in told.sections)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)


def test_texts_only_when_asked_for(alarmed: tuple[Path, Alarmed], reports: dict[str, Told]) -> None:
    """No form of a report holds a memory or a question; with texts, those of the lost cases are told."""
    for one in reports.values():
        told = [report.html(one, MADE), report.markdown(one, MADE), report.text(one, MADE), as_json(one)]
        assert not [text for text in TEXTS for form in told if text in form]
    for kind, one in all_told(alarmed[0], texts=True).items():
        if kind != "week":
            assert sum(text in report.document(one, MADE).__repr__() for text in TEXTS) > 3


def test_it_loads_light() -> None:
    """A report in Markdown or text needs neither Streamlit nor plotly, and one in HTML no Streamlit."""
    loaded = (
        "import sys; from dashboard import report; from dashboard.report import as_text, as_html, of_week"
    )
    light = f"{loaded}; print([name for name in ('streamlit', 'pandas') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# As a page --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_read_by_all(pages: dict[str, str], kind: str) -> None:
    """The page has a language, one first heading and no level left out, tables with captions and headed rows
    and columns, and charts that are told in words; it is of at most 6 MB, plotly in it once."""
    page, html = Read(pages[kind]), pages[kind]
    assert page.named("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert set(levels[1:]) == {2}
    assert len(page.named("caption")) == len(page.named("table"))
    assert {one.get("scope") for one in page.named("th")} == {"col", "row"}
    images = [one for one in page.named("div", "span") if one.get("role") == "img"]
    assert images
    assert all(one["aria-label"] for one in images)
    assert len(html.encode()) < MOST_BYTES
    assert html.count("plotly.js v") == (0 if kind == "week" else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_never_markup(pages: dict[str, str], kind: str) -> None:
    """What somebody else wrote makes no element, no address and no image, and reads as it was written."""
    page = Read(pages[kind])
    scripts = page.named("script")
    assert len(scripts) == (0 if kind == "week" else 3)
    assert not page.named("img", "b", "i", "iframe", "link")
    assert not page.named("a")
    if kind == "week":
        assert "<script>alert(1)</script>" in page.text


def test_markdown_is_never_markup(reports: dict[str, Told]) -> None:
    """In the Markdown no hostile name is a link, an image, an element, a mention or code of another."""
    shown = as_markdown.text(f"{HOSTILE} @team ![x](https://evil.example) www.evil.example a|b")
    assert not re.search(r"(?<!\\)[<\[*`|]|https?:|www\.|(?<!\w)@\w", shown)
    assert as_markdown.code("a`b|c\nd") == "`a'b\\|c d`"
    assert "recall@k" in report.markdown(reports["run"], MADE)


@pytest.mark.parametrize("long", [40, 4000])
def test_markdown_fits_a_comment(long: int) -> None:
    """However many cases there are, and however long their names, it is a comment that GitHub takes, and says
    how many it left out."""
    rows = [(Name(f"case-{place}-{'x' * long}"), "tag " * 20, "not stored") for place in range(3000)]
    table = Table("Lost", columns("case", "tags", "failure"), rows)
    sections = tuple(Section(f"Part {n}", (table, Listing(["word " * 200] * 500))) for n in range(8))
    document = Document(
        "run", "title", "Worse", "worse", (Answer("Why?", "So.", ("x" * 999,) * 99),), sections, ()
    )
    told = as_markdown.write(document)
    assert len(told) <= 65_536
    assert re.search(r"and 2,?9\d\d more", told)
    assert all(len(row) == 3 for one in markdown_tables(told) for row in one)


# In a browser -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def opened(
    browser: Browser, file: Path, scheme: Literal["light", "dark"], width: int
) -> tuple[Page, list[str]]:
    """The page without a network, and what went wrong or was asked of it meanwhile."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_offline(True)
    page, heard = context.new_page(), list[str]()
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: heard.append(dialog.message))
    page.on("request", lambda asked: heard.append(asked.url) if asked.url != file.as_uri() else None)
    page.goto(file.as_uri())
    return page, heard


@needs_chromium
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_offline(
    browser: Browser,
    pages: dict[str, str],
    tmp_path: Path,
    kind: str,
    scheme: Literal["light", "dark"],
    width: int,
) -> None:
    """Without a network every chart is drawn in the colours of the page, as wide as the window and no wider;
    nothing is asked for, and nothing goes wrong."""
    (tmp_path / "report.html").write_text(pages[kind], encoding="utf-8")
    page, heard = opened(browser, tmp_path / "report.html", scheme, width)
    charts = page.locator(".chart")
    expect(charts).to_have_count({"run": 1, "week": 0, "comparison": 2}[kind])
    for chart in charts.all():
        expect(chart.locator(".trace").first).to_be_attached(timeout=40_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[scheme]
    assert heard == []
    page.context.close()


@needs_chromium
@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", ["run", "comparison"])
def test_it_prints(browser: Browser, pages: dict[str, str], tmp_path: Path, kind: str) -> None:
    """On paper a dark page is light, each chart fits between the margins of one page, no table is wider than
    that, and there are pages of A4."""
    (tmp_path / "report.html").write_text(pages[kind], encoding="utf-8")
    page, heard = opened(browser, tmp_path / "report.html", "dark", 1000)
    page.set_viewport_size({"width": PAPER[0], "height": PAPER[1]})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # the media's own event waits for a frame
    for box in page.locator(".chart .main-svg, table").evaluate_all(
        "parts => parts.map(part => part.getBoundingClientRect()).map(box => [box.right, box.height])"
    ):
        assert box[0] <= PAPER[0] + 1
        assert box[1] <= PAPER[1]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    paper = page.pdf(prefer_css_page_size=True)
    sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert {(round(float(one)), round(float(other))) for one, other in sizes} <= {(595, 842), (596, 842)}
    assert heard == []
    page.context.close()
