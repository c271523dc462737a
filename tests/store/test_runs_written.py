"""Runs from beginning to end: each scenario whole or not at all, and only by who holds the run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, ItemsView, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from store import queries, writes
from store.database import Database, open_database
from store.errors import StoreError
from store.records import CaseOutcome, NewRun
from store.writes import LeaseLost
from store.writes.runs import Rejudged
from tests.store.processes import PROCESSES
from tests.store.seeding import START, Seed, outcome, rollups, scenario

Count = Callable[[str], int]
RESULTS = ("scenario_result", "case_result", "score", "detail")


def test_a_scenario_is_stored_with_all_of_its_cases(db: Database, seed: Seed, count: Count) -> None:
    """Scenario, cases, scores, details and the run's progress are stored together."""
    run_id, token = seed.open(seed.suite())
    cases = [outcome("a"), outcome("b", passed=False), outcome("c", passed=None, status="error")]
    writes.save_scenario(db, run_id, scenario(cases), token)
    assert [count(table) for table in RESULTS] == [1, 3, 4, 3]
    run = queries.run(db, run_id)
    assert run is not None
    assert (run.cases_done, run.errors, run.finished_at, run.metrics) == (3, 1, None, {})


class Killer(Mapping[str, float]):
    """Scores that kill the process when they are read: after the case rows, before the commit."""

    def __getitem__(self, name: str) -> float:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1

    def items(self) -> ItemsView[str, float]:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("dead processes do not get here")


def _die_in_between(url: str, run_id: int, token: int) -> None:
    cases = [outcome("a"), replace(outcome("b"), scores=Killer())]
    writes.save_scenario(open_database(url), run_id, scenario(cases, "killed"), token)


def test_a_crash_in_between_leaves_nothing(db: Database, url: str, seed: Seed, count: Count) -> None:
    """A process killed while it stores a scenario leaves none of it, and the run can go on."""
    run_id, token = seed.open(seed.suite())
    writes.save_scenario(db, run_id, scenario([outcome("c")], "before"), token)
    victim = PROCESSES.Process(target=_die_in_between, args=(url, run_id, token))
    victim.start()
    victim.join(60)
    assert victim.exitcode == -signal.SIGKILL
    assert [count(table) for table in RESULTS] == [1, 1, 2, 1]
    writes.save_scenario(db, run_id, scenario([outcome("a"), outcome("b")], "killed"), token)
    assert queries.finished_scenarios(db, run_id) == {("before", 1), ("killed", 1)}


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (replace(outcome("b"), case="zebra"), "case 'zebra' is not in the suite's version"),
        (replace(outcome("b"), scores={"beauty": 1.0}), "unknown metric 'beauty'; known: pass"),
        (replace(outcome("b"), scores={"pass": float("nan")}), "metric 'pass' is nan; leave out"),
        (replace(outcome("b"), detail={"hits": float("inf")}), "the detail of case 'b' is not JSON"),
        (replace(outcome("b"), detail={"hits": object()}), "the detail of case 'b' is not JSON: object"),
        (
            outcome("b", status=None),
            r"NOT NULL constraint failed: case_result.status|null value in column .status",
        ),
        (outcome("a"), "or one of its cases is stored already"),
    ],
)
def test_one_bad_case_refuses_the_scenario(
    db: Database, seed: Seed, count: Count, broken: CaseOutcome, said: str
) -> None:
    """A case that cannot be stored is named, and nothing of its scenario is kept."""
    run_id, token = seed.open(seed.suite())
    with pytest.raises(StoreError, match=said):
        writes.save_scenario(db, run_id, scenario([outcome("a"), broken]), token)
    assert [count(table) for table in RESULTS] == [0, 0, 0, 0]


def test_nothing_is_stored_twice(db: Database, seed: Seed, count: Count) -> None:
    """A scenario, or a case in another scenario, is refused the second time; another trial is not."""
    run_id, token = seed.open(seed.suite(), trials=2)
    writes.save_scenario(db, run_id, scenario([outcome("a")]), token)
    for doubled in (scenario([outcome("b")]), scenario([outcome("a")], "s2")):
        with pytest.raises(StoreError, match="stored already; nothing was stored twice"):
            writes.save_scenario(db, run_id, doubled, token)
    writes.save_scenario(db, run_id, scenario([outcome("a", trial=2)], trial=2), token)
    assert (count("scenario_result"), count("case_result")) == (2, 2)


