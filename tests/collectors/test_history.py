"""What a backend ought to hold at one moment of a scenario."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from collectors.history import History
from collectors.suite import (
    Amend,
    Expectation,
    Forget,
    ForgetUser,
    Memory,
    Plant,
    Probe,
    Reopen,
    Session,
    Step,
)

A, B, C = Memory("a", "one", user="rosa"), Memory("b", "two", user="tomas"), Memory("c", "three", user="rosa")


def _after(*steps: Step) -> History:
    history = History()
    for step in steps:
        history.follow(step)
    return history


def test_what_was_planted_is_held_in_order():
    """Memories are held by id, in planting order, over all plants."""
    assert list(_after(Plant((B,)), Plant((A, C))).held.values()) == [B, A, C]


def test_an_amend_changes_the_text_alone():
    """The amended memory keeps all else and its place; how it read before is kept beside."""
    history = _after(Plant((A, B)), Amend("a", "new"))
    assert list(history.held.values()) == [replace(A, text="new"), B]
    assert history.replaced == {"a": A}


def test_what_was_forgotten_is_held_no_more():
    """Forgotten memories move over, as they last read; ids that are not held change nothing."""
    history = _after(Plant((A, B)), Amend("a", "new"), Forget(("a", "a", "x")))
    assert history.held == {"b": B}
    assert history.forgotten == {"a": replace(A, text="new")}


def test_forgetting_a_user_takes_that_users_memories_only():
    """Everything of the user goes, nothing of another."""
    history = _after(Plant((A, B, C)), ForgetUser("rosa"))
    assert (list(history.held), list(history.forgotten)) == (["b"], ["a", "c"])


def test_a_memory_is_planted_in_the_session_in_force():
    """After a Session step memories without a session of their own belong to it; earlier ones do not."""
    mine = replace(C, session="own")
    history = _after(Plant((A,)), Session("s1"), Plant((B, mine)))
    assert history.session == "s1"
    assert [memory.session for memory in history.held.values()] == [None, "s1", "own"]


def test_asking_and_reopening_change_nothing():
    """Probes and reopenings leave what is held alone, and so does amending what is not held; what was there
    when the store was reopened is known."""
    before = _after(Plant((A,)))
    after = _after(Plant((A,)), Reopen(), Probe("p", "q", (Expectation("any", ("x",)),)), Amend("x", "y"))
    assert replace(after, reopened=frozenset()) == before
    assert after.reopened == {"a"}


STEPS = st.one_of(
    st.lists(st.sampled_from([A, B, C]), max_size=3).map(lambda found: Plant(tuple(found))),
    st.builds(Amend, st.sampled_from("abcx"), st.sampled_from(["new", "newer"])),
    st.lists(st.sampled_from("abcx"), max_size=3).map(lambda ids: Forget(tuple(ids))),
    st.builds(ForgetUser, st.sampled_from(["rosa", "tomas", "nobody"])),
    st.builds(Session, st.sampled_from(["s1", "s2"])),
)


@given(st.lists(STEPS, max_size=12))
def test_nothing_planted_is_lost_from_sight(steps: list[Step]):
    """Whatever the steps, each memory planted is held or forgotten, under its own id."""
    history = _after(*steps)
    planted = {memory.id for step in steps if isinstance(step, Plant) for memory in step.memories}
    assert history.held.keys() | history.forgotten.keys() == planted
    assert all(memory.id == id for held in (history.held, history.forgotten) for id, memory in held.items())
