"""A stored case as lines to read."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard import stories
from dashboard.stories import Expected, Finding, Told

STORY: dict[str, Any] = {
    "background": "161 memories of the world software",
    "steps": [
        {
            "plant": [
                {
                    "id": "w1",
                    "text": "Tea.",
                    "at": "2026-03-02T09:00:00+00:00",
                    "user": "noor",
                    "domain": "home",
                }
            ]
        },
        {"plant": [{"id": "w2", "text": "Coffee.", "role": "assistant"}]},
        {"amend": "w1", "text": "No tea."},
        {"forget": ["w1", "w2"]},
        {"forget_user": "noor"},
        {"session": "s-2"},
        {"reopen": True},
    ],
    "query": "What?",
    "k": 5,
    "user": "noor",
    "domains": ["home"],
    "session": None,
    "leg": "keyword",
    "abstain": True,
    "expectations": [
        {"kind": "any", "patterns": ["tea", "Tea"]},
        {"kind": "unwanted_first", "ids": ["w2"]},
        {"kind": "at_most", "n": 3},
    ],
}


def test_every_step_is_told_in_order() -> None:
    """Background, plants, amendments, forgetting, sessions and reopening each become a line."""
    assert stories.told(STORY) == [
        Told("before", "161 memories of the world software, among which all this stands"),
        Told("2 Mar 2026", "Tea.", "w1 · user noor · domain home"),
        Told("planted", "Coffee.", "w2 · said by assistant"),
        Told("amended", "No tea.", "replaces w1"),
        Told("forgotten", "w1, w2"),
        Told("forgotten", "everything of noor"),
        Told("session", "s-2"),
        Told("reopened", "the backend is closed and opened again"),
    ]


def test_the_question_tells_its_scope() -> None:
    """How and in whose name it is asked stands beside the question."""
    expected = "k 5 · user noor · domains home · keyword leg alone · nothing planted answers it"
    assert stories.question(STORY) == expected


def test_every_expectation_has_words() -> None:
    """What must and must not come back is said with its patterns or ids."""
    assert stories.expected(STORY) == [
        Expected("wanted", "one of these in the first 5", ("tea", "Tea")),
        Expected("unwanted", "none of these first", ("w2",)),
        Expected("limit", "at most 3 hits", ()),
    ]


@pytest.mark.parametrize("kind", ["any", "all", "unwanted", "unwanted_first", "only", "at_most", "exactly"])
def test_no_kind_is_left_out(kind: str) -> None:
    """Every kind of expectation that a suite knows has a sentence."""
    (one,) = stories.expected({"k": 5, "expectations": [{"kind": kind, "n": 1}]})
    assert one.rule != kind


def test_a_story_of_another_age_is_shown_as_far_as_it_goes() -> None:
    """A stored story that lacks parts, or has unknown ones, breaks nothing."""
    assert stories.told({}) == []
    assert stories.told({"steps": [{"sing": "la"}, {"plant": [{"at": "no date"}]}]}) == [Told("planted", "")]
    assert stories.question({}) == ""
    assert stories.expected({"expectations": [{"kind": "sung"}]}) == [Expected("limit", "sung", ())]


def test_hits_keep_order_and_marks() -> None:
    """Hits are ranked as they came, with what was wanted, what was not, and what lies beyond k."""
    hits = [
        {"id": "a", "text": "x", "unwanted": True},
        {"text": "y", "wanted": True, "score": 0.5},
        {"text": "z"},
    ]
    shown = stories.returned({"hits": hits}, k=2)
    assert [(hit.rank, hit.tone, hit.within) for hit in shown] == [
        (1, "unwanted", True),
        (2, "wanted", True),
        (3, "", False),
    ]
    assert stories.returned({}, k=2) == []


def test_a_diagnosis_tells_what_became_of_a_memory() -> None:
    """What of it changed, whether an index knows it by its own words, and whether it is kept alone."""
    found = {"changed": {"m": {"role": "other", "at": "missing"}}, "alone": {"n": "kept", "o": "reopened"}}
    assert stories.diagnosis({**found, "own": {"keyword": "empty", "vector": "found"}}) == [
        Finding("m as planted", "role changed, at gone", False),
        Finding("n planted alone", "kept: something took it away", True),
        Finding("o planted alone", "kept, until the backend is closed and opened again", False),
        Finding("keyword index", "finds nothing by its own text", False),
        Finding("vector index", "finds it by its own text", True),
    ]


def test_what_stands_beside_a_text_is_told() -> None:
    """An expectation of metadata names the memory and the values, one of a steady answer says so."""
    metadata = {"kind": "metadata", "ids": ["a/m"], "values": [["role", "user"], ["box", 4]]}
    told = stories.expected({"k": 3, "expectations": [metadata, {"kind": "stable"}]})
    assert [(one.tone, one.items) for one in told] == [
        ("wanted", ("a/m", "role: user", "box: 4")),
        ("limit", ()),
    ]
    assert told[1].rule == "asked again, the same hits in the same order"


def test_a_diagnosis_tells_where_the_answer_was_lost() -> None:
    """Indexes, storage, each leg and the deep recall are one line each, good or bad."""
    found = {
        "counts": {"keyword": 168, "vector": 160},
        "planted": 168,
        "stored": {"w2": True},
        "legs": {"vector": None},
        "deep_rank": 8,
        "error": "timeout",
    }
    assert stories.diagnosis(found) == [
        Finding("keyword index", "holds 168 of 168 memories", True),
        Finding("vector index", "holds 160 of 168 memories", False),
        Finding("answer stored", "found by its own text", True),
        Finding("vector leg alone", "answer not found", False),
        Finding("deep recall, k 100", "answer at rank 8", None),
        Finding("stopped", "timeout", None),
    ]
    assert stories.diagnosis(None) == []


def test_some_of_an_answer_may_be_stored() -> None:
    """Of several memories that hold the answer the number that is stored is told."""
    assert stories.diagnosis({"stored": {"a": True, "b": False}}) == [
        Finding("answer stored", "1 of 2 found by their own texts", False)
    ]
