"""Cron lines of five fields, weekdays by name; and when a fire is due, and late."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_FIELDS: tuple[tuple[str, int, int, Sequence[str]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("weekday", 0, 6, WEEKDAYS),
)
_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?")

GRACE = timedelta(minutes=5)
"""How long after it was due a fire is still on time: a collector that is started again, or taken over, and a
queue that is not empty, must not make a night late."""


def due_time(schedule: str, scheduled_for: datetime, jitter: timedelta) -> datetime:
    """When a fire is due: up to `jitter` after its time, the same for whoever asks."""
    share = random.Random(f"{schedule} {scheduled_for.timestamp()}").random()
    return scheduled_for + share * jitter


def cron_problem(cron: str) -> str | None:
    """What is wrong with a cron line, in words that do not repeat it; None when it is fine."""
    fields = cron.lower().split()
    if len(fields) != len(_FIELDS):
        return f"{len(fields)} fields instead of five: minute hour day month weekday, such as 0 3 * * *"
    if digit := re.search(r"[0-7]", fields[-1]):
        return _counted_weekday(int(digit.group()))
    problems = (_field_problem(text, *field) for text, field in zip(fields, _FIELDS, strict=True))
    return next((problem for problem in problems if problem), None)


def _counted_weekday(digit: int) -> str:
    """Cron counts from Sunday, the scheduler from Monday: a digit would mean another day than meant."""
    name = WEEKDAYS[(digit - 1) % 7]
    return f"write weekdays by name: {digit} is {name} to cron; known: {', '.join(WEEKDAYS)}"


def _field_problem(text: str, name: str, low: int, high: int, names: Sequence[str]) -> str | None:
    if all(_fits(part, low, high, names) for part in text.split(",")):
        return None
    known = f" or {', '.join(names)}" if names else ""
    numbers = "" if name == "weekday" else f"{low} to {high}"
    return f"{name}: * or {numbers}{known}, with - for ranges in order, / for steps and , for lists".replace(
        "or  or", "or"
    )


def _fits(part: str, low: int, high: int, names: Sequence[str]) -> bool:
    match = _PART.fullmatch(part)
    if match is None or match["step"] == "0":
        return False
    if match["first"] is None:
        return True
    first = _number(match["first"], low, names)
    last = first if match["last"] is None else _number(match["last"], low, names)
    return first is not None and last is not None and low <= first <= last <= high


def _number(text: str, low: int, names: Sequence[str]) -> int | None:
    if text in names:
        return names.index(text) + low
    return int(text) if text.isascii() and text.isdigit() else None
