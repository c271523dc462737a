"""The record's file: opening it, its transactions, and its errors in plain words.

Any process may open the record and write to it. A write is one short `BEGIN IMMEDIATE` transaction: it
waits its turn at the beginning, so it never fails half-way because another process wrote in between.
All that SQLite alone knows stands here.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError

from store.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = tuple(sorted(path.stem.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py")))
"""Every revision that this memtrend knows, oldest first; the last one is what it works with."""

BUSY_SECONDS = 10.0

NOW: sa.ColumnElement[float] = sa.literal_column("((julianday('now') - 2440587.5) * 86400.0)", sa.Float())
"""Seconds since 1970 on the database's clock."""

upsert = sqlite.insert
"""INSERT with ON CONFLICT: the dialect's own construct, of the same shape for PostgreSQL."""


class DatabaseError(StoreError):
    """The record cannot be opened, read or written."""


class Database:
    """An open record. Safe to share among threads; a forked process opens its own."""

    def __init__(self, url: str) -> None:
        self._url = _checked(url)
        self._engine = sa.create_engine(self._url, connect_args={"timeout": BUSY_SECONDS})
        sa.event.listen(self._engine, "connect", _on_connect)
        sa.event.listen(self._engine, "begin", _on_begin)
        self._writer = self._engine.execution_options(memtrend_write=True)
        self.case_ids: dict[int, dict[str, int]] = {}
        """Case name -> id by suite version. Versions are never edited, so this never goes stale."""

    @property
    def url_public(self) -> str:
        """The URL without a password."""
        return self._url.render_as_string(hide_password=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One transaction that sees one state of the record. Raises `DatabaseError`."""
        with self._plain_errors("read"), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One short write transaction: all of it or nothing. Raises `DatabaseError`."""
        with self._plain_errors("write"), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Give back what was opened. What is in the log beside the file goes into it, unless another process
        is at work there: that one does it when it ends."""
        with suppress(SQLAlchemyError, sqlite3.Error), closing(self._engine.raw_connection()) as raw:
            cursor = raw.cursor()
            cursor.execute("PRAGMA busy_timeout=0")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._engine.dispose()

    @contextmanager
    def _plain_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise DatabaseError(f"cannot {doing} {self.url_public}: {_reason(error)}") from error


def open_database(url: str) -> Database:
    """Open the record, making or upgrading it where needed. Raises `DatabaseError`; then nothing has changed.

    url: such as `sqlite:///memtrend.db` (relative to the working directory).
    """
    database = Database(url)
    try:
        with database.read() as connection:
            current = _revision(connection, database.url_public)
        _use_wal(database)  # not before it is known to be ours: the mode stays with the file
        if current != REVISIONS[-1]:
            _migrate(database)
    except BaseException:
        database._engine.dispose()  # no more than that: the file may be somebody else's
        raise
    return database


def insert_rows(
    connection: Connection, table: sa.Table, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Insert many rows of plain numbers and texts: half the time of `connection.execute(insert, dicts)`,
    since no value is converted."""
    values = list(rows)
    if values:
        connection.exec_driver_sql(_insert_sql(table, tuple(columns), connection.dialect), values)


@lru_cache(maxsize=64)
def _insert_sql(table: sa.Table, columns: tuple[str, ...], dialect: sa.Dialect) -> str:
    statement = table.insert().compile(dialect=dialect, column_keys=list(columns))
    if statement.positiontup != list(columns):
        raise ValueError(f"columns of {table.name} must come in the table's order: {statement.positiontup}")
    return str(statement)


def is_double(error: IntegrityError) -> bool:
    """Whether a row was refused because one with its key is there already."""
    return getattr(error.orig, "sqlite_errorname", "") in (
        "SQLITE_CONSTRAINT_UNIQUE",
        "SQLITE_CONSTRAINT_PRIMARYKEY",
    )


def _checked(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise DatabaseError("database.url is not a URL; write it as sqlite:///memtrend.db") from error
    if parsed.get_backend_name() != "sqlite":
        raise DatabaseError(
            f"database.url: {parsed.get_backend_name()!r} cannot hold the record; known: sqlite:///memtrend.db"
        )
    if parsed.database in (None, "", ":memory:"):
        raise DatabaseError("database.url names no file; write it as sqlite:///memtrend.db")
    folder = Path(str(parsed.database)).parent
    if not folder.is_dir():
        raise DatabaseError(
            f"cannot open {parsed.database}: the folder {folder} does not exist; make it first"
        )
    return parsed


def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _on_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("memtrend_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _use_wal(database: Database) -> None:
    """WAL and auto_vacuum are properties of the file, and auto_vacuum only of a new one: it comes first."""
    with database._plain_errors("open"):
        raw = database._engine.raw_connection()
        try:
            _until_not_busy(lambda: _set_file_modes(raw.cursor()))
        finally:
            raw.close()


def _set_file_modes(cursor: Any) -> None:
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        cursor.execute("PRAGMA auto_vacuum=INCREMENTAL")
        cursor.execute("PRAGMA journal_mode=WAL")


def _until_not_busy(action: Callable[[], None]) -> None:
    """SQLite does not wait for the lock when it changes the journal mode, so we do."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if _code(error) != "BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _revision(connection: Connection, where: str) -> str | None:
    """The revision of the file, None for a new one. Raises `DatabaseError` for a file that is not ours."""
    names = sa.inspect(connection).get_table_names()
    if not names:
        return None
    known = f"this memtrend knows up to {REVISIONS[-1]}"
    if "alembic_version" not in names or "case_result" not in names:
        raise DatabaseError(
            f"{where} holds other tables ({', '.join(names[:3])}), not a record of memtrend; "
            "name a file of its own in database.url"
        )
    revision: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if revision not in REVISIONS:
        raise DatabaseError(
            f"{where} was written by a newer memtrend (revision {revision}; {known}); "
            "upgrade memtrend, or name another file in database.url"
        )
    return revision


def _migrate(database: Database) -> None:
    """Upgrade in one write transaction: the first of several processes does it, the others find it done."""
    with database.write() as connection:
        current = _revision(connection, database.url_public)
        if current == REVISIONS[-1]:
            return
        try:
            _upgrade(connection)
        except SQLAlchemyError as error:
            raise DatabaseError(
                f"cannot upgrade {database.url_public} from revision {current or 'none'} to {REVISIONS[-1]}: "
                f"{_reason(error)}; nothing was changed"
            ) from error


def _upgrade(connection: Connection) -> None:
    from alembic import command  # half a second to import, and needed once in a file's life
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


_REASONS = {
    "FULL": "no space left on its disk; free some, then do it again (what was stored before is intact)",
    "BUSY": f"another process held the write lock for more than {BUSY_SECONDS:.0f} s; "
    "find what holds the file open, then do it again",
    "NOTADB": "it is not an SQLite database; name another file in database.url",
    "CORRUPT": "the file is damaged; restore it from a backup",
    "READONLY": "it is read-only; make the file and its folder writable for this user",
    "CANTOPEN": "it cannot be opened; check that the folder exists and that this user may read and write it",
    "IOERR": "the disk failed or is full (disk I/O error); check its space and health, then do it again "
    "(what was stored before is intact)",
}


def _reason(error: Exception) -> str:
    original = getattr(error, "orig", error)
    if not isinstance(original, sqlite3.Error):
        return f"{type(error).__name__}: {error}"
    return _REASONS.get(_code(original), str(original))


def _code(error: sqlite3.Error) -> str:
    """SQLITE_IOERR_WRITE -> IOERR. Errors of the driver itself have no name."""
    name: str = getattr(error, "sqlite_errorname", "") or ""
    return name.removeprefix("SQLITE_").split("_")[0]
