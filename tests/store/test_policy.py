"""The policy of a suite, as the record keeps it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from store import queries, writes
from store.database import Database
from store.errors import StoreError
from tests.store.seeding import Seed

SOON = datetime.now(UTC) + timedelta(days=7)
ASKED = ("a", "b", "c", "d")


def standing(db: Database, backend: str | None = None) -> dict[str, str]:
    return {row.case: row.standing for row in queries.case_standings(db, "golden", backend)}


def nights(seed: Seed, version: int, *passed: str, backend: str = "keyword", start: int = 0) -> None:
    """A whole run for each string, in which its letters passed."""
    for day, cases in enumerate(passed, start):
        seed.run(version, list(cases), backend=backend, day=day)


def test_a_new_case_is_on_trial_until_it_is_stable(db: Database, seed: Seed) -> None:
    """A case gates nothing before it came out the same in five whole runs in a row; then it gates, whatever
    becomes of it, since losing is what it is there to tell."""
    version = seed.suite()
    nights(seed, version, "a", "ab", "a", "ab")
    assert set(standing(db).values()) == {"trial"}
    nights(seed, version, "a", start=4)
    assert standing(db) == {"a": "gating", "b": "trial", "c": "gating", "d": "gating"}
    nights(seed, version, "", "c", start=5)
    assert standing(db)["a"] == standing(db)["c"] == "gating"
    assert [row.gates for row in queries.case_standings(db, "golden")] == [True, False, True, True]


def test_a_changed_case_is_on_trial_again(db: Database, seed: Seed) -> None:
    """A case with another hash is another question, and begins anew."""
    nights(seed, seed.suite(), *["abcd"] * 5)
    changed = seed.suite(cases={"a": "2", "b": "1", "c": "1", "d": "1"})
    assert standing(db) == {"a": "trial", "b": "gating", "c": "gating", "d": "gating"}
    nights(seed, changed, *["abcd"] * 5, start=5)
    assert standing(db)["a"] == "gating"


def test_floors_make_nothing_stable(db: Database, seed: Seed) -> None:
    """That a floor always says the same is no sign of a stable case; a gate asks of its own backend."""
    version = seed.suite()
    nights(seed, version, *["abcd"] * 5, backend="everything")
    nights(seed, version, *["abcd"] * 5, backend="hybrid")
    nights(seed, version, "", "a", "", backend="dense")
    seed.backend("nothing")
    assert standing(db)["a"] == "gating"
    assert standing(db, "dense")["a"] == "trial"
    other = seed.suite("other")
    nights(seed, other, *["abcd"] * 5, backend="everything")
    assert {row.standing for row in queries.case_standings(db, "other")} == {"trial"}


def test_quarantine_ends(db: Database, seed: Seed) -> None:
    """A case in quarantine gates nothing until its day has passed, or it is released; then it gates again."""
    nights(seed, seed.suite(), *["abcd"] * 5)
    for case in "ab":
        writes.decide_case(
            db, "golden", case, "quarantine", reason="two answers", author="noor", owner="jo", expires=SOON
        )
    writes.decide_case(db, "golden", "b", "released", reason="one answer now", author="noor")
    row = queries.case_standings(db, "golden")[0]
    assert (row.standing, row.owner, row.reason, row.expires, row.author, row.gates) == (
        "quarantine", "jo", "two answers", SOON, "noor", False,
    )  # fmt: skip
    assert standing(db)["b"] == "gating"
    with db.write() as connection:  # the database's clock decides, so the day is moved instead
        connection.exec_driver_sql("UPDATE case_state SET expires = '2026-01-01 00:00:00.000000'")
    ended = queries.case_standings(db, "golden")[0]
    assert (ended.standing, ended.gates) == ("expired", True)


def test_a_retired_case_that_is_still_asked_gates(db: Database, seed: Seed) -> None:
    """Retiring a case silences nothing: as long as its line stands in the suite, its loss is news."""
    nights(seed, seed.suite(), *["abcd"] * 5)
    writes.decide_case(db, "golden", "a", "retired", reason="asked no more", author="noor")
    assert standing(db)["a"] == "gating"


def test_what_changes_nothing_is_refused(db: Database, seed: Seed) -> None:
    """Releasing what is free, retiring twice, and a quarantine that would undo a retirement say so."""
    seed.suite()
    told = {"reason": "why", "author": "noor"}
    with pytest.raises(StoreError, match="neither in quarantine nor retired"):
        writes.decide_case(db, "golden", "a", "released", **told)
    writes.decide_case(db, "golden", "a", "retired", **told)
    with pytest.raises(StoreError, match="retired already"):
        writes.decide_case(db, "golden", "a", "retired", **told)
    with pytest.raises(StoreError, match="release it first"):
        writes.decide_case(db, "golden", "a", "quarantine", **told, owner="jo", expires=SOON)
    writes.decide_case(db, "golden", "a", "released", **told)


def test_nothing_is_decided_in_silence(db: Database, seed: Seed) -> None:
    """A decision without reason, a quarantine without owner, with an end that has passed or is years away, a
    case or a version that never was: each is refused, and nothing is written."""
    seed.suite()
    given = {"reason": "flaky", "author": "noor", "owner": "jo", "expires": SOON}
    ends = [{"expires": None}, {"expires": SOON - timedelta(days=9)}, {"expires": SOON + timedelta(days=100)}]
    for wrong in ({"reason": " "}, {"owner": ""}, *ends):
        with pytest.raises(StoreError):
            writes.decide_case(db, "golden", "a", "quarantine", **{**given, **wrong})
    with pytest.raises(StoreError, match="never had a case 'z'"):
        writes.decide_case(db, "golden", "z", "retired", reason="gone", author="noor")
    with pytest.raises(StoreError, match="no version 77"):
        writes.explain_version(db, "golden", "77", "why", "noor")
    with pytest.raises(StoreError, match="needs a reason"):
        writes.explain_version(db, "golden", "a1-b1-c1-d1", "", "noor")
    assert standing(db) == dict.fromkeys(ASKED, "trial")


def test_deleted_is_not_retired(db: Database, seed: Seed) -> None:
    """A case that is gone counts as deleted until it is retired; a retired one is listed, with the reason."""
    seed.suite()
    seed.suite(cases={"a": "1", "b": "1"})
    assert queries.deleted_cases(db, "golden", ["a", "b"]) == ["c", "d"]
    writes.decide_case(db, "golden", "c", "retired", reason="feature gone", author="noor")
    assert queries.deleted_cases(db, "golden", ["a", "b"]) == ["d"]
    assert queries.retired_cases(db, "golden") == ["c"]
    assert standing(db) == {"a": "trial", "b": "trial", "c": "retired"}


def test_versions_have_reasons(db: Database, seed: Seed) -> None:
    """A version tells why it came to be, by whom; of two reasons the last one stands, and the log keeps the
    decisions beside the versions, newest first."""
    seed.suite()
    seed.suite(cases={"a": "1"})
    writes.explain_version(db, "golden", "a1", "too long", "noor")
    writes.explain_version(db, "golden", "a1", "three cases asked the same", "jo")
    writes.decide_case(db, "golden", "b", "retired", reason="the same as a", author="noor")
    newest, first = queries.suite_versions(db, "golden")
    assert (newest.reason, newest.author, first.reason) == ("three cases asked the same", "jo", "")
    told = [(row.what, row.subject, row.reason) for row in queries.suite_log(db, "golden")]
    assert told.pop(1) == ("reason", "a1", "too long")
    assert told == [
        ("retired", "b", "the same as a"),
        ("version", "a1", "three cases asked the same"),
        ("version", "a1-b1-c1-d1", ""),
    ]


def test_a_part_of_a_suite_is_no_version_of_it(db: Database, seed: Seed) -> None:
    """A tag run by itself makes no version that anyone would have to explain."""
    seed.run(seed.suite(), ["a"])
    seed.run(seed.suite(cases={"a": "1"}), ["a"], cases=["a"], subset="odd")
    assert [row.version for row in queries.suite_versions(db, "golden")] == ["a1-b1-c1-d1"]
    assert [row.subject for row in queries.suite_log(db, "golden")] == ["a1-b1-c1-d1"]


def test_expected_counts(db: Database, seed: Seed) -> None:
    """What a leg should hold is what was last said of it; of another backend nothing is said."""
    seed.suite()
    seed.backend("keyword")
    seed.backend("dense")
    writes.expect_counts(db, "golden", "keyword", {"keyword": 100, "vector": 100}, "crm", "noor")
    writes.expect_counts(db, "golden", "keyword", {"vector": 120}, "crm", "jo")
    assert queries.expected_counts(db, "golden", "keyword") == {"keyword": 100, "vector": 120}
    assert queries.expected_counts(db, "golden", "dense") == {}
    with pytest.raises(StoreError, match="backend mem0 is not in the record"):
        writes.expect_counts(db, "golden", "mem0", {"vector": 1}, "crm", "jo")
