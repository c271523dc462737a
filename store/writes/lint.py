"""What lint found in a version of a suite."""

from __future__ import annotations

from store import models as m
from store.database import Database
from store.records import LintRecord
from store.writes.common import changed, now


def record_lint(db: Database, suite_version_id: int, record: LintRecord) -> None:
    """Keep what was found, in place of what an earlier look at this version found."""
    rows = [
        {
            "suite_version_id": suite_version_id,
            "file": finding.file,
            "line": finding.line,
            "case_name": finding.case,
            "rule": finding.rule,
            "severity": finding.severity,
            "message": finding.message,
            "hint": finding.hint,
        }
        for finding in record.findings
    ]
    report = {"rules": record.rules, "asked": record.asked, "telling": record.telling, "at": now()}
    with db.write() as connection:
        for table in (m.finding, m.lint_report):
            connection.execute(table.delete().where(table.c.suite_version_id == suite_version_id))
        connection.execute(m.lint_report.insert().values(suite_version_id=suite_version_id, **report))
        if rows:
            connection.execute(m.finding.insert(), rows)
        changed(connection)
