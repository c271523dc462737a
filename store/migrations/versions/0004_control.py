"""A control arm: which run a frozen release made beside which other run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "control",
        sa.Column("control_id", sa.Integer(), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
    )
    op.create_index("ix_control_run_id", "control", ["run_id"], unique=True)
