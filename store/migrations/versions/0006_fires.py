"""Fires of schedules: expected, and what became of each.

What was expected before is forgotten: nothing was noted of its fires, so all of it would seem missed. A
collector writes what is ahead when it starts.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.drop_table("expected_run")
    op.create_table(
        "fire",
        sa.Column("schedule", sa.String(), primary_key=True),
        sa.Column("scheduled_for", sa.DateTime(), primary_key=True),
        sa.Column("due", sa.DateTime(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=True),
        sa.Column("claimed_at", sa.DateTime(), nullable=True),
        sa.Column("started_at", sa.DateTime(), nullable=True),
        sa.Column("finished_at", sa.DateTime(), nullable=True),
        sa.Column("run_ids", sa.Text(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_fire_state", "fire", ["state", "due"])
