"""What is old goes, what is needed stays, and the file gets smaller."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from store import models as m
from store import queries, retention, writes
from store.database import Database
from store.records import ScenarioOutcome, VerdictEntry
from store.sections import RetentionSection
from store.writes import retention as removing
from tests.store.seeding import START, Seed, outcome, scenario

Count = Callable[[str], int]
LONG_AGO = (datetime.now(UTC) - START).days - 500
DETAILS = RetentionSection(details="90d")
RESULTS = RetentionSection(details="90d", results="400d")


@pytest.fixture
def nights(seed: Seed) -> list[int]:
    """Runs of a series: 5 from 500 days ago, 71 that end 100 days ago."""
    version = seed.suite()
    days = [LONG_AGO + n for n in range(5)] + [LONG_AGO + 330 + n for n in range(71)]
    return [seed.run(version, ["a", "b"], day=day) for day in days]


def _details(db: Database) -> set[int]:
    return {run_id for run_id in _runs(db) if queries.run_cases(db, run_id) and _has_texts(db, run_id)}


def _has_texts(db: Database, run_id: int) -> bool:
    return any(answer.detail for answer in queries.stored_answers(db, run_id))


def _runs(db: Database) -> list[int]:
    return [row.id for row in queries.runs(db, limit=None)]


def test_nothing_goes_unasked(db: Database, nights: list[int], count: Count) -> None:
    """Without a setting nothing is ever removed."""
    assert retention.prune(db, RetentionSection()) == (0, 0, 0)
    assert count("detail") == 4 * len(nights)


def test_texts_go_by_age(db: Database, nights: list[int], count: Count) -> None:
    """Texts and journals that are too old go, and results, scores, rollups and runs stay."""
    writes.keep_journal(db, nights[1], "it said something")
    writes.keep_journal(db, nights[-1], "it said something else")
    tables = ("run", "case_result", "score", "rollup", "scenario_result")
    before = [count(table) for table in tables]
    gone = retention.prune(db, DETAILS).details
    # the first ten are what no run may fall behind; the last one and 60 before it are compared with
    assert gone == len(nights) - 10 - 61
    assert _details(db) == {*nights[:10], *nights[-61:]}
    assert [count(table) for table in tables] == before
    assert count("journal") == 2
    assert retention.prune(db, DETAILS).details == 0


def test_results_go_with_their_texts(db: Database, seed: Seed, nights: list[int], count: Count) -> None:
    """Results that are too old go with scores and texts; the run keeps its metrics and its verdict."""
    old = seed.run(seed.suite("other"), ["a"], day=LONG_AGO)
    writes.keep_journal(db, old, "told")
    writes.record_verdict(db, VerdictEntry(old, 0, "unchanged", "first", False, True, {"moved": []}))
    seed.run(seed.suite("other"), ["a"], day=LONG_AGO + 1, status="invalid")
    before = {name: rolled.mean for name, rolled in queries.run(db, old).metrics.items()}  # type: ignore[union-attr]
    with db.write() as connection:  # what stands in no baseline
        connection.execute(m.run.update().where(m.run.c.id == old).values(subset="even"))
    assert retention.prune(db, RESULTS).results == 2
    row = queries.run(db, old)
    assert row is not None
    assert {name: rolled.mean for name, rolled in row.metrics.items()} == before
    assert queries.verdict(db, old) is not None
    assert (queries.run_cases(db, old), queries.journal(db, old)) == ([], "")
    assert queries.removals(db, old) == {"details": "400d", "results": "400d"}
    for table in ("detail", "case_result"):
        assert count(table) >= 4 * 70


def test_what_a_baseline_needs_stays(db: Database, seed: Seed, nights: list[int]) -> None:
    """A run that a person pinned, the looks at a run that stays, and a suspicion still open lose nothing."""
    version = seed.suite()
    pinned = nights[11]
    writes.decide_baseline(db, "golden", "keyword", "pin", [pinned], "good", "ann")
    look = seed.run(
        version, ["a"], day=LONG_AGO, subset=queries.CONFIRM, trigger=queries.look_trigger(pinned)
    )
    stray = seed.run(version, ["a"], day=LONG_AGO, subset="even")
    content = {"moved": []}
    open_ = seed.run(version, ["a"], day=LONG_AGO, subset="odd")
    writes.record_verdict(db, VerdictEntry(open_, 0, "cannot_tell", "suspicion", True, False, content))
    retention.prune(db, RESULTS)
    kept = _details(db)
    assert {pinned, look, open_} <= kept
    assert stray not in kept
    assert kept.isdisjoint(nights[:11])  # the pin took the place of the first ten


def test_what_can_be_resumed_keeps_its_results(db: Database, seed: Seed) -> None:
    """An interrupted run may be gone on with, so only its texts go; one that goes on is not touched."""
    version = seed.suite()
    halted = seed.run(version, ["a"], day=LONG_AGO, status="interrupted")
    going, token = seed.open(version)
    writes.save_scenario(db, going, ScenarioOutcome("s1", 1, "ok", cases=(outcome("a"),)), token)
    seed.at(going, datetime.now(UTC) - timedelta(days=500))
    retention.prune(db, RESULTS)
    assert len(queries.run_cases(db, halted)) == 4
    assert _details(db) == {going}


def test_a_big_run_goes_in_short_steps(
    db: Database, nights: list[int], monkeypatch: pytest.MonkeyPatch, count: Count
) -> None:
    """However big a run is, no transaction takes more of it than a batch; one that was killed in between is
    gone on with, and the run says from the first on what is removed of it."""
    steps = itertools.count(1)
    some = removing._remove_some

    def killed(*arguments: Any) -> bool:
        if next(steps) == 3:
            raise KeyboardInterrupt
        return some(*arguments)

    monkeypatch.setattr(removing, "BATCH", 1)
    monkeypatch.setattr(removing, "_remove_some", killed)
    whole = count("detail")
    with pytest.raises(KeyboardInterrupt):
        retention.prune(db, DETAILS)
    assert whole - count("detail") == 2  # of the four of the oldest run that may go
    (cut,) = [run_id for run_id in nights if queries.removals(db, run_id)]
    assert sum(bool(one.detail) for one in queries.stored_answers(db, cut)) == 2
    monkeypatch.undo()
    assert retention.prune(db, DETAILS).details == 5
    assert not _has_texts(db, cut)
    assert retention.prune(db, DETAILS) == (0, 0, 0)


def test_what_came_back_goes_again(db: Database, seed: Seed, nights: list[int]) -> None:
    """Texts that a run got after its own were removed, since it was gone on with, go as well."""
    version = seed.suite()
    halted = seed.run(version, ["a"], cases=["a"], day=LONG_AGO, status="interrupted")
    retention.prune(db, DETAILS)
    token = writes.acquire_lease(db, writes.backend_lease("keyword"), "test", 60)
    assert token is not None
    writes.reopen_run(db, halted, token)
    writes.save_scenario(db, halted, scenario([outcome("b")], "s2"), token)
    seed.close(halted, token, status="interrupted", at=START + timedelta(days=LONG_AGO))
    assert _has_texts(db, halted)
    retention.prune(db, DETAILS)
    assert not _has_texts(db, halted)


def test_pruning_stops_between_runs(db: Database, nights: list[int]) -> None:
    """A stop ends it after the run in hand, and the next time goes on from there."""
    stop = threading.Event()
    stop.set()
    assert retention.prune(db, DETAILS, stop) == (0, 0, 0)
    assert retention.prune(db, DETAILS).details == 5


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_space_is_given_back(db: Database, seed: Seed) -> None:
    """The file is smaller by most of what was removed, and nothing of it is left free."""
    version = seed.suite()
    seed.run(version, ["a"])  # the newest, which stays
    run_id, token = seed.open(version, subset="even")
    for trial in range(1, 101):
        cases = (replace(outcome("a", trial=trial), detail={"reply": "x" * 100_000}),)
        writes.save_scenario(db, run_id, ScenarioOutcome("s1", trial, "ok", cases=cases), token)
    seed.close(run_id, token, at=datetime.now(UTC) - timedelta(days=100))
    with db.read() as connection:
        before = db.dialect.size(connection)
    given = retention.prune(db, DETAILS).bytes
    with db.read() as connection:
        assert db.dialect.size(connection) == before - given
        assert connection.exec_driver_sql("PRAGMA freelist_count").scalar() == 0
    assert given > 9_000_000
