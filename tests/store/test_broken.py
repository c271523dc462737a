"""What broke, and how much of the past is needed to tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.broken import broke, is_told


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ("++++++---", True),
        ("+++++++++-", True),
        ("+-", True),
        ("+++++", False),
        ("-----", False),
        ("--------+------", False),
        ("+--------------", False),
        ("+-+-+-+-+-+-", False),
        ("+-+-+-+++-+---", True),
        ("+++---+++", False),
    ],
)
def test_a_case_broke_when_it_had_passed(outcomes: str, expected: bool) -> None:
    """Broken is what passed before and fails now, not what passes or fails by chance."""
    assert broke([outcome == "+" for outcome in outcomes]) is expected


@given(st.lists(st.booleans(), max_size=40), st.lists(st.booleans(), max_size=60))
def test_what_lies_further_back_changes_nothing(older: list[bool], newer: list[bool]) -> None:
    """Once the newest outcomes tell, the older ones could be anything."""
    if is_told(newer):
        assert broke(older + newer) == broke(newer) or len(newer) <= 5


@given(st.lists(st.booleans(), max_size=60))
def test_what_broke_had_passed_and_fails(outcomes: list[bool]) -> None:
    """Nothing breaks that does not fail now, or never passed."""
    if broke(outcomes):
        assert any(outcomes)
        assert not outcomes[-1]
