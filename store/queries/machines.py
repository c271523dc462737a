"""What machines ask: what became of a request, and the figures that a monitor of the monitor reads."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.queries.common import is_of_a_control, shown_status
from store.queries.runs import RunRow, select_runs
from store.records import RequestRow

RequestState = Literal["queued", "claimed", "running", "finished", "failed"]

ENDED = ("whole", "invalid", "void")


class Answer(NamedTuple):
    """What became of a request. queued: no collector has taken it; claimed: it waits for its turn; running:
    the last of `run_ids` goes on; finished: they have ended, in whatever way; failed: `request.error` says
    why."""

    request: RequestRow
    state: RequestState
    run_ids: list[int]


class Standing(NamedTuple):
    """The newest run of a whole suite on a backend that has ended, whole or not, and the newest whole one."""

    suite: str
    backend: str
    ended: RunRow
    whole: RunRow | None


def answer(db: Database, request_id: int) -> Answer | None:
    """What became of a request; None where there is none of that id."""
    with db.read() as connection:
        columns = (m.request.c[name] for name in RequestRow._fields)
        row = connection.execute(sa.select(*columns).where(m.request.c.id == request_id)).first()
        if row is None:
            return None
        request = RequestRow(*row)
        going = _going_on(connection, request) if request.state == "claimed" else None
    if going is not None:
        return Answer(request, "running", [going])
    states: dict[str, RequestState] = {"queued": "queued", "claimed": "claimed", "failed": "failed"}
    return Answer(request, states.get(request.state, "finished"), request.run_ids)


def _going_on(connection: Connection, request: RequestRow) -> int | None:
    """The run that a claimed request is at. A collector takes requests in their order, so it is at the oldest
    one that it has claimed."""
    suite, backend = (str(request.payload.get(name, "")) for name in ("suite", "backend"))
    claimed = (m.request.c.state == "claimed", m.request.c.author == request.author)
    if connection.execute(sa.select(sa.func.min(m.request.c.id)).where(*claimed)).scalar() != request.id:
        return None
    run = (
        sa.select(sa.func.max(m.run.c.id))
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(m.suite.c.name == suite, m.backend.c.name == backend, shown_status() == "running")
        .where(m.run.c.trigger == f"request:{request.author}")
        .where(sa.or_(m.run.c.started_at >= request.claimed_at, m.run.c.id.in_(request.run_ids)))
    )
    found: int | None = connection.execute(run).scalar()
    return found


def standings(db: Database) -> list[Standing]:
    """Of every suite and backend with a run of the whole suite that has ended, by name; without controls."""
    with db.read() as connection:
        ended, whole = _newest(connection, ENDED), _newest(connection, ("whole",))
        rows = {row.id: row for row in select_runs(connection, [m.run.c.id.in_({*ended, *whole})])}
    by_pair = {(rows[run_id].suite, rows[run_id].backend): rows[run_id] for run_id in whole}
    found = [rows[run_id] for run_id in ended]
    return sorted(
        (Standing(row.suite, row.backend, row, by_pair.get((row.suite, row.backend))) for row in found),
        key=lambda standing: standing[:2],
    )


def _newest(connection: Connection, statuses: tuple[str, ...]) -> list[int]:
    """The newest run of each suite and backend in one of these ways of ending."""
    of_a_pair = [m.run.c.suite_id, m.run.c.backend_id]
    place = sa.func.row_number().over(
        partition_by=of_a_pair, order_by=[m.run.c.started_at.desc(), m.run.c.id.desc()]
    )
    ended = (m.run.c.status.in_(statuses), m.run.c.finished_at.is_not(None), m.run.c.subset == "")
    ranked = sa.select(m.run.c.id, place.label("place")).where(*ended, ~is_of_a_control()).subquery()
    return list(connection.execute(sa.select(ranked.c.id).where(ranked.c.place == 1)).scalars())


def queue(db: Database) -> dict[tuple[str, str], int]:
    """(suite, backend) -> requests for it that are not answered yet; one at work counts."""
    waiting = sa.select(m.request.c.payload).where(m.request.c.state.in_(["queued", "claimed"]))
    with db.read() as connection:
        payloads = connection.execute(waiting).scalars().all()
    return Counter((str(asked.get("suite", "")), str(asked.get("backend", ""))) for asked in payloads)
