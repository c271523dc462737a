"""How many false alarms a channel is to expect, beside how many it accepts. Pure.

Nothing is made less sensitive silently: where more is to be expected than a channel accepts, it is said, with
the first level that would keep it, which suites may set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from store import words
from store.alert_kinds import KINDS, at_least
from store.sections import ChannelSection

FIRST_LEVEL = 0.05
CONFIRMING_LEVEL = 0.01
"""The levels of the change test (`store/stats/change.py`), whose looks repeat each other's mood: an alarm by
chance takes the first look, and one more."""


class Watched(NamedTuple):
    """A suite on a backend, how often a month it is looked at, its whole runs, and the level of the first of
    the looks at one."""

    suite: str
    backend: str
    owner: str
    looks: float
    level: float = FIRST_LEVEL


class Budget(NamedTuple):
    """Of one channel, a month: looks that it would hear a false alarm of, how many of those are to be
    expected, and how many it accepts. `level`: the first level that would keep to that."""

    channel: str
    pairs: int
    looks: float
    expected: float
    accepted: float
    level: float

    @property
    def kept(self) -> bool:
        return self.expected <= self.accepted


def budgets(sections: Mapping[str, ChannelSection], watched: Iterable[Watched]) -> list[Budget]:
    """Of every channel, in the order of the configuration. Which tags an alert will have is not known before:
    a channel for some is reckoned as one for all."""
    pairs = list(watched)
    return [_budget(name, section, pairs) for name, section in sections.items()]


def _budget(name: str, section: ChannelSection, pairs: list[Watched]) -> Budget:
    heard = [one for one in pairs if _hears(section, one)]
    looks = sum(one.looks for one in heard)
    chance = looks * CONFIRMING_LEVEL
    level = min(FIRST_LEVEL, section.budget / chance) if chance else FIRST_LEVEL
    expected = sum(one.looks * one.level for one in heard) * CONFIRMING_LEVEL
    return Budget(name, len(heard), looks, expected, section.budget, level)


def _hears(section: ChannelSection, pair: Watched) -> bool:
    """Alarms by chance are regressions."""
    kind = KINDS["regression"]
    wanted = not section.kinds or kind.name in section.kinds
    return (
        wanted
        and at_least(kind.severity, section.severity)
        and (not section.owners or pair.owner in section.owners)
    )


def told(budget: Budget) -> str:
    """A sentence for Alerts and Health."""
    pairs = words.count(budget.pairs, "pair")
    expected = f"{budget.expected:.2g} false alarms a month to be expected of {pairs} of suite and backend"
    if budget.kept:
        return f"Channel {budget.channel}: {expected}; it accepts {budget.accepted:g}."
    return (
        f"Channel {budget.channel}: {expected}, more than the {budget.accepted:g} that it accepts; look less "
        f"often, narrow the channel, raise its budget, or let suites say confirm.level = {budget.level:.2g}."
    )
