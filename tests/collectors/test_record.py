"""Between the words of a suite and the rows of the record, both ways."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.backend import Hit, Observation, Usage
from collectors.failures import Diagnosis
from collectors.record import (
    asked,
    case_outcome,
    case_record,
    observed,
    scenario_outcome,
    story,
    suite_record,
)
from collectors.scenario import Answer, Played
from collectors.scorers import judge
from collectors.suite import (
    Amend,
    Expectation,
    Forget,
    ForgetUser,
    Memory,
    Plant,
    Probe,
    Reopen,
    Scenario,
    Session,
    Suite,
)
from store.columns import to_json

AT = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
MEMORY = Memory("c/m", "The gate opens at nine.", "assistant", AT, "rosa", "yard", "s1", {"tries": [1, 2]})
STEPS = (
    Plant((MEMORY, Memory("c/w2", "plain"))), Session("s1"), Amend("c/m", "at ten"), Reopen(),
    Forget(("c/w2",)), ForgetUser("tomas"),
)  # fmt: skip
EXPECTATIONS = (
    Expectation("any", ("nine", "ten")),
    Expectation("all", ("gate",), ("c/m",)),
    Expectation("unwanted", ("eight",), ("c/w2",)),
    Expectation("unwanted_first", ("hedge",)),
    Expectation("only", ids=("c/m",)),
    Expectation("at_most", n=0),
    Expectation("exactly", n=2, section="facts"),
)
PROBE = Probe(
    "c", "When does it open?", EXPECTATIONS, 3, "rosa", ("yard", "home"), "s1", leg="keyword", abstain=True,
    critical=True, cluster="gates", tags=("recall", "times"), source="a report", hash="abc",
    background="4 memories of world garden", story=STEPS,
)  # fmt: skip


# Suites and cases


def test_a_case_is_recorded_with_all_that_is_said_of_it():
    """Name, hash, question, k, tags, critical, cluster and source stand in columns of their own."""
    record = case_record(PROBE)
    assert (record.name, record.hash, record.query, record.k) == ("c", "abc", "When does it open?", 3)
    assert (record.tags, record.critical, record.cluster) == (("recall", "times"), True, "gates")
    assert (record.source, record.story) == ("a report", story(PROBE))


def test_a_suite_is_recorded_with_its_cases():
    """Name, kind, origin, version, what it plants, its cases in order, and its owner."""
    suite = Suite(
        "s", "golden", (Scenario("one", (*STEPS, PROBE, replace(PROBE, case="d"))),), "starter", "p"
    )
    record = suite_record(suite, "search-team")
    assert (record.name, record.kind, record.origin, record.owner) == (
        "s",
        "golden",
        "starter",
        "search-team",
    )
    assert (record.version, record.plants) == (suite.version, 2)
    assert [case.name for case in record.cases] == ["c", "d"]


# Stories


def test_a_story_reads_as_the_case_was_written():
    """Every step, and of a memory all that it says, in the words of the format."""
    assert story(PROBE)["steps"] == [
        {
            "plant": [
                {
                    "id": "c/m",
                    "text": "The gate opens at nine.",
                    "role": "assistant",
                    "at": "2026-03-04T09:30:00+00:00",
                    "user": "rosa",
                    "domain": "yard",
                    "session": "s1",
                    "metadata": {"tries": [1, 2]},
                },
                {"id": "c/w2", "text": "plain", "role": "user", "user": "user"},
            ]
        },
        {"session": "s1"},
        {"amend": "c/m", "text": "at ten"},
        {"reopen": True},
        {"forget": ["c/w2"]},
        {"forget_user": "tomas"},
    ]


def test_a_story_tells_the_question():
    """Who asks what, where, how deep and through which index, and among what it was asked."""
    told = story(PROBE)
    told.pop("steps")
    told.pop("expectations")
    assert told == {
        "background": "4 memories of world garden",
        "query": "When does it open?",
        "k": 3,
        "user": "rosa",
        "domains": ["yard", "home"],
        "session": "s1",
        "leg": "keyword",
        "abstain": True,
    }


def test_a_story_comes_back_as_the_question():
    """Through JSON and back, the question has all that scoring reads: expectations, k and abstain."""
    back = asked("c", json.loads(to_json(story(PROBE))))
    assert back.expectations == EXPECTATIONS
    assert (back.case, back.query, back.k, back.user, back.abstain) == ("c", PROBE.query, 3, "rosa", True)


PATTERNS = st.lists(st.sampled_from(["red", "blue", "r.d", "old"]), max_size=2).map(tuple)
IDS = st.lists(st.sampled_from(["m1", "m2", "m3"]), max_size=2).map(tuple)
PROBES = st.builds(
    Probe,
    case=st.just("c"),
    query=st.just("q"),
    k=st.integers(1, 4),
    abstain=st.booleans(),
    expectations=st.lists(
        st.builds(Expectation, st.sampled_from(["any", "unwanted_first"]), PATTERNS)
        | st.builds(Expectation, st.sampled_from(["all", "unwanted"]), PATTERNS, IDS)
        | st.builds(Expectation, st.just("only"), ids=IDS)
        | st.builds(Expectation, st.sampled_from(["at_most", "exactly"]), n=st.integers(0, 4)),
        max_size=4,
    ).map(tuple),
)
HITS = st.lists(
    st.builds(
        Hit,
        id=st.sampled_from(["m1", "m2", "m3", ""]),
        text=st.sampled_from(["red", "blue", "old red", ""]),
        score=st.none() | st.floats(-1, 1),
        metadata=st.dictionaries(st.sampled_from("ab"), st.integers() | st.none() | st.text(max_size=3)),
    ),
    max_size=5,
).map(tuple)


@given(PROBES, HITS, st.none() | st.text(max_size=5))
def test_a_stored_answer_is_scored_as_it_was(probe: Probe, hits: tuple[Hit, ...], reply: str | None):
    """Judging the stored question and the stored answer gives the scores that were given at once."""
    seen = Observation(hits, reply, 3.0)
    evidence, scores = judge(probe, seen)
    outcome = case_outcome(Answer(probe, seen, evidence, scores), 1)
    question = asked("c", json.loads(to_json(story(probe))))
    answer = observed(json.loads(to_json(outcome.detail)))
    assert judge(question, answer)[1] == scores
    assert [(hit.id, hit.text) for hit in answer.hits] == [(hit.id, hit.text) for hit in hits]


# Results


def _answer(*hits: Hit, probe: Probe = PROBE, **fields: Any) -> Answer:
    seen = Observation(hits, **fields)
    return Answer(probe, seen, *judge(probe, seen))


def _detail(answer: Answer) -> dict[str, Any]:
    """As it comes back from the record."""
    return json.loads(to_json(case_outcome(answer, 1).detail))


def test_an_answer_is_recorded():
    """Status, times, attempts, how many came back, scores and the kind of its failure."""
    answer = _answer(Hit("c/m", "nine"), latency_ms=12.5, attempts=2)._replace(failure="not returned")
    outcome = case_outcome(answer, 3)
    assert (outcome.case, outcome.trial, outcome.status, outcome.failure) == ("c", 3, "ok", "not returned")
    assert (outcome.latency_ms, outcome.attempts, outcome.returned_n) == (12.5, 2, 1)
    assert outcome.scores == answer.scores


@pytest.mark.parametrize(("field", "status"), [("error", "error"), ("skipped", "skipped")])
def test_what_was_not_answered_has_no_number(field: str, status: str):
    """An error and a skipped case have neither scores nor a count; why stands in the detail."""
    outcome = case_outcome(Answer(PROBE, Observation(attempts=3, **{field: "the reason"})), 1)
    assert (outcome.status, outcome.returned_n, outcome.latency_ms, outcome.scores) == (
        status,
        None,
        None,
        {},
    )
    assert outcome.detail == {"hits": [], field: "the reason"}


def test_an_answer_that_could_not_be_judged_keeps_its_hits():
    """A pattern without end makes an error; what came back is kept all the same."""
    late = Observation((Hit("m", "text"),), latency_ms=2.0, error="pattern took over 1 s")
    outcome = case_outcome(Answer(PROBE, late, failure="judge error"), 1)
    assert (outcome.status, outcome.returned_n, outcome.failure) == ("error", None, "judge error")
    assert outcome.detail["hits"] == [{"id": "m", "text": "text"}]


def test_hits_are_marked_as_wanted_and_unwanted():
    """The detail says which hits matched what; a hit that must not come first is unwanted there alone."""
    probe = Probe("c", "q", (Expectation("any", ("nine",)), *EXPECTATIONS[2:4]))
    hits = [Hit("1", "hedge"), Hit("2", "nine"), Hit("3", "eight or nine"), Hit("4", "hedge")]
    marks = [(hit.get("wanted"), hit.get("unwanted")) for hit in _detail(_answer(*hits, probe=probe))["hits"]]
    assert marks == [(None, True), (True, None), (True, True), (None, None)]


def test_an_empty_answer_is_told_from_none():
    """Nothing came back is an empty list in the record, not a missing one."""
    assert _detail(_answer()) == {"hits": []}


def test_a_second_answer_is_kept_where_it_was_another():
    """What came back the second time is stored, and read again for another scorer."""
    again = (Hit("b", "two", 0.5), Hit("a", "one"))
    told = _detail(_answer(Hit("a", "one"), Hit("b", "two", 0.5), again=again))
    assert observed(told).again == again
    assert observed(_detail(_answer(Hit("a", "one")))).again is None


def test_the_detail_tells_reply_usage_and_diagnosis():
    """What was said, what it cost, and what asking again found."""
    answer = _answer(reply="At nine.", usage=Usage(calls=2, money=0.5))
    found = Diagnosis(
        {"keyword": 4, "vector": None},
        {"keyword": 7},
        9,
        None,
        {"c/m": False},
        5,
        1.5,
        usage=Usage(money=0.25),
    )
    assert _detail(answer._replace(diagnosis=found)) == {
        "hits": [],
        "reply": "At nine.",
        "usage": {"calls": 2, "money": 0.5},
        "diagnosis": {
            "legs": {"keyword": 4, "vector": None},
            "counts": {"keyword": 7},
            "planted": 9,
            "deep_rank": None,
            "stored": {"c/m": False},
            "calls": 5,
            "ms": 1.5,
            "error": None,
            "usage": {"money": 0.25},
            "changed": {},
            "own": {},
            "alone": {},
        },
    }


class Odd:
    def __str__(self) -> str:
        return "an odd one"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ("half \ud83d", "half \ufffd"),
        (Odd(), "an odd one"),
        (AT, "2026-03-04 09:30:00+00:00"),
        ([1, "\ud83d"], [1, "\ufffd"]),
        ({"tags": ("a", {7: AT})}, {"tags": ["a", {"7": "2026-03-04 09:30:00+00:00"}]}),
        (True, True),
        (7, 7),
        (0.25, 0.25),
        (None, None),
        ("plain ü", "plain ü"),
    ],
)
def test_metadata_can_always_be_kept(value: Any, kept: Any):
    """Whatever an adapter puts into a hit's metadata becomes JSON in UTF-8, numbers and texts as they are."""
    (hit,) = _detail(_answer(Hit("m", "t", metadata={"key": value, 5: "n", "\ud83d": 1})))["hits"]
    assert hit["metadata"] == {"key": kept, "5": "n", "\ufffd": 1}


