"""From results to rollups: what is averaged over what, and what stays out."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.metrics import METRIC_NAMES, METRICS
from store.records import Rollup
from store.rollups import EVERY, CaseRow, ScenarioRow, roll_up
from store.stats.intervals import bootstrap_mean, bootstrap_median, wilson


def _case(case: str, passed: float | None = 1.0, **fields: Any) -> CaseRow:
    """An answer of 10 ms at the first try; `passed` None is one without scores."""
    plain = CaseRow(case, (), 1, "ok", 10.0, 1, 5, {} if passed is None else {"pass": passed})
    return plain._replace(**fields)


def _failed(case: str, **fields: Any) -> CaseRow:
    return CaseRow(case, (), 1, "error", None, 3, None, {})._replace(**fields)


def _skipped(case: str, **fields: Any) -> CaseRow:
    return CaseRow(case, (), 1, "skipped", None, 0, None, {})._replace(**fields)


def _scenario(plants: int = 10, **fields: Any) -> ScenarioRow:
    return ScenarioRow("ok", plants, 200.0, 30.0, 20, 1000, 0.5)._replace(**fields)


def _rolled(cases: Iterable[CaseRow], scenarios: Iterable[ScenarioRow] = ()) -> dict[tuple[str, str], Rollup]:
    rows = roll_up(cases, scenarios)
    found = {(row.metric, row.tag): row for row in rows}
    assert len(found) == len(rows), "a metric is rolled up twice for one tag"
    return found


# Cases


def test_the_case_is_the_unit():
    """n counts cases, the mean is over them, and a share has its Wilson interval."""
    row = _rolled([_case("a", 1), _case("b", 1), _case("c", 0)])["pass", EVERY]
    assert row == Rollup("pass", EVERY, 3, pytest.approx(2 / 3), *wilson(2, 3)[:2])


def test_trials_are_averaged_first():
    """A case asked in more trials weighs no more than another: its trials are one number."""
    rows = [_case("a", 1, trial=1), _case("a", 0, trial=2), _case("a", 0, trial=3), _case("b", 1)]
    rolled = _rolled(rows)["pass", EVERY]
    assert (rolled.n, rolled.mean) == (2, pytest.approx((1 / 3 + 1) / 2))
    assert (rolled.low, rolled.high) == wilson(4 / 3, 2)[:2]


def test_an_error_enters_the_error_metrics_and_no_other():
    """A case without an answer is an error of its own, and no part of any mean of quality or time."""
    rolled = _rolled([_case("a", 1), _failed("b")])
    assert {name: (row.n, row.mean) for (name, _), row in rolled.items()} == {
        "pass": (1, 1.0),
        "recall_ms": (1, 10.0),
        "returned_n": (1, 5.0),
        "error_rate": (2, 0.5),
        "first_try_errors": (2, 0.5),
        "attempts": (2, 2.0),
    }


def test_an_error_in_one_trial_leaves_the_others_their_say():
    """The case's quality is that of the trials that answered; its error rate is that of all."""
    rolled = _rolled([_case("a", 1, trial=1), _failed("a", trial=2), _case("a", 0, trial=3)])
    assert (rolled["pass", EVERY].n, rolled["pass", EVERY].mean) == (1, 0.5)
    assert rolled["error_rate", EVERY].mean == pytest.approx(1 / 3)


def test_scores_beside_an_error_are_not_counted():
    """Whatever stands in the row of an error, nothing that failed becomes a number."""
    odd = _failed("a", scores={"pass": 1.0}, latency_ms=5.0, returned_n=2)
    assert {name for name, _ in _rolled([odd])} == {"error_rate", "first_try_errors", "attempts"}


def test_an_error_alone_is_told():
    """A run in which everything failed has its error rate, and no other quality."""
    rolled = _rolled([_failed("a"), _failed("b")])
    assert rolled["error_rate", EVERY] == Rollup("error_rate", EVERY, 2, 1.0, *wilson(2, 2)[:2])
    assert ("pass", EVERY) not in rolled


def test_what_was_skipped_enters_nothing():
    """A case that does not apply to the backend is in no mean, no count and no tag."""
    assert _rolled([_skipped("a", tags=["x"])]) == {}
    asked = [_case("b", 1, tags=["x"])]
    assert _rolled([*asked, _skipped("a", tags=["x", "y"])]) == _rolled(asked)


