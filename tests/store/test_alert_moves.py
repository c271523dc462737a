"""The life of alerts, whatever runs show and people do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from store.alert_kinds import KINDS
from store.alert_life import STANDING_STATES, Incident, NotPossible, Turned, acknowledge, close, judge, mute
from store.sightings import STANDINGS, Key, Sighting
from tests.store.alert_history import LEAKED, START, History

KEYS = st.builds(
    Key,
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(["golden", "own"]),
    st.sampled_from(["mem0", "zep"]),
    st.sampled_from(["", "pass"]),
)
SIGHTINGS = st.builds(
    Sighting, KEYS, st.sampled_from(STANDINGS), st.sampled_from([0.0, 0.1, 0.13, 0.5]),
    content=st.just(LEAKED | {"now": 0.81}),
)  # fmt: skip
NIGHTS = st.lists(
    st.tuples(
        st.lists(SIGHTINGS, max_size=5, unique_by=lambda seen: seen.key),
        st.booleans(),
        st.sampled_from(["", "x"]),
    ),
    max_size=7,
)
ACTS: Sequence[Callable[[Incident], Turned]] = (
    lambda it: acknowledge(it, "ann"),
    lambda it: close(it, "resolved", "ann", "why"),
    lambda it: close(it, "intended", "ann", "why"),
    lambda it: mute(it, START + timedelta(days=99), START, "ann"),
    lambda it: judge(it, "real", "ann"),
)
MOVES = {
    "suspicion": {"suspicion", "suspected", "open", "died", "resolved", "intended"},
    "suspected": {"suspected", "suspicion", "open", "died", "resolved", "intended"},
    "open": {"open", "acknowledged", "resolved", "retracted", "intended"},
    "acknowledged": {"acknowledged", "open", "resolved", "retracted", "intended"},
}


def played(nights: Any, *, reverse: bool = False) -> History:
    history = History()
    for seen, shared, suspect in nights:
        history.sees(*(reversed(seen) if reverse else seen), shared=shared, suspect=suspect)
    return history


@settings(max_examples=60, deadline=None)
@given(NIGHTS)
def test_the_order_of_sightings_changes_nothing(nights: Any) -> None:
    """However the sightings of a run come, they come to the same alerts and the same steps."""
    forward, backward = played(nights), played(nights, reverse=True)
    assert forward.alerts == backward.alerts
    assert forward.steps == backward.steps


@settings(max_examples=60, deadline=None)
@given(NIGHTS, st.lists(st.tuples(st.integers(0, 6), st.integers(0, len(ACTS) - 1)), max_size=4))
def test_no_state_is_left_by_an_impossible_move(nights: Any, acts: Any) -> None:
    """Whatever runs show and people do: states follow each other as they may, what is over has nothing open
    and never turns again, and of a series and kind one signal at most is open."""
    history, before = History(), dict[int, Incident]()
    for number, (seen, shared, suspect) in enumerate(nights):
        history.sees(*seen, shared=shared, suspect=suspect)
        for _, act in [it for it in acts if it[0] == number and history.alerts]:
            with suppress(NotPossible):
                history.keep([ACTS[act](history.alerts[-1])])
            check(history, before)
        check(history, before)


def check(history: History, before: dict[int, Incident]) -> None:
    open_keys = [signal.key for it in history.alerts for signal in it.standing]
    assert len(open_keys) == len(set(open_keys))
    for it in history.alerts:
        assert it.id is not None
        assert bool(it.standing) == (it.state in STANDING_STATES)
        assert (it.told_at is not None) or it.state not in ("open", "acknowledged", "retracted")
        was = before.get(it.id)
        if was is not None and was.state not in STANDING_STATES:
            assert it._replace(judged=None) == was._replace(judged=None)
        elif was is not None:
            assert it.state in MOVES[was.state]
        before[it.id] = it
