"""What all verdicts come to in a sentence, and one run's in half a one."""

from __future__ import annotations

from typing import Any

import pytest

from store import verdict_titles as titles
from store.verdict_titles import Series


def series(backend: str, verdict: Any = "unchanged", suite: str = "golden", status: str = "whole") -> Series:
    return Series(suite, backend, status, verdict=verdict)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], "Nothing has been measured yet"),
        ([Series("golden", "dense", None)], "Nothing has been measured yet"),
        ([Series("golden", "dense", None, running=True)], "The first runs are under way"),
        (
            [series("dense", None), series("mem0", None)],
            "2 backends measured on 1 suite; no baseline yet, so no verdict",
        ),
        (
            [
                Series(suite, name, "whole", floor=name in ("nothing", "everything"))
                for suite in ("golden", "contract", "smoke")
                for name in ("keyword", "dense", "hybrid", "nothing", "everything")
            ],
            "3 backends and two floors measured on 3 suites; no baseline yet, so no verdict",
        ),
        (
            [Series("golden", "nothing", "void", floor=True), series("dense", None)],
            "the floor nothing could not be measured on golden; of the rest nothing can be said yet",
        ),
        ([series("dense", None, status="void")], "dense could not be measured on golden"),
    ],
)
def test_before_the_first_verdicts(rows: list[Series], expected: str) -> None:
    """Without verdicts the finding is what was measured and what could not be."""
    assert titles.overview_title(rows) == expected


NEWS = {"verdict": "better", "stage": "confirmed", "leak": None, "provisional": False, "baseline": [1]}


@pytest.mark.parametrize(
    ("verdict", "broken", "expected"),
    [
        (NEWS, 1, "old got better, 1 lost and 7 gained"),
        (NEWS | {"verdict": "worse"}, 1, ""),
        (NEWS | {"verdict": "worse"}, 0, "old got worse"),
        (NEWS | {"verdict": "unchanged", "stage": ""}, 1, None),
        (NEWS | {"verdict": "unchanged", "stage": "", "provisional": True}, 1, ""),
        (NEWS | {"baseline": []}, 1, ""),
    ],
)
def test_a_trend_follows_the_verdict(verdict: dict[str, Any], broken: int, expected: str | None) -> None:
    """What got better is told so whatever it lost; what is unchanged has no broken case; a loss is counted
    where the verdict bears it out, or there is none yet."""
    content = verdict | {"lost": ["a"], "gained": list("bcdefgh")}
    assert titles.trend_news("old", content, broken) == expected
    assert titles.trend_news("old", None, broken) == ""


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([series("a"), series("b")], "2 backends measured on 1 suite; no change seen"),
        (
            [series("a"), series("b", "provisional")],
            "2 backends measured on 1 suite; no change seen, one of 2 verdicts provisional",
        ),
        (
            [series("a", "worse"), series("b", "leak"), series("c", status="void"), series("d")],
            "Two backends got worse, one could not be measured; nothing else changed",
        ),
        (
            [series("one", "worse"), series("one", "leak", "contract"), series("d")],
            "one got worse on golden and contract; nothing else changed",
        ),
        (
            [series("mem0", "worse"), series("b", "worse", "contract", "void"), series("c", "better")],
            "mem0 got worse on golden, b could not be measured on contract, c got better on golden",
        ),
        (
            [series("a", "suspected"), series("b", "unknown"), series("c", "provisional")],
            "a may have got worse on golden, b may have changed on golden; no other change seen so far",
        ),
        (
            [series("a", "better"), series("b", "unchanged"), series("c", None)],
            "a got better on golden; no other change seen so far",
        ),
        ([series("a", "worse"), series("a", "worse", "s"), series("b", "worse")], "Two backends got worse"),
    ],
)
def test_the_overview_says_who_changed(rows: list[Series], expected: str) -> None:
    """The finding counts backends, the worst news first, calls them by name where each is alone, and claims
    no rest that was not looked at."""
    assert titles.overview_title(rows) == expected


def content(**told: Any) -> dict[str, Any]:
    at_rest = {"verdict": "unchanged", "stage": "", "provisional": False, "leak": None, "lost": []}
    beside = {"gained": [], "nights": 10, "baseline": [1], "beats_dense": {"": "yes"}, "blind_spot": 0.069}
    return {**at_rest, **beside, **told}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, "no change seen compared with 10 earlier nights"),
        ({"provisional": True, "nights": 1}, "no change seen so far compared with 1 earlier night"),
        (
            {"verdict": "worse", "stage": "confirmed", "lost": ["a", "b"], "gained": ["c"]},
            "worse, 2 lost and 1 gained compared with 10 earlier nights",
        ),
        ({"verdict": "worse", "stage": "leak"}, "slow leak compared with 10 earlier nights"),
        ({"verdict": "cannot_tell", "baseline": []}, "no baseline yet, so no verdict"),
        ({"verdict": "cannot_tell"}, "cannot tell compared with 10 earlier nights"),
    ],
)
def test_a_run_says_what_it_was_held_against(told: dict[str, Any], expected: str) -> None:
    """The verdict's word, what turned, and how many nights say so."""
    assert titles.run_phrase(content(**told)) == expected


@pytest.mark.parametrize(
    ("told", "reference", "expected"),
    [
        ({}, False, ["beats dense", "would have missed drops under 6.9 points"]),
        ({"beats_dense": {"": "no"}, "blind_spot": None}, False, ["does not beat dense"]),
        ({"beats_dense": {"": "cannot tell"}, "blind_spot": None}, False, ["beats dense? cannot tell"]),
        (
            {"beats_dense": {}, "blind_spot": 0.2},
            True,
            ["the reference", "would have missed drops under 20 points"],
        ),
        ({"beats_dense": {}, "blind_spot": None}, False, []),
        (
            {"leak": {"first_bad": 7, "before": 0.9, "after": 0.84}, "blind_spot": None},
            False,
            ["beats dense", "−6.0 points at run 7"],
        ),
        ({"lost": ["a", "b"], "blind_spot": None}, False, ["beats dense", "2 lost"]),
    ],
)
def test_a_card_says_what_it_could_not_have_seen(
    told: dict[str, Any], reference: bool, expected: list[str]
) -> None:
    """Beside the plain vector store, and the blind spot where there is one."""
    assert titles.card_notes(content(**told), reference=reference) == expected
