"""What a viewer waits for: the dashboard over a large record, looked at with Chromium.

A real server, started anew for each page that is told as cold; then the same browser again, which has the
scripts by now, as the server has the answers. Times are those of the browser's clock since it began to
navigate, or since a click. Five browsers stay on three pages each while the server's memory is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import psutil
from playwright.sync_api import Browser, Page

from benchmarks.database import add_size, made, size_of
from benchmarks.figures.times import forget, load
from benchmarks.measure import Bar, parser, tell
from store import queries
from store.database import open_database
from tests.dashboard.browser import chromium, new_context, served, settled

SESSIONS = 5
MAX_MB = 400
MAX_S = {"title": 3.0, "filters": 3.0, "cold": 4.0, "cached": 2.0, "click": 1.0}
YEAR = "suite=golden&range=365+d"
COMPARE = "compare?suite=golden&a=dense&b=hybrid"

WATCH = """
window.seen = {};
const signs = {
    title: () => document.querySelector('h1'),
    filters: () => document.querySelector('[data-testid=stSelectbox], [data-testid=stPageLink]'),
    trace: () => document.querySelector('.cartesianlayer .trace')
        || [...document.querySelectorAll('[data-testid=stImage] img')].some(image => image.complete),
};
const look = () => {
    window.moved = performance.now();
    for (const [name, is] of Object.entries(signs))
        if (!(name in window.seen) && is()) window.seen[name] = performance.now() / 1000;
};
new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true});
document.addEventListener('load', look, true);
document.addEventListener('pointerdown', () => { window.clicked = performance.now(); }, true);
"""
"""Notes when each sign of a page was first there, when it last changed, and when it was clicked."""

RESTS = """
() => window.moved > window.clicked && performance.now() - window.moved > 700
    && document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
    && !document.querySelector('[data-stale=true], [data-testid=stSkeleton]')
