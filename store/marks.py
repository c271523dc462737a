"""What a mark on the charts may say, and when it may stand. Pure."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

from store.hiding import redacted

LONGEST = 500
FIRST_YEAR, LAST_YEAR = 1970, 2100
"""A mark outside of them would stretch every axis to nothing."""

_JOINERS = "\u200c\u200d"
"""Unseen, but part of words and of emoji."""


def mark_text(text: str) -> str:
    """The text without blanks around it, and without secrets. Raises `ValueError`."""
    line = text.strip()
    if not line:
        raise ValueError("should say something")
    if len(line) > LONGEST:
        raise ValueError(f"should have at most {LONGEST} characters")
    return redacted(one_line(line))


def one_line(text: str) -> str:
    """The text, if all of it can be shown on one line in the order in which it is written: control
    characters, line ends, and marks that turn the direction of writing raise `ValueError`."""
    if any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in _JOINERS for c in text):
        raise ValueError("should be one line without control characters")
    return text


def mark_time(at: datetime) -> datetime:
    """The time in UTC. Raises `ValueError`."""
    try:
        moment = at.astimezone(UTC)
    except (OverflowError, ValueError):  # at either end of the calendar
        moment = None
    if moment is None or not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"should lie between {FIRST_YEAR} and {LAST_YEAR}")
    return moment
