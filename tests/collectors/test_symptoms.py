"""Two runs of one suite held against each other: what was lost, what else changed, and how that is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from collectors import failures
from collectors.backend import Hit, Observation
from collectors.failures import LEAKED, LIMIT, TOO_LOW, UNRETURNED
from collectors.scenario import Answer, Played
from collectors.suite import Expectation, Probe
from collectors.symptoms import QUERY_IGNORED, SLOW, Seen, seen, symptoms

ONE = Seen(
    suite="golden",
    case="case",
    tags=("recall",),
    critical=False,
    passed=True,
    failure=None,
    query="query",
    k=5,
    place=("golden", "scenario", 5),
    returned=("a", "b", "c", "d", "e"),
    latency_ms=1.0,
    plant_ms=0.1,
    settle_ms=0.0,
    retried=False,
    doubled=False,
    unstable=None,
)


def run(number: int = 20, **fields: Any) -> list[Seen]:
    """So many cases; a list gives each its own value, and is filled up with the usual one."""
    rows = [ONE._replace(case=f"case-{n}", query=f"query {n}", returned=tuple(f"{n}{m}" for m in "abcde"))
            for n in range(number)]  # fmt: skip
    for name, value in fields.items():
        values = value if isinstance(value, list) else [value] * number
        rows[: len(values)] = [row._replace(**{name: one}) for row, one in zip(rows, values, strict=False)]
    return rows


def lost(*kinds: str, critical: bool = False, number: int = 20) -> list[Seen]:
    rows = run(number)
    gone = [
        row._replace(passed=False, failure=kind, critical=critical)
        for row, kind in zip(rows, kinds, strict=False)
    ]
    return [*gone, *rows[len(gone) :]]


HEALTHY = run()


def test_the_same_run_shows_nothing():
    """A backend held against itself has no symptoms."""
    found = symptoms(HEALTHY, run())
    assert (found.lost, found.beyond, found.kind, found.detected) == ((), {}, None, False)


# Detected


@pytest.mark.parametrize(("kinds", "critical", "detected"), [
    ([LEAKED], False, False), ([LEAKED], True, True), ([LEAKED, LEAKED], False, True),
])  # fmt: skip
def test_detected_by_what_is_lost(kinds: list[str], critical: bool, detected: bool):
    """One critical case is enough; of others it takes two."""
    found = symptoms(HEALTHY, lost(*kinds, critical=critical))
    assert (len(found.lost), found.detected) == (len(kinds), detected)


def test_what_was_lost_before_is_not_lost_again():
    """A case that the healthy backend fails tells nothing of a fault, nor does one that is not applicable."""
    assert not symptoms(lost(TOO_LOW, TOO_LOW), lost(LEAKED, LEAKED)).detected
    assert symptoms(HEALTHY, run(passed=[None, None])).lost == ()
    assert symptoms(run(passed=[None, None]), lost(LEAKED, LEAKED)).lost == ()


@pytest.mark.parametrize(("fields", "metric"), [
    ({"latency_ms": 7.0}, "recall_ms"),
    ({"plant_ms": 7.0}, "plant_ms"),
    ({"settle_ms": 7.0}, "settle_ms"),
    ({"retried": [True]}, "first_try_errors"),
    ({"returned": ("a", "b", "c", "d", "e", "f")}, "returned_n"),
    ({"returned": ("a", "b", "c", "d")}, "returned_n"),
    ({"unstable": [True, False]}, "unstable"),
])  # fmt: skip
def test_detected_by_what_changed(fields: dict[str, Any], metric: str):
    """Latency, first-try errors, number of hits or steadiness beyond the smallest change that matters."""
    found = symptoms(HEALTHY, run(**fields))
    assert list(found.beyond) == [metric]
    assert found.detected


@pytest.mark.parametrize("fields", [
    {"latency_ms": 5.9}, {"latency_ms": 0.2}, {"returned": [tuple("abcdef")] * 9}, {"unstable": [False] * 4},
])  # fmt: skip
def test_not_detected_by_less(fields: dict[str, Any]):
    """What a busy machine does to a latency of a millisecond, or half a hit more, is no symptom."""
    assert not symptoms(HEALTHY, run(**fields)).detected


def test_latency_is_compared_as_a_share_where_calls_are_slow():
    """Of a second, 100 ms more are within the smallest change, and 300 ms are not."""
    slow = run(latency_ms=1000.0)
    assert not symptoms(slow, run(latency_ms=1100.0)).detected
    assert symptoms(slow, run(latency_ms=1300.0)).detected


def test_tags_of_the_lost():
    """The tags of the lost cases, the most frequent first."""
    rows = lost(LEAKED, LEAKED, LEAKED)
    rows[0], rows[1] = rows[0]._replace(tags=("domain", "recall")), rows[1]._replace(tags=("recall",))
    assert symptoms(HEALTHY, rows).tags == ["recall", "domain"]


# The kind


@pytest.mark.parametrize(("kinds", "kind"), [
    ([LEAKED, LEAKED, TOO_LOW], LEAKED),
    ([LEAKED, *[TOO_LOW] * 3], LEAKED),
    ([LEAKED, *[TOO_LOW] * 4], TOO_LOW),
    ([*[failures.MISSING] * 5, UNRETURNED], UNRETURNED),
    ([failures.MISSING] * 2, failures.MISSING),
])  # fmt: skip
def test_the_kind_of_most_losses(kinds: list[str], kind: str):
    """The most frequent kind; kinds that any fault may lead to give way to others that a quarter have."""
    assert symptoms(HEALTHY, lost(*kinds)).kind == kind


@pytest.mark.parametrize(("fields", "kind"), [
    ({"retried": [True] * 3}, failures.ERROR),
    ({"returned": tuple("abcdefgh")}, LIMIT),
    ({"returned": ("a", "b")}, QUERY_IGNORED),
    ({"doubled": [True] * 10}, failures.DUPLICATES),
    ({"unstable": [True] * 3}, failures.UNSTABLE),
    ({"latency_ms": 50.0}, SLOW),
    ({"settle_ms": 50.0}, SLOW),
])  # fmt: skip
def test_the_kind_of_a_whole_run(fields: dict[str, Any], kind: str):
    """What shows in most answers names the kind without a lost case."""
    assert symptoms(HEALTHY, run(**fields)).kind == kind


def test_a_number_of_its_own():
    """Always the same number of hits, where some asked for more and some for fewer, is a limit not kept."""
    ks = [1] * 3 + [5] * 17
    healthy = [row._replace(k=k, returned=row.returned[:k]) for row, k in zip(HEALTHY, ks, strict=True)]
    three = [row._replace(k=k, returned=row.returned[:3]) for row, k in zip(HEALTHY, ks, strict=True)]
    assert symptoms(healthy, three).kind == LIMIT
    assert symptoms(healthy, healthy).kind is None


def test_what_shows_everywhere_outranks_single_losses():
    """Calls that fail now and then are named, whatever else was lost; calls that fail for good are the kind
    of their own losses."""
    rows = lost(LEAKED, LEAKED)
    assert symptoms(HEALTHY, [row._replace(retried=True) for row in rows]).kind == failures.ERROR
    for_good = lost(LEAKED, LEAKED, failures.ERROR)
    for_good[2] = for_good[2]._replace(retried=True)
    assert symptoms(HEALTHY, for_good).kind == LEAKED


# From an answer


def answer(hits: Sequence[Hit] = (), *, expect: Expectation | None = None, **seen_as: Any) -> Answer:
    probe = Probe("case", "query", (expect or Expectation("any", ("x",)),), tags=("recall",))
    return Answer(probe, Observation(tuple(hits), **seen_as), scores={"pass": 1.0})


def test_times_of_planting_are_those_of_a_memory():
    """What planting took is told by the memory, what settling took by the scenario."""
    told = seen(answer(), "golden", "s", Played(plants=4, plant_ms=10.0, settle_ms=3.0))
    assert (told.plant_ms, told.settle_ms) == (2.5, 3.0)


def test_seen_of_an_answer():
    """What is compared: passed, retried, doubled, unstable; a question asked once is neither."""
    twice = [Hit("a", "same"), Hit("b", "same")]
    assert seen(answer(twice), "golden", "s", Played()).doubled
    assert seen(answer([Hit("a", "one"), Hit("a", "two")]), "golden", "s", Played()).doubled
    assert not seen(answer([Hit("a", "one"), Hit("b", "two")]), "golden", "s", Played()).doubled
    assert seen(answer(attempts=2), "golden", "s", Played()).retried
    assert seen(answer(error="gone"), "golden", "s", Played()).retried
    assert seen(answer(skipped="ids"), "golden", "s", Played()).passed is None
    assert seen(answer(), "golden", "s", Played()).unstable is None
    stable = Expectation("stable")
    assert seen(answer(expect=stable), "golden", "s", Played()).unstable is False
    assert seen(answer(expect=stable, again=(Hit("a", "one"),)), "golden", "s", Played()).unstable is True