def test_a_deposed_process_stores_nothing(db: Database, seed: Seed, count: Count) -> None:
    """Who lost the backend's lease to another cannot write to the run any more, nor close it."""
    run_id, token = seed.open(seed.suite())
    writes.release_lease(db, "backend:keyword", token)
    other = writes.acquire_lease(db, "backend:keyword", "other", 60)
    assert other == token + 1
    with pytest.raises(LeaseLost, match="taken over by another process"):
        writes.save_scenario(db, run_id, scenario([outcome("a")]), token)
    with pytest.raises(LeaseLost):
        writes.close_run(db, run_id, "whole", [], token=token)
    assert count("case_result") == 0


def test_a_closed_run_takes_no_more(db: Database, seed: Seed) -> None:
    """What has ended stays as it is."""
    run_id, token = seed.open(seed.suite())
    writes.close_run(db, run_id, "whole", rollups(), token=token)
    with pytest.raises(LeaseLost, match=f"run {run_id} is whole and takes no more"):
        writes.save_scenario(db, run_id, scenario([outcome("a")]), token)


def test_closing_writes_rollup_status_and_time_at_once(db: Database, seed: Seed) -> None:
    """A closed run has its metrics, its status with the reason, and when it ended."""
    run_id, token = seed.open(seed.suite())
    writes.close_run(db, run_id, "invalid", rollups(0.25), "too many errors", token=token)
    run = queries.run(db, run_id)
    assert run is not None
    assert run.finished_at is not None
    assert (run.status, run.reason, run.metrics["pass"].mean) == ("invalid", "too many errors", 0.25)


def test_a_run_of_an_unknown_suite_is_refused(db: Database, seed: Seed) -> None:
    """A run needs a registered suite version."""
    new = NewRun(99, seed.backend(), None, "cli", 1, 1, 1, "1")
    with pytest.raises(StoreError, match="suite version 99 is not in the record; register the suite first"):
        writes.open_run(db, new)


def test_an_interrupted_run_is_resumed_with_what_it_has(db: Database, seed: Seed) -> None:
    """A run whose process died reads as interrupted, goes on under a new token, and keeps its results."""
    run_id, token = seed.open(seed.suite())
    writes.save_scenario(db, run_id, scenario([outcome("a")]), token)
    writes.cancel_run(db, run_id, "ann")
    writes.release_lease(db, "backend:keyword", token)
    run = queries.run(db, run_id)
    assert run is not None
    assert run.status == "interrupted"
    again = writes.acquire_lease(db, "backend:keyword", "second", 60)
    assert again is not None
    writes.reopen_run(db, run_id, again)
    writes.save_scenario(db, run_id, scenario([outcome("b")], "s2"), again)
    run = queries.run(db, run_id)
    assert run is not None
    assert (run.status, run.cases_done, run.cancelled) == ("running", 2, False)
    with pytest.raises(LeaseLost):
        writes.save_scenario(db, run_id, scenario([outcome("c")], "s3"), token)


def test_whoever_lost_the_lease_begins_nothing(db: Database, seed: Seed) -> None:
    """A process that slept between taking a backend and opening its run, or going on with one, is refused
    once another has the backend, and has written nothing."""
    run_id, old = seed.open(seed.suite())
    writes.close_run(db, run_id, "interrupted", rollups(0.1), "stopped", token=old)
    row = queries.run(db, run_id)
    writes.release_lease(db, "backend:keyword", old)
    assert writes.acquire_lease(db, "backend:keyword", "second", 60) == old + 1
    new = NewRun(seed.suite(), seed.backend(), None, "cli", 1, 1, old, "1")
    with pytest.raises(LeaseLost, match="taken over by another process"):
        writes.open_run(db, new)
    with pytest.raises(LeaseLost, match="taken over by another process"):
        writes.reopen_run(db, run_id, old)
    assert queries.count_runs(db) == 1
    assert queries.run(db, run_id) == row


