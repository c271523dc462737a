"""Which cases a backend loses now, and how each of them fared before."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from store import queries, writes
from store.database import Database
from store.queries import LostCase, Outcome, lost
from tests.store.seeding import START, Seed, outcome, scenario


def test_what_was_lost_comes_with_its_past(db: Database, seed: Seed) -> None:
    """A case that had passed, and fails in its backend's newest whole runs, has an outcome for each run; one
    that passed once among failures did not break."""
    version = seed.suite()
    ids = [seed.run(version, passed, day=day) for day, passed in enumerate((["a", "b"], ["a", "c"], ["a"]))]
    seed.run(version, [], day=3, status="invalid")
    dates = [START + timedelta(days=day) for day in range(3)]
    (lost,) = queries.lost_cases(db, "golden")
    assert lost == LostCase(
        "b", "keyword", [Outcome(*facts, 1) for facts in zip(ids, dates, (1, 0, 0), strict=True)]
    )


def test_a_fall_long_ago_is_found(db: Database, seed: Seed) -> None:
    """However many runs lie between the fall and now: more than are read at once."""
    version = seed.suite(cases={"a": "1"})
    for day in range(3 * lost.STEP + 7):
        seed.run(version, ["a"] if day < 5 else [], cases=["a"], day=day)
    (found,) = queries.lost_cases(db, "golden")
    assert [one.passes for one in found.outcomes] == [1] * 5 + [0] * (3 * lost.STEP + 2)


def test_each_backend_loses_for_itself(db: Database, seed: Seed) -> None:
    """Every backend is judged by its own newest run, and backends select."""
    version = seed.suite()
    for day, backend, passed in (
        (0, "keyword", ["a"]),
        (1, "dense", ["a"]),
        (2, "dense", []),
        (3, "keyword", ["a"]),
    ):
        seed.run(version, passed, backend=backend, day=day)
    assert [(row.case, row.backend) for row in queries.lost_cases(db, "golden")] == [("a", "dense")]
    assert queries.lost_cases(db, "golden", backends=["keyword"]) == []


def test_only_the_runs_since_count(db: Database, seed: Seed) -> None:
    """A pass before the range is not looked at."""
    version = seed.suite()
    for day, passed in enumerate((["a"], ["b"], [])):
        seed.run(version, passed, day=day)
    (row,) = queries.lost_cases(db, "golden", since=START + timedelta(days=1))
    assert (row.case, len(row.outcomes)) == ("b", 2)


@pytest.mark.parametrize(("status", "broken"), [("error", ["a"]), ("skipped", [])])
def test_a_case_without_an_answer(status: str, broken: list[str], db: Database, seed: Seed) -> None:
    """An error in the newest run leaves what had broken broken, without an outcome there; not applying does
    not."""
    version = seed.suite()
    seed.run(version, ["a"], day=-1)
    seed.run(version, [], day=0)
    run_id, token = seed.open(version)
    writes.save_scenario(db, run_id, scenario([outcome("a", passed=None, status=status)]), token)
    seed.close(run_id, token, at=START + timedelta(days=1))
    rows = queries.lost_cases(db, "golden")
    assert [row.case for row in rows] == broken
    assert [[one.judged for one in row.outcomes] for row in rows] == [[1, 1, 0]] * len(broken)


def test_an_edited_case_has_lost_nothing(db: Database, seed: Seed) -> None:
    """What passed under another hash was another question."""
    seed.run(seed.suite(cases={"a": "1"}), ["a"], cases=["a"], day=0)
    seed.run(seed.suite(cases={"a": "2"}), [], cases=["a"], day=1)
    assert queries.lost_cases(db, "golden") == []


@pytest.mark.parametrize("otherwise", [0, 1])
def test_the_scorer_in_force_decides(otherwise: int, db: Database, seed: Seed) -> None:
    """Where a run goes by another scorer, that one says whether the case passed in it."""
    version = seed.suite(cases={"a": "1"})
    ids = [seed.run(version, passed, cases=["a"], day=day) for day, passed in enumerate((["a"], []))]
    assert [row.case for row in queries.lost_cases(db, "golden")] == ["a"]
    with db.write() as connection:
        values = {"run": ids[otherwise]}
        connection.execute(sa.text("INSERT INTO scorer VALUES (2, '2')"))
        copied = (
            "INSERT INTO score SELECT case_result_id, metric_id, 2, 1 - value FROM score WHERE metric_id = 1"
        )
        of_run = "case_result_id IN (SELECT id FROM case_result WHERE run_id = :run)"
        connection.execute(sa.text(f"{copied} AND {of_run}"), values)
        connection.execute(sa.text("UPDATE run SET scorer_id = 2 WHERE id = :run"), values)
        connection.execute(sa.text("UPDATE change SET n = n + 1"))  # as every write of what is shown does
    assert queries.lost_cases(db, "golden") == []
