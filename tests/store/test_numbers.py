"""The numbers behind a verdict, and the words of trials."""

from __future__ import annotations

from typing import Any

import pytest

from store import trial_words, verdict_words

WORSE: dict[str, Any] = {
    "verdict": "worse", "stage": "confirmed", "provisional": False, "leak": None, "reason": None,
    "difference": {"old": 0.88, "new": 0.77, "low": -0.22, "high": -0.04, "n": 41, "dropped": 0,
                   "method": "BCa bootstrap", "reason": None},
    "looks": [{"number": 1, "run_id": 935, "trials": 1, "p_worse": 0.003, "p_better": 0.745},
              {"number": 2, "run_id": 936, "trials": 3, "p_worse": None, "p_better": None}],
    "lost": ["a", "b"], "gained": [], "blind_spot": None, "cases": 41, "baseline": [473, 488], "nights": 2,
    "days": 2,
}  # fmt: skip


def test_all_that_a_verdict_rests_on() -> None:
    """Difference with interval, n and method, each look with its p-values, the cases, and the baseline; what
    is not known is left out."""
    assert dict(verdict_words.numbers(WORSE)) == {
        "difference": "−11.0 points (−22.0 to −4.0), n 41",
        "interval by": "BCa bootstrap, 95 %",
        "look 1, run 935": "1 trial, p = 0.003 of worse, 0.745 of better",
        "look 2, run 936": "3 trials",
        "lost": "a and b",
        "held against": "2 nights on 2 days (runs 473 to 488)",
    }


def test_a_verdict_beside_a_line() -> None:
    """A change is told with its size, a quiet verdict by its word alone."""
    assert verdict_words.short(WORSE) == "Worse, −11.0 points"
    assert verdict_words.short({**WORSE, "verdict": "unchanged", "stage": ""}) == "No change seen"


@pytest.mark.parametrize(
    ("passes", "n", "told"),
    [
        (0, 1, ""),
        (0, 7, "failed 7 of 7 trials"),
        (2, 3, "passed 2 of 3 trials"),
        (2, 4, "failed 2 of 4 trials"),
    ],
)
def test_trials(passes: int, n: int, told: str) -> None:
    """A case passes in more than half of its trials; a single one needs no count."""
    assert trial_words.trials(passes, n) == told
