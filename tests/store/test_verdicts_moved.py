"""What moves beside the pass rate: times, tokens, money, in the same looks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from store.queries.verdicts import ValueRow
from store.verdicts import judge
from tests.store.test_verdicts import CASES, GOOD, TONIGHT, record, row


def latencies(night_ms: Sequence[float], tonight_ms: float, looks_ms: Sequence[float] = ()) -> list[ValueRow]:
    told = [*enumerate(night_ms, 1), (TONIGHT, tonight_ms), *enumerate(looks_ms, TONIGHT + 1)]
    return [ValueRow(run, case, 1, "recall_ms", ms + case / 10) for run, ms in told for case in range(CASES)]


NIGHTS_MS = (2.0, 2.1, 1.9, 2.05, 1.95, 2.0, 2.1, 1.9, 2.0, 2.02)


@pytest.mark.parametrize(("looks", "stage"), [(0, "suspicion"), (1, "suspected"), (2, "confirmed")])
def test_twenty_times_slower_is_a_finding(looks, stage):
    """Latency goes through the same three looks, and leaves the word on the answers as it is."""
    values = latencies(NIGHTS_MS, 40.0, [40.0] * looks)
    verdict = judge(record(GOOD, row(), *[[row()] * 3] * looks, values=values))
    (moved,) = verdict.moved
    assert (moved.metric, moved.worse, moved.stage) == ("recall_ms", True, stage)
    assert moved.change > 5
    assert (verdict.verdict, verdict.wants_a_look) == ("unchanged", not looks)


def test_what_a_busy_machine_makes_is_no_finding():
    """A few milliseconds more are the machine's, however much they are of a small latency."""
    values = latencies(NIGHTS_MS, 6.0)
    assert judge(record(GOOD, row(), values=values)).moved == ()


def test_a_stricter_first_look():
    """Where a suite asks for a lower level, what the usual one suspects is none, of the answers and of the
    metrics beside them. The level is kept with the verdict."""
    nights = [row(*range(night % 5)) for night in range(10)]
    values = [one._replace(metric="returned_tokens") for one in latencies(NIGHTS_MS, 2.28)]
    made = record(nights, row(*range(6)), values=values)
    usual, strict = (judge(made, level=level) for level in (0.05, 0.002))
    assert 0.002 < usual.looks[0].p_worse < 0.05
    assert (usual.stage, len(usual.moved), usual.level) == ("suspicion", 1, 0.05)
    assert (strict.stage, strict.moved, strict.level) == ("", (), 0.002)


def test_a_slow_night_alone_is_no_finding():
    """A metric that is as ever at the next look has not moved."""
    values = latencies(NIGHTS_MS, 40.0, [2.0])
    assert judge(record(GOOD, row(), [row()] * 3, values=values)).moved == ()


@pytest.mark.parametrize("metric", ["ingest_tokens", "money"])
def test_what_planting_costs_is_held_against_it_too(metric):
    """What a scenario spends goes through the same looks, be there fewer scenarios than cases or more."""

    def values(scenarios):
        told = [*enumerate(NIGHTS_MS, 1), (TONIGHT, 3.0)]
        return [ValueRow(run, number, 1, metric, of) for run, of in told for number in range(scenarios)]

    for scenarios in (1, CASES + 5):
        (moved,) = judge(record(GOOD, row(), values=values(scenarios))).moved
        assert (moved.metric, moved.worse, moved.stage) == (metric, True, "suspicion")
        assert moved.change == pytest.approx(0.5, abs=0.05)


def test_faster_is_better():
    """A latency that falls to a fraction has moved for the better."""
    (moved,) = judge(record(GOOD, row(), values=latencies([20 * ms for ms in NIGHTS_MS], 2.0))).moved
    assert (moved.worse, moved.change < 0) == (False, True)
