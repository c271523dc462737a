"""The two sides of a comparison, as a person names them. Pure.

mem0                 the newest runs of a backend
mem0@2.0.20          of one release of it: the version of its own package, or "mem0ai==2.0.20"
mem0@2026-11-20      of a day; mem0@2026-11-20..2026-11-24 of several, both included
mem0@deploy 41       from a mark to the next one
165, 165,166         these runs
mem0<deploy 41       the newest runs before a mark or a day
mem0>deploy 41       the first runs after it
"""

from __future__ import annotations

import re
from datetime import date
from typing import Literal, NamedTuple

Relation = Literal["newest", "at", "before", "after"]
_RELATIONS: dict[str, Relation] = {"@": "at", "<": "before", ">": "after"}


class BadSide(ValueError):
    """What was written names no side; the message says how one is named."""


class Side(NamedTuple):
    """`run_ids`: of runs that were named themselves, and then nothing else is set. `relation` to `what`: a
    release, a mark's text, or a day; `since` and `until`: the days where it is one or several."""

    text: str
    backend: str = ""
    run_ids: tuple[int, ...] = ()
    relation: Relation = "newest"
    what: str = ""
    since: date | None = None
    until: date | None = None

    @property
    def is_past(self) -> bool:
        """Whether it is of runs that were made, to which none can be added now."""
        return self.relation != "newest" or bool(self.run_ids)


def side(text: str) -> Side:
    """Raises `BadSide`."""
    text = text.strip()
    if re.fullmatch(r"\d{1,18}(\s*,\s*\d{1,18})*", text):
        return Side(text, run_ids=tuple(int(number) for number in text.split(",")))
    found = re.fullmatch(r"([^@<>]+)([@<>])(.+)", text)
    if found is None:
        if not text or text[-1] in _RELATIONS or text[0] in _RELATIONS:
            raise BadSide(_advice(text))
        return Side(text, backend=text)
    backend, sign, what = (part.strip() for part in found.groups())
    if not backend or not what:
        raise BadSide(_advice(text))
    return Side(text, backend, (), _RELATIONS[sign], what, *_days(what))


def _advice(text: str) -> str:
    return (
        f"{text!r} names no side: give a backend (mem0), a release (mem0@2.0.20), a day (mem0@2026-11-20), "
        "a mark (mem0@deploy 41) or runs (165,166)"
    )


def _days(what: str) -> tuple[date | None, date | None]:
    """None for what is no day: "20260101" is the name of a release, and the last day of all has no next."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:\.\.(\d{4}-\d\d-\d\d))?", what)
    try:
        days = [date.fromisoformat(day) for day in found.groups() if day] if found else []
    except ValueError:
        return None, None
    return (days[0], days[-1]) if days and max(days) < date.max else (None, None)
