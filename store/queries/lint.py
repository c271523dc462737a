"""What lint found, and what runs have cost so far."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from store import models as m
from store.database import Database
from store.queries.common import is_whole


class FindingRow(NamedTuple):
    """One thing wrong with a suite. `severity`: error or warning; `line` 0: no line is meant."""

    file: str
    line: int
    case: str
    rule: str
    severity: str
    message: str
    hint: str


class LintReport(NamedTuple):
    """What was found when the version in force was looked at. Of `asked` cases that both floors can be asked,
    `telling` ones tell a memory from a floor; None: the floors were not asked."""

    at: datetime
    errors: int
    warnings: int
    asked: int | None
    telling: int | None


class CostRow(NamedTuple):
    """What a backend's newest whole run took: ms to plant a memory, to settle a scenario and to answer a
    question, and money (USD) for each memory planted, the questions' share included. None: not measured."""

    backend: str
    run_id: int
    plant_ms: float | None
    settle_ms: float | None
    recall_ms: float | None
    money: float | None


def findings(db: Database, suite: str) -> list[FindingRow]:
    """Those of the version in force, errors first, then by place."""
    found = m.finding.c
    query = (
        sa.select(
            found.file, found.line, found.case_name, found.rule, found.severity, found.message, found.hint
        )
        .where(found.suite_version_id == in_force(suite))
        .order_by(found.severity, found.file, found.line, found.id)
    )
    with db.read() as connection:
        return [FindingRow(*row) for row in connection.execute(query)]


def lint_report(db: Database, suite: str) -> LintReport | None:
    """None: the version in force was never looked at."""
    report, found = m.lint_report.c, m.finding.c

    def count(severity: str) -> sa.ScalarSelect[int]:
        of = (found.suite_version_id == report.suite_version_id, found.severity == severity)
        return sa.select(sa.func.count()).where(*of).scalar_subquery()

    query = sa.select(report.at, count("error"), count("warning"), report.asked, report.telling)
    with db.read() as connection:
        row = connection.execute(query.where(report.suite_version_id == in_force(suite))).first()
        return LintReport(*row) if row else None


def in_force(suite: str) -> sa.ScalarSelect[int]:
    """The id of the suite's version in force."""
    version = m.suite_version.c
    return (
        sa.select(version.id)
        .join(m.suite, sa.and_(m.suite.c.id == version.suite_id, m.suite.c.version == version.version))
        .where(m.suite.c.name == suite)
        .scalar_subquery()
    )


def is_linted(db: Database, suite_version_id: int, rules: str) -> bool:
    """Whether this version was looked at by these very rules."""
    report = m.lint_report.c
    query = sa.select(report.at).where(report.suite_version_id == suite_version_id, report.rules == rules)
    with db.read() as connection:
        return connection.execute(query).first() is not None


def last_costs(db: Database) -> list[CostRow]:
    """What the newest whole run of each backend took, in order of first appearance."""
    newest = sa.select(sa.func.max(m.run.c.id).label("id")).where(is_whole()).group_by(m.run.c.backend_id)
    scenario, case = m.scenario_result.c, m.case_result.c
    plants = sa.func.nullif(sa.func.sum(scenario.plants), 0)
    planting = (
        sa.select(
            sa.func.sum(scenario.plant_ms) / plants,
            sa.func.avg(scenario.settle_ms),
            sa.func.sum(scenario.money) / plants,
        )
        .where(scenario.status == "ok")
    )  # fmt: skip
    asking = sa.select(sa.func.avg(case.latency_ms)).where(case.status == "ok")
    runs = (
        sa.select(m.backend.c.name, m.run.c.id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(m.run.c.id.in_(newest))
        .order_by(m.backend.c.id)
    )
    with db.read() as connection:
        found = []
        for name, run_id in connection.execute(runs).all():
            plant, settle, money = connection.execute(planting.where(scenario.run_id == run_id)).one()
            recall = connection.execute(asking.where(case.run_id == run_id)).scalar()
            found.append(CostRow(name, run_id, plant, settle, recall, money))
        return found
