"""A document as Markdown that fits into a comment of a pull request. Pure.

Nothing in it is markup but what is put here: names stand as code, and every other text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dashboard.report.document import Block, Cell, Chart, Document, Listing, Name, Spark, Table, plain

MOST = 65_536
"""Characters of a comment on GitHub."""
ROWS = (200, 60, 20, 8, 3)
"""Of a table or list, as many as fit."""
LONGEST, NAME = 400, 100
"""Characters of a text, and of a name."""


def write(document: Document) -> str:
    return next(
        (text for rows in ROWS[:-1] if len(text := _written(document, rows)) <= MOST), ""
    ) or _written(document, ROWS[-1])


def _written(document: Document, rows: int) -> str:
    return "\n\n".join(_parts(document, rows)) + "\n"


def _parts(document: Document, rows: int) -> Iterator[str]:
    yield f"## {text(document.title)}"
    yield f"**{text(document.badge)}** · {text(document.kind)}"
    for one in document.answers:
        yield f"**{text(one.question)}** {text(one.answer)}"
        if one.beside:
            yield _list(one.beside, rows)
    for section in document.sections:
        yield f"### {text(section.heading)}"
        yield from (_block(block, rows) for block in section.blocks)
    yield "---"
    yield "\n".join(f"<sub>{text(line)}</sub><br>" for line in document.foot)


def _block(block: Block, rows: int) -> str:
    if isinstance(block, Table):
        return _table(block, rows)
    if isinstance(block, Listing):
        return _list(block.items, rows)
    return f"*{text(block.caption)}.* {text(block.alt)}." if isinstance(block, Chart) else text(block)


def _list(items: Iterator[str] | tuple[str, ...], rows: int) -> str:
    shown = [f"- {text(item)}" for item in list(items)[:rows]]
    return "\n".join([*shown, *_more(len(items), rows, "- ")])


def _more(n: int, rows: int, before: str) -> list[str]:
    return [f"{before}and {n - rows} more"] if n > rows else []


def _table(table: Table, rows: int) -> str:
    names = " | ".join(text(column.name) for column in table.columns)
    rule = " | ".join("---:" if column.number else "---" for column in table.columns)
    lines = [" | ".join(map(_cell, row)) for row in table.rows[:rows]]
    told = "\n".join(f"| {line} |" for line in (names, rule, *lines))
    return "\n\n".join([f"**{text(table.caption)}**", told, *_more(len(table.rows), rows, "")])


def _cell(cell: Cell) -> str:
    if isinstance(cell, Spark):
        return cell.blocks
    return code(cell) if isinstance(cell, Name) else text(cell)


def text(words: str) -> str:
    """As text, whatever is in it: no markup, no address that becomes a link, nobody who is called."""
    shown = re.sub(r"([\\`*_\[\]<>|~#$&])", r"\\\1", _cut(plain(words), LONGEST))
    return re.sub(r"(?i)((?<!\w)@|\bwww(?=\.)|https?(?=:))", "\\1\u200b", shown)


def code(name: str) -> str:
    """In it nothing is markup but a backtick, and in a table a bar."""
    shown = _cut(plain(name), NAME).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`"


def _cut(words: str, longest: int) -> str:
    return words if len(words) <= longest else f"{words[: longest - 1]}…"