def test_a_retry_that_saved_the_answer_is_a_first_try_error():
    """first_try_errors counts what a retry saved, error_rate does not."""
    rolled = _rolled([_case("a", attempts=2), _case("b")])
    means = {name: rolled[name, EVERY].mean for name in ("error_rate", "first_try_errors", "attempts")}
    assert means == {"error_rate": 0, "first_try_errors": 0.5, "attempts": 1.5}


def test_a_metric_counts_the_cases_it_applies_to():
    """n of each metric is its own: recall of one case, pass of two."""
    rolled = _rolled([_case("a", scores={"pass": 1.0, "recall@k": 0.25}), _case("b", 1)])
    assert (rolled["pass", EVERY].n, rolled["recall@k", EVERY].n) == (2, 1)
    assert rolled["recall@k", EVERY].mean == 0.25


def test_an_answer_without_time_or_count_has_none():
    """What was not measured is absent, not zero."""
    rolled = _rolled([_case("a", latency_ms=None, returned_n=None)])
    assert {name for name, _ in rolled}.isdisjoint({"recall_ms", "returned_n"})


# Tags


def test_each_tag_has_its_own_rows():
    """A case counts for every tag it bears, and once for all."""
    rolled = _rolled([_case("a", 1, tags=["x", "y"]), _case("b", 0, tags=["x"]), _case("c", 0)])
    means = {tag: (row.n, row.mean) for (name, tag), row in rolled.items() if name == "pass"}
    assert means == {EVERY: (3, pytest.approx(1 / 3)), "x": (2, 0.5), "y": (1, 1.0)}


def test_a_tag_of_errors_has_error_metrics_only():
    """Under a tag, too, an error is no number."""
    rolled = _rolled([_case("a", 1), _failed("b", tags=["x"])])
    assert {name for name, tag in rolled if tag == "x"} == {"error_rate", "first_try_errors", "attempts"}


def test_tags_come_in_order_after_the_whole():
    """All cases first, then the tags by name, whatever the order of the rows."""
    rows = [_case("a", tags=["y"]), _case("b", tags=["x"])]
    assert list(dict.fromkeys(row.tag for row in roll_up(rows, ()))) == [EVERY, "x", "y"]


# Intervals


def test_shares_are_wilson_and_the_rest_is_bootstrapped():
    """Times have the median and its bootstrap, counts the mean and its own, shares Wilson's interval."""
    latencies, counts, ranks = [10.0, 30.0, 1000.0, 20.0], [5, 3, 0, 9], [1.0, 0.5, 0.25, 0.0]
    rolled = _rolled(
        _case(f"c{n}", latency_ms=ms, returned_n=count, scores={"mrr": rank})
        for n, (ms, count, rank) in enumerate(zip(latencies, counts, ranks, strict=True))
    )
    times, hits = bootstrap_median(np.array(latencies)), bootstrap_mean(np.array(counts, dtype=float))
    assert rolled["recall_ms", EVERY] == Rollup("recall_ms", EVERY, 4, 25.0, times.low, times.high)
    assert rolled["returned_n", EVERY] == Rollup("returned_n", EVERY, 4, 4.25, hits.low, hits.high)
    assert rolled["mrr", EVERY] == Rollup("mrr", EVERY, 4, 0.4375, *wilson(1.75, 4)[:2])


def test_a_perfect_score_is_not_certain():
    """Equal values have an interval with a width, where the metric is a share."""
    row = _rolled(_case(f"c{n}", 1) for n in range(10))["pass", EVERY]
    assert (row.mean, row.high) == (1.0, 1.0)
    assert row.low < 0.75


def test_one_time_has_no_interval():
    """A single case has a median and no idea how it varies."""
    row = _rolled([_case("a")])["recall_ms", EVERY]
    assert (row.n, row.mean, row.low, row.high) == (1, 10.0, None, None)


# Scenarios


def test_what_was_not_played_or_did_not_settle_is_no_number():
    """A scenario of which nothing applied enters nothing; one that did not settle has no wait of 0 ms."""
    skipped = _scenario(0, plant_ms=None, settle_ms=None, money=0.0)
    rolled = _rolled([], [_scenario(), _scenario(settle_ms=None), skipped])
    assert {name: row.n for (name, _), row in rolled.items()} == {
        "plant_ms": 2, "settle_ms": 1, "ingest_calls": 2, "ingest_tokens": 2, "money": 2,
    }  # fmt: skip
    assert rolled["settle_ms", EVERY].mean == 30.0


