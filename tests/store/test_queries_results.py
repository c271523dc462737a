"""What the cases came to: of one run, of one case over the runs, and for scoring and export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from store import queries, writes
from store.database import Database
from store.queries import EXPORTED
from store.records import ScenarioOutcome
from store.rollups import roll_up
from tests.store.seeding import START, Seed, outcome, scenario


def _run_with(db: Database, seed: Seed, *scenarios: ScenarioOutcome) -> int:
    run_id, token = seed.open(seed.suite(), trials=3)
    for one in scenarios:
        writes.save_scenario(db, run_id, one, token)
    seed.close(run_id, token, at=START)
    return run_id


def test_cases_of_a_run_with_what_they_came_to(db: Database, seed: Seed) -> None:
    """Each case has its question, outcome, first hit and scores; lost, errors and skipped select."""
    cases = [
        outcome("a"),
        outcome("b", passed=False),
        replace(outcome("c", passed=None, status="error"), detail={"error": "timed out"}, returned_n=None),
        replace(outcome("d", passed=None, status="skipped"), detail=None, failure=None),
    ]
    run_id = _run_with(db, seed, scenario(cases))
    rows = {row.case: row for row in queries.run_cases(db, run_id)}
    assert list(rows) == ["a", "b", "c", "d"]
    assert [row.passed for row in rows.values()] == [True, False, None, None]
    assert (rows["a"].query, rows["a"].tags, rows["a"].first_hit) == (
        "what of a?",
        ["odd", "all"],
        "first for a",
    )
    assert (rows["b"].failure, rows["b"].scores) == ("not stored", {"pass": 0.0, "recall@k": 0.5})
    assert (rows["c"].status, rows["c"].first_hit, rows["c"].scores) == ("error", None, {})
    assert {row.first_hit for row in queries.run_cases(db, run_id, with_hits=False)} == {None}
    for only, expected in (("lost", ["b"]), ("errors", ["c"]), ("skipped", ["d"])):
        assert [row.case for row in queries.run_cases(db, run_id, only=only)] == expected  # type: ignore[arg-type]


def _trial(trials: Mapping[str, Sequence[bool | None]], trial: int) -> ScenarioOutcome:
    """One trial of every case; None is an error."""
    cases = [
        outcome(name, passed=row[trial - 1], trial=trial, status="error" if row[trial - 1] is None else "ok")
        for name, row in trials.items()
    ]
    return scenario(cases, trial=trial)


def test_trials_are_folded(db: Database, seed: Seed) -> None:
    """A case passed when more than half of its judged trials did; an error shows, and is no lost trial."""
    trials: dict[str, list[bool | None]] = {
        "a": [True, True, False],
        "b": [True, False, False],
        "c": [True, None, None],
        "d": [None, None, None],
    }
    run_id = _run_with(db, seed, *(_trial(trials, trial) for trial in (1, 2, 3)))
    rows = {row.case: row for row in queries.run_cases(db, run_id)}
    assert [(row.trials, row.passes, row.passed) for row in rows.values()] == [
        (3, 2, True),
        (3, 1, False),
        (3, 1, True),
        (3, 0, None),
    ]
    assert [row.status for row in rows.values()] == ["ok", "ok", "error", "error"]
    assert (rows["b"].scores["pass"], rows["b"].attempts, rows["b"].failure) == (1 / 3, 3, "not stored")
    assert [row.failure for row in rows.values()] == [None, "not stored", None, "not stored"]


def test_one_case_in_each_trial_with_what_came_back(db: Database, seed: Seed) -> None:
    """Every trial of a case has its raw answer."""
    run_id = _run_with(
        db,
        seed,
        scenario([outcome("a"), outcome("b")]),
        scenario([outcome("a", passed=False, trial=2)], trial=2),
    )
    case_id = queries.case(db, "golden", "a")[0].case_id
    results = queries.case_results(db, case_id, run_id)
    assert [(result.trial, result.scores["pass"]) for result in results] == [(1, 1.0), (2, 0.0)]
    assert results[0].detail["hits"][0]["text"] == "first for a"


def test_history_spans_runs_backends_and_hashes(db: Database, seed: Seed) -> None:
    """A case's history has its last whole runs of each backend, oldest first, with the hash it had then."""
    first = seed.suite(cases={"a": "1", "b": "1"})
    seed.run(first, ["a"], cases=["a", "b"], day=0)
    old = seed.run(first, ["a"], cases=["a", "b"], day=1)
    second = seed.suite(cases={"a": "2", "b": "1"})
    edited = seed.run(second, [], cases=["a", "b"], day=3)
    other = seed.run(second, ["a"], cases=["a", "b"], day=2, backend="dense")
    seed.run(second, ["a"], cases=["a", "b"], day=4, status="invalid")
    points = queries.case_history(db, "golden", "a", limit_runs=2)
    assert [(point.run_id, point.backend, point.passes, point.hash) for point in points] == [
        (old, "keyword", 1, "1"),
        (other, "dense", 1, "2"),
        (edited, "keyword", 0, "2"),
    ]
    assert queries.case_history(db, "golden", "nowhere") == []


