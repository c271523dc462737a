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
    """What the case said first, and took back by saying the answer, came first."""
    told = (Plant((OLD,)), Plant((NEW,)))
    assert _kind(_probe(NINE, NOT_FIRST, story=told), OLD, NEW) == "stale fact first"
    assert _kind(_probe(NINE, NOT_FIRST, story=told), OLD, OTHER) == "stale fact first"


@pytest.mark.parametrize("story", [(), (Plant((NEW,)),), (Plant((OLD,)),)])
def test_an_older_memory_of_the_background_is_no_stale_fact(story: tuple[Step, ...]):
    """What the case did not say itself it did not take back either: only the order is wrong, if the answer
    came back at all."""
    assert _kind(_probe(NINE, NOT_FIRST, story=story), OLD, NEW) == TOO_LOW
    assert _kind(_probe(NINE, NOT_FIRST, story=story), OLD, OTHER) == "unwanted returned"
    assert _kind(_probe(NOT_FIRST, story=story), OLD, NEW) == "unwanted returned"


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


# What came back damaged


BORNE = {"role": "user", "at": MARCH.isoformat(), "box": 4}


@pytest.mark.parametrize(
    ("borne", "kind"),
    [
        (BORNE | {"role": "assistant"}, "wrong speaker"),
        (BORNE | {"at": APRIL.isoformat()}, "wrong time"),
        (BORNE | {"box": 5}, "metadata or ids lost"),
        ({"role": "user", "box": 4}, "metadata or ids lost"),
        ({}, "metadata or ids lost"),
        (BORNE | {"at": "2026-03-01T01:00:00+01:00"}, None),
    ],
)
def test_what_stands_beside_a_text(borne: dict[str, object], kind: str | None):
    """Another's words, another time, or less than was planted; the same moment written otherwise is fine."""
    probe = _probe(Expectation("metadata", ids=("old",), values=tuple(BORNE.items())))
    evidence = examine(probe, (Hit("old", OLD.text, metadata=borne),))
    assert failure_kind(probe, evidence, _after()) == kind


def test_a_memory_without_its_id():
    """A memory wanted by its id came back under another one: the id is lost, and the memory is not."""
    by_id = _probe(Expectation("all", ids=("new",)))
    assert _kind(by_id, NEW.text, OLD) == "metadata or ids lost"
    assert _kind(by_id, "The gate is green.") == "not returned"


def test_text_altered():
    """The memory is there under its id, and its text holds the answer no more, now or when asked again."""
    assert _kind(_probe(NINE, NOT_FIRST), OLD, replace(NEW, text="The gate op")) == "text altered"
    again = Diagnosis(stored={"new": True}, changed={"new": {"text": "other"}})
    assert _kind(_probe(NINE), OTHER, diagnosis=again) == "text altered"


def test_superseded_returned():
    """What a memory said before it was amended came back, forbidden or in place of what it says now."""
    amended = _after(Amend("new", "The gate opens at ten."))
    assert _kind(_probe(Expectation("unwanted", ("nine",))), NEW, history=amended) == "superseded returned"
    assert _kind(_probe(Expectation("any", ("ten",))), NEW, history=amended) == "superseded returned"


def test_duplicates():
    """A lost case in which a text came back more often than it was planted, or an id twice."""
    assert _kind(_probe(NINE), OLD, OLD) == "duplicates"
    assert _kind(_probe(NINE), OLD.text, OLD.text) == "duplicates"
    twin = _after(Plant((replace(OLD, id="twin"),)))
    assert _kind(_probe(NINE), OLD, replace(OLD, id="twin"), history=twin) == "not returned"


def test_a_stranger_is_a_leak_where_ids_are_kept():
    """A hit that nobody planted here is of another namespace; without ids the words may be an extractor's."""
    probe = _probe(NINE)
    evidence = examine(probe, (Hit("x9", "The moon is full."), Hit("old", OLD.text)))
    assert failure_kind(probe, evidence, _after(), ids=True) == LEAKED
    assert failure_kind(probe, evidence, _after()) == "not returned"


