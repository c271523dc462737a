"""The dashboard served on loopback, and Chromium looking at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Position, sync_playwright

CHROMIUM = shutil.which("chromium") or ""
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
WIDTH, HEIGHT, TALLEST = 1440, 900, 1700


@contextmanager
def served(url: str, folder: Path) -> Iterator[str]:
    """The dashboard over a record, started away from the checkout; gives its address and stops it by TERM."""
    port = _free_port()
    command = [sys.executable, "-m", "dashboard.server", "--port", str(port)]
    environment = {**os.environ, "MEMTREND_DATABASE__URL": url}
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            _wait(process, f"http://127.0.0.1:{port}/_stcore/health", folder / "server.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=15)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], address: str, log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the dashboard ended with {process.returncode}: {log.read_text()}")
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the dashboard did not answer within {seconds} s: {log.read_text()}")


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


def new_context(
    browser: Browser, scheme: Literal["light", "dark"] = "light", height: int = HEIGHT
) -> BrowserContext:
    """A viewer in Berlin."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": height}, color_scheme=scheme, timezone_id="Europe/Berlin"
    )
    context.set_default_timeout(40_000)
    return context


_STANDS = """
() => {
    const charts = [...document.querySelectorAll('[data-testid=stPlotlyChart]')];
    const stands = document.querySelector('h1')
        && document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
        && !document.querySelector('[data-stale=true], [data-testid=stSkeleton]')
        && charts.every(chart => chart.querySelector('.cartesianlayer :is(.trace, .hm)'));
    window.standsSince = stands ? window.standsSince ?? performance.now() : undefined;
    return stands && performance.now() - window.standsSince > 150;
}
"""
"""For some moments in a row, since a page is at rest between its parts too."""


def settled(page: Page) -> None:
    """The script has ended, and the page's heading and the traces of its charts are drawn."""
    page.evaluate("delete window.standsSince")
    page.wait_for_function(_STANDS)


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
            const last = trace.x.length - 1, layout = plot._fullLayout;
            const y = layout[trace.yaxis.replace('y', 'yaxis')];
            return [layout.xaxis.d2p(trace.x[last]) + layout.xaxis._offset, y.d2p(trace.y[last]) + y._offset];
        }""",
        trace,
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.click(box["x"] + x, box["y"] + y)


def click_row(page: Page, table: int, row: int, across: float = 0.5) -> None:
    """Clicks a cell of a row of a table, drawn on a canvas; `across` says how far to the right."""
    frame = page.locator('[data-testid="stDataFrame"]').nth(table)
    width = frame.evaluate("table => table.clientWidth")
    position = Position(x=width * across, y=32 + 31 * row + 15)
    # Hovering scrolls: a table that has just moved looks for a click where it was.
    frame.hover(position=position)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    frame.click(position=position)


def picture(page: Page, path: Path) -> None:
    """The page down to its last element, as far as the window reaches: Streamlit scrolls inside its frame."""
    settled(page)
    page.wait_for_function("[...document.images].every(image => image.complete)")
    page.wait_for_timeout(300)  # tables are painted on a canvas, without saying when
    end = page.locator('[data-testid="stMainBlockContainer"] > *').evaluate_all(
        "parts => Math.max(...parts.map(part => part.getBoundingClientRect().bottom))"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    size = {"x": 0, "y": 0, "width": WIDTH, "height": min(max(HEIGHT, end + 30), TALLEST)}
    page.screenshot(path=path, clip=size)