"""


class Opened(NamedTuple):
    """Seconds from navigation until each sign was there."""

    title: float
    filters: float
    trace: float

    @property
    def told(self) -> str:
        return f"title {self.title:.2f} s, filters {self.filters:.2f}, first trace {self.trace:.2f}"


def main() -> int:
    given = parser(__doc__)
    add_size(given)
    given.add_argument("--times", type=int, default=3, help="openings of each page, and clicks of each kind")
    arguments = given.parse_args()
    with made(arguments.record, size_of(arguments)) as (url, path), tempfile.TemporaryDirectory() as folder:
        lines, bars = _measured(url, path, Path(folder), arguments.times)
    return tell(arguments.json, lines, bars)


def _measured(url: str, path: Path, folder: Path, times: int) -> tuple[list[str], list[Bar]]:
    before, lines, bars = load(), [], []
    with chromium() as browser:
        for name, address in (("overview", ""), ("trends", f"trends?{YEAR}"), ("compare", COMPARE)):
            cold, cached = _openings(browser, url, path, folder, address, times)
            lines += [f"{name}, {kind}: {one.told}" for kind, one in (("cold", cold), ("cached", cached))]
            bars += [
                Bar(f"{name}_title_s", round(cold.title, 2), MAX_S["title"]),
                Bar(f"{name}_filters_s", round(cold.filters, 2), MAX_S["filters"]),
                Bar(f"{name}_trace_cold_s", round(cold.trace, 2), MAX_S["cold"]),
                Bar(f"{name}_trace_cached_s", round(cached.trace, 2), MAX_S["cached"]),
            ]
        clicks, pss, rss = _used(browser, url, folder, times)
    lines += [f"click, {what}: median {middle:.2f} s, least {least:.2f}" for what, middle, least in clicks]
    lines.append(f"after {SESSIONS} sessions: {pss:.0f} MB of its own (PSS), {rss:.0f} MB resident (RSS)")
    bars.append(Bar("click_s", round(max(middle for _, middle, _ in clicks), 2), MAX_S["click"]))
    bars.append(Bar("five_sessions_mb", round(rss), MAX_MB))
    return [*lines, f"before: {before}; after: {load()}"], bars


# Opening --------------------------------------------------------------------------------------------------


def _openings(
    browser: Browser, url: str, path: Path, folder: Path, address: str, times: int
) -> tuple[Opened, Opened]:
    """Medians: of servers and browsers that are new, the file not in memory; and of those that are not."""
    cold, cached = [], []
    for _ in range(times):
        forget(path)
        with served(url, folder) as home, _viewer(browser) as page:
            cold.append(_open(page, f"{home}/{address}"))
            cached.append(_open(page, f"{home}/{address}"))
    return _middle(cold), _middle(cached)


def _middle(found: list[Opened]) -> Opened:
    return Opened(*(statistics.median(values) for values in zip(*found, strict=True)))


@contextmanager
def _viewer(browser: Browser) -> Iterator[Page]:
    context = new_context(browser)
    context.add_init_script(WATCH)
    context.set_default_timeout(90_000)
    try:
        yield context.new_page()
    finally:
        context.close()


def _open(page: Page, address: str) -> Opened:
    print(f"opening {address}", file=sys.stderr)
    page.goto("about:blank")
    page.goto(address)
    settled(page)
    seen = page.evaluate("window.seen")
    return Opened(*(seen[name] for name in Opened._fields))


# Using ----------------------------------------------------------------------------------------------------


def _used(
    browser: Browser, url: str, folder: Path, times: int
) -> tuple[list[tuple[str, float, float]], float, float]:
    """Clicks (what, median, least) in the last of five sessions, and the server's memory in MB."""
    db = open_database(url)
    newest = queries.runs(db, statuses=["whole"], limit=1)[0].id
    db.close()
    with served(url, folder) as home, ExitStack() as open_:
        for _ in range(SESSIONS):
            page = open_.enter_context(_viewer(browser))
            for address in ("", f"run?run={newest}", f"trends?{YEAR}"):
                page.goto(f"{home}/{address}")
                settled(page)
        clicks = [_clicked(page, what, act, times) for what, act in CLICKS]
        page.goto(f"{home}/{COMPARE}")
        settled(page)
        clicks.append(_clicked(page, "another side", ANOTHER_SIDE, times))
        return clicks, *_memory()


def _clicked(page: Page, what: str, act: Callable[[Page, int], Any], times: int) -> tuple[str, float, float]:
    took = []
    print(f"clicking {what}", file=sys.stderr)
    for number in range(times):
        act(page, number)
        page.wait_for_function(RESTS)
        took.append(page.evaluate("(window.moved - window.clicked) / 1000"))
    return what, statistics.median(took), min(took)


def _press(role: Any, *names: str) -> Callable[[Page, int], Any]:
    return lambda page, n: page.get_by_role(role, name=names[n % len(names)], exact=True).click()


def _choose(key: str, *options: str) -> Callable[[Page, int], Any]:
    def act(page: Page, number: int) -> None:
        page.locator(f".st-key-{key} [data-baseweb=select], .st-key-{key} input").first.click()
        page.get_by_role("option", name=options[number % len(options)], exact=True).click()

    return act


CLICKS = (
    ("another range", _press("radio", "90 d", "365 d")),
    ("another highlight", _choose("highlight", "hybrid", "keyword", "dense")),
    ("another metric", _choose("metric", "recall@k", "mrr", "pass")),
    ("another suite", _choose("suite", "contract", "golden")),
)


ANOTHER_SIDE = _choose("side-b", "keyword, newest runs", "hybrid, newest runs")


def _memory() -> tuple[float, float]:
    """PSS and RSS in MB of the server and what it started."""
    mine = psutil.Process().children()
    server = next(child for child in mine if "dashboard.server" in child.cmdline())
    infos = [one.memory_full_info() for one in (server, *server.children(recursive=True))]
    return sum(info.pss for info in infos) / 1e6, sum(info.rss for info in infos) / 1e6


if __name__ == "__main__":
    sys.exit(main())
