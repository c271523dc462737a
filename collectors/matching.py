"""Patterns of a suite against text: case ignored, and never longer than a second."""

from __future__ import annotations

from functools import lru_cache

import regex

TIME_LIMIT_S = 1.0


class MatchTimeout(Exception):
    """A pattern that took longer than `TIME_LIMIT_S` on one text: the case cannot be judged."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"pattern {pattern!r} took over {TIME_LIMIT_S:g} s; simplify its nested repeats")


@lru_cache(maxsize=16_384)
def compiled(pattern: str) -> regex.Pattern[str]:
    """Raises `regex.error` for an invalid pattern."""
    return regex.compile(pattern, regex.IGNORECASE)


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text. Raises `MatchTimeout`."""
    try:
        return compiled(pattern).search(text, timeout=TIME_LIMIT_S) is not None
    except TimeoutError as error:
        raise MatchTimeout(pattern) from error


def any_matches(patterns: tuple[str, ...], text: str) -> bool:
    return any(matches(pattern, text) for pattern in patterns)
