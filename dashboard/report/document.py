"""What a report consists of, whatever it is written as. Pure: HTML, Markdown and text are made of one
document, so that all three say the same.

Texts stand in it as they are: whoever writes them out escapes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dashboard.palette import Theme
from dashboard.sparkline import Dot

if TYPE_CHECKING:
    import plotly.graph_objects as go

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, which steer a terminal, and those that turn or hide what stands beside them."""


def plain(text: str) -> str:
    """On one line, without what is not seen."""
    return " ".join(_UNSEEN.sub(" ", text).split())


class Name(str):
    """A name of somebody else's, such as that of a case: set apart as code where the form can do that."""

    __slots__ = ()


class Spark(NamedTuple):
    """A small chart in a cell; `blocks` where nothing can be drawn."""

    dots: tuple[Dot, ...]
    blocks: str
    alt: str


Cell = str | Spark


class Column(NamedTuple):
    name: str
    number: bool = False


class Table(NamedTuple):
    """The first column names its row."""

    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]


class Chart(NamedTuple):
    """`draw`: for a theme, wide (900 px and more) or narrow (300 and more). No number stands in it alone."""

    caption: str
    alt: str
    draw: Callable[[Theme, bool], go.Figure]


class Listing(NamedTuple):
    items: Sequence[str]


Block = str | Table | Chart | Listing


class Section(NamedTuple):
    heading: str
    blocks: tuple[Block, ...]


class Answer(NamedTuple):
    """What the reader came for: a question, its answer, and more for whoever asks how sure that is."""

    question: str
    answer: str
    beside: tuple[str, ...] = ()


class Document(NamedTuple):
    """`kind` above the title says of what it is; `badge` is a verdict's word, and `tone` its kind, by which
    it is coloured; `foot`: how it was made, and what it must carry."""

    kind: str
    title: str
    badge: str
    tone: str
    answers: tuple[Answer, ...]
    sections: tuple[Section, ...]
    foot: tuple[str, ...]


def section(heading: str, *blocks: Block | None) -> Section | None:
    """None where nothing is left to tell: empty tables, lists and texts are left out."""
    told = tuple(block for block in blocks if block is not None and not _is_empty(block))
    return Section(heading, told) if told else None


def sections(*found: Section | None) -> tuple[Section, ...]:
    return tuple(one for one in found if one is not None)


def _is_empty(block: Block) -> bool:
    if isinstance(block, Table):
        return not block.rows
    return not block.items if isinstance(block, Listing) else not block


def columns(*names: str, numbers: Sequence[str] = ()) -> tuple[Column, ...]:
    return tuple(Column(name, name in numbers) for name in names)
