"""What machines ask for: a request or a mark, once for each key that they name it by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.columns import to_json
from store.database import Database
from store.writes.common import PROJECT, changed, insert, now

AUTHOR = "api"


def ask_for_run(db: Database, payload: Mapping[str, Any], key: str = "") -> int:
    """Ask the collector for a run; returns the request's id. The same payload under the same `key` is asked
    for once, however often and from however many processes, for a day at least: keys are forgotten when the
    day after has passed (UTC)."""
    row = {"kind": "run", "payload": payload, "author": AUTHOR, "state": "queued", "run_ids": []}
    with db.write() as connection:
        return _once(
            connection,
            "request",
            _name(key, payload),
            lambda: insert(connection, m.request, created_at=now(), **row),
        )


def draw_mark(db: Database, text: str, at: datetime | None, meta: Mapping[str, Any], key: str = "") -> int:
    """Draw a dated line on every chart; returns the mark's id. `at` None is now. `key` as for a run."""
    row = {"text": text, "kind": "mark", "author": AUTHOR, "meta": meta, "project": PROJECT}
    told = {"text": text, "at": at and at.isoformat(), "meta": meta}

    with db.write() as connection:

        def drawn() -> int:
            changed(connection)
            return insert(connection, m.mark, at=at or now(), **row)

        return _once(connection, "mark", _name(key, told), drawn)


def _name(key: str, asked: Mapping[str, Any]) -> str:
    """Of fixed length, whatever the caller chose as key."""
    return key and sha256(to_json([key, asked]).encode()).hexdigest()


def _once(connection: Connection, kind: str, name: str, make: Callable[[], int]) -> int:
    """The id that was made under that name today or yesterday (UTC), made now where there is none. Writers
    take turns, so nobody else makes it meanwhile."""
    if not name:
        return make()
    kept = [f"{kind}:{now() - timedelta(days=days):%Y-%m-%d}:" for days in (0, 1)]
    names = [f"{day}{name}" for day in kept]
    known: int | None = connection.scalar(sa.select(m.change.c.n).where(m.change.c.name.in_(names)))
    if known is not None:
        return known
    _forget_others(connection, kind, kept)
    made = make()
    connection.execute(m.change.insert().values(name=names[0], n=made))
    return made


def _forget_others(connection: Connection, kind: str, kept: Sequence[str]) -> None:
    """Keys would pile up otherwise, one for each call."""
    older = m.change.delete().where(m.change.c.name.startswith(f"{kind}:"))
    connection.execute(older.where(*(~m.change.c.name.startswith(day) for day in kept)))
