"""How long texts and results are kept: what is older goes, and its space is given back."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import NamedTuple

from store.database import Database
from store.dialects.base import BUSY_SECONDS
from store.dialects.sqlite import reason
from store.errors import DatabaseError
from store.queries.retention import What, removable
from store.sections import RetentionSection, time_of
from store.words import count
from store.writes.alerts import forget_payloads
from store.writes.retention import remove

STEP_PAGES = 1000
"""Pages given back in one transaction: 4 MB, so that no writer waits long."""


GROWN = 1_000_000_000
"""Bytes from which on a record that keeps everything is worth a word."""


class Due(NamedTuple):
    """The runs whose `what` is older than `after`."""

    what: What
    after: str
    run_ids: list[int]


class Pruned(NamedTuple):
    """Runs that lost their details alone, or their results with them; bytes by which the file is smaller, 0
    on a server, which fills the space again."""

    details: int
    results: int
    bytes: int


def due(db: Database, section: RetentionSection) -> list[Due]:
    """What may go now. A run whose results go is not named again for its details."""
    results, details = _due(db, "results", section.results), _due(db, "details", section.details)
    rest = set(details.run_ids) - set(results.run_ids)
    return [results, details._replace(run_ids=sorted(rest))]


def _due(db: Database, what: What, after: str) -> Due:
    if after == "never":
        return Due(what, after, [])
    return Due(what, after, removable(db, what, datetime.now(UTC) - time_of(after)))


def prune(db: Database, section: RetentionSection, stop: threading.Event | None = None) -> Pruned:
    """Remove what is due, a run at a time, until `stop`, and what messages as old were made of; then
    give back the space. Raises `DatabaseError`."""
    if section.details != "never":
        forget_payloads(db, datetime.now(UTC) - time_of(section.details))
    counts = {"details": 0, "results": 0}
    for one in due(db, section):
        for run_id in _until(stop, one.run_ids):
            remove(db, run_id, one.what, one.after)
            counts[one.what] += 1
    return Pruned(**counts, bytes=give_back(db) if any(counts.values()) else 0)


def advice(db: Database, section: RetentionSection) -> str:
    """What to say of a big record from which nothing is ever removed; "" of any other. Raises
    `DatabaseError`."""
    with db.read() as connection:
        size = db.dialect.size(connection)
    if size < GROWN or (section.details, section.results) != ("never", "never"):
        return ""
    return f'{size / 1e9:.1f} GB, and all of it is kept: [retention] details = "180d" would bound the texts'


def told(pruned: Pruned) -> str:
    """ "" where nothing was due."""
    if not (pruned.details or pruned.results):
        return ""
    counts = f"the texts of {count(pruned.details, 'run')}, all results of {count(pruned.results, 'run')}"
    return f"retention removed {counts}" + (
        f"; the file is {pruned.bytes / 1e6:.1f} MB smaller" if pruned.bytes else ""
    )


def _until(stop: threading.Event | None, run_ids: list[int]) -> Iterator[int]:
    for run_id in run_ids:
        if stop and stop.is_set():
            return
        yield run_id


def give_back(db: Database) -> int:
    """Make an SQLite file as small as what it holds, in short steps, and return by how many bytes. PostgreSQL
    sees to it by itself. Raises `DatabaseError`."""
    if db.dialect.url.get_backend_name() != "sqlite":
        return 0
    path = str(db.dialect.url.database)
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            page = _pragma(connection, "page_size")
            before = _pragma(connection, "page_count")
            while (free := _pragma(connection, "freelist_count")) > 0:
                # a script, since execute() would free one page only
                connection.executescript(f"PRAGMA incremental_vacuum({STEP_PAGES})")
                if _pragma(connection, "freelist_count") >= free:
                    break  # a file that was made elsewhere, and does not shrink
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            return page * (before - _pragma(connection, "page_count"))
    except sqlite3.Error as error:
        raise DatabaseError(f"cannot give back the space of {db.url_public}: {reason(error)}") from error


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