def test_only_interrupted_runs_are_resumed(db: Database, seed: Seed) -> None:
    """A run that goes on, or has ended in another way, is not taken over."""
    run_id, token = seed.open(seed.suite())
    with pytest.raises(StoreError, match="is not interrupted"):
        writes.reopen_run(db, run_id, token + 1)
    writes.close_run(db, run_id, "whole", [], token=token)
    with pytest.raises(StoreError, match="nothing to resume"):
        writes.reopen_run(db, run_id, token)


def test_a_resumed_run_gets_a_new_rollup(db: Database, seed: Seed) -> None:
    """What an interrupted run came to is dropped when it goes on, so that closing it again is possible."""
    run_id, token = seed.open(seed.suite())
    writes.close_run(db, run_id, "interrupted", rollups(0.1), "stopped", token=token)
    writes.reopen_run(db, run_id, token)
    writes.close_run(db, run_id, "whole", rollups(0.9), token=token)
    run = queries.run(db, run_id)
    assert run is not None
    assert (run.metrics["pass"].mean, run.reason) == (0.9, None)


def test_stale_runs_are_marked_once(db: Database, seed: Seed) -> None:
    """Runs whose lease is gone are marked as interrupted; live ones, and those marked before, are left."""
    version = seed.suite()
    dead, token = seed.open(version)
    alive, _ = seed.open(version, "dense")
    writes.release_lease(db, "backend:keyword", token)
    assert writes.interrupt_stale_runs(db) == [dead]
    assert writes.interrupt_stale_runs(db) == []
    statuses = {run.id: run.status for run in queries.runs(db)}
    assert statuses == {dead: "interrupted", alive: "running"}


def test_cancelling_asks_and_notes_who(db: Database, seed: Seed) -> None:
    """A cancel sets the mark that the runner looks for, and an event names who asked."""
    run_id, token = seed.open(seed.suite())
    assert not queries.is_cancelled(db, run_id)
    writes.cancel_run(db, run_id, "ann")
    assert queries.is_cancelled(db, run_id)
    assert [(event.message, event.run_id) for event in queries.events(db)] == [
        (f"ann cancelled run {run_id}", run_id)
    ]
    writes.close_run(db, run_id, "interrupted", [], token=token)
    with pytest.raises(StoreError, match="is not running"):
        writes.cancel_run(db, run_id, "ann")


def test_rescoring_keeps_the_old_scores(db: Database, seed: Seed, count: Count) -> None:
    """A new scorer's scores and rollup are the ones shown; those of the old one stay in the record."""
    run_id = seed.run(seed.suite(), ["a", "b"])
    before = count("score")
    answers = queries.stored_answers(db, run_id)
    scores = [
        Rejudged(answer.case_result_id, "ok", "not returned", 1, {"pass": 0.0}, answer.detail)
        for answer in answers
    ]
    for _ in range(2):  # the second time replaces what the first wrote
        writes.rescore(db, run_id, "2", scores, rollups(0.0))
    assert count("score") == before + len(answers)
    run = queries.run(db, run_id)
    assert run is not None
    assert (run.scorer, run.metrics["pass"].mean) == ("2", 0.0)
    assert {row.passed for row in queries.run_cases(db, run_id)} == {False}
    assert queries.runs_scored_otherwise(db, "2") == []
    assert queries.runs_scored_otherwise(db, "3") == [run_id]


def test_a_run_going_on_is_not_scored_again(db: Database, seed: Seed) -> None:
    """Only what has ended is rescored."""
    run_id, _ = seed.open(seed.suite())
    with pytest.raises(StoreError, match="has not ended"):
        writes.rescore(db, run_id, "2", [], [])


def test_times_come_back_as_they_went_in(db: Database, seed: Seed) -> None:
    """Times are aware and in UTC, whatever zone they came from; naive ones are refused."""
    from datetime import timezone

    east = START.astimezone(timezone(timedelta(hours=5, minutes=30)))
    writes.add_mark(db, "deploy", at=east)
    mark = queries.marks(db)[0]
    assert mark.at == START
    assert mark.at.utcoffset() == timedelta(0)
    with pytest.raises(StoreError, match="without a zone"):
        writes.add_mark(db, "deploy", at=START.replace(tzinfo=None))
