"""Fires of schedules: expected, taken once by the leader, and what became of them.

Every write is refused to a collector that does not lead any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Literal, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.cron import due_time
from store.database import Database, upsert
from store.errors import StoreError
from store.hiding import redacted
from store.writes.common import insert_event, now
from store.writes.leases import refuse_deposed

T = TypeVar("T")
PassedOver = Literal["skipped", "missed"]
Closed = Literal["done", "failed", "skipped", "missed"]
PART = 500
"""Fires that are written in one transaction."""
_NOT_TAKEN = (m.fire.c.state == "expected", m.fire.c.started_at.is_(None))
_LEVELS = {"skipped": "warning", "missed": "error"}
_NEXT = "it waits for its turn to be gone on with"
"""The reason of a fire that was begun, is claimed and not at work; what is at work has none."""
MAX_DEATHS = 3
"""After so many collectors that died over a fire it is left alone: a suite that kills them must not do so for
ever."""


def write_expected(
    db: Database,
    schedule: str,
    times: Iterable[datetime],
    until: datetime,
    jitter: timedelta = timedelta(),
    *,
    since: datetime | None = None,
    leader: int | None = None,
) -> None:
    """Make the fires ahead of a schedule those of `times` (ascending, may be endless) up to `until`. What
    lies before `since` (now) stays: it says what should have run. So does what was taken ahead of its time,
    by a clock that was set back since. Only what differs is written, a part at a time, since other writers
    wait meanwhile. Raises `Deposed` once another than `leader` leads."""
    at = since or now()
    ahead = takewhile(lambda time: time <= until, times)
    wanted = {time: due_time(schedule, time, jitter) for time in ahead if time > at}
    known = _expected_ahead(db, schedule, at)
    gone = [time for time, due in known.items() if wanted.get(time) != due]
    new = [_expected(schedule, time, due) for time, due in wanted.items() if known.get(time) != due]
    untaken = m.fire.delete().where(m.fire.c.schedule == schedule, *_NOT_TAKEN)
    for part in _parts(gone):
        with db.write() as connection:
            refuse_deposed(connection, leader)
            connection.execute(untaken.where(m.fire.c.scheduled_for.in_(part)))
    for rows in _parts(new):
        with db.write() as connection:
            refuse_deposed(connection, leader)
            connection.execute(upsert(m.fire).on_conflict_do_nothing(), rows)


def _expected_ahead(db: Database, schedule: str, at: datetime) -> dict[datetime, datetime]:
    """Time -> when it is due."""
    fire = m.fire.c
    query = sa.select(fire.scheduled_for, fire.due).where(
        fire.schedule == schedule, fire.scheduled_for > at, *_NOT_TAKEN
    )
    with db.read() as connection:
        return {row.scheduled_for: row.due for row in connection.execute(query)}


def _parts(things: Sequence[T]) -> Iterator[Sequence[T]]:
    return (things[start : start + PART] for start in range(0, len(things), PART))


def _expected(schedule: str, at: datetime, due: datetime) -> dict[str, object]:
    return {"schedule": schedule, "scheduled_for": at, "due": due, "state": "expected", "run_ids": []}


def claim_fire(db: Database, schedule: str, scheduled_for: datetime, leader: int) -> bool:
    """Take a fire, once for all collectors. False when it was taken before. `leader`: the fencing token of
    the collector that asks. Raises `Deposed` once another leads."""
    with db.write() as connection:
        refuse_deposed(connection, leader)
        taken = _fire(schedule, scheduled_for).where(m.fire.c.state == "expected")
        waits = sa.case((m.fire.c.started_at.is_not(None), sa.literal(_NEXT)), else_=None)
        values = {"state": "claimed", "token": leader, "claimed_at": now(), "reason": waits}
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
    """Say that fires which nobody took are not run, and why: one event tells of them all, and one of those
    that were begun, which have failed. Raises `Deposed` once another than `leader` leads."""
    fire = m.fire.c
    which = sa.and_(fire.schedule == schedule, fire.scheduled_for.in_(times), fire.state == "expected")
    values = {"state": _over(state), "token": leader, "finished_at": now(), "reason": redacted(reason)}
    with db.write() as connection:
        refuse_deposed(connection, leader)
        over = m.fire.update().where(which).values(**values).returning(fire.state, fire.scheduled_for)
        closed = sorted((row.state, row.scheduled_for) for row in connection.execute(over))
        for became, of_these in groupby(closed, key=itemgetter(0)):
            *others, (_, last) = of_these
            told = f"{became}{_and_more(1 + len(others))}: {reason}"
            _tell(connection, schedule, last, told, _LEVELS.get(became, "error"))


def _over(state: Closed) -> sa.ColumnElement[str]:
    """Who began it and did not finish has neither skipped nor missed it."""
    begun = sa.and_(m.fire.c.started_at.is_not(None), sa.literal(state in _LEVELS))
    return sa.case((begun, "failed"), else_=state)


def _and_more(count: int) -> str:
    return f" ({count} in all)" if count > 1 else ""


def start_fire(
    db: Database, schedule: str, scheduled_for: datetime, leader: int, *, late: bool = False
) -> None:
    """Say that the runs of a claimed fire begin, or are gone on with; an event tells when they are made up
    for. Raises `Deposed`, and `StoreError` when it is not claimed."""
    begins = sa.func.coalesce(m.fire.c.started_at, sa.literal(now(), m.fire.c.started_at.type))
    with db.write() as connection:
        _write(connection, schedule, scheduled_for, leader, started_at=begins, reason=None)
        if late:
            _tell(connection, schedule, scheduled_for, "made up for, late", "info")


def give_back(db: Database, schedule: str, scheduled_for: datetime, leader: int) -> None:
    """Leave a claimed fire that was not finished to whoever leads next. Raises `Deposed`, and
    `StoreError` when it is not claimed."""
    with db.write() as connection:
        _write(connection, schedule, scheduled_for, leader, state="expected", token=None, claimed_at=None)


def hold_fire(
    db: Database, schedule: str, scheduled_for: datetime, reason: str, leader: int, *, begun: bool
) -> None:
    """Say why a claimed fire waits, after some of its runs or, where it has not `begun`, before all of them.
    Raises `Deposed`, and `StoreError` when it is not claimed."""
    why: dict[str, object] = {"reason": redacted(reason)}
    with db.write() as connection:
        _write(connection, schedule, scheduled_for, leader, **why if begun else {**why, "started_at": None})


def note_runs(
    db: Database, schedule: str, scheduled_for: datetime, run_ids: Sequence[int], leader: int
) -> None:
    """Say which runs a claimed fire has made so far. Raises `Deposed`, and `StoreError` when it is not
    claimed."""
    with db.write() as connection:
        _write(connection, schedule, scheduled_for, leader, run_ids=list(run_ids))


def finish_fire(
    db: Database, schedule: str, scheduled_for: datetime, state: Closed, reason: str | None, leader: int
) -> None:
    """Say what became of a claimed fire; an event tells of one that was not run, or not to its
    end. Raises `Deposed`, and `StoreError` when it is not claimed."""
    told = redacted(reason) if reason else None
    with db.write() as connection:
        over = {"state": _over(state), "finished_at": now(), "reason": told}
        became = _write(connection, schedule, scheduled_for, leader, **over)
        if state in _LEVELS:
            _tell(connection, schedule, scheduled_for, f"{became}: {reason}", _LEVELS.get(became, "error"))


def take_back_from_the_dead(db: Database, leader: int) -> None:
    """What former leaders took and did not finish is due again, to be gone on with where it was begun: an
    event tells of each that was at work. One over which `MAX_DEATHS` of them have died has failed: what only
    waited, for its turn or for money, killed nobody. Raises `Deposed`."""
    fire = m.fire.c
    theirs = sa.and_(fire.state == "claimed", fire.token != leader)
    at_work = (fire.started_at.is_not(None), fire.reason.is_(None))
    died = m.fire.update().where(theirs, *at_work).values(deaths=fire.deaths + 1)
    due = m.fire.update().where(theirs).values(state="expected", token=None, claimed_at=None)
    with db.write() as connection:
        refuse_deposed(connection, leader)
        dead = connection.execute(died.returning(fire.schedule, fire.scheduled_for, fire.deaths)).all()
        for schedule, at, deaths in dead:
            _tell_of_the_death(connection, schedule, at, deaths)
        connection.execute(_too_many(theirs))
        connection.execute(due)


def _too_many(theirs: sa.ColumnElement[bool]) -> sa.Update:
    reason = f"{MAX_DEATHS} collectors died over it; memtrend run --resume goes on with what was begun"
    failed = m.fire.update().where(theirs, m.fire.c.deaths >= MAX_DEATHS)
    return failed.values(state="failed", finished_at=now(), reason=reason)


def _tell_of_the_death(connection: Connection, schedule: str, at: datetime, deaths: int) -> None:
    if deaths < MAX_DEATHS:
        return _tell(
            connection, schedule, at, "the collector that ran it died; it is gone on with", "warning"
        )
    _tell(connection, schedule, at, f"{deaths} collectors died over it, so it is left alone", "error")


def _write(connection: Connection, schedule: str, at: datetime, leader: int, **values: object) -> str:
    """The state that the fire is in afterwards."""
    refuse_deposed(connection, leader)
    claimed = _fire(schedule, at).where(m.fire.c.state == "claimed", m.fire.c.token == leader)
    state: str | None = connection.execute(claimed.values(**values).returning(m.fire.c.state)).scalar()
    if state is None:
        raise StoreError(
            f"the fire of schedule {schedule} of {at:%Y-%m-%d %H:%M} UTC is not claimed by this collector: "
            "nothing is noted of it; memtrend doctor tells of what was missed"
        )
    return state


def _fire(schedule: str, at: datetime) -> sa.Update:
    return m.fire.update().where(m.fire.c.schedule == schedule, m.fire.c.scheduled_for == at)


def _tell(connection: Connection, schedule: str, at: datetime, message: str, level: str) -> None:
    told = f"fire of {at:%Y-%m-%d %H:%M} UTC: {message}"
    insert_event(connection, level, f"schedule:{schedule}", told, None)
