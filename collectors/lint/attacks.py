"""Texts on which a pattern with repeats inside a repeat would run away, though none like them is planted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LENGTH = 64
"""Signs in a row: cutting them up in every way takes 2 to this power steps."""
SIGNS = ("a", "0", " ", "-", "a ")
MOST = 8

_PIECE = re.compile(
    r"(?P<sign>\\.|[^\\()\[|*+?{}])|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\()|(?P<close>\))"
    r"|(?P<repeat>[*+]|\{\d+,\d*\})|(?P<or>\|)|(?P<rest>.)",
    re.DOTALL,
)


class Attack(NamedTuple):
    """The part of a pattern that repeats, with what comes after it, and a text that it should refuse."""

    pattern: str
    text: str


class _Group(NamedTuple):
    """A group, its repeat included, and what follows it."""

    source: str
    tail: str


def attacks(pattern: str) -> Iterator[Attack]:
    for group in _suspects(pattern):
        if not group.tail.strip(")"):
            continue  # nothing after it can fail, so that it never tries another way
        whole = group.tail.count("(") == group.tail.count(")")
        tail, literals = (group.tail, _literals(group.tail)) if whole else ("\x00", "")
        for sign in list(dict.fromkeys((*_literals(group.source), *SIGNS)))[:MOST]:
            yield Attack(group.source + tail, f"{sign * LENGTH}!{literals}\x00")


def _literals(part: str) -> str:
    """What the part of a pattern asks for as it stands, or nearly: a quick search for it must not fail."""
    return re.sub(r"\\(\W)|\\.|[\[\](){}|*+?^$.]", lambda found: found[1] or "", part)


def _suspects(pattern: str) -> Iterator[_Group]:
    """Repeated groups in which something repeats, or that hold a choice."""
    starts: list[int] = []
    inner: list[bool] = []
    closed: tuple[int, bool] | None = None
    for piece in _PIECE.finditer(pattern):
        kind = piece.lastgroup
        if kind == "repeat" and closed and closed[1]:
            yield _Group(pattern[closed[0] : piece.end()], pattern[piece.end() :])
        if kind in ("repeat", "or") and inner:
            inner = [True] * len(inner)
        closed = None
        if kind == "open":
            starts.append(piece.start())
            inner.append(False)
        elif kind == "close" and starts:
            closed = starts.pop(), inner.pop()
