"""How long a report takes that somebody waits for, as a whole process, and how large its page is.

Of a run of 500 cases, four trials each, with a series of 45 nights, of the week it lies in, and of a
comparison with another such run, each as one HTML file. Beside it what a user would do instead: export the
cases as CSV, and have pandas and plotly make a page of one chart and one table of them, without a verdict, an
interval or a word. Everything has run once before, so that Python has compiled it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from benchmarks.comparison import make
from benchmarks.measure import Bar, parser, tell
from store import models as m
from store.database import open_database

MEMTREND = str(Path(sys.executable).with_name("memtrend"))
OURS = {
    "run": ["report", "1", "--html"],
    "week": ["report", "--week", "--html"],
    "comparison": ["compare", "1", "2", "--suite", "large", "--no-run", "--html"],
}
BY_HAND = """
import sys
import pandas as pd
import plotly.express as px
cases = pd.read_csv(sys.argv[1])
tags = cases.assign(tag=cases.tags.str.split(";")).explode("tag").groupby("tag")["pass"].mean().reset_index()
chart = px.bar(tags, x="tag", y="pass").to_html(include_plotlyjs=True)
table = cases.groupby("case")["pass"].mean().reset_index().to_html()
open(sys.argv[2], "w").write(chart + table)
"""
MAX_S, MAX_MB, NIGHTS = 3.0, 6.0, 45


class Taken(NamedTuple):
    """Seconds by the wall's clock, and of CPU; MB of the file."""

    seconds: float
    cpu: float
    mb: float


def main() -> int:
    given = parser(__doc__)
    given.add_argument("--cases", type=int, default=500)
    given.add_argument("--times", type=int, default=3, help="processes a report")
    arguments = given.parse_args()
    with tempfile.TemporaryDirectory(prefix="memtrend-bench-") as name:
        folder = Path(name)
        url = f"sqlite:///{folder / 'record.db'}"
        make(url, arguments.cases)
        _add_nights(url)
        ours = {kind: _median(_reports(folder, kind, arguments.times)) for kind in OURS}
        theirs = _median(_by_hand(folder, arguments.times))
    bars = [Bar(f"s_of_the_report_of_a_{kind}", round(one.seconds, 2), MAX_S) for kind, one in ours.items()]
    bars.append(Bar("mb_of_the_largest_page", round(max(one.mb for one in ours.values()), 2), MAX_MB))
    return tell(arguments.json, _lines(ours, theirs), bars)


def _add_nights(url: str) -> None:
    """Earlier nights of the backend that the report is of, of which a report draws the pass rates."""
    db = open_database(url)
    with db.write() as connection:
        (run,) = connection.execute(m.run.select().where(m.run.c.id == 1)).mappings()
        rates = connection.execute(m.rollup.select().where(m.rollup.c.run_id == 1)).mappings().all()
        for night in range(1, NIGHTS):
            earlier = {"id": 1000 + night, "started_at": run["started_at"] - timedelta(days=night)}
            connection.execute(m.run.insert(), {**run, **earlier})
            connection.execute(m.rollup.insert(), [{**row, "run_id": 1000 + night} for row in rates])
    db.close()


def _reports(folder: Path, kind: str, times: int) -> Iterator[Taken]:
    return _again(folder, [[MEMTREND, *OURS[kind], "page.html"]], times)


def _by_hand(folder: Path, times: int) -> Iterator[Taken]:
    export = [MEMTREND, "export", "--run", "1", "-o", "cases.csv"]
    page = [sys.executable, "-c", BY_HAND, "cases.csv", "page.html"]
    return _again(folder, [export, page], times)


def _again(folder: Path, commands: Sequence[Sequence[str]], times: int) -> Iterator[Taken]:
    _taken(folder, commands)
    for _ in range(times):
        yield _taken(folder, commands)


def _taken(folder: Path, commands: Sequence[Sequence[str]]) -> Taken:
    """A comparison says by its exit code what it found."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "MEMTREND_DATABASE__URL": f"sqlite:///{folder / 'record.db'}",
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
    }
    (folder / "page.html").unlink(missing_ok=True)
    started, used = time.perf_counter(), _cpu()
    for command in commands:
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    took = time.perf_counter() - started
    return Taken(took, _cpu() - used, (folder / "page.html").stat().st_size / 1e6)


def _cpu() -> float:
    """Of all processes that have ended, which wait for no other work of the machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _median(found: Iterator[Taken]) -> Taken:
    taken = list(found)
    wall, cpu = (statistics.median(getattr(one, name) for one in taken) for name in ("seconds", "cpu"))
    return Taken(wall, cpu, taken[0].mb)


def _lines(ours: Mapping[str, Taken], theirs: Taken) -> Iterator[str]:
    for kind, one in ours.items():
        ratio = one.cpu / theirs.cpu
        yield f"{kind}: {one.seconds:.2f} s ({one.cpu:.2f} of CPU), {one.mb:.2f} MB, {ratio:.2f} x by hand"
    by_hand = f"{theirs.seconds:.2f} s ({theirs.cpu:.2f} of CPU), {theirs.mb:.2f} MB"
    yield f"CSV, pandas and plotly by hand: {by_hand}"


if __name__ == "__main__":
    sys.exit(main())
