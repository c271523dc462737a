"""A document as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from textwrap import fill

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from dashboard.report.document import Block, Cell, Chart, Document, Listing, Spark, Table, plain

WIDTH, TABLE = 100, 160


def write(document: Document) -> str:
    return "\n".join(_lines(document))


def _lines(document: Document) -> Iterator[str]:
    yield _paragraph(document.title)
    yield _paragraph(f"{document.badge} · {document.kind}")
    for one in document.answers:
        yield ""
        yield _paragraph(f"{one.question} {one.answer}")
        yield from map(_item, one.beside)
    for section in document.sections:
        yield f"\n{plain(section.heading).upper()}"
        for block in section.blocks:
            yield from _block(block)
    yield ""
    yield from map(_paragraph, document.foot)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield f"\n{_paragraph(block.caption)}"
        yield _table(block)
    elif isinstance(block, Listing):
        yield from map(_item, block.items)
    elif not isinstance(block, Chart):  # the numbers of a chart stand beside it
        yield _paragraph(block)


def _paragraph(text: str) -> str:
    return fill(plain(text), WIDTH)


def _item(text: str) -> str:
    return fill(plain(text), WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _table(table: Table) -> str:
    grid = Grid(box=None, pad_edge=False)
    for column in table.columns:
        grid.add_column(Text(column.name), justify="right" if column.number else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*map(_cell, row))
    told = StringIO()
    Console(file=told, width=TABLE, color_system=None).print(grid)
    return "\n".join(line.rstrip() for line in told.getvalue().rstrip().splitlines())


def _cell(cell: Cell) -> Text:
    return Text(cell.blocks if isinstance(cell, Spark) else plain(cell))
