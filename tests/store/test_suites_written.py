"""Suites, backends and environments are known once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from store import queries, writes
from store.database import Database
from store.errors import StoreError
from store.records import CaseRecord, SuiteRecord
from tests.store.seeding import Seed

Count = Callable[[str], int]


def test_registering_a_suite_again_changes_nothing(db: Database, seed: Seed, count: Count) -> None:
    """The same suite registered twice is one version, the same cases, and no change to anyone's caches."""
    first = seed.suite()
    state = queries.data_version(db)
    assert seed.suite() == first
    assert (count("suite"), count("suite_version"), count("case")) == (1, 1, 4)
    assert queries.data_version(db) == state


def test_an_edited_case_is_another_case(seed: Seed, count: Count) -> None:
    """A new hash makes a new row, what is unchanged is shared, and nothing is edited."""
    seed.suite(cases={"a": "1", "b": "1"})
    seed.suite(cases={"a": "2", "b": "1"})
    assert (count("suite_version"), count("case"), count("suite_version_case")) == (2, 3, 4)


def test_a_suite_set_back_is_in_force_again(db: Database, seed: Seed) -> None:
    """Registering a former version anew brings it back into force without a new row."""
    first = seed.suite(cases={"a": "1"})
    seed.suite(cases={"a": "2"})
    assert seed.suite(cases={"a": "1"}) == first
    assert [case.hash for case in queries.suite_cases(db, "golden")] == ["1"]


def test_a_part_of_a_suite_is_not_in_force(db: Database) -> None:
    """What is run of a suite by tag is a version of its own, and the whole stays in force."""
    one, two = CaseRecord("a", "1", "?"), CaseRecord("b", "1", "?")
    part = SuiteRecord("golden", "golden", "own", "part", 0, (one,))
    assert writes.register_suite(db, part, in_force=False) == writes.register_suite(db, part, in_force=False)
    whole = writes.register_suite(db, SuiteRecord("golden", "golden", "own", "whole", 0, (one, two)))
    assert writes.register_suite(db, part, in_force=False) != whole
    assert len(queries.suite_cases(db, "golden")) == 2


def test_a_doubled_case_is_refused(db: Database, count: Count) -> None:
    """Two cases of one name are refused before anything is stored."""
    twice = (CaseRecord("a", "1", "?"), CaseRecord("a", "2", "?"))
    with pytest.raises(StoreError, match="suite golden: a case name occurs twice"):
        writes.register_suite(db, SuiteRecord("golden", "golden", "own", "1", 0, twice))
    assert count("suite") == 0


def test_a_backend_keeps_its_id(db: Database, count: Count) -> None:
    """A backend registered again with another configuration is the same row, brought up to date."""
    first = writes.register_backend(db, "keyword", "keyword", {"k": 1})
    assert writes.register_backend(db, "keyword", "dense", {"k": 2}, "team") == first
    assert [(row.type, row.owner) for row in queries.backends(db)] == [("dense", "team")]


def test_equal_environments_are_one_row(db: Database, count: Count) -> None:
    """Environments that differ in the order of their keys alone are the same."""
    first = writes.register_environment(db, {"python": "3.11", "packages": {"a": "1", "b": "2"}})
    again = writes.register_environment(db, {"packages": {"b": "2", "a": "1"}, "python": "3.11"})
    other = writes.register_environment(db, {"python": "3.12", "packages": {"a": "1", "b": "2"}})
    assert first == again != other
    assert count("environment") == 2
    assert queries.environment(db, other)["python"] == "3.12"
