"""What the report of a run and of a week is made of, on both databases, and how a week is told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from store import queries, report_shapes, run_words, week_words, writes
from store.database import Database
from store.licences import credit, withheld
from store.records import SuiteRecord, VerdictEntry
from store.week import Upgrade, by_origin, merged, turns
from tests.store.seeding import START, Seed

UNTIL = START + timedelta(days=9, hours=1)
CONTENT: Mapping[str, Any] = {
    "verdict": "unchanged", "stage": "", "provisional": False, "accepted": True, "reason": None, "looks": [],
    "difference": None, "lost": [], "gained": [], "critical": [], "blind_spot": None, "drift": None,
    "moved": [], "leak": None, "beats_dense": {}, "cases": 4, "nights": 5, "days": 5, "baseline": [1],
    "anchor": [], "missing": [], "control": None,
}  # fmt: skip
LOST: Mapping[str, Any] = {
    **CONTENT, "verdict": "worse", "stage": "confirmed", "lost": ["a"], "accepted": False,
    "looks": [{"number": 1, "run_id": 1, "trials": 1, "p_worse": 0.01, "p_better": 1.0}],
}  # fmt: skip


def say(db: Database, run_id: int, content: Mapping[str, Any]) -> None:
    told = (content["verdict"], content["stage"], False, content["accepted"])
    writes.record_verdict(db, VerdictEntry(run_id, 1, *told, content))


@pytest.fixture
def nights(db: Database, seed: Seed) -> list[int]:
    """Ten nights of one's own suite, one case lost from the eighth on; two of a synthetic one."""
    own, theirs = seed.suite(), seed.suite("synthetic", {"x": "1"}, origin="starter")
    runs = [seed.run(own, ["a", "b"] if day < 7 else ["b"], day=day) for day in range(10)]
    for day, run_id in enumerate(runs):
        say(db, run_id, CONTENT if day < 7 else LOST)
    for day in (8, 9):
        seed.run(theirs, ["x"], cases=["x"], day=day)
    return runs


def test_a_run(db: Database, nights: list[int]) -> None:
    """A report has the cases that the verdict names, the nights up to its own run, and texts when asked."""
    found = queries.run_report(db, nights[7])
    assert found is not None
    lost, gained = run_words.turned(found)
    assert ([row.case for row in lost], gained) == (["a"], [])
    assert [point.run_id for point in found.points] == nights[:8]
    assert found.before is not None
    assert found.before.id == nights[6]
    assert run_words.title(found).startswith("keyword on golden: 1 of 4 cases passed: worse, 1 lost")
    assert {(row.query, row.first_hit) for row in found.cases} == {("", None)}
    asked = queries.run_report(db, nights[7], with_texts=True)
    assert asked is not None
    assert (asked.cases[0].query, asked.cases[0].first_hit) == ("what of a?", "first for a")
    assert "first for a" not in str(report_shapes.run(found))
    assert "first for a" in str(report_shapes.run(asked))
    assert queries.run_report(db, 999) is None


def test_a_run_of_which_nothing_was_said(db: Database, seed: Seed) -> None:
    """Without a verdict the cases that turned since the run before are told, and that nobody judged it."""
    version = seed.suite()
    for day, passed in enumerate((["a", "b"], ["b", "c"])):
        last = seed.run(version, passed, day=day)
    found = queries.run_report(db, last)
    assert found is not None
    assert [[row.case for row in rows] for rows in run_words.turned(found)] == [["a"], ["c"]]
    assert run_words.changed(found).startswith("Nothing was said of this run yet")


def test_a_week(db: Database, nights: list[int]) -> None:
    """A week has its own nights, the rate of the last night before, and where a series turned, once."""
    found = queries.week(db, UNTIL)
    own, theirs = found.series
    assert (own.suite, own.whole, theirs.suite, theirs.whole) == ("golden", 7, "synthetic", 2)
    assert own.before is not None
    assert own.now is not None
    assert (own.before.mean, own.now.mean) == (0.5, 0.25)
    assert [(turn.said.run_id, turn.badge.text) for turn in turns(own)] == [(nights[7], "Worse")]
    assert week_words.since_before(own) == "−25.0 points"
    assert week_words.nights(own) == "3 worse, 4 no change seen"
    assert theirs.badge is None
    assert not queries.week(db, START - timedelta(days=1)).series
    assert queries.week(db, START - timedelta(days=1)).is_empty


