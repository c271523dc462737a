"""Why a case was lost: each kind from an answer, a history and a diagnosis made for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.backend import Hit
from collectors.failures import KINDS, Diagnosis, answers, failure_kind
from collectors.history import History
from collectors.scorers import Want, examine, holds
from collectors.suite import Amend, Expectation, Forget, Memory, Plant, Probe, Session, Step

MARCH, APRIL = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
NEW = Memory("new", "The gate opens at nine.", at=APRIL, user="rosa", domain="yard", session="s1")
OLD = Memory("old", "The gate opens at eight.", at=MARCH, user="rosa", domain="yard", session="s1")
HERS = Memory("hers", "My locker is 17.", user="rosa", domain="home", session="s2")
HIS = Memory("his", "My locker is 71.", user="tomas", domain="yard", session="s1")
OTHER = Memory("other", "The hedge is cut in June.", user="rosa")
MEMORIES = (NEW, OLD, HERS, HIS, OTHER)

NINE = Expectation("any", ("nine",))
LOCKER = Expectation("unwanted", ("locker",))
NOT_FIRST = Expectation("unwanted_first", ("eight", "71"))

LEAKED = "leaked from another scope or user"
BLED = "bled into a new session"
TOO_LOW = "returned but too low"


def _after(*steps: Step) -> History:
    history = History()
    for step in (Plant(MEMORIES), *steps):
        history.follow(step)
    return history


def _probe(*expectations: Expectation, k: int = 2, **fields: object) -> Probe:
    return replace(Probe("case", "query", expectations, k=k, user="rosa"), **fields)


def _kind(
    probe: Probe, *back: Memory | str, history: History | None = None, diagnosis: Diagnosis | None = None
) -> str | None:
    """The kind when these memories, or hits of these texts without a planted id, came back."""
    hits = tuple(
        Hit(found.id, found.text) if isinstance(found, Memory) else Hit(f"h{rank}", found)
        for rank, found in enumerate(back)
    )
    return failure_kind(probe, examine(probe, hits), history or _after(), diagnosis)


def test_a_case_that_passed_has_no_kind():
    """None, also beside a hit that would have been a leak had it been forbidden."""
    assert _kind(_probe(NINE), HIS, NEW) is None


# What came back and should not have


@pytest.mark.parametrize("returned", [HERS, "My locker is 17."])
def test_forgotten_yet_returned(returned: Memory | str):
    """A memory that was forgotten came back, under its id or in its words."""
    assert _kind(_probe(LOCKER), returned, history=_after(Forget(("hers",)))) == "forgotten yet returned"


def test_forgotten_and_first():
    """What must not come first and was forgotten is no stale fact: it should not be there at all."""
    forgotten = _after(Forget(("old",)))
    assert _kind(_probe(NOT_FIRST, NINE), OLD, NEW, history=forgotten) == "forgotten yet returned"


@pytest.mark.parametrize("returned", [HIS, "My locker is 71."])
@pytest.mark.parametrize("expectation", [LOCKER, NOT_FIRST, Expectation("only", ids=("new",))])
def test_leaked_from_another_user(expectation: Expectation, returned: Memory | str):
    """Another user's memory came back, whichever expectation noticed."""
    assert _kind(_probe(expectation), returned) == LEAKED


def test_a_text_that_the_questioner_has_too_is_no_leak():
    """What another user holds in the same words may be the questioner's own."""
    mine = replace(HIS, id="mine", user="rosa")
    history = _after(Plant((mine,)))
    assert _kind(_probe(LOCKER), HIS.text, history=history) == "unwanted returned"


def test_leaked_from_another_domain():
    """A question with domains got a memory of another one."""
    assert _kind(_probe(LOCKER, domains=("yard",)), HERS) == LEAKED
    assert _kind(_probe(LOCKER, domains=("yard", "home")), HERS) == "unwanted returned"


def test_leaked_from_another_session():
    """A question within a session, its own or that of the last step, got a memory of another one."""
    unwanted = "unwanted returned"
    assert _kind(_probe(LOCKER, session="s1"), HERS) == BLED
    assert _kind(_probe(LOCKER, session="s2"), HERS) == unwanted
    assert _kind(_probe(LOCKER), HERS, history=_after(Session("s1"))) == BLED
    assert _kind(_probe(LOCKER, session="s2"), HERS, history=_after(Session("s1"))) == unwanted
    assert _kind(_probe(LOCKER, all_sessions=True), HERS, history=_after(Session("s1"))) == unwanted


def test_a_memory_planted_after_a_session_step_is_of_that_session():
    """It is no leak when a question within that session finds it, and one when another does."""
    late = Memory("late", "My locker is 99.", user="rosa")
    history = _after(Session("s9"), Plant((late,)))
    assert _kind(_probe(LOCKER, session="s9"), late, history=history) == "unwanted returned"
    assert _kind(_probe(LOCKER, session="s1"), late, history=history) == BLED


def test_stale_fact_first():
    """What must not come first did, and it was the questioner's own."""
    assert _kind(_probe(NINE, NOT_FIRST), OLD, NEW) == "stale fact first"


def test_unwanted_returned():
    """Something forbidden came back that is neither forgotten nor another's."""
    assert _kind(_probe(LOCKER), OTHER, HERS) == "unwanted returned"
    assert _kind(_probe(LOCKER), "The locker room is locked.") == "unwanted returned"
    only = Expectation("only", ids=("new",))
    assert _kind(_probe(only), NEW, OTHER) == "unwanted returned"
    assert _kind(_probe(only, k=1), NEW, OTHER) == "unwanted returned"