def test_asking_again_counts_for_the_run_in_doubt(db: Database, seed: Seed) -> None:
    """The trials of all looks at a run are told with that run, and those of no other, nor of an invalid
    look."""
    version = seed.suite(cases={"a": "1"})
    doubted = seed.run(version, [], cases=["a"], day=0)
    seed.run(version, ["a"], cases=["a"], day=1)
    look: dict[str, Any] = {
        "cases": ["a"],
        "subset": queries.CONFIRM,
        "trigger": queries.look_trigger(doubted),
    }
    seed.run(version, ["a"], **look)
    seed.run(version, [], **look)
    seed.run(version, ["a"], status="invalid", **look)
    assert queries.asked_again(db, "golden", "a") == {doubted: queries.Again(1, 2)}
    assert queries.asked_again(db, "golden", "nowhere") == {}


def test_flaky_cases_are_those_with_mixed_outcomes(db: Database, seed: Seed) -> None:
    """Cases that passed in some of the last whole runs and not in others, with each outcome in order."""
    version = seed.suite()
    for day, passed in enumerate((["a", "b"], ["a"], ["a", "b", "c"], ["a"])):
        seed.run(version, passed, day=day)
    rows = {row.case: row for row in queries.flaky_cases(db, "golden")}
    assert set(rows) == {"b", "c"}
    assert (rows["b"].backend, rows["b"].passes, rows["b"].runs) == ("keyword", 2, 4)
    assert rows["b"].recent == [True, False, True, False]
    assert [row.case for row in queries.flaky_cases(db, "golden", last=1)] == []


def test_an_edited_case_is_not_flaky_for_its_past(db: Database, seed: Seed) -> None:
    """Outcomes of a case under another hash are of another question, and do not count."""
    seed.run(seed.suite(cases={"a": "1"}), ["a"], cases=["a"], day=0)
    seed.run(seed.suite(cases={"a": "2"}), [], cases=["a"], day=1)
    assert queries.flaky_cases(db, "golden") == []


def test_results_feed_the_rollup(db: Database, seed: Seed) -> None:
    """What the record hands to the rollup gives the metrics that closing the run stored."""
    run_id = seed.run(seed.suite(), ["a", "b", "c"])
    rolled = roll_up(queries.case_scores(db, run_id), queries.scenario_stats(db, run_id))
    run = queries.run(db, run_id)
    assert run is not None
    assert {row.metric: row.mean for row in rolled if row.tag == ""} == {
        name: value.mean for name, value in run.metrics.items()
    }


def test_a_failed_scenario_has_no_times(db: Database, seed: Seed) -> None:
    """A scenario that failed gives no planting time to any mean."""
    failed = replace(scenario([outcome("a")]), status="error", plant_ms=None, settle_ms=None, error="down")
    run_id = _run_with(db, seed, failed)
    assert queries.scenario_stats(db, run_id) == []


def test_stored_answers_suffice_to_score_again(db: Database, seed: Seed) -> None:
    """Every result comes with its case's hash and what came back, raw."""
    run_id = seed.run(seed.suite(), ["a"])
    answers = queries.stored_answers(db, run_id)
    assert [(answer.case, answer.hash, answer.trial, answer.status) for answer in answers] == [
        (case, "1", 1, "ok") for case in "abcd"
    ]
    assert answers[0].detail == {"hits": [{"id": "m1", "text": "first for a", "score": 0.5}], "reply": None}


def test_export_is_flat_and_without_texts(db: Database, seed: Seed) -> None:
    """Every exported row has the same keys, scores where they apply, and no text of a memory or question."""
    version = seed.suite()
    old = seed.run(version, ["a"], day=0)
    new = seed.run(version, [], day=1, backend="dense")
    rows = list(queries.export_cases(db))
    assert [row["run"] for row in rows] == [new] * 4 + [old] * 4
    assert {tuple(row) for row in rows} == {EXPORTED}
    last = rows[4]
    assert (last["case"], last["tags"], last["pass"], last["mrr"], last["backend"]) == (
        "a",
        "odd;all",
        1.0,
        None,
        "keyword",
    )
    assert "first for" not in repr(rows)
    assert "what of" not in repr(rows)
    assert {row["run"] for row in queries.export_cases(db, ids=[old])} == {old}
    assert {row["run"] for row in queries.export_cases(db, backends=["dense"])} == {new}
    assert list(queries.export_cases(db, suites=["other"])) == []
