"""Why a memory was not found is told apart by asking again, which moves no result and no time."""

import pytest

from collectors.backend import BackendConfig
from collectors.calls import Instance
from collectors.plans import RunLimits
from collectors.runner import run
from collectors.scenario import CallLimits, play
from store import queries
from tests.collectors.odd_backends import ODD
from tests.collectors.playground import case, cases, plan, results, suite

pytestmark = pytest.mark.usefixtures("no_pauses")
LIMITS = CallLimits(timeout_s=0.4, attempts=2, diagnoses=50)


@pytest.fixture
def diagnosed(tmp_path):
    """Play one case on a backend: its answer."""

    def ask(type="Shelf", limits=LIMITS, writes=(), query="amber key", wanted="needle opens", **options):
        others = [f"amber key number {n} hangs at home" for n in range(8)]
        line = case(
            "amber", query, writes=["the needle opens the amber door", *others, *writes], expect_any=[wanted]
        )
        (scenario,) = suite(tmp_path, [line]).scenarios
        instance = Instance(BackendConfig("mine", ODD + type, options))
        (answer,) = play(instance, scenario, "memtrend-test", limits).answers
        return answer

    return ask


def test_not_stored(diagnosed):
    """A memory that its own words do not bring back was never stored."""
    answer = diagnosed(lost="needle")
    assert answer.failure == "not stored"
    told = answer.diagnosis
    assert (list(told.stored.values()), told.deep_rank) == ([False], None)
    assert told.alone == {"case-amber/w1": "lost"}
    assert (told.planted, told.counts, told.calls) == (9, {"memories": 8}, 7)


def test_not_returned(diagnosed):
    """A memory that a deep recall misses and its own words find is stored, and is not returned."""
    answer = diagnosed(hidden="needle")
    assert answer.failure == "stored but not returned"
    assert (list(answer.diagnosis.stored.values()), answer.diagnosis.deep_rank) == ([True], None)


def test_in_other_words(diagnosed):
    """A memory that an extractor has put into other words is recognised by what was wanted of it."""
    answer = diagnosed("Foggy")
    assert answer.failure == "stored but not returned"
    assert (list(answer.diagnosis.stored.values()), answer.diagnosis.deep_rank) == ([True], None)


def test_too_low(diagnosed):
    """A memory that only a deep recall brings back is returned, but too low."""
    answer = diagnosed(sunk="needle")
    assert answer.failure == "returned but too low"
    assert (list(answer.diagnosis.stored.values()), answer.diagnosis.deep_rank) == ([True], 9)


def test_each_leg(diagnosed):
    """Each index is asked alone, so that the one that lost the memory is known."""
    told = diagnosed("Twolegged", sunk="needle").diagnosis
    assert told.legs == {"words": 9, "vectors": None}
    assert told.counts == {"words": 9, "vectors": 8}
    assert told.own == {"words": "found", "vectors": "missed"}
    assert told.calls == 7


def test_only_what_is_lost(diagnosed):
    """A case that passed is not asked again."""
    answer = diagnosed(query="needle opens")
    assert answer.scores["pass"] == 1.0
    assert (answer.diagnosis, answer.failure) == (None, None)


def test_no_answer_to_it(diagnosed):
    """A diagnosis that fails says so, and the answer stays what it was."""
    answer = diagnosed("FailsWhenDeep", sunk="needle")
    assert (answer.scores["pass"], answer.observation.error) == (0.0, None)
    assert answer.diagnosis.error == "ConnectionError: too much"
    assert answer.failure == "not returned"


def test_hanging(diagnosed):
    """A diagnosis that hangs costs no answer that was given before."""
    answer = diagnosed("HangsWhenDeep", sunk="needle")
    assert (answer.scores["pass"], answer.observation.error) == (0.0, None)
    assert answer.diagnosis.error == "no answer within 0.4 s"


