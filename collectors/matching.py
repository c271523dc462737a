"""Patterns of a suite against text: case ignored, and never longer than a second.

Most patterns of a suite are plain: words, a boundary, a set of two signs. Python's own `re` reads those four
times as fast as `regex`, and cannot run away with them; all others go to `regex`, which can be stopped. In
ASCII texts both find the same.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import regex

TIME_LIMIT_S = 1.0
PLAIN_TEXT = 1000
"""Characters of the longest text on which a plain pattern is surely quick."""


class MatchTimeout(Exception):
    """A pattern that took longer than `TIME_LIMIT_S` on one text: the case cannot be judged."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"pattern {pattern!r} took over {TIME_LIMIT_S:g} s; simplify its nested repeats")


@lru_cache(maxsize=16_384)
def compiled(pattern: str) -> regex.Pattern[str]:
    """Raises `regex.error` for an invalid pattern."""
    return regex.compile(pattern, regex.IGNORECASE)


def matches(pattern: str, text: str, limit_s: float = TIME_LIMIT_S) -> bool:
    """Whether the pattern is found anywhere in the text. Raises `MatchTimeout`."""
    known = shape(pattern)
    if known.plain and text.isascii():  # beyond ASCII the two differ in what is a letter
        if known.literal:
            return any(needle in text.lower() for needle in known.needles)
        if len(text) <= PLAIN_TEXT:
            return _plain(pattern).search(text) is not None
    try:
        return compiled(pattern).search(text, timeout=limit_s) is not None
    except TimeoutError as error:
        raise MatchTimeout(pattern) from error


def any_matches(patterns: tuple[str, ...], text: str) -> bool:
    return any(matches(pattern, text) for pattern in patterns)


@lru_cache(maxsize=16_384)
def _plain(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# The shape of a pattern


class Shape(NamedTuple):
    """`needles`: one of them is in every text, `folded`, that the pattern matches; empty where that cannot be
    said. `plain`: valid, and quick on a text of up to `PLAIN_TEXT`. `literal`: its needles are all there is
    to it."""

    needles: tuple[str, ...]
    plain: bool
    literal: bool


_TOKEN = re.compile(
    r"""(?P<char>[a-zA-Z0-9_\ ,;:'"/%@!<>=&~\#`-]|\\[!-/:-@\[-^`{-~])
    |(?P<zero>\\[bAZ]|[\^$])
    |(?P<set>\\[dDwWsS]|\.|\[\^?(?:a-z|A-Z|0-9|\\[dws.-]|[a-zA-Z0-9_\ ,;:.'/%@])+-?\])
    |(?P<maybe>\?)
    |(?P<repeat>[*+]|\{\d{1,2}(?:,\d{0,2})?\})
    |(?P<open>\((?:\?:)?(?!\?))
    |(?P<close>\))
    |(?P<or>\|)
    |(?P<other>[^\x00-\x7f]|\\B|\[\^?\]?(?:\\.|[^\]\\[])*\]|\(\?(?:[=!]|<[=!]))
    |(?P<unknown>.)""",
    re.VERBOSE | re.DOTALL,
)
"""`other` is understood well enough to find needles beside it, yet not plain."""


@lru_cache(maxsize=65_536)
def shape(pattern: str) -> Shape:
    return _Reader().read(pattern)


class _Reader:
    """Reads a pattern once, from left to right. `run` are the characters that stand side by side at the
    top; `best` is the longest run of the branch."""

    def __init__(self) -> None:
        self.needles: list[str] = []
        self.best = self.run = ""
        self.depth = self.repeats = self.unbounded = 0
        self.plain = self.known = self.literal = True
        self.before = ""

    def read(self, pattern: str) -> Shape:
        for token in _TOKEN.finditer(pattern):
            kind = str(token.lastgroup)
            self._take(kind, token[0])
            self.literal = self.literal and kind in ("char", "or")
            self.before = kind
        self._end_branch()
        whole = self.known and self.depth == 0
        needles = tuple(self.needles) if whole and all(self.needles) else ()
        return Shape(needles, whole and self.plain, bool(needles) and self.literal)

    def _take(self, kind: str, text: str) -> None:
        match kind:
            case "char":
                self.run += text[-1].lower() if self.depth == 0 else ""
            case "zero":
                pass
            case "maybe" | "repeat":
                self._quantify(kind, text)
            case "or" if self.depth == 0:
                self._end_branch()
            case "open" | "close":
                self._nest(1 if kind == "open" else -1)
            case "other":
                self._other(text)
            case "unknown":
                self.known = False
            case _:
                self._end_run()

    def _quantify(self, kind: str, text: str) -> None:
        """`x?` and `x*` need no x, `x+` does; what is repeated stands side by side with nothing after it."""
        if self.before not in ("char", "set") and not (kind == "maybe" and self.before == "close"):
            self.plain = False  # lazy, possessive, a repeated group, or nothing to repeat
        low, comma, high = text.strip("{}").partition(",")
        counted = text[0] == "{"
        if counted and comma and high and int(high) < int(low):
            self.plain = False
        needed = text == "+" or (counted and int(low) > 0)
        if self.before == "char" and self.depth == 0 and not needed:
            self.run = self.run[:-1]
        self.repeats += kind == "repeat"
        self.unbounded += text in ("*", "+") or (counted and bool(comma) and not high)
        if self.repeats > 2 or self.unbounded > 1:
            self.plain = False
        self._end_run()

    def _nest(self, step: int) -> None:
        self._end_run()
        self.depth += step
        self.known = self.known and self.depth >= 0

    def _other(self, text: str) -> None:
        self.plain = False
        self._nest(1) if text.startswith("(") else self._end_run()

    def _end_run(self) -> None:
        if self.depth == 0:
            self.best = max(self.best, self.run, key=len)
        self.run = ""

    def _end_branch(self) -> None:
        self._end_run()
        self.needles.append(self.best)
        self.best, self.repeats, self.unbounded = "", 0, 0


def folded(text: str) -> str:
    """Case taken from the text, so that what a pattern finds in it holds one of the pattern's needles."""
    return text.lower() if text.isascii() else text.casefold().replace(_I_AND_DOT, "i")


_I_AND_DOT = "i\N{COMBINING DOT ABOVE}"
"""What the capital I with a dot folds to; to a pattern it is one sign, an i."""


class Haystack:
    """Texts in which many patterns are looked for. Most hold nothing of a pattern, and are passed over by one
    search for its needles through all of them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._all = "\n".join(texts)  # no needle holds a line break
        self._starts = [0, *accumulate(len(text) + 1 for text in texts)]

    def holding(self, pattern: str) -> list[int]:
        """The places of the texts in which the pattern might be found: all, where nothing rules any out."""
        needles = shape(pattern).needles
        if not needles:
            return list(range(len(self._starts) - 1))
        return sorted({place for needle in needles for place in self._with(needle)})

    def _with(self, needle: str) -> Iterator[int]:
        at = self._all.find(needle)
        while at >= 0:
            place = bisect_right(self._starts, at) - 1
            yield place
            at = self._all.find(needle, self._starts[place + 1])
