"""Alerts, what became of them, and who was told.

What ran before is old news: nobody is told of it, and so it counts as looked at.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    _run()
    _alert()
    _signal()
    _step()
    _delivery()
    _proof()


def _run() -> None:
    op.add_column("run", sa.Column("detected", sa.Boolean(), nullable=False, server_default=sa.true()))
    undetected = sa.text("NOT detected")
    op.create_index("ix_run_undetected", "run", ["id"], sqlite_where=undetected, postgresql_where=undetected)


def _alert() -> None:
    op.create_table(
        "alert",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("suite_id", sa.Integer(), sa.ForeignKey("suite.id"), nullable=True),
        sa.Column("backend_id", sa.Integer(), sa.ForeignKey("backend.id"), nullable=True),
        sa.Column("first_bad_run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=True),
        sa.Column("last_good_run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=True),
        sa.Column("opened_at", sa.DateTime(), nullable=False),
        sa.Column("told_at", sa.DateTime(), nullable=True),
        sa.Column("closed_at", sa.DateTime(), nullable=True),
        sa.Column("acknowledged_by", sa.String(), nullable=True),
        sa.Column("muted_until", sa.DateTime(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("suspects", sa.Text(), nullable=False),
        sa.Column("cases", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("judged", sa.String(), nullable=True),
        sa.Column("drill", sa.Boolean(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
    )
    op.create_index("ix_alert_state", "alert", ["state", "opened_at"])


def _signal() -> None:
    op.create_table(
        "alert_signal",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("alert_id", sa.Integer(), sa.ForeignKey("alert.id"), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("suite", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("drill", sa.Boolean(), nullable=False),
        sa.Column("standing", sa.String(), nullable=False),
        sa.Column("depth", sa.Float(), nullable=False),
        sa.Column("told", sa.Float(), nullable=False),
        sa.Column("good", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=True),
        sa.Column("first_run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.DateTime(), nullable=False),
        sa.Column("closed_at", sa.DateTime(), nullable=True),
    )
    op.create_index("ix_alert_signal_alert_id", "alert_signal", ["alert_id"])
    op.create_index(
        "ix_alert_signal_open",
        "alert_signal",
        ["kind", "suite", "backend", "subject", "drill"],
        unique=True,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )


def _step() -> None:
    op.create_table(
        "alert_step",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("alert_id", sa.Integer(), sa.ForeignKey("alert.id"), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=True),
        sa.Column("routed", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_alert_step_alert_id", "alert_step", ["alert_id"])
    unrouted = sa.text("NOT routed")
    op.create_index("ix_alert_step_unrouted", "alert_step", ["id"], sqlite_where=unrouted,
                    postgresql_where=unrouted)  # fmt: skip


def _delivery() -> None:
    op.create_table(
        "delivery",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("key", sa.String(), nullable=False, unique=True),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("urgent", sa.Boolean(), nullable=False),
        sa.Column("alert_id", sa.Integer(), sa.ForeignKey("alert.id"), nullable=True),
        sa.Column("step_id", sa.Integer(), sa.ForeignKey("alert_step.id"), nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("queued_at", sa.DateTime(), nullable=False),
        sa.Column("due", sa.Float(), nullable=False),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.Column("claimed_until", sa.Float(), nullable=True),
        sa.Column("sent_at", sa.Float(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
    )
    op.create_index("ix_delivery_alert_id", "delivery", ["alert_id"])
    op.create_index("ix_delivery_waiting", "delivery", ["channel", "state", "id"])
    op.create_index("ix_delivery_sent", "delivery", ["channel", "sent_at"])
    op.create_table(
        "channel_state",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("disabled_at", sa.DateTime(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
    )


def _proof() -> None:
    op.create_table(
        "proof",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("finished_at", sa.DateTime(), nullable=True),
        sa.Column("suite", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("alert_id", sa.Integer(), sa.ForeignKey("alert.id"), nullable=True),
        sa.Column("detected_s", sa.Float(), nullable=True),
        sa.Column("confirmed_s", sa.Float(), nullable=True),
        sa.Column("delivered_s", sa.Float(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
    )
    op.create_index("ix_proof_started_at", "proof", ["started_at"])
