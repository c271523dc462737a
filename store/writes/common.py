"""What the writes have in common."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import upsert
from store.hiding import redacted

PROJECT = "default"


def upsert_named(connection: Connection, table: sa.Table, name: str, values: Mapping[str, Any]) -> int:
    """The id of the row of that name, made or brought up to date; equal values write nothing."""
    row = connection.execute(sa.select(table).where(table.c.name == name)).mappings().first()
    if row and all(row[key] == value for key, value in values.items()):
        return int(row["id"])
    changed(connection)
    if row:
        connection.execute(table.update().where(table.c.id == row["id"]).values(**values))
        return int(row["id"])
    return insert(connection, table, name=name, project=PROJECT, **values)


def known_scorer(connection: Connection, version: str) -> int:
    """The id of a scorer's version, made where it is new."""
    known = connection.execute(sa.select(m.scorer.c.id).where(m.scorer.c.version == version)).scalar()
    return known or insert(connection, m.scorer, version=version)


def insert_event(connection: Connection, level: str, source: str, message: str, run_id: int | None) -> int:
    row = {"level": level, "source": source, "message": redacted(message), "run_id": run_id}
    return insert(connection, m.event, at=now(), **row)


def insert(connection: Connection, table: sa.Table, **values: Any) -> int:
    result = connection.execute(table.insert().values(**values))
    assert result.inserted_primary_key is not None
    return int(result.inserted_primary_key[0])


def changed(connection: Connection) -> None:
    """Something that is shown has changed: caches must not outlive this transaction."""
    counter = upsert(m.change).values(name="record", n=1)
    connection.execute(counter.on_conflict_do_update(index_elements=["name"], set_={"n": m.change.c.n + 1}))


def now() -> datetime:
    return datetime.now(UTC)
