"""Can the questions be trusted: the policy of a suite, and what its standing indexes should hold."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    _policy()
    _lint()
    _mutants()
    _expected_counts()


def _policy() -> None:
    op.create_table(
        "suite_change",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("suite_version_id", sa.Integer(), sa.ForeignKey("suite_version.id"), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
    )
    op.create_index("ix_suite_change_suite_version_id", "suite_change", ["suite_version_id"])
    op.create_table(
        "case_state",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("suite_id", sa.Integer(), sa.ForeignKey("suite.id"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("expires", sa.DateTime(), nullable=True),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
    )
    op.create_index("ix_case_state_of", "case_state", ["suite_id", "name"])


def _lint() -> None:
    op.create_table(
        "lint_report",
        sa.Column("suite_version_id", sa.Integer(), sa.ForeignKey("suite_version.id"), primary_key=True),
        sa.Column("rules", sa.String(), nullable=False),
        sa.Column("asked", sa.Integer(), nullable=True),
        sa.Column("telling", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(), nullable=False),
    )
    op.create_table(
        "finding",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("suite_version_id", sa.Integer(), sa.ForeignKey("suite_version.id"), nullable=False),
        sa.Column("file", sa.String(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("case_name", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("hint", sa.String(), nullable=False),
    )
    op.create_index("ix_finding_suite_version_id", "finding", ["suite_version_id"])


def _mutants() -> None:
    op.create_table(
        "mutant",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("suite_version_id", sa.Integer(), sa.ForeignKey("suite_version.id"), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.Column("meaning", sa.String(), nullable=False),
        sa.Column("detected", sa.Boolean(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("critical_lost", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=True),
        sa.Column("kind_right", sa.Boolean(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
    )
    op.create_index("ix_mutant_suite_version_id", "mutant", ["suite_version_id"])


def _expected_counts() -> None:
    op.create_table(
        "expected_count",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("suite_id", sa.Integer(), sa.ForeignKey("suite.id"), nullable=False),
        sa.Column("backend_id", sa.Integer(), sa.ForeignKey("backend.id"), nullable=False),
        sa.Column("leg", sa.String(), nullable=False),
        sa.Column("expected", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
    )
    op.create_index("ix_expected_count_of", "expected_count", ["suite_id", "backend_id"])