def test_in_place_of_the_answer_a_leak_is_one_though_nobody_forbade_it():
    """Where the answer is missing, what of others stands among the first k is why."""
    assert _kind(_probe(NINE), HIS) == LEAKED
    assert _kind(_probe(NINE), HERS, history=_after(Forget(("hers",)))) == "forgotten yet returned"
    assert _kind(_probe(Expectation("at_most", n=0), k=2), HIS) == LEAKED


def test_first_by_another_speaker_or_neither():
    """What must not come first did: in another's words, or neither taken back nor another's."""
    said = replace(OLD, role="assistant")
    history = _after(Plant((said,)))
    assert _kind(_probe(NINE, NOT_FIRST), said, NEW, history=history) == "wrong speaker"
    late = replace(OLD, at=datetime(2026, 5, 1, tzinfo=UTC))
    probe = _probe(NINE, NOT_FIRST, story=(Plant((late, NEW)),))
    assert _kind(probe, late, NEW, history=_after(Plant((late,)))) == TOO_LOW


def test_order_unstable():
    """Asked again, the same question got another answer."""
    probe = _probe(Expectation("stable"))
    hits = (Hit("old", OLD.text), Hit("new", NEW.text))
    assert failure_kind(probe, examine(probe, hits)._replace(again=hits[::-1]), _after()) == "order unstable"
    assert failure_kind(probe, examine(probe, hits), _after()) is None


# What the diagnosis found


@pytest.mark.parametrize(
    ("alone", "kind"),
    [({}, "not stored"), ({"new": "lost"}, "not stored"), ({"new": "kept"}, "too much forgotten"),
     ({"new": "reopened"}, "lost on reopen")],
)  # fmt: skip
def test_unstored_or_taken_away(alone: dict[str, str], kind: str):
    """What is not there and is kept when planted alone was taken away, by a write or by reopening."""
    seen = Diagnosis(counts={"all": 4}, planted=5, stored={"new": False}, alone=alone)
    assert _kind(_probe(NINE), OTHER, diagnosis=seen) == kind
    assert _kind(_probe(NINE, NOT_FIRST), OLD, diagnosis=seen) == kind


def test_full_counts_outweigh_an_empty_answer():
    """Where the backend counts all that was planted, what its own words do not bring back is there."""
    seen = Diagnosis(counts={"all": 5}, planted=5, stored={"new": False})
    assert _kind(_probe(NINE), diagnosis=seen) == "stored but not returned"


@pytest.mark.parametrize(
    ("own", "kind"),
    [({"words": "empty", "vectors": "found"}, "leg dead"), ({"words": "missed", "vectors": "found"},
     "leg incomplete"), ({"words": "found", "vectors": "found"}, "stored but not returned")],
)  # fmt: skip
def test_legs(own: dict[str, str], kind: str):
    """An index that its own words find empty is dead, one that finds other things lacks some."""
    seen = Diagnosis(stored={"new": True}, own=own)
    assert _kind(_probe(NINE), OTHER, diagnosis=seen) == kind


def test_dropped_though_a_deeper_question_finds_it_high():
    """What a deep recall ranks within k was not too low: it was dropped."""
    seen = Diagnosis(stored={"new": True}, deep_rank=2)
    assert _kind(_probe(NINE, k=3), OTHER, diagnosis=seen) == "stored but not returned"


@pytest.mark.parametrize(
    ("changed", "kind"),
    [({"role": "other"}, "wrong speaker"), ({"at": "other", "domain": "missing"}, "wrong time"),
     ({"domain": "missing"}, "metadata or ids lost")],
)  # fmt: skip
def test_changed_in_the_store(changed: dict[str, str], kind: str):
    """A memory that only its own words find, without what was planted beside it, is missing for that."""
    seen = Diagnosis(stored={"new": True}, changed={"new": changed})
    assert _kind(_probe(NINE), OTHER, diagnosis=seen) == kind


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
