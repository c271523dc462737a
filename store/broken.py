"""Which cases broke: passed before, and fail now. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from store import words

BEFORE = 10
"""Runs before a fall that say whether the case had been passing."""


def broke(outcomes: Sequence[bool]) -> bool:
    """Whether a case that had passed fails now (oldest run first): it passed in most of the ten runs before
    the failures at the end. One that passed by chance among failures did not break, nor did one that passed
    once or twice when a longer record begins; one that turned to and fro in those ten broke when it has
    failed three times on end. What lies further back is not asked for."""
    failures = _at_the_end(outcomes)
    if failures in (0, len(outcomes)):
        return False
    recent = outcomes[-(failures + BEFORE) :]
    before = recent[:-failures]
    had_passed = 2 * sum(before) > len(before) and (len(before) > 2 or len(outcomes) <= 5)
    return had_passed and (failures >= 3 or not words.is_flaky(recent))


def is_told(outcomes: Sequence[bool]) -> bool:
    """Whether these newest outcomes (oldest first) say whether the case broke, whatever came before."""
    failures = _at_the_end(outcomes)
    return not failures or failures + BEFORE <= len(outcomes)


def _at_the_end(outcomes: Sequence[bool]) -> int:
    """Failures in a row at the end."""
    return next((n for n, passed in enumerate(reversed(outcomes)) if passed), len(outcomes))
