"""Alerts: what is wrong, what became of it, who was told, and the proof that somebody would be."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, text
from sqlmodel import Field

from store.columns import ClockTime, JsonText, UtcDateTime
from store.models.base import Base

OPEN_SIGNAL = text("closed_at IS NULL")
UNROUTED = text("NOT routed")


class Alert(Base, table=True):
    """One cause, and what people see. `kind` and `severity` are of its worst signal; `cause` is what it is
    grouped by, `context` what is told beside its evidence; `suite_id` and `backend_id` are None where it is
    of several. state: suspicion, suspected, open, acknowledged, resolved, retracted, intended or died."""

    __table_args__ = (Index("ix_alert_state", "state", "opened_at"),)

    id: int | None = Field(default=None, primary_key=True)
    kind: str
    state: str
    severity: str
    suite_id: int | None = Field(foreign_key="suite.id")
    backend_id: int | None = Field(foreign_key="backend.id")
    first_bad_run_id: int | None = Field(foreign_key="run.id")
    last_good_run_id: int | None = Field(foreign_key="run.id")
    opened_at: datetime = Field(sa_type=UtcDateTime)
    told_at: datetime | None = Field(sa_type=UtcDateTime)
    closed_at: datetime | None = Field(sa_type=UtcDateTime)
    acknowledged_by: str | None
    muted_until: datetime | None = Field(sa_type=UtcDateTime)
    cause: dict[str, Any] = Field(sa_type=JsonText)
    context: dict[str, Any] = Field(sa_type=JsonText)
    suspects: list[dict[str, Any]] = Field(sa_type=JsonText)
    cases: list[str] = Field(sa_type=JsonText)
    tags: list[str] = Field(sa_type=JsonText)
    owner: str
    judged: str | None
    drill: bool
    project: str


class AlertSignal(Base, table=True):
    """One thing wrong in one series. `subject` is the metric, leg or schedule that it is about; `told` is its
    depth when somebody was last told; `good` counts the good runs in a row since. Of a series and kind one at
    most is open, and one of a `drill`. standing: suspicion, suspected, sure or clear."""

    __tablename__ = "alert_signal"
    __table_args__ = (
        Index(
            "ix_alert_signal_open",
            "kind",
            "suite",
            "backend",
            "subject",
            "drill",
            unique=True,
            sqlite_where=OPEN_SIGNAL,
            postgresql_where=OPEN_SIGNAL,
        ),
    )

    id: int | None = Field(default=None, primary_key=True)
    alert_id: int = Field(foreign_key="alert.id", index=True)
    kind: str
    suite: str
    backend: str
    subject: str
    drill: bool
    standing: str
    depth: float
    told: float
    good: int
    run_id: int | None = Field(foreign_key="run.id")
    first_run_id: int | None = Field(foreign_key="run.id")
    content: dict[str, Any] = Field(sa_type=JsonText)
    opened_at: datetime = Field(sa_type=UtcDateTime)
    closed_at: datetime | None = Field(sa_type=UtcDateTime)


class AlertStep(Base, table=True):
    """What became of an alert, and who did it: its timeline, and the audit of what people decided. `routed`:
    whether it was put to the channels; what a page writes waits for the collector, which knows them."""

    __tablename__ = "alert_step"
    __table_args__ = (
        Index("ix_alert_step_unrouted", "id", sqlite_where=UNROUTED, postgresql_where=UNROUTED),
    )

    id: int | None = Field(default=None, primary_key=True)
    alert_id: int = Field(foreign_key="alert.id", index=True)
    at: datetime = Field(sa_type=UtcDateTime)
    action: str
    author: str
    reason: str | None
    run_id: int | None = Field(foreign_key="run.id")
    routed: bool


class Delivery(Base, table=True):
    """A message for one channel. `key` names it wherever it arrives, so that a second copy can be told from
    a second message; `payload` is what it is made of; an `urgent` one waits for no rate. `due`,
    `claimed_until` and `sent_at` are of the database's clock. state: queued, claimed, sent, failed or
    dropped."""

    __table_args__ = (
        Index("ix_delivery_waiting", "channel", "state", "id"),
        Index("ix_delivery_sent", "channel", "sent_at"),
    )

    id: int | None = Field(default=None, primary_key=True)
    key: str = Field(unique=True)
    channel: str
    kind: str
    urgent: bool
    alert_id: int | None = Field(foreign_key="alert.id", index=True)
    step_id: int | None = Field(foreign_key="alert_step.id")
    payload: dict[str, Any] = Field(sa_type=JsonText)
    state: str
    attempts: int
    queued_at: datetime = Field(sa_type=UtcDateTime)
    due: datetime = Field(sa_type=ClockTime)
    claimed_by: str | None
    claimed_until: datetime | None = Field(sa_type=ClockTime)
    sent_at: datetime | None = Field(sa_type=ClockTime)
    status: int | None
    error: str | None


class ChannelState(Base, table=True):
    """A channel that takes nothing any more, since when and why. `address`: a hash of where it was sent, by
    which another address is told."""

    __tablename__ = "channel_state"

    name: str = Field(primary_key=True)
    disabled_at: datetime = Field(sa_type=UtcDateTime)
    reason: str
    address: str


class Proof(Base, table=True):
    """A drill: a `fault` put into a backend of this type, the `suite` played on it, and the seconds from its
    start until that was detected, confirmed and delivered; None where it did not come to that, and `error`
    says why. `channel`: those that take drills, listed."""

    id: int | None = Field(default=None, primary_key=True)
    started_at: datetime = Field(sa_type=UtcDateTime, index=True)
    finished_at: datetime | None = Field(sa_type=UtcDateTime)
    suite: str
    backend: str
    fault: str
    channel: str
    alert_id: int | None = Field(foreign_key="alert.id")
    detected_s: float | None
    confirmed_s: float | None
    delivered_s: float | None
    error: str | None
