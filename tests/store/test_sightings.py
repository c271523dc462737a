"""What one closed run says of everything that is watched."""

from __future__ import annotations

from typing import Any

import pytest

from store.sightings import ClosedRun, Key, Leg, Measured, Sighting, missed, sightings
from tests.store.told import control, leaking, moved, verdict, worse

PASS = {"pass": Measured(40, 0.8, 0.7, 0.9)}
DEARER = ("returned_tokens", "ingest_tokens", "money")
TIMES = {name: Measured(40, 12.0, 10.0, 14.0) for name in ("recall_ms", *DEARER)}


def seen(**fields: Any) -> dict[tuple[str, str], Sighting]:
    """(kind, subject) -> what is said of it."""
    run = ClosedRun("golden", "mem0", **{"status": "whole", **fields})
    return {(one.key.kind, one.key.subject): one for one in sightings(run)}


def standing(kind: str, subject: str = "", **fields: Any) -> str | None:
    """None where the run says nothing of it."""
    found = seen(**fields).get((kind, subject))
    return found.standing if found else None


@pytest.mark.parametrize(
    ("stage", "expected"), [("suspicion", "suspicion"), ("suspected", "suspected"), ("confirmed", "sure")]
)
@pytest.mark.parametrize(("side", "kind"), [("worse", "regression"), ("better", "improvement")])
def test_a_change_is_as_sure_as_its_looks(stage: str, expected: str, side: str, kind: str) -> None:
    """Each look brings it further, on either side, and the other side is clear meanwhile."""
    told = worse(stage, side=side)
    other = "improvement" if kind == "regression" else "regression"
    assert standing(kind, verdict=told) == expected
    assert standing(other, verdict=told) == "clear"
    assert seen(verdict=told)[kind, ""].depth == pytest.approx(0.1)
    assert seen(verdict=told)[kind, ""].cases == ("a", "b")


def test_nothing_changed_is_clear() -> None:
    """An unchanged run says so of every kind that a verdict can tell, and of nothing unmeasured."""
    found = seen(verdict=verdict(), measured=PASS | TIMES)
    assert {kind for kind, _ in found} == {
        *("failing", "regression", "improvement", "critical", "leak", "slower", "dearer")
    }
    assert {one.standing for one in found.values()} == {"clear"}
    assert standing("slower", "recall_ms", verdict=verdict(), measured=PASS) is None


def test_a_run_of_which_nothing_can_be_told_says_nothing() -> None:
    """The first run of a series, and one without a verdict, neither open an alert nor resolve one."""
    for told in (None, verdict(verdict="cannot_tell", reason="the first run of this series")):
        assert [*seen(verdict=told)] == [("failing", "")]


def test_a_run_behind_its_anchor_is_no_good_run() -> None:
    """Like the last nights, yet worse than what is pinned: neither good nor bad. Only slower is good."""
    behind = verdict(accepted=False)
    assert standing("regression", verdict=behind) is None
    slow = verdict(accepted=False, moved=moved("recall_ms", "suspected"))
    assert standing("regression", verdict=slow) == "clear"


def test_a_control_that_held_settles_it() -> None:
    """A frozen release that did not fall beside it stands for the third look; one that fell does not."""
    assert standing("regression", verdict=worse("suspected", control=control("backend"))) == "sure"
    assert standing("regression", verdict=worse("suspected", control=control("shared"))) == "suspected"
    assert standing("regression", verdict=worse("suspicion", control=control("backend"))) == "suspicion"


def test_a_deterministic_backend_is_sure_at_its_second_look() -> None:
    """Its flips are changes; at the first look the side is that of the cases, whatever the test says."""
    told = worse("suspicion", deterministic=True, lost=(), gained=("a",))
    assert standing("improvement", verdict=told) == "suspicion"
    assert standing("regression", verdict=worse("confirmed", deterministic=True)) == "sure"


def test_a_critical_case_is_told_at_once() -> None:
    """Lost in three of four trials: no third look is waited for. After one trial it is a suspicion."""
    assert standing("critical", verdict=worse("suspected", critical=("a",))) == "sure"
    assert standing("critical", verdict=worse("suspicion", critical=("a",))) == "suspicion"
    assert standing("critical", verdict=worse("suspected")) == "clear"
    assert seen(verdict=worse("suspected", critical=("a", "b")))["critical", ""].depth == 2


def test_a_leak() -> None:
    """It is sure by itself, as deep as the step, while the night is at the lower level; the change test is
    clear then."""
    low = {"pass": Measured(40, 0.8, None, None)}
    assert standing("leak", verdict=leaking(), measured=low) == "sure"
    assert standing("regression", verdict=leaking(), measured=low) == "clear"
    assert seen(verdict=leaking(), measured=low)["leak", ""].depth == pytest.approx(0.1)


