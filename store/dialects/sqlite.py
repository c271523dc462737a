"""All that SQLite alone knows: one file, one writer at a time by `BEGIN IMMEDIATE`, and WAL."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from store.dialects import base
from store.dialects.base import Dialect, hook
from store.dialects.place import FULL_BYTES, Place, network_file_system
from store.errors import DatabaseError


class Sqlite(Dialect):
    thing = "file"

    def __init__(self, url: URL, busy_seconds: float) -> None:
        super().__init__(url, busy_seconds)
        self.place = Place(Path(str(self.url.database)))

    def checked(self, url: URL) -> URL:
        if url.database in (None, "", ":memory:"):
            raise DatabaseError("database.url names no file; write it as sqlite:///memtrend.db")
        folder = Path(str(url.database)).parent
        if not folder.is_dir():
            raise DatabaseError(
                f"cannot open {url.database}: the folder {folder} does not exist; make it first"
            )
        return url

    def find(self) -> bool:
        self.place.remember()
        return self.place.path.exists()

    def engine(self) -> Engine:
        engine = sa.create_engine(
            self.url,
            connect_args={"timeout": self.busy_seconds},
            hide_parameters=True,  # they hold memories, and an error would tell them
        )
        sa.event.listen(engine, "do_connect", self._before_connect)
        sa.event.listen(engine, "connect", _on_connect)
        return hook(engine, self)

    def _before_connect(self, *_: object) -> None:
        """SQLite would make a file that is missing."""
        self.place.check()

    def begin(self, connection: Connection, writes: bool) -> None:
        """It waits at the beginning, so it never fails half-way because another wrote in between."""
        self.place.check()
        if writes and not self.place.is_writable():
            raise DatabaseError(f"cannot write {self.url_public}: {_REASONS['READONLY']}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    def settle(self, engine: Engine) -> None:
        """WAL and auto_vacuum are properties of the file, and auto_vacuum only of a new one: it comes
        first."""
        raw = engine.raw_connection()
        try:
            _until_not_busy(lambda: _set_file_modes(raw.cursor()))
        finally:
            raw.close()
        self.place.remember()

    def after_upgrade(self, connection: Connection) -> None:
        """Nothing."""

    def before_close(self, engine: Engine) -> None:
        """What is in the log beside the file goes into it, unless another process is at work there: that one
        does it when it ends."""
        with suppress(SQLAlchemyError, sqlite3.Error, DatabaseError), closing(engine.raw_connection()) as raw:
            self.place.check()
            cursor = raw.cursor()
            cursor.execute("PRAGMA busy_timeout=0")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def server(self, connection: Connection) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def size(self, connection: Connection) -> int:
        pages, each = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("page_count", "page_size")
        )
        return pages * each

    def is_own_error(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.Error)

    def own_reason(self, error: Exception) -> str:
        free = self.place.free() if error_code(error) in ("FULL", "IOERR") else None
        told = reason(error, self.busy_seconds)
        return told if free is None else f"{told}; {free / 1e6:,.0f} MB are free there"

    def check(self) -> None:
        self.place.check()

    def trouble(self) -> str | None:
        try:
            self.check()
        except DatabaseError as error:
            return str(error)
        if not self.place.is_writable():
            return f"{self.place.path} cannot be written: {_REASONS['READONLY']}"
        free = self.place.free()
        if free is not None and free < FULL_BYTES:
            return (
                f"{self.place.path}: no more than {free / 1e6:,.0f} MB are free on its disk; make room there"
            )
        return None

    def shared_by(self) -> str | None:
        return network_file_system(self.place.path)


def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _set_file_modes(cursor: Any) -> None:
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        cursor.execute("PRAGMA auto_vacuum=INCREMENTAL")
        cursor.execute("PRAGMA journal_mode=WAL")


def _until_not_busy(action: Callable[[], None]) -> None:
    """SQLite does not wait for the lock when it changes the journal mode, so we do."""
    deadline = time.monotonic() + base.BUSY_SECONDS
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if error_code(error) != "BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


_REASONS = {
    "BUSY": "another process held the write lock for more than {seconds:.0f} s; "
    "find what holds the file open, then do it again",
    "FULL": "no space left on its disk; free some, then do it again (what was stored before is intact)",
    "NOTADB": "it is not an SQLite database; name another file in database.url",
    "CORRUPT": "the file is damaged; restore it from a backup",
    "READONLY": "it is read-only; make the file and its folder writable for this user",
    "CANTOPEN": "it cannot be opened; check that the folder exists and that this user may read and write it",
    "IOERR": "the disk failed or is full (disk I/O error); check its space and health, then do it again "
    "(what was stored before is intact)",
}


def reason(error: Exception, busy_seconds: float = base.BUSY_SECONDS) -> str:
    """An error of SQLite in plain words, with what to do next."""
    told = _REASONS.get(error_code(error))
    return told.format(seconds=busy_seconds) if told else str(error)


def error_code(error: Exception) -> str:
    """SQLITE_IOERR_WRITE -> IOERR. Errors of the driver itself have no name."""
    name: str = getattr(error, "sqlite_errorname", "") or ""
    return name.removeprefix("SQLITE_").split("_")[0]
