"""What a verdict is reached from, and what was said of runs, as the record tells it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from store import queries, writes
from store.baselines import Decision
from store.calibration import calibration_rollups
from store.evidence import entry
from store.gates import gate
from store.portable import Against
from store.queries.verdicts import CALIBRATION, CONFIRM, look_trigger
from store.verdicts import judge
from tests.store.seeding import START, Seed, outcome, scenario

ALL = ("a", "b", "c", "d")


@pytest.fixture
def suite(seed: Seed) -> int:
    return seed.suite()


@pytest.fixture
def nights(seed: Seed, suite: int) -> list[int]:
    """Six nights on which everything passed."""
    return [seed.run(suite, ALL, day=day) for day in range(6)]


def look(seed: Seed, suite: int, run_id: int, passed=ALL, day: int = 6, **fields) -> int:
    return seed.run(suite, passed, day=day, subset=CONFIRM, trigger=look_trigger(run_id), **fields)


def say(db, run_id: int):
    """Judge a run from the record, and keep what is said."""
    verdict = judge(queries.verdict_record(db, run_id))
    writes.record_verdict(db, entry(run_id, verdict))
    return verdict


# What it is reached from


def test_a_run_is_held_against_the_nights_before_it(db, seed, suite, nights):
    """The record of a run holds its own answers and those of its baseline, and none of later runs."""
    tonight = seed.run(suite, ("a", "b", "c"), day=6)
    seed.run(suite, (), day=7)
    record = queries.verdict_record(db, tonight)
    assert record.baseline.recent == tuple(nights)
    assert {row.run_id for row in record.answers} == {*nights, tonight}
    assert [case.name for case in record.cases] == list(ALL)
    told = {row.case_id: row.value for row in record.answers if row.run_id == tonight}
    assert [told[case.id] for case in record.cases] == [1, 1, 1, 0]
    assert [point.run_id for point in record.series] == nights
    values = {(row.metric, row.value) for row in record.values}
    assert values >= {("recall_ms", 2.0), ("returned_n", 5.0), ("ingest_tokens", 20 / 7), ("money", 0.5)}


def test_what_is_no_run_of_a_whole_suite_has_no_record(db, seed, suite, nights):
    """Of a part of a suite, of a look and of a run that is not there, nothing is judged."""
    part = seed.run(suite, ALL, subset="even")
    found = [queries.verdict_record(db, id) for id in (part, look(seed, suite, nights[-1]), 999)]
    assert found == [None, None, None]


def test_an_error_is_no_answer(db, seed, suite, nights):
    """A case that got no answer, or that does not apply, is neither passed nor lost."""
    run_id, token = seed.open(suite)
    outcomes = [
        outcome("a"),
        outcome("b", passed=None, status="error"),
        outcome("c", passed=None, status="skipped"),
    ]
    writes.save_scenario(db, run_id, scenario(outcomes), token)
    seed.close(run_id, token, at=START + timedelta(days=6))
    told = [row.value for row in queries.verdict_record(db, run_id).answers if row.run_id == run_id]
    assert sorted(told, key=str) == [1.0, None, None]


def test_only_whole_looks_count(db, seed, suite, nights):
    """A look that was interrupted, or that looks at another run, is none; the one about to end is."""
    tonight = seed.run(suite, (), day=6)
    look(seed, suite, tonight, status="interrupted")
    look(seed, suite, nights[-1])
    whole = look(seed, suite, tonight)
    assert queries.verdict_record(db, tonight).looks == (whole,)
    closing, _ = seed.open(suite, subset=CONFIRM, trigger=look_trigger(tonight))
    assert queries.verdict_record(db, tonight).looks == (whole,)
    assert queries.verdict_record(db, tonight, closing=closing).looks == (whole, closing)


def test_a_run_not_accepted_is_left_out(db, seed, suite, nights):
    """After a run that was worse, the next one is held against the nights before it, and says which was
    left out; a verdict that is taken back lets it in."""
    bad = seed.run(suite, (), day=6)
    assert say(db, bad).stage == "suspicion"
    after = seed.run(suite, ALL, day=7)
    held = queries.verdict_record(db, after).baseline
    assert held.recent == tuple(nights)
    assert [(one.run_id, one.why) for one in held.left_out] == [(bad, "not accepted: see its verdict")]
    look(seed, suite, bad)
    assert say(db, bad).accepted
    assert queries.verdict_record(db, after).baseline.recent == (*nights, bad)


def test_another_scorer_begins_anew(db, seed, suite, nights):
    """Answers judged by other scorers are not compared, and the reason is told."""
    tonight = seed.run(suite, (), day=6, scorer_version="2")
    verdict = judge(queries.verdict_record(db, tonight))
    assert verdict.verdict == "cannot_tell"
    assert verdict.reason == "nothing to compare with: another scorer: 1, now 2"


def test_a_hold_is_never_replaced(db, seed, suite, nights):
    """Held against a run of another scorer there is no answer, whatever else could be compared with."""
    for day in (6, 7):
        seed.run(suite, (), day=day, scorer_version="2")
    tonight = seed.run(suite, (), day=8, scorer_version="2")
    hold = Against([Decision("hold", (nights[2],), "run", "gate", START)])
    record = queries.verdict_record(db, tonight, against=hold)
    verdict = judge(record)
    assert (record.baseline.recent, verdict.verdict) == ((), "cannot_tell")
    assert verdict.reason == "nothing to compare with: another scorer: 1, now 2"
    assert gate(record, verdict, []).answered is False


def test_what_is_before_is_one_thing(db, seed, suite):
    """Of runs that began at the same moment, the series and the baseline know the same ones: those of lower
    ids."""
    first, second, _ = (seed.run(suite, ALL) for _ in range(3))
    record = queries.verdict_record(db, second)
    assert record.baseline.recent == (first,)
    assert [point.run_id for point in record.series] == [first]


def test_missing_is_one_thing(db, seed):
    """A case is missing when the nights that are compared with answered it, from the record as from a file;
    what only older nights asked is not."""
    whole = seed.suite(cases=dict.fromkeys((*ALL, "old", "late"), "1"))
    later = seed.suite(cases=dict.fromkeys((*ALL, "late"), "1"))
    for day in range(12):
        seed.run(whole, (*ALL, "old", "late"), cases=(*ALL, "old", "late"), day=day)
    for day in range(12, 24):
        told = {"environment_id": writes.register_environment(db, {"embedder": "x"})}
        seed.run(later, (*ALL, "late"), cases=(*ALL, "late"), day=day, **told)
    carried = queries.carried_baseline(db, "golden", "keyword")
    assert ("old", "1") in carried.cases
    tonight = seed.run(seed.suite(), ALL, day=30)
    for against in (None, Against((), carried)):
        assert queries.verdict_record(db, tonight, against=against).missing == ("late",)


def test_a_margin_that_nothing_told_is_no_answer(db, seed, suite, nights):
    """A margin that was asked for, and that nothing could be told of, leaves the gate without an answer."""
    tonight = seed.run(suite, ALL, day=6)
    record = queries.verdict_record(db, tonight)
    verdict = judge(record)
    assert gate(record, verdict, []).passed
    found = gate(record, verdict._replace(looks=()), [], margin=0.1)
    assert (found.failed, found.margin, found.answered, found.passed) == ((), None, False, False)


def test_a_slow_leak_fails_no_gate(db, seed, suite, nights):
    """What is worse as a slow leak alone is no change of the run that is asked about."""
    record = queries.verdict_record(db, seed.run(suite, ALL, day=6))
    leaking = judge(record)._replace(verdict="worse", stage="leak")
    assert gate(record, leaking, []).passed
    assert gate(record, leaking._replace(stage="suspected"), []).failed == ("change",)


def test_no_false_verdict_against_a_provisional_baseline(db, seed, suite):
    """A calibration counts as false verdict or none only where the baseline has five days."""

    def calibrated(day):
        told = [
            seed.run(suite, passed, day=day, subset=CALIBRATION, trigger="calibration")
            for passed in (ALL, ())
        ]
        return {one.metric for one in calibration_rollups(*queries.calibration_records(db, *told))}

    assert calibrated(0) == {"noise_floor"}
    for day in range(1, 5):
        seed.run(suite, ALL, day=day)
    assert calibrated(5) == {"noise_floor"}
    seed.run(suite, ALL, day=6)
    assert calibrated(7) == {"noise_floor", "false_verdict"}


def test_a_changed_case_has_no_history(db, seed, suite, nights):
    """A case whose text changed is another one: its former answers are not held against it."""
    changed = seed.suite(cases={"a": "1", "b": "1", "c": "1", "d": "2"})
    record = queries.verdict_record(db, seed.run(changed, ("a", "b", "c"), day=6))
    verdict = judge(record)
    assert (verdict.verdict, verdict.cases, verdict.lost) == ("unchanged", 3, ())


def test_dense_is_the_newest_whole_run_of_a_plain_vector_store(db, seed, suite, nights):
    """The answers of the newest whole run of dense stand beside the run; dense has none beside itself."""
    assert queries.verdict_record(db, nights[-1]).dense is None
    seed.run(suite, (), backend="dense", day=1)
    newest = seed.run(suite, ("a",), backend="dense", day=2)
    look(seed, suite, newest, backend="dense")
    record = queries.verdict_record(db, nights[-1])
    assert sorted(record.dense.values()) == [0, 0, 0, 1]
    assert queries.verdict_record(db, newest).dense is None


def test_a_leak_is_remembered(db, seed, suite, nights):
    """Runs at which an earlier verdict saw a slow leak are told to the next one."""
    verdict = say(db, nights[-1])
    told = entry(nights[-1], verdict)
    content = {**told.content, "leak": {"first_bad": nights[2], "before": 1.0, "after": 0.5, "new": True}}
    writes.record_verdict(db, told._replace(stage="leak", content=content))
    tonight = seed.run(suite, ALL, day=6)
    assert queries.verdict_record(db, tonight).reported == {nights[2]}


def test_every_trial_of_a_priming_run_counts(db, seed, suite):
    """Of an ordinary night the first trial stands in the baseline, of a priming run all of them."""
    for trigger in ("cli", queries.PRIME):
        run_id, token = seed.open(suite, trials=3, trigger=trigger)
        for trial in (1, 2, 3):
            of_it = [outcome(case, trial=trial) for case in ALL]
            writes.save_scenario(db, run_id, scenario(of_it, trial=trial), token)
        seed.close(run_id, token, at=START)
    tonight = seed.run(suite, ALL, day=1)
    assert judge(queries.verdict_record(db, tonight)).nights == 1 + 3


# What was said


def test_an_old_verdict_stays_in_the_record(db, seed, suite, nights):
    """Judged again after a look, a run has a new verdict in force and the old one with all its evidence."""
    bad = seed.run(suite, (), day=6)
    first = say(db, bad)
    look(seed, suite, bad, passed=())
    second = say(db, bad)
    told = queries.verdict_looks(db, bad)
    assert [(row.looks, row.verdict, row.stage) for row in told] == [
        (1, "cannot_tell", "suspicion"),
        (2, "worse", "suspected"),
    ]
    assert [row.content for row in told] == [entry(bad, one).content for one in (first, second)]
    assert queries.verdict(db, bad) == told[-1]
    assert queries.verdicts(db, [bad, nights[0]]) == {bad: told[-1]}
    assert queries.series_verdicts(db, "golden", "keyword") == [told[-1]]


def test_a_run_without_a_verdict_has_none(db, nights):
    """Of a run that nothing was said of, there is no verdict."""
    assert queries.verdict(db, nights[0]) is None
    assert queries.verdict_looks(db, nights[0]) == []


def test_a_series_is_told_in_order_of_time(db, seed, suite, nights):
    """The verdicts of a series come oldest first, and the limit keeps the newest."""
    for run_id in reversed(nights):
        say(db, run_id)
    assert [row.run_id for row in queries.series_verdicts(db, "golden", "keyword")] == nights
    assert [row.run_id for row in queries.series_verdicts(db, "golden", "keyword", limit=2)] == nights[-2:]
    assert queries.series_verdicts(db, "golden", "dense") == []


def test_looks_and_calibrations_are_on_no_chart(db, seed, suite, nights):
    """What was asked to make sure, or to calibrate, is on no chart, in no overview, in no case's history, and
    no run to compare with."""
    tonight = seed.run(suite, ALL, day=6)
    before = everything_shown(db)
    look(seed, suite, tonight, passed=())
    seed.run(suite, (), day=6, subset=CALIBRATION, trigger="calibration")
    assert everything_shown(db) == before
    assert queries.verdict_record(db, seed.run(suite, ALL, day=7)).baseline.recent == (*nights, tonight)


def everything_shown(db):
    return (
        queries.trend(db, "golden", "pass"),
        queries.overview(db),
        queries.floors(db, "golden", "pass"),
        queries.case_standings(db, "golden"),
        queries.flaky_cases(db, "golden"),
        queries.case_history(db, "golden", "a"),
    )