def test_metadata_without_end_is_cut():
    """A structure that holds itself is kept some levels deep."""
    endless: dict[str, Any] = {}
    endless["again"] = endless
    (hit,) = _detail(_answer(Hit("m", "t", metadata=endless)))["hits"]
    assert str(hit["metadata"]).count("again") < 20


def test_hits_can_always_be_kept():
    """Half surrogate pairs in ids, texts and replies, and numbers of numpy's, do not stop a run."""
    answer = _answer(Hit("m\ud83d", "t\ud83d", np.float32(0.5)), reply="r\ud83d")
    detail = _detail(answer)
    assert detail["hits"][0] | {"unwanted": None} == {
        "id": "m\ufffd", "text": "t\ufffd", "score": 0.5, "unwanted": None,
    }  # fmt: skip
    assert detail["reply"] == "r\ufffd"


def test_a_scenario_is_recorded_whole():
    """Planting, settling and cost of the scenario, with the asking in its money, and its answers in order."""
    played = Played([_answer(), _answer()], 7, 20.0, 3.0, Usage(4, 100, 1.0), Usage(money=0.75), attempts=2)
    outcome = scenario_outcome("one", 2, played)
    assert (outcome.scenario, outcome.trial, outcome.status, outcome.error) == ("one", 2, "ok", None)
    assert (outcome.plants, outcome.plant_ms, outcome.settle_ms, outcome.attempts) == (7, 20.0, 3.0, 2)
    assert (outcome.ingest_calls, outcome.ingest_tokens, outcome.money) == (4, 100, 1.75)
    assert [(case.case, case.trial) for case in outcome.cases] == [("c", 2), ("c", 2)]


@pytest.mark.parametrize(
    ("error", "settle_error", "left", "status", "told"),
    [
        ("gone", None, None, "error", "gone"),
        ("gone", "late", "box left", "error", "gone; box left"),
        (None, "did not settle", None, "ok", "did not settle"),
        (None, None, "box left", "ok", "box left"),
    ],
)
def test_a_scenario_says_what_went_wrong(
    error: str | None, settle_error: str | None, left: str | None, status: str, told: str
):
    """A scenario that broke off is an error; one that did not settle was asked all the same, and says so."""
    outcome = scenario_outcome("one", 1, Played(error=error, settle_error=settle_error, left=left))
    assert (outcome.status, outcome.error) == (status, told)