def test_synthetic_suites_are_apart(db: Database, nights: list[int]) -> None:
    """No number of a week is of a team's own suites and of synthetic ones: title, groups and costs are of
    each by itself."""
    found = queries.week(db, UNTIL)
    assert list(by_origin(found.series)) == ["own", "starter"]
    assert week_words.title(found) == (
        "Your cases: keyword got worse on golden. "
        "Synthetic starter: 1 backend measured on 1 suite; no baseline yet, so no verdict"
    )
    assert [(one.origin, one.runs) for one in found.spent] == [("own", 7), ("starter", 2)]
    assert sum(one.money for one in found.spent) == pytest.approx(0.5 * 9)


def test_what_is_to_be_decided(db: Database, nights: list[int]) -> None:
    """What is worse at the end of the week is asked about, and what was mended within it is not."""
    assert [line[:34] for line in week_words.decisions(queries.week(db, UNTIL), UTC)] == [
        "keyword on golden is worse: go bac"
    ]
    say(db, nights[9], CONTENT)
    assert week_words.decisions(queries.week(db, UNTIL), UTC) == []
    told = week_words.turn_lines(queries.week(db, UNTIL), UTC)
    assert [line.partition(": keyword")[2][:40] for line in told] == [
        " on golden (run 8): worse, after no chan",
        " on golden (run 10): no change seen, aft",
    ]


def test_a_run_that_is_not_whole(db: Database, seed: Seed) -> None:
    """A night that could not be measured stands in the week as that, and somebody has to mend it."""
    version = seed.suite()
    seed.run(version, ["a"], day=4)
    broken = seed.run(version, [], day=5, status="invalid")
    found = queries.week(db, UNTIL)
    (series,) = found.series
    assert week_words.series_word(series) == "Invalid"
    assert week_words.nights(series) == "1 not whole"
    (mend,) = week_words.decisions(found, UTC)
    assert mend.startswith("Who mends the measuring? The newest run of golden on keyword is invalid.")
    assert f"memtrend show {broken}" in mend


def test_an_upgrade_is_told_once() -> None:
    """What changed on a backend that two suites ran is one upgrade, of the first run that saw it."""
    at = datetime(2026, 3, 1, tzinfo=UTC)
    changes = (("packages.mem0ai", "1", "2"),)
    seen = [Upgrade("mem0", 4, at + timedelta(hours=1), changes), Upgrade("mem0", 3, at, changes)]
    other = Upgrade("dense", 5, at, changes)
    assert merged([*seen, other]) == (seen[1], other)


@pytest.mark.parametrize(
    ("values", "blocks"), [([], ""), ([0.5, 0.5], "▄▄"), ([0.0, 0.5, 1.0], "▁▅█"), ([1.0, 0.0], "█▁")]
)
def test_sparks(values: list[float], blocks: str) -> None:
    """From the lowest to the highest, and level where nothing moves."""
    assert week_words.spark(values) == blocks


# Licences ---------------------------------------------------------------------------------------------------


def test_a_licence_travels(db: Database, seed: Seed) -> None:
    """Licence and citation of a suite come back with it, in a report, and in each exported row."""
    record = SuiteRecord(
        "golden", "golden", "published", "a1-b1-c1-d1", 7, (), "default", "CC-BY-4.0", "Doe 2026"
    )
    run_id = seed.run(seed.suite(), ["a"])
    writes.register_suite(db, record)
    (suite,) = queries.suites(db)
    assert (suite.licence, suite.citation) == ("CC-BY-4.0", "Doe 2026")
    found = queries.run_report(db, run_id)
    assert found is not None
    assert report_shapes.run(found)["suite"]["credit"] == "Licence: CC-BY-4.0. Cite: Doe 2026"
    rows = list(queries.export_cases(db))
    assert {(row["licence"], row["citation"]) for row in rows} == {("CC-BY-4.0", "Doe 2026")}
    assert credit("", "") == ""


@pytest.mark.parametrize(
    ("origin", "licence", "may"),
    [
        ("own", "", True),
        ("starter", "MIT", True),
        ("published", "CC-BY-4.0", True),
        ("published", "CC-BY-NC-4.0", False),
        ("own", "for non-commercial use", False),
        ("published", "", False),
        ("published", "BSD-3-Clause (NCSA kin)", True),
    ],
)
def test_texts_of_a_licence(origin: str, licence: str, may: bool) -> None:
    """Texts are withheld where trade is, and where somebody published them without a licence."""
    assert (withheld("s", origin, licence) == "") is may
