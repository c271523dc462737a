"""What alerts wait for: a third look that would settle them, the end of a mute."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from store import models as m
from store.alert_life import STANDING_STATES
from store.database import Database
from store.queries.said import verdicts
from store.sightings import OF_A_VERDICT

LOOKS_BEFORE = 2
"""Looks after which one more, some hours later, settles it."""


class OwedLook(NamedTuple):
    """A run of which something is suspected, in two looks, and which nobody was asked to look at again.
    `ended_at`: when the last look was over, `cost` what it cost, in USD."""

    alert_id: int
    run_id: int
    suite: str
    backend: str
    ended_at: datetime
    cost: float


def owed_looks(db: Database) -> list[OwedLook]:
    """Oldest first. Drills ask for theirs themselves."""
    suspected = _suspected(db)
    told = {
        row.run_id: row.content["looks"][-1]["run_id"]
        for row in verdicts(db, list(suspected)).values()
        if row.looks == LOOKS_BEFORE
    }
    ended, costs = _ended(db, told.values())
    return [
        OwedLook(*suspected[run_id], ended[look], costs.get(look, 0.0))
        for run_id, look in sorted(told.items())
        if look in ended
    ]


def _suspected(db: Database) -> dict[int, tuple[int, int, str, str]]:
    """Run -> alert, run, suite and backend of a signal that one look more would settle."""
    signal, alert, request = m.alert_signal.c, m.alert.c, m.request.c
    query = (
        sa.select(signal.alert_id, signal.run_id, signal.suite, signal.backend, alert.context)
        .join(m.alert, alert.id == signal.alert_id)
        .where(signal.closed_at.is_(None), signal.standing == "suspected", signal.kind.in_(OF_A_VERDICT))
        .where(alert.state.in_(STANDING_STATES), ~alert.drill, signal.run_id.is_not(None))
    )
    asked = sa.select(request.payload).where(request.kind == "look")
    with db.read() as connection:
        rows = [row for row in connection.execute(query) if "untaken" not in row.context]
        known = {payload.get("run") for payload in connection.execute(asked).scalars()} if rows else set()
    return {row.run_id: tuple(row)[:4] for row in rows if row.run_id not in known}


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
