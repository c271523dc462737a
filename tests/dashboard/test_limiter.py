"""How often someone may call, by a clock that the test moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dashboard.limiter import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_and_then_a_pace() -> None:
    """After the burst each call waits for its share of time, and a call that was refused costs none."""
    clock = Clock()
    limit = RateLimit(burst=2, per_second=0.5, clock=clock)
    assert [limit.wait("a") for _ in range(4)] == [0.0, 0.0, 2.0, 2.0]
    clock.now += 1.5
    assert limit.wait("a") == 0.5
    clock.now += 0.5
    assert [limit.wait("a"), limit.wait("a")] == [0.0, 2.0]


def test_what_is_not_used_is_saved_up_to_the_burst() -> None:
    """A long silence gives back the burst, and no more."""
    clock = Clock()
    limit = RateLimit(burst=2, per_second=1.0, clock=clock)
    for _ in range(2):
        limit.wait("a")
    clock.now += 1e6
    assert [limit.wait("a") for _ in range(3)] == [0.0, 0.0, 1.0]


def test_callers_do_not_share() -> None:
    """Who calls too often holds up nobody else."""
    limit = RateLimit(burst=1, clock=Clock())
    assert [limit.wait("a"), limit.wait("a"), limit.wait("b")] == [0.0, 1.0, 0.0]


def test_callers_are_forgotten_in_the_order_in_which_they_last_called() -> None:
    """Memory is bounded: beyond `most` callers the one that was silent longest starts anew."""
    limit = RateLimit(burst=1, clock=Clock(), most=2)
    for caller in ("a", "b", "a", "c"):
        limit.wait(caller)
    assert [limit.wait("a"), limit.wait("c"), limit.wait("b")] == [1.0, 1.0, 0.0]


@given(st.lists(st.floats(0, 5), max_size=60))
def test_no_more_is_let_through_than_promised(pauses: list[float]) -> None:
    """In any time there are at most the burst and what the time has given since."""
    clock = Clock()
    limit = RateLimit(burst=3, per_second=0.7, clock=clock)
    passed = 0
    for pause in pauses:
        clock.now += pause
        passed += limit.wait("a") == 0.0
    assert passed <= 3 + 0.7 * sum(pauses) + 1e-6
