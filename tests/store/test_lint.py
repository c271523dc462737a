"""What lint found, and what runs cost, as the record tells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from store import queries, writes
from store.database import Database
from store.queries import CostRow
from store.records import FindingRecord, LintRecord
from tests.store.seeding import Seed, outcome, scenario

PHONE = FindingRecord("mine.jsonl", 3, "a", "personal-data", "warning", "a number", "a placeholder")
VAGUE = FindingRecord("mine.jsonl", 9, "b", "ambiguous", "error", "also matches", "tighten it")
SHORT = FindingRecord("mine.jsonl", 2, "c", "malformed", "error", "k: too small", "correct it")


def test_findings_are_told_errors_first(db: Database, seed: Seed) -> None:
    """What was found in the version in force comes back whole, errors before warnings, in order of lines."""
    writes.record_lint(db, seed.suite(), LintRecord("1", (PHONE, VAGUE, SHORT)))
    assert [tuple(row) for row in queries.findings(db, "golden")] == [SHORT, VAGUE, PHONE]


def test_a_report_counts_them(db: Database, seed: Seed) -> None:
    """The report has the number of errors and of warnings, and what the floors said."""
    writes.record_lint(db, seed.suite(), LintRecord("1", (PHONE, VAGUE, SHORT), asked=4, telling=3))
    report = queries.lint_report(db, "golden")
    assert report is not None
    assert report[1:] == (2, 1, 4, 3)
    assert datetime.now(UTC) - report.at < timedelta(minutes=1)


def test_nothing_found_is_not_never_looked(db: Database, seed: Seed) -> None:
    """A version without findings has a report, one that nobody looked at has none."""
    version = seed.suite()
    assert queries.lint_report(db, "golden") is None
    writes.record_lint(db, version, LintRecord("1", ()))
    report = queries.lint_report(db, "golden")
    assert report is not None
    assert report[1:] == (0, 0, None, None)
    assert queries.findings(db, "golden") == []


def test_a_second_look_replaces_the_first(db: Database, seed: Seed, count: Callable[[str], int]) -> None:
    """Looked at again, by other rules, a version keeps what was found last."""
    version = seed.suite()
    writes.record_lint(db, version, LintRecord("1", (PHONE, VAGUE)))
    writes.record_lint(db, version, LintRecord("2", (SHORT,)))
    assert [row.rule for row in queries.findings(db, "golden")] == ["malformed"]
    assert (count("finding"), count("lint_report")) == (1, 1)


def test_findings_are_of_the_version_in_force(db: Database, seed: Seed) -> None:
    """A new version starts without findings, those of the old one stay with it; no suite has another's."""
    writes.record_lint(db, seed.suite(), LintRecord("1", (VAGUE,)))
    writes.record_lint(db, seed.suite("smoke"), LintRecord("1", (PHONE,)))
    seed.suite(cases={"a": "2"})
    assert (queries.findings(db, "golden"), queries.lint_report(db, "golden")) == ([], None)
    seed.suite()
    assert [row.rule for row in queries.findings(db, "golden")] == ["ambiguous"]
    assert queries.findings(db, "nobody") == []


def test_whether_a_version_was_looked_at(db: Database, seed: Seed) -> None:
    """A version was looked at by the rules of one version, not by those of another."""
    version = seed.suite()
    writes.record_lint(db, version, LintRecord("1", ()))
    assert queries.is_linted(db, version, "1")
    assert not queries.is_linted(db, version, "2")
    assert not queries.is_linted(db, seed.suite("smoke"), "1")


def test_pages_are_read_anew_after_a_look(db: Database, seed: Seed) -> None:
    """What lint found is shown at once: caches hang on the record's version."""
    version, before = seed.suite(), queries.data_version(db)
    writes.record_lint(db, version, LintRecord("1", (VAGUE,)))
    assert queries.data_version(db) != before


def test_last_costs_are_of_the_newest_whole_run(db: Database, seed: Seed) -> None:
    """Each backend's newest whole run tells ms a memory, a scenario and a question, and money a memory."""
    version = seed.suite()
    seed.run(version, "ab", day=0)
    seed.run(version, "a", backend="dense", day=1)
    newest = seed.run(version, "a", day=2)
    seed.run(version, "", day=3, status="invalid")
    found = queries.last_costs(db)
    assert [row.backend for row in found] == ["keyword", "dense"]
    assert found[0] == CostRow("keyword", newest, pytest.approx(10 / 7), 1.0, 2.0, pytest.approx(0.5 / 7))


def test_what_was_not_measured_costs_none(db: Database, seed: Seed) -> None:
    """A run without a planted scenario or an answer has no figures, rather than zeros."""
    version = seed.suite()
    run_id, token = seed.open(version)
    failed = scenario([outcome("a", passed=None, status="error")])
    writes.save_scenario(db, run_id, replace(failed, status="error"), token)
    seed.close(run_id, token)
    assert queries.last_costs(db) == [CostRow("keyword", run_id, None, None, None, None)]


def test_nothing_ran_nothing_cost(db: Database) -> None:
    """Without a run there is nothing to go by."""
    assert queries.last_costs(db) == []