def test_what_came_back_outranks_what_is_missing():
    """A leak explains the loss when the answer is missing too; of two, the one that ranks first does."""
    assert _kind(_probe(NINE, LOCKER), HIS, OTHER) == LEAKED
    history = _after(Forget(("hers",)))
    assert _kind(_probe(NINE, LOCKER), HERS, HIS, history=history) == "forgotten yet returned"


def test_below_k_nothing_came_back():
    """What is forbidden and stands below k did no harm: the kind is that of what is missing."""
    assert _kind(_probe(NINE, LOCKER), OTHER, OLD, HIS) == "not returned"


# What is missing


def test_returned_but_too_low():
    """The answer is among the hits, below k; or a deep recall found it."""
    assert _kind(_probe(NINE), OTHER, OLD, NEW) == TOO_LOW
    deep = Diagnosis(deep_rank=31, stored={"new": True})
    assert _kind(_probe(NINE), OTHER, OLD, diagnosis=deep) == TOO_LOW


def test_one_of_two_too_low():
    """When one thing wanted was found and the other stands below k, it is too low, not absent."""
    both = _probe(Expectation("all", ("nine", "hedge")))
    assert _kind(both, NEW, OLD, OTHER, diagnosis=Diagnosis(deep_rank=1)) == TOO_LOW
    assert _kind(both, OLD, HERS, OTHER, diagnosis=Diagnosis(deep_rank=3)) == TOO_LOW


@pytest.mark.parametrize("diagnosis", [None, Diagnosis(deep_rank=None, error="timed out"), Diagnosis()])
def test_not_returned(diagnosis: Diagnosis | None):
    """Without a diagnosis, or with one that failed or found nothing to ask for, no more is known."""
    assert _kind(_probe(NINE), OTHER, diagnosis=diagnosis) == "not returned"


def test_not_stored():
    """Not even the memory's own text returns it."""
    assert _kind(_probe(NINE), OTHER, diagnosis=Diagnosis(stored={"new": False})) == "not stored"


def test_stored_but_not_returned():
    """Its own text returns it, the question does not, however deep."""
    found = Diagnosis(stored={"new": True})
    assert _kind(_probe(NINE), OTHER, diagnosis=found) == "stored but not returned"
    twice = Expectation("any", ("opens",))
    one_of_two = Diagnosis(stored={"new": False, "old": True})
    assert _kind(_probe(twice), OTHER, diagnosis=one_of_two) == "stored but not returned"


def test_a_memory_that_was_found_says_nothing_of_one_that_is_missing():
    """With one of two answers in the first k, the kind is that of the other one."""
    both = _probe(Expectation("all", ("nine", "hedge")))
    lost = Diagnosis(deep_rank=1, stored={"new": True, "other": False})
    assert _kind(both, NEW, OLD, diagnosis=lost) == "not stored"
    kept = lost._replace(stored={"new": True, "other": True})
    assert _kind(both, NEW, OLD, diagnosis=kept) == "stored but not returned"


# How many came back


@pytest.mark.parametrize("kind", ["at_most", "exactly"])
def test_limit_not_honoured(kind: str):
    """More came back than k asked for, where the number counts."""
    limit = Expectation(kind, n=2)  # type: ignore[arg-type]
    assert _kind(_probe(limit, k=2), NEW, OLD, OTHER) == "limit not honoured"


def test_too_many_within_k():
    """The backend honoured k, and still gave more than the case allows."""
    assert _kind(_probe(Expectation("at_most", n=1), k=2), NEW, OLD) == "unwanted returned"


def test_too_few():
    """Fewer hits than there should be exactly are hits that are missing."""
    assert _kind(_probe(Expectation("exactly", n=2)), NEW) == "not returned"


# Answers


def test_answers_are_the_memories_that_hold_them_now():
    """For each want the memories held that meet it, as they read now, and none that was forgotten."""
    probe = _probe(Expectation("any", ("nine", "ten")), Expectation("all", ids=("old", "gone")))
    history = _after(Amend("other", "The hedge is cut at ten."), Forget(("new",)))
    found = {want: [memory.id for memory in held] for want, held in answers(probe, history).items()}
    assert found == {Want(("nine", "ten")): ["other"], Want(id="old"): ["old"], Want(id="gone"): []}


EXPECTATIONS = [
    NINE, LOCKER, NOT_FIRST, Expectation("all", ("nine", "hedge")), Expectation("only", ids=("new",)),
    Expectation("at_most", n=1), Expectation("exactly", n=2),
]  # fmt: skip
DIAGNOSES = st.none() | st.builds(
    Diagnosis,
    deep_rank=st.none() | st.integers(1, 100),
    stored=st.dictionaries(st.sampled_from([memory.id for memory in MEMORIES]), st.booleans()),
    error=st.none() | st.just("timed out"),
)


@given(
    st.lists(st.sampled_from(EXPECTATIONS), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from([*MEMORIES, "The hare is in the hedge."]), max_size=5),
    st.sets(st.sampled_from([memory.id for memory in MEMORIES])),
    DIAGNOSES,
)
def test_every_loss_has_a_known_kind(
    expectations: list[Expectation],
    back: list[Memory | str],
    forgotten: set[str],
    diagnosis: Diagnosis | None,
):
    """A case has a kind exactly when something it expects does not hold, and the kind is one we know."""
    probe, history = _probe(*expectations), _after(Forget(tuple(sorted(forgotten))))
    hits = tuple(Hit(m.id, m.text) if isinstance(m, Memory) else Hit("h", m) for m in back)
    evidence = examine(probe, hits)
    passed = all(holds(probe, evidence, expectation) for expectation in expectations)
    kind = failure_kind(probe, evidence, history, diagnosis)
    assert kind is None if passed else kind in KINDS
