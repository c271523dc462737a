"""What alerts wait for: a third look that would settle them, the end of a mute."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from store import models as m
from store.alert_life import STANDING_STATES
from store.alert_signals import Signal, deepens
from store.database import Database
from store.queries.alerts import standing_incidents
from store.queries.said import verdicts
from store.sightings import OF_A_VERDICT

LOOKS_BEFORE = 2
"""Looks after which one more, some hours later, settles it."""


class OwedLook(NamedTuple):
    """A run of which something is suspected in two looks, be it that what is sure fell further, and which
    nobody was asked to look at again.
    `ended_at`: when the last look was over, `cost` what it cost, in USD."""

    alert_id: int
    run_id: int
    suite: str
    backend: str
    ended_at: datetime
    cost: float


def owed_looks(db: Database) -> list[OwedLook]:
    """Oldest first. Drills ask for theirs themselves."""
    waiting = _waiting(db)
    said = _asked_twice(db, {run_id for _, signal in waiting for run_id in _runs(signal)})
    owed: dict[int, tuple[int, Signal]] = {}
    for alert_id, signal in waiting:
        run_id = next((id for id in _runs(signal) if id in said), None)
        if run_id and (signal.standing == "suspected" or deepens(signal, said[run_id])):
            owed.setdefault(run_id, (alert_id, signal))
    looks = {run_id: said[run_id]["looks"][-1]["run_id"] for run_id in sorted(owed)}
    ended, costs = _ended(db, looks.values())
    return [
        OwedLook(owed[run_id][0], run_id, *owed[run_id][1].key[1:3], ended[look], costs.get(look, 0.0))
        for run_id, look in looks.items()
        if look in ended
    ]


def _waiting(db: Database) -> list[tuple[int, Signal]]:
    """Signals that one look more may settle, or tell how deep they are, with the alerts that they are of."""
    with db.read() as connection:
        standing = [
            it for it in standing_incidents(connection) if not it.drill and "untaken" not in it.context
        ]
    told = [(it.id or 0, signal) for it in standing for signal in it.standing]
    return [
        (alert_id, signal)
        for alert_id, signal in told
        if signal.key.kind in OF_A_VERDICT and signal.standing in ("suspected", "sure")
    ]


def _runs(signal: Signal) -> list[int]:
    """Whose look would: the first one that showed it, since newer ones come before its time where a schedule
    fires often; the newest where that was looked at already, or where it is about how deep it went since."""
    runs = (signal.first_run_id if signal.standing == "suspected" else None, signal.run_id)
    return [run_id for run_id in runs if run_id is not None]


def _asked_twice(db: Database, run_ids: Collection[int]) -> dict[int, Mapping[str, Any]]:
    """Run -> its verdict in force, after two looks, where nobody has asked for the third."""
    asked = sa.select(m.request.c.payload).where(m.request.c.kind == "look")
    with db.read() as connection:
        known = {payload.get("run") for payload in connection.execute(asked).scalars()} if run_ids else set()
    rows = verdicts(db, [run_id for run_id in run_ids if run_id not in known]).values()
    return {row.run_id: row.content for row in rows if row.looks == LOOKS_BEFORE}


def _ended(db: Database, run_ids: Iterable[int]) -> tuple[dict[int, datetime], dict[int, float]]:
    run, played, ids = m.run.c, m.scenario_result.c, list(run_ids)
    ends = sa.select(run.id, run.finished_at).where(run.id.in_(ids), run.finished_at.is_not(None))
    spent = sa.select(played.run_id, sa.func.sum(played.money)).where(played.run_id.in_(ids))
    with db.read() as connection:
        ended = {row[0]: row[1] for row in connection.execute(ends)}
        costs = {row[0]: float(row[1]) for row in connection.execute(spent.group_by(played.run_id))}
    return ended, costs


def muted_over(db: Database, now: datetime) -> bool:
    """Whether the mute of an alert that stands has ended."""
    alert = m.alert.c
    over = sa.exists().where(alert.muted_until <= now, alert.state.in_(STANDING_STATES))
    with db.read() as connection:
        return bool(connection.execute(sa.select(over)).scalar_one())
