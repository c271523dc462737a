"""What machines ask for: a request or a mark, once for each key that they name it by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.columns import to_json
from store.database import Database, upsert
from store.writes.common import PROJECT, changed, insert, now

AUTHOR = "api"


def ask_for_run(db: Database, payload: Mapping[str, Any], key: str = "") -> int:
    """Ask the collector for a run; returns the request's id. The same payload under the same `key` is asked
    for once, however often and from however many processes."""
    row = {"kind": "run", "payload": payload, "author": AUTHOR, "state": "queued", "run_ids": []}
    with db.write() as connection:
        return _once(
            connection,
            key and _name("request", key, payload),
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

        return _once(connection, key and _name("mark", key, told), drawn)


def _name(kind: str, key: str, asked: Mapping[str, Any]) -> str:
    """Of fixed length, whatever the caller chose as key."""
    return f"{kind}:{sha256(to_json([key, asked]).encode()).hexdigest()}"


def _once(connection: Connection, name: str, make: Callable[[], int]) -> int:
    """The id that was made under that name, made now where there is none. The name is taken first: whoever
    comes meanwhile waits for its row, and finds the id in it."""
    if not name:
        return make()
    mine = upsert(m.change).values(name=name, n=0).on_conflict_do_nothing().returning(m.change.c.name)
    if connection.execute(mine).first() is None:
        known: int = connection.execute(sa.select(m.change.c.n).where(m.change.c.name == name)).scalar_one()
        return known
    made = make()
    connection.execute(m.change.update().where(m.change.c.name == name).values(n=made))
    return made
