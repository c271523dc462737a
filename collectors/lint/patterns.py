"""Patterns that run away: a repeat inside a repeat that can cut one text up in many ways.

Such a pattern takes 2 to the power of n steps on n signs that it nearly matches. None like them need be
planted yet, and the engine at hand may know a way out that the next one does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import regex

SIGNS = ("a", "0", " ", "-", "a ")
MOST = 12
LONGEST = 4

_PIECE = re.compile(
    r"(?P<sign>\\.|[^\\()\[|*+?{}])|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\()|(?P<close>\))"
    r"|(?P<repeat>[*+]|\{\d+,\d*\})|(?P<or>\|)|(?P<rest>.)",
    re.DOTALL,
)
_SPECIAL = re.compile(r"\\(\W)|\\.|[\[\](){}|*+?^$.]", re.DOTALL)


class _Group(NamedTuple):
    """A group that is repeated, without its repeat, and what follows that."""

    body: str
    tail: str


def runs_away(pattern: str) -> bool:
    """Whether a repeated group matches runs of different lengths, so that a longer run is many things at
    once, and something after it can fail."""
    return any(group.tail.strip(")") and _is_many(group.body) for group in _repeated(pattern))


def _is_many(body: str) -> bool:
    try:
        group = regex.compile(body, regex.IGNORECASE)
    except regex.error:
        return False  # it speaks of what stands outside of it
    signs = dict.fromkeys((*_SPECIAL.sub(lambda found: found[1] or "", body), *SIGNS))
    return any(_lengths(group, sign) > 1 for sign in list(signs)[:MOST])


def _lengths(group: regex.Pattern[str], sign: str) -> int:
    try:
        return sum(
            group.fullmatch(sign * length, timeout=0.01) is not None for length in range(1, LONGEST + 1)
        )
    except TimeoutError:
        return LONGEST


def _repeated(pattern: str) -> Iterator[_Group]:
    """Repeated groups in which something repeats, or that hold a choice."""
    open_: list[int] = []
    inner: list[bool] = []
    closed: tuple[int, int] | None = None
    for piece in _PIECE.finditer(pattern):
        kind = piece.lastgroup
        if kind == "repeat" and closed:
            yield _Group(pattern[closed[0] : closed[1]], pattern[piece.end() :])
        if kind in ("repeat", "or"):
            inner = [True] * len(inner)
        closed = None
        if kind == "open":
            open_.append(piece.start())
            inner.append(False)
        elif kind == "close" and open_:
            start, counts = open_.pop(), inner.pop()
            closed = (start, piece.end()) if counts else None
