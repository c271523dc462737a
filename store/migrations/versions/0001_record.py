"""The record: suites, runs, results, rollups, and what keeps them going."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _suites()
    _backends()
    _run()
    _results()
    _scores()
    _telling()
    _operation()


def _suites() -> None:
    op.create_table(
        "suite",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False, unique=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
    )
    op.create_table(
        "suite_version",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("suite_id", sa.Integer(), sa.ForeignKey("suite.id"), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("cases", sa.Integer(), nullable=False),
        sa.Column("plants", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.UniqueConstraint("suite_id", "version"),
    )
    op.create_table(
        "case",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("suite_id", sa.Integer(), sa.ForeignKey("suite.id"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("query", sa.String(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("critical", sa.Boolean(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("story", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.UniqueConstraint("suite_id", "name", "hash"),
    )
    op.create_table(
        "suite_version_case",
        sa.Column("suite_version_id", sa.Integer(), sa.ForeignKey("suite_version.id"), primary_key=True),
        sa.Column("case_id", sa.Integer(), sa.ForeignKey("case.id"), primary_key=True),
        sqlite_with_rowid=False,
    )


def _backends() -> None:
    op.create_table(
        "backend",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False, unique=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
    )
    op.create_table(
        "environment",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("hash", sa.String(), nullable=False, unique=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
    )
    op.create_table(
        "scorer",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("version", sa.String(), nullable=False, unique=True),
    )


def _run() -> None:
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("suite_id", sa.Integer(), sa.ForeignKey("suite.id"), nullable=False),
        sa.Column("suite_version_id", sa.Integer(), sa.ForeignKey("suite_version.id"), nullable=False),
        sa.Column("backend_id", sa.Integer(), sa.ForeignKey("backend.id"), nullable=False),
        sa.Column("environment_id", sa.Integer(), sa.ForeignKey("environment.id"), nullable=True),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("trigger", sa.String(), nullable=False),
        sa.Column("subset", sa.String(), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("scorer_id", sa.Integer(), sa.ForeignKey("scorer.id"), nullable=False),
        sa.Column("meta", sa.Text(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("cancel", sa.Boolean(), nullable=False),
        sa.Column("cases_total", sa.Integer(), nullable=False),
        sa.Column("cases_done", sa.Integer(), nullable=False),
        sa.Column("errors_done", sa.Integer(), nullable=False),
        sa.Column("scenarios_total", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("finished_at", sa.DateTime(), nullable=True),
    )
    op.create_index("ix_run_started_at", "run", ["started_at"])
    op.create_index("ix_run_series", "run", ["suite_id", "backend_id", "started_at"])


def _results() -> None:
    op.create_table(
        "scenario_result",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("scenario", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("plants", sa.Integer(), nullable=False),
        sa.Column("plant_ms", sa.Float(), nullable=True),
        sa.Column("settle_ms", sa.Float(), nullable=True),
        sa.Column("ingest_calls", sa.Integer(), nullable=False),
        sa.Column("ingest_tokens", sa.Integer(), nullable=False),
        sa.Column("money", sa.Float(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.UniqueConstraint("run_id", "trial", "scenario"),
    )
    op.create_table(
        "case_result",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=False),
        sa.Column("case_id", sa.Integer(), sa.ForeignKey("case.id"), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("failure", sa.String(), nullable=True),
        sa.Column("latency_ms", sa.Float(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("returned_n", sa.Integer(), nullable=True),
        sa.UniqueConstraint("run_id", "case_id", "trial"),
    )
    op.create_index("ix_case_result_history", "case_result", ["case_id", "run_id"])


def _scores() -> None:
    op.create_table(
        "score",
        sa.Column("case_result_id", sa.Integer(), sa.ForeignKey("case_result.id"), primary_key=True),
        sa.Column("metric_id", sa.Integer(), primary_key=True),
        sa.Column("scorer_id", sa.Integer(), sa.ForeignKey("scorer.id"), primary_key=True),
        sa.Column("value", sa.Float(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "detail",
        sa.Column("case_result_id", sa.Integer(), sa.ForeignKey("case_result.id"), primary_key=True),
        sa.Column("content", sa.Text(), nullable=False),
    )
    op.create_table(
        "rollup",
        sa.Column("backend_id", sa.Integer(), sa.ForeignKey("backend.id"), primary_key=True),
        sa.Column("suite_id", sa.Integer(), sa.ForeignKey("suite.id"), primary_key=True),
        sa.Column("metric_id", sa.Integer(), primary_key=True),
        sa.Column("tag", sa.String(), primary_key=True),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("scorer_id", sa.Integer(), sa.ForeignKey("scorer.id"), primary_key=True),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("mean", sa.Float(), nullable=False),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_rollup_run", "rollup", ["run_id", "tag"])


def _telling() -> None:
    op.create_table(
        "mark",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("meta", sa.Text(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
    )
    op.create_index("ix_mark_at", "mark", ["at"])
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=True),
    )
    op.create_table(
        "heartbeat",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(), nullable=False),
    )


def _operation() -> None:
    op.create_table(
        "schedule_state",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("last_fire", sa.DateTime(), nullable=True),
        sa.Column("next_fire", sa.DateTime(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
    )
    op.create_table(
        "expected_run",
        sa.Column("schedule", sa.String(), primary_key=True),
        sa.Column("scheduled_for", sa.DateTime(), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "request",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("claimed_at", sa.DateTime(), nullable=True),
        sa.Column("finished_at", sa.DateTime(), nullable=True),
        sa.Column("run_ids", sa.Text(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
    )
    op.create_index("ix_request_state", "request", ["state"])
    op.create_table(
        "lease",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
    )
    op.create_table(
        "change",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("n", sa.Integer(), nullable=False),
    )
