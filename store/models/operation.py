"""What happens around runs: marks, events, schedules, requests, leases."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index
from sqlmodel import Field

from store.columns import JsonText, UtcDateTime
from store.models.base import WITHOUT_ROWID, Base


class Mark(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime, index=True)
    text: str
    kind: str
    author: str
    meta: dict[str, Any] = Field(sa_type=JsonText)
    project: str


class Event(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime)
    level: str
    source: str
    message: str
    run_id: int | None = Field(foreign_key="run.id")


class Heartbeat(Base, table=True):
    name: str = Field(primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime)
    pid: int
    host: str
    started_at: datetime = Field(sa_type=UtcDateTime)


class ScheduleState(Base, table=True):
    __tablename__ = "schedule_state"

    name: str = Field(primary_key=True)
    last_fire: datetime | None = Field(sa_type=UtcDateTime)
    next_fire: datetime | None = Field(sa_type=UtcDateTime)
    enabled: bool


class Fire(Base, table=True):
    """A time at which a schedule should fire, written down ahead, and what became of it. `due` is later than
    `scheduled_for` by the schedule's jitter; `token` is that of the leader who took it; `deaths` counts the
    leaders that died over it. state: expected, claimed, done, failed, skipped or missed."""

    __table_args__ = (Index("ix_fire_state", "state", "due"), WITHOUT_ROWID)

    schedule: str = Field(primary_key=True)
    scheduled_for: datetime = Field(sa_type=UtcDateTime, primary_key=True)
    due: datetime = Field(sa_type=UtcDateTime)
    state: str
    token: int | None
    claimed_at: datetime | None = Field(sa_type=UtcDateTime)
    started_at: datetime | None = Field(sa_type=UtcDateTime)
    finished_at: datetime | None = Field(sa_type=UtcDateTime)
    run_ids: list[int] = Field(sa_type=JsonText)
    reason: str | None
    deaths: int = Field(sa_column_kwargs={"server_default": "0"})


class Request(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    kind: str
    payload: dict[str, Any] = Field(sa_type=JsonText)
    state: str = Field(index=True)
    author: str
    created_at: datetime = Field(sa_type=UtcDateTime)
    claimed_at: datetime | None = Field(sa_type=UtcDateTime)
    finished_at: datetime | None = Field(sa_type=UtcDateTime)
    run_ids: list[int] = Field(sa_type=JsonText)
    error: str | None


BACKEND_LEASE = "backend:"
"""Prefix of the leases of backends, since the leader's stands in the same table."""

LEADER_LEASE = "collector"
"""The lease of the collector that leads: it alone takes fires and requests."""


class Lease(Base, table=True):
    """`expires` counts seconds since 1970 on the database's clock: one clock for all who ask."""

    name: str = Field(primary_key=True)
    owner: str
    token: int
    expires: float


class Change(Base, table=True):
    """Numbers by name. "record" is a counter that rises when something shown has changed: what caches hang
    on. What a machine named by a key of its own has the id that was made for it, under kind, day and hash:
    "mark:2026-03-04:9f86...", for two days."""

    name: str = Field(primary_key=True)
    n: int
