"""Patterns against text: case ignored, anywhere in it, and never for long."""

from __future__ import annotations

import pytest
import regex

from collectors.matching import TIME_LIMIT_S, MatchTimeout, any_matches, compiled, matches

CATASTROPHIC = "^(a|a|aa)+[cd]$"
"""Tries each way to cut a run of a's into one's and two's."""


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("tuesday", "Releases go out on TUESDAYS.", True),
        ("ÜBER", "über den Dächern", True),
        (r"\b45\b", "retention: 45d", False),
        (r"\b45d?\b", "retention: 45d", True),
        ("^second", "first\nsecond", False),
        ("(?m)^second", "first\nsecond", True),
        ("first.second", "first\nsecond", False),
        ("a{3,}", "", False),
        (r"\p{Lu}\d", "x7", True),
    ],
)
def test_a_pattern_is_found_anywhere_and_in_any_case(pattern: str, text: str, found: bool):
    """A pattern need not cover the text, ignores case, and otherwise means what regular expressions mean."""
    assert matches(pattern, text) is found


def test_one_pattern_of_several_is_enough():
    """any_matches is true with one match, and false without patterns."""
    assert any_matches(("zebra", "horse"), "A horse.")
    assert not any_matches(("zebra", "mule"), "A horse.")
    assert not any_matches((), "A horse.")


def test_a_pattern_without_end_is_given_up():
    """What takes over the time limit raises MatchTimeout, which names the pattern and what to do."""
    with pytest.raises(MatchTimeout) as late:
        matches(CATASTROPHIC, "a" * 200)
    assert str(late.value) == f"pattern {CATASTROPHIC!r} took over 1 s; simplify its nested repeats"


def test_the_time_limit_is_one_second():
    """A pattern may take a second a text, no more."""
    assert TIME_LIMIT_S == 1.0


def test_an_invalid_pattern_says_so():
    """compiled raises the library's own error, with the position of the fault."""
    with pytest.raises(regex.error, match="position 3"):
        compiled("ab(")