def test_hanging_before_the_next_question(tmp_path):
    """A diagnosis that hangs costs no answer that comes after it, and none is made after it."""
    plants = [{"plant": ["the needle opens the amber door", *(f"amber key number {n}" for n in range(8))]}]
    lost = {"probe": "amber key", "expect_any": ["needle"], "k": 1}
    found = {"probe": "amber key number 3", "expect_any": ["number 3"], "k": 1}
    (scenario,) = suite(tmp_path, [{"id": "told", "steps": [*plants, lost, found, lost]}]).scenarios
    instance = Instance(BackendConfig("mine", ODD + "HangsWhenDeep", {"sunk": "needle"}))
    played = play(instance, scenario, "memtrend-test", LIMITS)
    assert [(one.observation.error, one.scores["pass"]) for one in played.answers] == [
        (None, 0.0), (None, 1.0), (None, 0.0),
    ]  # fmt: skip
    told = [one.diagnosis.error if one.diagnosis else None for one in played.answers]
    assert told == ["no answer within 0.4 s", None, None]
    assert (played.attempts, played.error) == (1, None)


def test_pattern_without_end(diagnosed, monkeypatch):
    """A pattern that cannot judge in time what the diagnosis finds does not unmake the answer."""
    monkeypatch.setattr("collectors.matching.TIME_LIMIT_S", 0.05)
    answer = diagnosed(writes=["sunk " + "a" * 60], wanted=r"(a|aa)+$x", sunk="sunk")
    assert (answer.scores["pass"], answer.observation.error) == (0.0, None)
    assert "simplify" in answer.diagnosis.error
    assert answer.failure == "not returned"


def test_its_time_is_its_own(diagnosed):
    """The calls of a diagnosis are counted and timed apart: latency and attempts are of the question."""
    answer = diagnosed("SlowWhenDeep", lost="needle")
    alone = 4  # reset, remember, settle, recall: was it never stored, or taken away?
    assert (answer.observation.attempts, answer.diagnosis.calls) == (1, 3 + alone)
    assert answer.diagnosis.ms >= 500
    assert answer.observation.latency_ms < answer.diagnosis.ms


# Its number


def diagnoses(db, run_id):
    """Case -> the diagnosis stored with it, of those that have one."""
    rows = queries.run_cases(db, run_id)
    details = {row.case: queries.case_results(db, row.case_id, run_id)[0].detail for row in rows}
    return {name: told["diagnosis"] for name, told in details.items() if "diagnosis" in told}


def test_stored_with_the_case(db, tmp_path):
    """What was learned stands with the case in the record, and the failure has a name."""
    outcome = run(plan(suite(tmp_path, cases(1)), options={"lost": "opens"}), db)
    told = diagnoses(db, outcome.run_id)["case-amber"]
    assert told["stored"] == {"case-amber/w1": False}
    assert results(db, outcome.run_id)["case-amber", 1][2] == "not stored"


@pytest.mark.parametrize("backend", ["Shelf", "Counted"])
@pytest.mark.parametrize("number", [0, 1, 5, 12, 40])
def test_number(db, tmp_path, backend, number):
    """No more lost cases of a run are asked again than it allows, however many scenarios there are."""
    limits = RunLimits(timeout_s=5, max_diagnoses=number)
    outcome = run(plan(suite(tmp_path, cases(12)), backend, limits=limits, options={"lost": "opens"}), db)
    assert outcome.status == "whole"
    assert len(diagnoses(db, outcome.run_id)) == min(number, 12)


def test_shared_out(db, tmp_path):
    """A scenario of many lost cases leaves some diagnoses to the others."""
    large = [
        {"id": "large", "steps": [{"plant": ["nothing of use"]}, *(probe(n) for n in range(20))]},
        *cases(5),
    ]
    limits = RunLimits(timeout_s=5, max_diagnoses=10)
    outcome = run(plan(suite(tmp_path, large), limits=limits, options={"lost": "opens"}), db)
    asked = diagnoses(db, outcome.run_id)
    assert len(asked) == 10
    assert {"case-amber", "case-basil"} <= asked.keys()


def probe(number):
    return {"probe": f"which door is number {number}", "expect_any": ["door opens"], "k": 1}
