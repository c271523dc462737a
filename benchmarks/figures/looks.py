"""What the pages of the dashboard ask the record for, and how long it takes: each page is drawn, as its tests
draw it, and every question that it asks on the way is timed."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from streamlit import config
from streamlit.testing.v1 import AppTest

import dashboard
from benchmarks.figures.times import forget
from dashboard import data
from store import queries

APP = Path(dashboard.__file__).parent / "app.py"
PAGES = ("overview", "trends", "runs", "run", "case", "health", "suites")


class Look(NamedTuple):
    """A page drawn once, with nothing cached. `asked`: (question, seconds), the longest first; `seconds` is
    all of the drawing, without a browser."""

    page: str
    asked: list[tuple[str, float]]
    seconds: float

    @property
    def waited(self) -> float:
        """Seconds for the record."""
        return sum(took for _, took in self.asked)

    @property
    def told(self) -> str:
        longest = ", ".join(f"{name} {took:.3f}" for name, took in self.asked[:3])
        return (
            f"{len(self.asked)} questions in {self.waited:.3f} s ({longest}), drawn in {self.seconds:.2f} s"
        )


def look(page: str, url: str, path: Path | None, **parameters: str) -> Look:
    """`path`: the file of the record, which is read from the disk."""
    data.forget()
    asked: list[tuple[str, float]] = []
    with mock.patch.dict(os.environ, MEMTREND_DATABASE__URL=url), _watched(asked):
        at = AppTest.from_file(str(APP), default_timeout=300)
        config.set_option("client.showErrorDetails", "full")
        for name, value in parameters.items():
            at.query_params[name] = value
        at.run()
        data.forget()
        asked.clear()
        forget(path)
        begin = time.perf_counter()
        _draw(at, page)
        took = time.perf_counter() - begin
    if at.exception:
        raise SystemExit(f"the page {page} failed: {at.exception[0].message}")
    return Look(page, sorted(asked, key=lambda one: -one[1]), took)


def _draw(at: AppTest, page: str) -> None:
    if page == "overview":
        at.run()
    else:
        at.switch_page(f"views/{page}.py").run()


@contextmanager
def _watched(asked: list[tuple[str, float]]) -> Iterator[None]:
    """Every question of `store.queries` that is asked from outside of it."""
    found = {name: getattr(queries, name) for name in queries.__all__}
    questions = {name: value for name, value in found.items() if callable(value) and name.islower()}
    watched = {name: _timed(question, asked) for name, question in questions.items()}
    with mock.patch.multiple(queries, **watched):
        yield


def _timed(question: Callable[..., Any], asked: list[tuple[str, float]]) -> Callable[..., Any]:
    @functools.wraps(question)
    def ask(*arguments: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        try:
            return question(*arguments, **named)
        finally:
            asked.append((question.__name__, time.perf_counter() - begin))

    return ask
