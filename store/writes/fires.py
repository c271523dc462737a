"""Fires of schedules: expected, taken once by the leader, and what became of them.

Every write but that of what is expected is refused to a collector that does not lead any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.cron import due_time
from store.database import Database, upsert
from store.hiding import redacted
from store.writes.common import insert_event, now
from store.writes.leases import refuse_deposed

PassedOver = Literal["skipped", "missed"]
Closed = Literal["done", "failed", "skipped", "missed"]
_LEVELS = {"skipped": "warning", "missed": "error"}


def write_expected(
    db: Database, schedule: str, times: Iterable[datetime], until: datetime, jitter: timedelta = timedelta()
) -> None:
    """Replace the fires ahead of a schedule by those of `times` (ascending, may be endless) up to `until`.
    What lies behind stays: it says what should have run. So does what was taken ahead of its time, by a
    clock that was set back since."""
    at = now()
    ahead = [time for time in takewhile(lambda time: time <= until, times) if time > at]
    rows = [_expected(schedule, time, jitter) for time in ahead]
    fire = m.fire.c
    old = m.fire.delete().where(fire.schedule == schedule, fire.scheduled_for > at, fire.state == "expected")
    with db.write() as connection:
        connection.execute(old)
        if rows:
            connection.execute(upsert(m.fire).on_conflict_do_nothing(), rows)


def _expected(schedule: str, at: datetime, jitter: timedelta) -> dict[str, object]:
    due = due_time(schedule, at, jitter)
    return {"schedule": schedule, "scheduled_for": at, "due": due, "state": "expected", "run_ids": []}


def claim_fire(db: Database, schedule: str, scheduled_for: datetime, leader: int) -> bool:
    """Take a fire, once for all collectors. False when it was taken before. `leader`: the fencing token of
    the collector that asks. Raises `Deposed` once another leads."""
    with db.write() as connection:
        refuse_deposed(connection, leader)
        taken = _fire(schedule, scheduled_for).where(m.fire.c.state == "expected")
        values = {"state": "claimed", "token": leader, "claimed_at": now()}
        if connection.execute(taken.values(**values)).rowcount != 1:
            return False
        _record_last(connection, schedule, scheduled_for)
        return True


def _record_last(connection: Connection, schedule: str, at: datetime) -> None:
    state = upsert(m.schedule_state).values(name=schedule, last_fire=at, enabled=True)
    connection.execute(state.on_conflict_do_update(index_elements=["name"], set_={"last_fire": at}))


def pass_over(
    db: Database,
    schedule: str,
    times: Sequence[datetime],
    state: PassedOver,
    reason: str,
    leader: int,
) -> None:
    """Say that fires which nobody took are not run, and why: one event tells of them all. Raises `Deposed`
    once another than `leader` leads."""
    fire = m.fire.c
    which = sa.and_(fire.schedule == schedule, fire.scheduled_for.in_(times), fire.state == "expected")
    values = {"state": state, "token": leader, "finished_at": now(), "reason": redacted(reason)}
    with db.write() as connection:
        refuse_deposed(connection, leader)
        if count := connection.execute(m.fire.update().where(which).values(**values)).rowcount:
            _tell(connection, schedule, times[-1], f"{state}{_and_more(count)}: {reason}", _LEVELS[state])


def _and_more(count: int) -> str:
    return f" ({count} in all)" if count > 1 else ""


def start_fire(
    db: Database, schedule: str, scheduled_for: datetime, leader: int, *, late: bool = False
) -> None:
    """Say that the runs of a fire begin; an event tells when they are made up for. Raises `Deposed`."""
    with db.write() as connection:
        _write(connection, schedule, scheduled_for, leader, started_at=now())
        if late:
            _tell(connection, schedule, scheduled_for, "made up for, late", "info")


def give_back(db: Database, schedule: str, scheduled_for: datetime, leader: int) -> None:
    """Leave a claimed fire that was not started to whoever leads next. Raises `Deposed`."""
    with db.write() as connection:
        _write(connection, schedule, scheduled_for, leader, state="expected", token=None, claimed_at=None)


def note_runs(
    db: Database, schedule: str, scheduled_for: datetime, run_ids: Sequence[int], leader: int
) -> None:
    """Say which runs a fire has made so far. Raises `Deposed`."""
    with db.write() as connection:
        _write(connection, schedule, scheduled_for, leader, run_ids=list(run_ids))


def finish_fire(
    db: Database, schedule: str, scheduled_for: datetime, state: Closed, reason: str | None, leader: int
) -> None:
    """Say what became of a claimed fire; an event tells of one that was not run. Raises `Deposed`."""
    told = redacted(reason) if reason else None
    with db.write() as connection:
        _write(connection, schedule, scheduled_for, leader, state=state, finished_at=now(), reason=told)
        if state in _LEVELS:
            _tell(connection, schedule, scheduled_for, f"{state}: {reason}", _LEVELS[state])


def end_fires_of_the_dead(db: Database, leader: int) -> None:
    """Close what former leaders began and did not finish; an event tells of each. What they had only taken is
    due again. Raises `Deposed`."""
    reason = "the collector that ran it died; memtrend run --resume goes on with what it had begun"
    fire = m.fire.c
    theirs = m.fire.update().where(fire.state == "claimed", fire.token != leader)
    begun = theirs.where(fire.started_at.is_not(None)).returning(fire.schedule, fire.scheduled_for)
    with db.write() as connection:
        refuse_deposed(connection, leader)
        closed = connection.execute(begun.values(state="failed", finished_at=now(), reason=reason)).all()
        for row in closed:
            _tell(connection, row.schedule, row.scheduled_for, reason, "error")
        connection.execute(theirs.values(state="expected", token=None, claimed_at=None))


def _write(connection: Connection, schedule: str, at: datetime, leader: int, **values: object) -> None:
    refuse_deposed(connection, leader)
    claimed = _fire(schedule, at).where(m.fire.c.state == "claimed", m.fire.c.token == leader)
    connection.execute(claimed.values(**values))


def _fire(schedule: str, at: datetime) -> sa.Update:
    return m.fire.update().where(m.fire.c.schedule == schedule, m.fire.c.scheduled_for == at)


def _tell(connection: Connection, schedule: str, at: datetime, message: str, level: str) -> None:
    told = f"fire of {at:%Y-%m-%d %H:%M} UTC: {message}"
    insert_event(connection, level, f"schedule:{schedule}", told, None)
