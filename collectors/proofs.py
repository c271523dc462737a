"""Whether the alarm is proven: drills by their schedules, and what is said when one fails or none comes.

A drill that failed, and one that is late, are alerts like others, told through all channels that hear of
their kind. The record says so, whoever ran the drill, and whoever was killed over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import NamedTuple

from collectors.schedule import longest_pause
from store import queries, writes
from store.alert_life import Facts, Turned, advance
from store.database import Database
from store.queries import ProofRow
from store.sections import ScheduleSection
from store.settings import Settings
from store.sightings import Sighting, proof

PERIODS = 2
"""After so many periods of its schedule without a drill that arrived, the proof is late."""
LONGEST = timedelta(minutes=15)
"""A drill takes seconds; one that began before that and has not ended was killed, or hangs."""


def detect_unproven(
    db: Database, settings: Settings, now: datetime, told: writes.Route = writes.nobody
) -> list[Turned]:
    """A proof that failed or is late, or is good again. Nothing is written while nothing changes, and what a
    person has closed stays so until something new happens."""
    rows = queries.proofs(db)
    if rows and _under_way(rows[0], now):
        return []
    seen, since = _seen(db, settings, now, rows)
    standing = [(one.depth, one.content.get("reason")) for one in queries.open_signals(db, "proof")]
    if standing == ([] if since is None else [(seen.depth, seen.content["reason"])]):
        return []
    if since and not standing and queries.was_closed(db, "proof", since):
        return []
    return writes.turn_alerts(db, lambda known: advance(known, [seen], Facts(now)), told)


def _under_way(row: ProofRow, now: datetime) -> bool:
    return row.finished_at is None and now - row.started_at <= LONGEST


def _seen(
    db: Database, settings: Settings, now: datetime, rows: Sequence[ProofRow]
) -> tuple[Sighting, datetime | None]:
    """And since when that is so, None where nothing is wrong."""
    failed = list(takewhile(lambda row: not row.passed, rows))
    if failed:
        return proof(_of_the_failed(failed[0]), len(failed)), failed[0].started_at
    for name, section in settings.schedules.items():
        if section.kind == "proof" and section.enabled and (late := _late(db, name, section, now, rows)):
            told = f"No drill has arrived since {late.last:%Y-%m-%d %H:%M} UTC, by schedule {name}."
            return proof(told), late.since
    return proof(), None


def _of_the_failed(row: ProofRow) -> str:
    why = row.error or f"it did not end within {LONGEST.total_seconds() / 60:.0f} minutes"
    return f"The drill of {row.started_at:%Y-%m-%d %H:%M} UTC failed: {why}."


class _Late(NamedTuple):
    """`last`: the last drill that arrived, or the first fire where none has; late `since` then."""

    last: datetime
    since: datetime


def _late(
    db: Database, name: str, section: ScheduleSection, now: datetime, passed: Sequence[ProofRow]
) -> _Late | None:
    """None while the next one may still come in time."""
    pause = longest_pause(section, now)
    last = passed[0].started_at if passed else queries.first_fire(db, name, now)
    if pause is None or last is None:
        return None
    since = last + (PERIODS if passed else PERIODS - 1) * pause
    return _Late(last, since) if now > since else None