def test_planting_is_reckoned_per_memory():
    """Time, calls and tokens are of one memory; settling and money are of one scenario."""
    rolled = _rolled([], [_scenario(), _scenario(plants=5, settle_ms=50.0, money=1.5)])
    assert {name: (row.n, row.mean) for (name, _), row in rolled.items()} == {
        "plant_ms": (2, pytest.approx((20 + 40) / 2)),
        "settle_ms": (2, 40.0),
        "ingest_calls": (2, pytest.approx((2 + 4) / 2)),
        "ingest_tokens": (2, pytest.approx((100 + 200) / 2)),
        "money": (2, 1.0),
    }
    assert {tag for _, tag in rolled} == {EVERY}


def test_times_of_planting_are_medians():
    """One slow scenario does not move them."""
    rows = [_scenario(plants=1, plant_ms=ms, settle_ms=ms) for ms in (10.0, 20.0, 9000.0)]
    rolled = _rolled([], rows)
    assert (rolled["plant_ms", EVERY].mean, rolled["settle_ms", EVERY].mean) == (20.0, 20.0)


def test_a_scenario_that_plants_nothing_has_no_time_to_plant():
    """It settles and costs, and is in no mean that is per memory."""
    rolled = _rolled([], [_scenario(plants=0)])
    assert {name for name, _ in rolled} == {"settle_ms", "money"}


def test_a_failed_scenario_enters_nothing():
    """What planting took before it failed is no measure of planting."""
    assert _rolled([], [_scenario(status="error")]) == {}
    assert _rolled([], [_scenario(status="error", plant_ms=9e9), _scenario()]) == _rolled([], [_scenario()])


# Properties

TAGS = {"a": ("x", "y"), "b": ("x",), "c": ()}
OUTCOMES = [_case("", 1), _case("", 0, attempts=2), _case("", None), _failed(""), _skipped("")]
ROWS = st.lists(
    st.builds(
        lambda row, case, trial: row._replace(case=case, trial=trial, tags=TAGS[case]),
        st.sampled_from(OUTCOMES),
        st.sampled_from(sorted(TAGS)),
        st.integers(1, 3),
    ),
    max_size=12,
)


@given(ROWS, st.randoms())
def test_the_order_of_results_changes_nothing(rows: list[CaseRow], dice: Random):
    """A resumed run, whose results came in another order, rolls up to the same."""
    shuffled = list(rows)
    dice.shuffle(shuffled)
    before, after = _rolled(rows), _rolled(shuffled)
    assert before.keys() == after.keys()
    for key, row in before.items():
        assert (after[key].n, after[key].mean) == (row.n, pytest.approx(row.mean))


@given(ROWS)
def test_every_rollup_is_of_cases_that_were_asked(rows: list[CaseRow]):
    """n is at least 1 and at most the cases asked under the tag; a share and its interval stay in 0..1."""
    asked = {row.case: {*row.tags, EVERY} for row in rows if row.status != "skipped"}
    for row in roll_up(rows, ()):
        assert 1 <= row.n <= sum(row.tag in tags for tags in asked.values())
        if METRICS[row.metric].unit == "share":
            assert 0 <= row.low <= row.mean <= row.high <= 1


# The metrics known


def test_the_numbers_of_metrics_never_change():
    """A stored score is known by its metric's number, so a number keeps its meaning for ever."""
    assert list(METRIC_NAMES.values()) == [
        "pass", "recall@k", "precision@k", "mrr", "ndcg@k", "unwanted", "unwanted_first", "abstained",
        "returned_n", "returned_tokens", "recall_ms", "attempts", "error_rate", "first_try_errors",
        "plant_ms", "settle_ms", "ingest_calls", "ingest_tokens", "money", "leg_count", "leg_share",
        "unstable", "anchor_drift", "noise_floor", "false_verdict",
    ]  # fmt: skip
    assert list(METRIC_NAMES) == list(range(1, 26))


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_says_what_it_is(name: str):
    """Each has a meaning and a smallest change; the share of a yes or no is a share, a time is a median."""
    metric = METRICS[name]
    assert metric.name == name
    assert METRIC_NAMES[metric.id] == name
    assert metric.meaning
    assert metric.smallest_change > 0
    assert metric.kind != "share" or metric.unit == "share"
    assert (metric.unit == "ms") == (metric.kind == "median")
