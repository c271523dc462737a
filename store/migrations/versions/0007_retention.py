"""What retention removed of which run, and what was spent on which day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "removal",
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("what", sa.String(), primary_key=True),
        sa.Column("after", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "spent",
        sa.Column("day", sa.String(), primary_key=True),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("money", sa.Float(), nullable=False),
        sqlite_with_rowid=False,
    )
