"""Colours, dashes and markers: one style a backend, the same on every page, apart from the status colours.

A backend keeps the place in the palette that the order of first appearance gave it. The first ten
styles differ under the three colour blindnesses by colour, and in print by dash and marker; further ones bear
the same colours with other dashes and markers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

Mode = Literal["light", "dark"]

FLOOR_TYPES = frozenset({"nothing", "everything"})
"""Backends that no one should be proud to beat: always grey, never a card."""


class Style(NamedTuple):
    """How a backend is drawn: colour, plotly's dash and marker, and the marker as a character."""

    colour: str
    dash: str
    marker: str
    glyph: str


class Pair(NamedTuple):
    """Of the two sides of a comparison."""

    a: Style
    b: Style


class Theme(NamedTuple):
    """What a figure needs to know of the page that it stands on. `context`: of lines among which others are
    highlighted. Opacities are of interval bands."""

    mode: Mode
    background: str
    text: str
    muted: str
    grid: str
    border: str
    mark: str
    floor: str
    context: str
    passed: str
    failed: str
    problem: str
    worse: str
    suspected: str
    better: str
    band: float
    series: tuple[str, ...]


_SHAPES = (
    ("solid", "circle", "●"),
    ("5px,2px", "diamond", "◆"),
    ("solid", "square", "■"),
    ("2px,2px", "triangle-up", "▲"),
    ("8px,2px,2px,2px", "cross", "✚"),
    ("5px,2px", "triangle-down", "▼"),
    ("2px,2px", "star", "★"),
    ("8px,2px,2px,2px", "pentagon", "⬟"),
    ("solid", "hexagon", "⬢"),
    ("5px,2px", "x", "✖"),
)

_STEP = 3
"""Shapes that a colour moves on each time it comes round: it has had them all after a hundred backends."""

_LIGHT_SERIES = (
    *("#0078D4", "#91238A", "#2D685B", "#8A7A10", "#222D3C"),
    *("#8C8CC8", "#2531A8", "#906040", "#C7778F", "#596500"),
)
_DARK_SERIES = (
    *("#4B96EB", "#DB71BA", "#8DC9BA", "#CEBC66", "#CDDEF7"),
    *("#D0B6FE", "#6F6EEB", "#CB9572", "#A37389", "#8B981F"),
)

THEMES: dict[Mode, Theme] = {
    "light": Theme(
        mode="light",
        background="#FFFFFF",
        text="#1B2430",
        muted="#5C6773",
        grid="#E9EDF1",
        border="#D9DFE6",
        mark="#7C8794",
        floor="#8A95A1",
        context="#C3CAD2",
        passed="#E9ECF0",
        failed="#6F7B89",
        problem="#6A45B5",
        worse="#C0271D",
        suspected="#B85C00",
        better="#1F7A45",
        band=0.10,
        series=_LIGHT_SERIES,
    ),
    "dark": Theme(
        mode="dark",
        background="#12161C",
        text="#E4E9EF",
        muted="#9AA5B1",
        grid="#252D37",
        border="#303945",
        mark="#7C8794",
        floor="#7C8794",
        context="#3F4955",
        passed="#232B35",
        failed="#A9B4C0",
        problem="#B59CF0",
        worse="#FF7A6E",
        suspected="#F0A04B",
        better="#5CC98A",
        band=0.15,
        series=_DARK_SERIES,
    ),
}


class Known(Protocol):
    """What the palette reads of a backend."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def control_of(self) -> str: ...


def contenders(backends: Sequence[Known]) -> list[str]:
    """The team's own: no floors, no controls."""
    return [backend.name for backend in backends if not _is_beside(backend)]


def _is_beside(backend: Known) -> bool:
    return backend.type in FLOOR_TYPES or bool(backend.control_of)


def styles(backends: Sequence[Known], theme: Theme) -> dict[str, Style]:
    """Name -> style, for backends in the order of first appearance. Floors and controls are grey and take no
    place."""
    drawn = {name: _style(place, theme) for place, name in enumerate(contenders(backends))}
    return drawn | {one.name: _grey(one, theme) for one in backends if _is_beside(one)}


def _grey(backend: Known, theme: Theme) -> Style:
    if backend.control_of:
        return Style(theme.floor, "6px,4px", "circle-open", "○")
    return Style(theme.floor, "2px,2px", "line-ew", "–")


def _style(place: int, theme: Theme) -> Style:
    turn, index = divmod(place, len(_SHAPES))
    return Style(theme.series[index], *_SHAPES[(index + _STEP * turn) % len(_SHAPES)])


def pair(theme: Theme) -> Pair:
    """For sides that have no two styles of their own: releases of one backend, a report that stands alone."""
    a, b = (Style(theme.series[place], *_SHAPES[place]) for place in (0, 2))
    return Pair(a._replace(dash="solid"), b._replace(dash="solid"))