def test_a_leak_of_a_step_that_was_mended() -> None:
    """The series shows the step for some nights more; those at the old level are no leak."""
    back = {"pass": Measured(40, 0.9, None, None)}
    assert standing("leak", verdict=leaking(), measured=back) is None
    assert seen(verdict=verdict(), measured=back)["leak", ""].content == {"now": 0.9}


def test_what_the_change_test_sees_is_no_leak_as_well() -> None:
    """One fall is told once, as the step it is, though the series of nights shows it too."""
    told = {**worse(), "leak": leaking()["leak"]}
    assert standing("leak", verdict=told, measured=PASS) is None


@pytest.mark.parametrize(("metric", "kind"), [("recall_ms", "slower"), *((it, "dearer") for it in DEARER)])
def test_slower_and_dearer(metric: str, kind: str) -> None:
    """As sure as the looks at that metric; what got quicker or cheaper is clear."""
    for stage, expected in (("suspicion", "suspicion"), ("suspected", "suspected"), ("confirmed", "sure")):
        assert standing(kind, metric, verdict=verdict(moved=moved(metric, stage)), measured=TIMES) == expected
    better = verdict(moved=moved(metric, "confirmed", -0.5, is_worse=False))
    assert standing(kind, metric, verdict=better, measured=TIMES) == "clear"


@pytest.mark.parametrize(
    ("high", "before", "expected"),
    [(0.89, (), "sure"), (0.95, (), "suspected"), (0.95, ("pass",), "sure"), (None, (), "suspected")],
)
def test_a_bar(high: float | None, before: tuple[str, ...], expected: str) -> None:
    """Broken by the whole interval it is sure; by the mean alone once the run before broke it too."""
    rate = {"pass": Measured(40, 0.85, 0.7, high)}
    given = {"measured": rate, "bars": {"pass": 0.9}, "broken_before": frozenset(before)}
    assert standing("threshold", "pass", **given) == expected
    assert seen(**given)["threshold", "pass"].depth == pytest.approx(0.05)


def test_a_bar_that_is_held() -> None:
    """A bar that the mean keeps is clear; where lower is better it is held from below."""
    bars = {"pass": 0.8, "recall_ms": 20.0}
    assert standing("threshold", "pass", measured=PASS | TIMES, bars=bars) == "clear"
    assert standing("threshold", "recall_ms", measured=TIMES, bars=bars) == "clear"
    assert standing("threshold", "recall_ms", measured=TIMES, bars={"recall_ms": 9.0}) == "sure"
    assert standing("threshold", "pass", measured=TIMES, bars=bars) is None


def test_an_index_that_shrinks() -> None:
    """A leg short of what it should hold by more than the tolerance is sure; by as much it is clear."""
    legs = [Leg("keyword", 98, 100), Leg("vector", 90, 100)]
    found = seen(legs=legs, tolerance=0.05)
    assert found["shrinkage", "keyword"].standing == "clear"
    assert found["shrinkage", "vector"].standing == "sure"
    assert found["shrinkage", "vector"].depth == pytest.approx(0.1)


def test_legs_that_disagree() -> None:
    """Where nobody knows how many there should be, the legs are held against each other."""
    assert standing("shrinkage", legs=[Leg("keyword", 100, None), Leg("vector", 90, None)]) == "sure"
    assert standing("shrinkage", legs=[Leg("keyword", 100, None), Leg("vector", 99, None)]) == "clear"
    assert standing("shrinkage", legs=[Leg("keyword", 100, None)]) is None
    assert standing("shrinkage", legs=[Leg("keyword", 0, None), Leg("vector", 0, None)]) == "clear"


@pytest.mark.parametrize("status", ["void", "invalid"])
def test_a_run_that_says_nothing_is_failing(status: str) -> None:
    """It says so, and nothing else, whatever stands in it."""
    found = seen(status=status, verdict=worse(), measured=PASS, bars={"pass": 0.9}, legs=[Leg("a", 1, 2)])
    assert {key: one.standing for key, one in found.items()} == {("failing", ""): "sure"}


def test_an_interrupted_run_says_nothing() -> None:
    """Somebody stopped it, which says nothing of the backend."""
    assert seen(status="interrupted", verdict=worse()) == {}


def test_missed_schedules() -> None:
    """Each that is late has its times, and is the deeper the more there are; every other one is clear."""
    found = missed({"nightly": ["2026-03-01T03:00Z", "2026-03-02T03:00Z"]}, ["nightly", "hourly"])
    assert [(one.key, one.standing, one.depth) for one in found] == [
        (Key("missed", "", "", "nightly"), "sure", 2.0),
        (Key("missed", "", "", "hourly"), "clear", 0.0),
    ]
    assert found[0].content == {"times": ["2026-03-01T03:00Z", "2026-03-02T03:00Z"]}
