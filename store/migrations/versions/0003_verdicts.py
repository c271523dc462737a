"""Is it worse: verdicts, and what people decided about baselines."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    _verdict()
    _baseline_change()


def _verdict() -> None:
    op.create_table(
        "verdict",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=False),
        sa.Column("looks", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("provisional", sa.Boolean(), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
    )
    op.create_index("ix_verdict_run", "verdict", ["run_id"])


def _baseline_change() -> None:
    op.create_table(
        "baseline_change",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("suite_id", sa.Integer(), sa.ForeignKey("suite.id"), nullable=False),
        sa.Column("backend_id", sa.Integer(), sa.ForeignKey("backend.id"), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("run_ids", sa.Text(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
    )
    op.create_index("ix_baseline_change_of", "baseline_change", ["suite_id", "backend_id"])
