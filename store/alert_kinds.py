"""What an alert can be about. Pure."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Severity = Literal["info", "normal", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "normal", "high", "critical")
"""From what is nice to know to what gets somebody up."""


class AlertKind(NamedTuple):
    """`words`: its badge; `step`: how much deeper it must go, in the unit of its depth, before somebody is
    told again, infinite where it gets no worse by lasting; `good`: runs in a row without it that resolve it;
    `scope`: what it silences while it is open, since nothing below can be told apart from it."""

    name: str
    words: str
    severity: Severity
    step: float
    meaning: str
    good: int = 2
    scope: Literal["", "backend", "all"] = ""


_ROWS = (
    AlertKind("critical", "Critical", "critical", 0.0, "a critical case is lost"),
    AlertKind("regression", "Worse", "high", 0.02, "fewer cases pass than before, in three looks"),
    AlertKind("shrinkage", "Index shrinks", "high", 0.02, "an index holds less than it should, or its legs "
              "disagree"),
    AlertKind("failing", "Collector failing", "high", 1.0, "a run says nothing: void, or too many errors",
              scope="backend"),
    AlertKind("missed", "Missed run", "high", math.inf, "a schedule did not run", good=1, scope="all"),
    AlertKind("proof", "Proof failed", "high", 1.0, "a drill did not arrive, or was not held", good=1),
    AlertKind("leak", "Slow leak", "normal", 0.02, "the pass rate went down over weeks"),
    AlertKind("threshold", "Bar broken", "normal", 0.02, "a metric is beyond the bar that its suite sets"),
    AlertKind("slower", "Slower", "normal", 0.2, "answers take longer"),
    AlertKind("dearer", "Dearer", "normal", 0.2, "answers return more tokens, or planting costs more"),
    AlertKind("judge", "Judge drifts", "normal", 0.02, "a judge disagrees with answers that are known"),
    AlertKind("improvement", "Better", "info", 0.02, "more cases pass than before, in three looks"),
)  # fmt: skip

KINDS = {kind.name: kind for kind in _ROWS}
"""Kind -> what is known of it, the worst first."""


def worst(kinds: list[str]) -> AlertKind:
    """The one that an alert is named after."""
    return min((KINDS[name] for name in kinds), key=lambda kind: list(KINDS).index(kind.name))


def at_least(severity: str, wanted: str) -> bool:
    order: tuple[str, ...] = SEVERITIES
    return order.index(severity) >= order.index(wanted)
