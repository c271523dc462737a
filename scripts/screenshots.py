"""Draw every page, in light and in dark, over a made-up record: `python scripts/screenshots.py [--docs]`.

The pictures go to screenshots/, which git ignores; --docs also renews those of the README in docs/img/.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from store import queries, writes
from store.database import open_database
from tests.dashboard.alarmed import alarm
from tests.dashboard.browser import CHROMIUM, TALLEST, chromium, new_context, picture, served
from tests.dashboard.seed import World, seed
from tests.dashboard.watched import watch

ROOT = Path(__file__).parent.parent
DRAWN, DOCS = ROOT / "screenshots", ROOT / "docs" / "img"
SHOWN = ("overview-light", "alert-light", "compare-light")
"""What the README shows."""
COLOURS = 256


def main() -> int:
    if not CHROMIUM:
        print("no Chromium to draw with: apt install chromium", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        url = f"sqlite:///{folder}/memtrend.db"
        addresses = _addresses(url, _seeded(url))
        with served(url, Path(folder)) as address:
            for path in _drawn(browser, address, addresses, url):
                print(path.relative_to(ROOT))
    if "--docs" in sys.argv[1:]:
        _renew_docs()
    return 0


def _seeded(url: str) -> World:
    database = open_database(url)
    world = seed(database, running=True, hostile=False, control=True)
    watch(database, world.nights, hostile=False)
    alarm(database, world, hostile=False)
    database.close()
    return world


def _addresses(url: str, world: World) -> dict[str, str]:
    database = open_database(url)
    worse, quiet = (
        next(run for run in queries.runs(database, suites=["golden"], backends=[name]) if not run.subset)
        for name in ("mem0", "dense")
    )
    database.close()
    return {
        "overview": "",
        "trends": "trends",
        "trends-each": "trends?view=One+each",
        "compare": "compare?suite=golden&a=mem0&b=hybrid",
        "compare-releases": "compare?suite=golden&a=mem0@2.1.0&b=mem0@2.2.1",
        "runs": "runs",
        "trends-drift": "trends?metric=anchor_drift",
        "run": f"run?run={worse.id}",
        "run-quiet": f"run?run={quiet.id}",
        "run-invalid": f"run?run={world.invalid_run}",
        "case": f"case?suite=golden&case={world.broken[0]}&backend=mem0",
        "alerts": "alerts",
        "alert": "alert?alert=1",
        "suites": "suites",
        "health": "health",
        "settings": "settings",
    }


def _drawn(browser: Browser, address: str, addresses: dict[str, str], url: str) -> Iterator[Path]:
    for scheme in ("light", "dark"):
        page = new_context(browser, scheme, TALLEST).new_page()
        for name, where in addresses.items():
            _beat(url)
            page.goto(f"{address}/{where}")
            picture(page, DRAWN / f"{name}-{scheme}.png")
            yield DRAWN / f"{name}-{scheme}.png"


def _beat(url: str) -> None:
    """Drawing takes longer than a collector may be silent."""
    database = open_database(url)
    writes.beat(database, "collector", 4711, "here")
    database.close()


def _renew_docs() -> None:
    """With 256 colours the files are a third as large, and nobody sees the difference."""
    DOCS.mkdir(parents=True, exist_ok=True)
    for name in SHOWN:
        with Image.open(DRAWN / f"{name}.png") as drawn:
            few = drawn.convert("RGB").quantize(COLOURS, kmeans=4, dither=Image.Dither.NONE)
            few.save(DOCS / f"{name}.png", optimize=True)


if __name__ == "__main__":
    sys.exit(main())
