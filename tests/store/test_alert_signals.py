"""What makes a signal deeper, and what ends it."""

from __future__ import annotations

from typing import Any

import pytest

from store.alert_signals import Signal, begun, deepens, seen_again
from store.sightings import Key, Sighting, Standing
from tests.store.alert_history import REGRESSION, History, sighting
from tests.store.told import moved, verdict, worse

CRITICAL = Key("critical", "golden", "mem0")
SLOWER = Key("slower", "golden", "mem0", "recall_ms")


def failing(standing: Standing, *failed: str, key: Key = REGRESSION, **more: Any) -> Sighting:
    return sighting(standing, key, failed=frozenset(failed), **more)


@pytest.mark.parametrize(
    ("key", "failed", "ends"),
    [
        (REGRESSION, "abc", []),
        (REGRESSION, "ab", []),
        (REGRESSION, "ax", ["resolved"]),
        (CRITICAL, "a", []),
        (CRITICAL, "x", ["resolved"]),
    ],
)
def test_a_night_on_which_the_same_cases_fail_is_no_good_one(key: Key, failed: str, ends: list[str]) -> None:
    """A test that misses a small fall, and a baseline that took bad nights in, resolve nothing: most of the
    lost cases must pass, and of critical ones each."""
    history = History()
    history.sees(failing("sure", *"abc", key=key, cases=("a", "b", "c")))
    assert [history.sees(failing("clear", *failed, key=key)) for _ in range(2)] == [[], ends]


def test_a_night_of_them_between_begins_the_count_anew() -> None:
    """Good, bad though unseen, good: that is not two in a row."""
    history = History()
    history.sees(failing("sure", "a", cases=("a",)))
    for failed, ends in (("x", []), ("a", []), ("x", []), ("x", ["resolved"])):
        assert history.sees(failing("clear", failed)) == ends


@pytest.mark.parametrize(("now", "ends"), [(0.82, []), (0.89, ["resolved"])])
def test_where_a_fall_named_no_case_the_pass_rate_tells(now: float, ends: list[str]) -> None:
    """Everything went down a little: it is over when the rate is nearer to what it was."""
    history = History()
    history.sees(sighting("sure", content=worse(lost=())))
    assert [history.sees(failing("clear", content={"now": now})) for _ in range(2)] == [[], ends]


def test_lost_cases_are_kept_while_they_fail() -> None:
    """A later verdict that names fewer, since its baseline knows some as lost, takes none away; one that
    passes again is lost no more."""
    signal = begun(failing("sure", *"abc", cases=("a", "b", "c")), 1)
    signal = seen_again(signal, failing("sure", *"abd", cases=("d",)), 2, again=False)
    assert signal.cases == ("a", "b", "d")


def test_the_same_cases_go_no_deeper() -> None:
    """However the flaky ones fare beside them: thirty nights of one step are told once. Another case is."""
    history = History()
    history.sees(sighting("sure", cases=("a", "b")))
    for night in range(30):
        assert history.sees(sighting("sure", depth=0.1 + 0.01 * (night % 5), cases=("a",))) == []
    assert history.sees(sighting("sure", depth=0.14, cases=("a", "c"))) == ["grew"]


def test_what_failed_in_a_look_did_fail() -> None:
    """A look that could not be measured is mended by good runs, and taken back by none."""
    down, history = Key("failing", "golden", "mem0"), History()
    history.sees(sighting("clear", down))
    assert history.sees(sighting("sure", down, 1.0), night=1) == ["opened"]
    assert history.sees(sighting("clear", down), night=1) == []
    assert history.sees(sighting("clear", down)) == ["resolved"]


def told(key: Key, depth: float) -> Signal:
    return begun(Sighting(key, "sure", depth), 1)


@pytest.mark.parametrize(("now", "expected"), [(0.3, True), (0.11, False)])
def test_a_fall_that_goes_on_is_suspected_first(now: float, expected: bool) -> None:
    """By more than a step of its kind beyond what was told; be it the pass rate, or a time."""
    assert deepens(told(REGRESSION, 0.1), worse("suspected", now)) is expected
    slower = verdict(moved=moved("recall_ms", "suspected", 2 * now))
    assert deepens(told(SLOWER, 0.2), slower) is expected


def test_what_one_look_shows_does_not_go_on() -> None:
    """Nor what three show, which is told; nor what is another thing."""
    for stage in ("suspicion", "confirmed"):
        assert not deepens(told(REGRESSION, 0.1), worse(stage, 0.3))
    assert not deepens(told(SLOWER, 0.2), worse("suspected", 0.3))
