"""What is asked, and of whom."""

from __future__ import annotations

from store import queries
from store.database import Database
from tests.store.seeding import Seed


def test_a_suite_as_it_stands(db: Database, seed: Seed) -> None:
    """A suite shows the version in force, how big it is, and how many versions there were."""
    seed.suite(cases={"a": "1"})
    seed.suite(cases={"a": "1", "b": "1"}, origin="starter")
    seed.suite("smoke", {"x": "1"})
    assert [(row.name, row.cases, row.plants, row.versions, row.origin) for row in queries.suites(db)] == [
        ("golden", 2, 7, 2, "starter"),
        ("smoke", 1, 7, 1, "own"),
    ]


def test_versions_say_what_changed(db: Database, seed: Seed) -> None:
    """Each version counts what it added, removed and edited against the one before, newest first."""
    seed.suite(cases={"a": "1", "b": "1", "c": "1"})
    seed.suite(cases={"a": "2", "b": "1", "d": "1", "e": "1"})
    rows = queries.suite_versions(db, "golden")
    assert [(row.cases, row.added, row.removed, row.changed) for row in rows] == [(4, 2, 1, 1), (3, 3, 0, 0)]
    assert rows[0].created_at > rows[1].created_at


def test_tags_and_cases_of_the_version_in_force(db: Database, seed: Seed) -> None:
    """Tags are counted over the cases in force, and those alone are listed."""
    seed.suite(cases={"z": "1"})
    seed.suite(cases={"a": "1", "b": "1", "c": "1"})
    assert [tuple(row) for row in queries.suite_tags(db, "golden")] == [("all", 2), ("odd", 2), ("even", 1)]
    assert [row.name for row in queries.suite_cases(db, "golden")] == ["a", "b", "c"]


def test_a_case_shows_all_that_was_asked_under_its_name(db: Database, seed: Seed) -> None:
    """The question asked now comes first, then what it was before."""
    seed.suite(cases={"a": "1", "b": "1"})
    seed.suite(cases={"a": "2", "b": "1"})
    versions = queries.case(db, "golden", "a")
    assert [(case.hash, case.query, case.suite) for case in versions] == [
        ("2", "what of a?", "golden"),
        ("1", "what of a?", "golden"),
    ]
    assert versions[0].since > versions[1].since
    assert [case.hash for case in queries.case(db, "golden", "b")] == ["1"]


def test_backends_keep_their_order(db: Database, seed: Seed) -> None:
    """A backend's place, which its colour hangs on, is that of its first appearance for ever."""
    for name in ("zeta", "alpha", "zeta", "mid"):
        seed.backend(name, "keyword")
    assert [(row.name, row.order, row.type, row.owner) for row in queries.backends(db)] == [
        ("zeta", 0, "keyword", "team"),
        ("alpha", 1, "keyword", "team"),
        ("mid", 2, "keyword", "team"),
    ]
