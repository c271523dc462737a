"""How the monitor itself does, as the record tells it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from store import queries, writes
from store.database import REVISIONS, Database
from store.records import CaseOutcome
from tests.store.seeding import START, Seed, outcome, scenario


def counting(case: str, counted: dict[str, int], expected: dict[str, int]) -> CaseOutcome:
    scores = {"pass": 1.0, "leg_count": float(min(counted.values()))}
    detail = {"census": {"counted": counted, "expected": expected}}
    return replace(outcome(case), scores=scores, detail=detail)


def counted_run(seed: Seed, version: int, counted: dict[str, int], expected: dict[str, int], day: int) -> int:
    run_id, token = seed.open(version)
    writes.save_scenario(seed.db, run_id, scenario([counting("a", counted, expected), outcome("b")]), token)
    seed.close(run_id, token, at=START + timedelta(days=day))
    return run_id


def test_index_counts_are_a_row_a_leg_and_run(db: Database, seed: Seed) -> None:
    """Runs that counted are told oldest first, with what was expected where anybody knows; runs that did not
    count, and older ones, are left out."""
    version = seed.suite()
    seed.run(version, ["a"], day=1)
    counted_run(seed, version, {"vector": 5}, {}, day=0)
    first = counted_run(seed, version, {"vector": 7, "keyword": 6}, {"keyword": 7}, day=2)
    second = counted_run(seed, version, {"vector": 8, "keyword": 8}, {}, day=3)
    rows = queries.index_counts(db, START + timedelta(days=1))
    assert [(row.run_id, row.leg, row.counted, row.expected) for row in rows] == [
        (first, "keyword", 6, 7),
        (first, "vector", 7, None),
        (second, "keyword", 8, None),
        (second, "vector", 8, None),
    ]
    assert {(row.suite, row.backend) for row in rows} == {("golden", "keyword")}
    assert rows[0].at == START + timedelta(days=2)


def test_paces_are_of_the_newest_whole_runs(db: Database, seed: Seed) -> None:
    """One row a suite and backend: what its newest whole run spent on planting, asking and diagnosing."""
    version = seed.suite()
    seed.run(version, ["a"])
    run_id, token = seed.open(version)
    lost = replace(outcome("b", passed=False), detail={"diagnosis": {"ms": 40.0}})
    writes.save_scenario(db, run_id, scenario([outcome("a"), lost]), token)
    seed.close(run_id, token)
    seed.run(version, ["a"], status="invalid")
    seed.run(version, ["a"], backend="dense")
    paces = {pace.backend: pace for pace in queries.run_paces(db)}
    assert paces.keys() == {"keyword", "dense"}
    pace = paces["keyword"]
    assert (pace.run_id, pace.suite, pace.scenarios) == (run_id, "golden", 1)
    assert (pace.plant_ms, pace.settle_ms, pace.recall_ms, pace.diagnosis_ms) == (10.0, 1.0, 4.0, 40.0)
    assert pace.busy_ms == pytest.approx(55.0)
    assert pace.seconds >= 0
    assert paces["dense"].diagnosis_ms == 0.0


def test_run_states(db: Database, seed: Seed) -> None:
    """Runs by id, with the state that they are in; what is no run is passed over."""
    version = seed.suite()
    whole = seed.run(version, ["a"])
    invalid = seed.run(version, ["a"], status="invalid", backend="dense")
    going, _ = seed.open(version, "hybrid")
    assert queries.run_states(db, [going, invalid, whole, 99]) == [
        (whole, "golden", "keyword", "whole"),
        (invalid, "golden", "dense", "invalid"),
        (going, "golden", "hybrid", "running"),
    ]


def test_nothing_is_told_of_an_empty_record(db: Database) -> None:
    """Without a run there is nothing to tell, and no error."""
    assert queries.run_paces(db) == []
    assert queries.index_counts(db, START) == []
    assert queries.run_states(db, []) == []


def test_record_facts(db: Database) -> None:
    """What keeps the record, at which revision, and how many bytes it takes."""
    facts = queries.record_facts(db)
    assert facts.server == db.server()
    assert facts.revision == REVISIONS[-1]
    assert facts.size > 10_000
