"""Lint when a suite comes into force: kept in the record, once for each version."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from collectors.lint import lint
from collectors.lint.floors import on_floors
from collectors.lint.rules import RULES_VERSION
from collectors.plans import RunPlan
from collectors.record import suite_record
from collectors.suite import Suite
from store import queries, writes
from store.database import Database
from store.records import FindingRecord, LintRecord


def note(db: Database, suite: Suite, owner: str = "default") -> None:
    """Look at the suite, unless this version was looked at already, and keep what was found."""
    version = writes.register_suite(db, suite_record(suite, owner))
    if not queries.is_linted(db, version, RULES_VERSION):
        writes.record_lint(db, version, _looked_at(suite))


def _looked_at(suite: Suite) -> LintRecord:
    findings = tuple(
        FindingRecord(*finding)._replace(file=Path(finding.file).name) for finding in lint(suite)
    )
    asked = [case for case in on_floors(suite) if case.asked]
    return LintRecord(RULES_VERSION, findings, len(asked), sum(case.telling for case in asked))


def note_planned(db: Database, plans: Iterable[RunPlan]) -> list[str]:
    """The same for what is about to run; a line for each suite with lint errors."""
    whole = {plan.suite.name: plan for plan in plans if not plan.subset}
    for plan in whole.values():
        note(db, plan.suite, plan.suite_owner)
    return complaints(db, whole)


def complaints(db: Database, suites: Iterable[str]) -> list[str]:
    """A line for each suite with lint errors."""
    found = ((name, queries.lint_report(db, name)) for name in suites)
    return [
        f"{name}: {_told(report)}: memtrend lint {name}" for name, report in found if report and report.errors
    ]


def _told(report: queries.LintReport) -> str:
    return f"{amount(report.errors, 'lint error')}, {amount(report.warnings, 'warning')}"


def amount(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
