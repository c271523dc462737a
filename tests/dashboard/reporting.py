"""Reports of the seeded record, and what stands in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from dashboard.report import Told
from store import queries, report_shapes, shapes
from store.comparisons import Comparison
from store.database import Database, open_database
from store.week import Week
from tests.dashboard.facts import FACTS

MADE = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
KINDS = ("run", "week", "comparison")
NUMBER = re.compile(r"[−+]?\d[\d,]*(?:\.\d+)?")
TEXTS = tuple(text for fact in FACTS for text in (fact.asked, fact.old, fact.new))
"""Of memories and questions."""


def told(db: Database, kind: str, *, texts: bool = False) -> Told:
    """`run`: the newest one of mem0 that lost cases; `comparison`: mem0 and hybrid over four nights each."""
    rows = [row for row in queries.runs(db, limit=None) if row.suite == "golden" and not row.subset]
    if kind == "week":
        return queries.week(db, max(row.started_at for row in rows))
    nights = {name: _newest(rows, name) for name in ("mem0", "hybrid")}
    if kind == "comparison":
        return queries.comparison(db, "golden", nights["mem0"], nights["hybrid"], with_texts=texts)
    found = queries.run_report(db, nights["mem0"][0], with_texts=texts)
    assert found is not None
    return found


def _newest(rows: list[queries.RunRow], backend: str) -> tuple[int, ...]:
    return tuple(row.id for row in rows if row.backend == backend and row.status == "whole")[:4]


def all_told(path: Path, *, texts: bool = False) -> dict[str, Told]:
    with closing(open_database(f"sqlite:///{path}")) as db:
        return {kind: told(db, kind, texts=texts) for kind in KINDS}


def as_json(told: Told) -> str:
    if isinstance(told, Comparison):
        return json.dumps(shapes.comparison(told), ensure_ascii=False)
    shape: Any = report_shapes.week if isinstance(told, Week) else report_shapes.run
    return json.dumps(shape(told), ensure_ascii=False)


class Page(HTMLParser):
    """What stands on a page: `tables` by caption, a list of cells a row; `tags` with their attributes;
    `scripts` apart from the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "caption":
            self._caption = ""
        if tag in ("tr", "td", "th", "caption", "script", "style"):
            self._open = tag
        if tag == "tr":
            self.tables[self._caption].append([])
        if tag in ("td", "th"):
            self.tables[self._caption][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "caption":
            self.tables[self._caption] = []
        if tag == self._open:
            self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style"):
            return
        self.text += data
        if self._open == "caption":
            self._caption += data
        elif self._open in ("td", "th"):
            self.tables[self._caption][-1][-1] += data

    def named(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]


def markdown_tables(text: str) -> Iterator[list[list[str]]]:
    """Rows of cells, the rule between heading and body left out, as they are read."""
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if len(lines) > 1 and lines[0].startswith("| "):
            assert re.fullmatch(r"\| (-+:?)( \| -+:?)* \|", lines[1]), lines[1]
            yield [_cells(line) for line in (lines[0], *lines[2:])]


def _cells(line: str) -> list[str]:
    assert line.startswith("| ")
    assert line.endswith(" |")
    return [_read(cell.strip()) for cell in re.split(r"(?<!\\)\|", line[1:-1])]


def _read(cell: str) -> str:
    code = cell[:1] == "`" and cell[-1:] == "`"
    plain = cell[1:-1].replace("\\|", "|") if code else re.sub(r"\\(.)", r"\1", cell)
    return plain.replace("\u200b", "")
