"""Which runs are so old that their texts or results may go, and of which they went."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.baselines import baseline
from store.database import Database
from store.queries.common import is_whole
from store.queries.controls import controlled_nights
from store.queries.verdicts import CONFIRM, decisions_of, earlier, look_trigger, series_of

What = Literal["details", "results"]


def removals(db: Database, run_id: int) -> dict[str, str]:
    """What retention took from the run, and after how long: {"details": "90d"}."""
    taken = m.removal.c
    with db.read() as connection:
        rows = connection.execute(sa.select(taken.what, taken.after).where(taken.run_id == run_id))
        return {row.what: row.after for row in rows}


def removable(db: Database, what: What, before: datetime) -> list[int]:
    """The ended runs from before that time of which it is still there, or a part of it (what removed it was
    killed), and nothing needs it, oldest first. Of a run that can still be resumed the results stay."""
    noted = sa.exists().where(m.removal.c.run_id == m.run.c.id, m.removal.c.what == what)
    gone = sa.and_(noted, ~left(what, m.run.c.id).exists())
    ended = ["whole", "invalid", "void", *(["interrupted"] if what == "details" else [])]
    old = sa.select(m.run.c.id).where(m.run.c.started_at < before, m.run.c.status.in_(ended), ~gone)
    with db.read() as connection:
        ids = list(connection.execute(old.order_by(m.run.c.started_at, m.run.c.id)).scalars())
        kept = needed(connection) if ids else set()
    return [run_id for run_id in ids if run_id not in kept]


def left(what: What, run_id: int | sa.ColumnElement[int]) -> sa.Select[tuple[int]]:
    """The ids of a run's case results of which it is still there."""
    result = m.case_result.c
    ids = sa.select(result.id).where(result.run_id == run_id)
    return ids if what == "results" else ids.join(m.detail, m.detail.c.case_result_id == result.id)


def needed(connection: Connection) -> set[int]:
    """The runs that the next verdict of each series reads: the newest whole one, what it and the next are
    held against, its looks, and the controls beside them; and whatever a look may still settle."""
    newest = (
        sa.select(sa.func.max(m.run.c.id)).where(is_whole()).group_by(m.run.c.suite_id, m.run.c.backend_id)
    )
    ids = {
        run_id
        for last in connection.execute(newest).scalars().all()
        for run_id in (last, *_held_against(connection, last), *controlled_nights(connection, last))
    }
    return ids | set(_looks(connection, ids)) | set(_open(connection))


def _held_against(connection: Connection, newest: int) -> Iterator[int]:
    """By the newest run of a series, and by the one that follows it."""
    run = series_of(connection, newest)
    if run is None:
        return
    nights, decisions = earlier(connection, run), decisions_of(connection, run.suite_id, run.backend_id)
    following = run.night._replace(run_id=run.night.run_id + 1)
    for night, before in ((run.night, nights), (following, [*nights, run.night])):
        found = baseline(night, before, decisions)
        yield from (*found.history, *found.anchor)
    yield from (run_id for one in decisions if one.action != "exclude" for run_id in one.run_ids)


def _open(connection: Connection) -> Iterator[int]:
    """Runs that a look may still settle: the last that was said of them is a suspicion."""
    said = m.verdict.alias("said")
    last = sa.select(sa.func.max(said.c.id)).where(said.c.run_id == m.verdict.c.run_id).scalar_subquery()
    suspected = sa.select(m.verdict.c.run_id).where(m.verdict.c.stage == "suspicion", m.verdict.c.id == last)
    yield from connection.execute(suspected).scalars()


def _looks(connection: Connection, ids: set[int]) -> Iterator[int]:
    looks = sa.select(m.run.c.id, m.run.c.trigger).where(m.run.c.subset == CONFIRM)
    triggers = {look_trigger(run_id) for run_id in ids}
    yield from (row.id for row in connection.execute(looks) if row.trigger in triggers)
