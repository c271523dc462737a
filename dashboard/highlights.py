"""Which of many lines stand out: a chart of twenty colours tells none apart. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dashboard.curves import Line
from dashboard.palette import Theme

MOST = 8
"""Lines that can be told apart; of more, some are highlighted and the rest are grey."""


def names(lines: Sequence[Line], chosen: Collection[str]) -> set[str]:
    """Who stands out: all where they are few; else those `chosen`, or, where none is, those with news."""
    own = [line for line in lines if not line.control]
    if len(own) <= MOST:
        return {line.name for line in own}
    return set(chosen) or _with_news(own)


def highlighted(lines: Sequence[Line], shown: Collection[str], theme: Theme) -> list[Line]:
    """All but those `shown` in grey, a control with its backend."""
    return [line if (line.control or line.name) in shown else _muted(line, theme) for line in lines]


def _with_news(lines: Sequence[Line]) -> set[str]:
    """Those that are bold, as many as can be told apart; the best and the worst where none is."""
    bold = [line.name for line in lines if line.bold][:MOST]
    if bold:
        return set(bold)
    ranked = sorted((line for line in lines if line.points), key=lambda line: line.points[-1].mean)
    return {line.name for line in ranked[:1] + ranked[-1:]}


def _muted(line: Line, theme: Theme) -> Line:
    style = line.style._replace(colour=theme.context, dash="solid")
    return line._replace(style=style, muted=True, bold=False, band=False, levels=(), alerts=())
