"""Two runs of one suite held against each other: what was lost, what else changed, and how that is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from collectors import failures
from collectors.backend import Hit, Observation
from collectors.failures import LEAKED, LIMIT, TOO_LOW, UNRETURNED
from collectors.scenario import Answer, Played
from collectors.suite import Amend, Expectation, Memory, Plant, Probe
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
    scenario="scenario",
    returned=("a", "b", "c", "d", "e"),
    first_at=None,
    latency_ms=1.0,
    plant_ms=0.1,
    settle_ms=0.0,
    retried=False,
    doubled=False,
    altered=None,
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
    ({"plant_ms": 12.0}, "plant_ms"),
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
    {"latency_ms": 5.9}, {"latency_ms": 0.2}, {"plant_ms": 9.9}, {"returned": [tuple("abcdef")] * 9},
    {"unstable": [False] * 4},
])  # fmt: skip
def test_not_detected_by_less(fields: dict[str, Any]):
    """What a busy machine does to a latency of a millisecond, or half a hit more, is no symptom."""
    assert not symptoms(HEALTHY, run(**fields)).detected


def test_latency_is_compared_as_a_share_where_calls_are_slow():
    """Of a second, 100 ms more are within the smallest change, and 300 ms are not."""
    slow = run(latency_ms=1000.0)
    assert not symptoms(slow, run(latency_ms=1100.0)).detected
    assert symptoms(slow, run(latency_ms=1300.0)).detected


def test_planting_is_slower_when_nearly_every_scenario_is():
    """What a call takes longer shows by the scenario, however many memories share it; a busy machine, which
    slows some of them down, shows nothing."""
    healthy = scenarios([2.0, 3.0, 4.0, 90.0] * 5)
    found = symptoms(healthy, scenarios([22.0, 23.0, 24.0, 110.0] * 5))
    assert (found.kind, found.beyond) == (SLOW, {"plant_ms": (3.5, 23.5)})
    assert not symptoms(healthy, scenarios([2.0, 3.0, 24.0, 190.0] * 5)).detected


def scenarios(times: Sequence[float]) -> list[Seen]:
    """Two cases of each, planted in this time."""
    return [
        row._replace(scenario=f"scenario-{n // 2}", plant_ms=times[n // 2])
        for n, row in enumerate(run(2 * len(times)))
    ]


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
    ([failures.BLED, LEAKED, TOO_LOW], LEAKED),
])  # fmt: skip
def test_the_kind_of_most_losses(kinds: list[str], kind: str):
    """The most frequent kind, of two the graver; kinds that any fault may lead to give way to others that a
    quarter have."""
    assert symptoms(HEALTHY, lost(*kinds)).kind == kind


@pytest.mark.parametrize(("fields", "kind"), [
    ({"retried": [True] * 3}, failures.ERROR),
    ({"returned": tuple("abcdefgh")}, LIMIT),
    ({"returned": ("a", "b")}, QUERY_IGNORED),
    ({"doubled": [True] * 10}, failures.DUPLICATES),
    ({"unstable": [True] * 3}, failures.UNSTABLE),
    ({"altered": [True] * 11}, failures.ALTERED),
    ({"altered": [True] * 5 + [False] * 6}, None),
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


@pytest.mark.parametrize(("fewer", "kind"), [
    (lambda k: k - 1, LIMIT), (lambda k: k // 2 + 1, UNRETURNED), (lambda k: k, UNRETURNED),
])  # fmt: skip
def test_a_few_less_than_asked_for(fewer: Callable[[int], int], kind: str):
    """Always as many fewer than the limit is a limit that is not kept; half of what came back is not."""
    ks = [3] * 5 + [5] * 15
    healthy = [row._replace(k=k, returned=tuple("abcde")[:k]) for row, k in zip(run(), ks, strict=True)]
    other = [row._replace(returned=tuple("edcba")[: fewer(row.k)], query=f"{row.k}") for row in healthy]
    other[:2] = [row._replace(passed=False, failure=UNRETURNED) for row in other[:2]]
    assert symptoms(healthy, other).kind == kind


DAY = datetime(2026, 3, 1, tzinfo=UTC)


def overtaken(days: Sequence[int], *, lost: int, gone: bool = False) -> tuple[list[Seen], list[Seen]]:
    """Where the healthy answer has a memory of `DAY` first, the other has one of so many days later, and what
    should come first comes second, or not at all."""
    healthy = [row._replace(first_at=DAY) for row in run()]
    other = list(healthy)
    for n, later in enumerate(days):
        first, second, *rest = healthy[n].returned
        back = (second, *rest) if gone else (second, first, *rest)
        other[n] = other[n]._replace(returned=back, first_at=DAY + timedelta(days=later))
    other[:lost] = [row._replace(passed=False, failure=TOO_LOW) for row in other[:lost]]
    return healthy, other


@pytest.mark.parametrize(("days", "lost", "gone", "kind"), [
    ([-1] * 8, 3, False, failures.STALE),
    ([-1] * 4, 3, False, TOO_LOW),
    ([-1, 1] * 4, 3, False, TOO_LOW),
    ([-1] * 8, 3, True, TOO_LOW),
    ([-1] * 8, 20, False, TOO_LOW),
])  # fmt: skip
def test_an_older_memory_first_wherever_another_is(days: list[int], lost: int, gone: bool, kind: str):
    """Facts are stale when what overtakes others is always older than they, and most was lost by that; an
    order that is merely bad puts newer ones first as well, and what is gone was not overtaken."""
    assert symptoms(*overtaken(days, lost=lost, gone=gone)).kind == kind


def test_a_later_clock_reading_is_no_order():
    """The same memory first, told with another time, was overtaken by nothing."""
    healthy, other = overtaken([], lost=2)
    assert (
        symptoms(healthy, [row._replace(first_at=DAY - timedelta(days=1)) for row in other]).kind == TOO_LOW
    )


def test_a_few_unsteady_answers_do_not_name_many_losses():
    """Three questions that were answered otherwise when asked again are no sign of why fifteen were lost."""
    rows = lost(*[failures.UNSTABLE] * 3, *[UNRETURNED] * 15)
    other = [row._replace(unstable=True) if row.failure == failures.UNSTABLE else row for row in rows]
    assert symptoms(HEALTHY, other).kind == UNRETURNED


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


def test_times_of_planting_are_those_of_a_scenario():
    """What planting and settling took is told by the scenario."""
    told = seen(answer(), "golden", "s", Played(plants=4, plant_ms=10.0, settle_ms=3.0))
    assert (told.plant_ms, told.settle_ms) == (10.0, 3.0)


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


@pytest.mark.parametrize(("hits", "altered"), [
    ([Hit("a", "The gate is green.")], False), ([Hit("a", "The gate is blue.")], False),
    ([Hit("a", "the gate is blue.")], True), ([Hit("b", "the gate is blue.")], None), ([], None),
])  # fmt: skip
def test_altered_are_memories_of_the_case(hits: Sequence[Hit], altered: bool | None):
    """A memory of the case's own, by its id, reads as it was planted or amended, or otherwise."""
    story = (Plant((Memory("a", "The gate is green."),)), Amend("a", "The gate is blue."))
    told = answer(hits)
    told = told._replace(probe=replace(told.probe, story=story))
    assert seen(told, "golden", "s", Played()).altered is altered


def test_the_time_of_the_first_hit():
    """When what comes first happened, where the backend says so."""
    hits = [Hit("a", "one", metadata={"at": "2026-03-01"}), Hit("b", "two", metadata={"at": "2026-04-01"})]
    assert seen(answer(hits), "golden", "s", Played()).first_at == DAY
    assert seen(answer([Hit("a", "one", metadata={"at": "soon"})]), "golden", "s", Played()).first_at is None
    assert seen(answer(), "golden", "s", Played()).first_at is None
