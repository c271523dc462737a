"""Where a series went bad: what a diff begins with when nobody names two runs."""

from __future__ import annotations

import pytest

from store import queries, writes
from store.records import VerdictEntry
from tests.store.seeding import Seed

ALL = ("a", "b", "c", "d")


def said(db, run_id: int, verdict: str, baseline: list[int]) -> int:
    good = verdict != "worse"
    stage = "" if good else "confirmed"
    writes.record_verdict(db, VerdictEntry(run_id, 1, verdict, stage, False, good, {"baseline": baseline}))
    return run_id


@pytest.fixture
def series(db, seed: Seed) -> list[int]:
    """Good, good, bad, bad; on another backend good only."""
    suite = seed.suite()
    for day in range(2):
        said(db, seed.run(suite, ALL, day=day, backend="dense"), "unchanged", [])
    runs = [seed.run(suite, ALL, day=day) for day in range(4)]
    for run_id, word in zip(runs, ("unchanged", "unchanged", "worse", "worse"), strict=True):
        said(db, run_id, word, [id for id in runs[:2] if id < run_id])
    return runs


def test_from_the_last_good_to_the_first_bad(db, series):
    """The first of the bad runs in a row is held against the good one before it; other good ones are told."""
    assert queries.turn(db) == (series[1], series[2], (series[0], series[1]))
    assert queries.turn(db, "golden", "keyword") == queries.turn(db)


def test_nothing_went_bad(db, series):
    """A series that never went bad has no such pair, and one whose last word on a run is good neither."""
    with pytest.raises(queries.NothingToCompare, match="no run was found worse"):
        queries.turn(db, backend="dense")
    for run_id in series[2:]:
        said(db, run_id, "unchanged", series[:2])
    with pytest.raises(queries.NothingToCompare):
        queries.turn(db)
