"""Memories counted by leg, and how many there should be. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Census(NamedTuple):
    """Memories by leg: those counted, and those expected where somebody but the index knows."""

    counted: Mapping[str, int]
    expected: Mapping[str, int] = {}

    def lacks(self, leg: str | None) -> str | None:
        """What is missing to judge a leg, or without one all legs against each other."""
        if leg is None:
            return None if len(self.counted) > 1 else "a second leg"
        if leg not in self.counted:
            return f"leg {leg}"
        return None if leg in self.expected else f"an expected count of leg {leg}"

    def count(self, leg: str | None) -> int:
        """Memories of the leg; without one, of the leg that holds fewest."""
        return min(self.counted.values()) if leg is None else self.counted[leg]

    def share(self, leg: str | None) -> float:
        """Counted against expected, the smaller as a share of the larger: too many are as wrong as too few.
        Without a leg, the emptiest leg against the fullest."""
        if leg is not None:
            return _share(self.counted[leg], self.expected[leg])
        return _share(min(self._fill().values()), max(self._fill().values()))

    def fault(self, leg: str | None) -> str:
        if leg is None:
            return "legs disagree"
        return "leg incomplete" if self.counted[leg] < self.expected[leg] else "leg overfull"

    def told(self, leg: str | None) -> str:
        if leg is None:
            return "the legs hold " + ", ".join(f"{name} {n}" for name, n in self.counted.items())
        share = 100 * self.counted[leg] / self.expected[leg] if self.expected[leg] else 0
        return f"{leg} holds {self.counted[leg]} of {self.expected[leg]} memories ({share:.1f} %)"

    def _fill(self) -> Mapping[str, float]:
        """How full each leg is: of what is expected of it, where legs are meant to hold different numbers."""
        if all(self.expected.get(leg) for leg in self.counted):
            return {leg: n / self.expected[leg] for leg, n in self.counted.items()}
        return self.counted


def _share(one: float, other: float) -> float:
    return 1.0 if one == other else min(one, other) / max(one, other)
