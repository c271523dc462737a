"""The record: opening it, its transactions, and its errors in plain words.

Any process may open the record and write to it. A write is one short transaction, and writers take turns: it
waits at its beginning, so it never fails half-way because another process wrote in between. What SQLite or
PostgreSQL alone knows stands in `store/dialects/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    SQLAlchemyError,
    StatementError,
)

from store.dialects import dialect_of
from store.dialects.base import UPGRADE_SECONDS
from store.dialects.sql import NOW, insert_rows, is_double, upsert
from store.errors import DatabaseError, InvalidWrite

__all__ = [
    "MIGRATIONS",
    "NOW",
    "REVISIONS",
    "Database",
    "DatabaseError",
    "insert_rows",
    "is_double",
    "open_as_it_stands",
    "open_database",
    "upsert",
]

MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = tuple(sorted(path.stem.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py")))
"""Every revision that this memtrend knows, oldest first; the last one is what it works with."""


class Database:
    """An open record. Safe to share among threads; a forked process opens its own. `busy_seconds`: so long a
    writer waits for its turn, `BUSY_SECONDS` by default."""

    def __init__(self, url: str, busy_seconds: float | None = None) -> None:
        self.dialect = dialect_of(url, busy_seconds)
        self._engine = self.dialect.engine()
        self._reader = self._engine.execution_options(**self.dialect.reading)
        self._writer = self._engine.execution_options(memtrend_write=True, **self.dialect.writing)
        self.case_ids: dict[int, dict[str, int]] = {}
        """Case name -> id by suite version. Versions are never edited, so this never goes stale."""
        self.whole_runs: dict[int | None, tuple[int | None, list[Any]]] = {}
        """By suite: the whole runs, and which state of the record they are of."""

    @property
    def url_public(self) -> str:
        """The URL without a password."""
        return self.dialect.url_public

    def server(self) -> str:
        """What keeps the record, and its version: `SQLite 3.46.1`, `PostgreSQL 16.4`."""
        with self.read() as connection:
            return self.dialect.server(connection)

    def check(self) -> None:
        """Whether it is still the record that was opened. Raises `RecordGone` and `RecordReplaced`."""
        self.dialect.check()

    def trouble(self) -> str | None:
        """What keeps the record from being written, with what to do next, as far as it shows without a
        write: a file that is gone, was replaced or may not be written, a disk that is full."""
        return self.dialect.trouble()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One transaction that sees one state of the record. Raises `DatabaseError`."""
        with self._plain_errors("read"), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One short write transaction: all of it or nothing. Raises `DatabaseError`, as `InvalidWrite` where
        another attempt would come to the same."""
        with self._plain_errors("write"), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Give back what was opened."""
        self.dialect.before_close(self._engine)
        self._engine.dispose()

    @contextmanager
    def _plain_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not self.dialect.is_database_error(error):
                raise
            kind = InvalidWrite if _is_at_fault(error) else DatabaseError
            raise kind(f"cannot {doing} {self.url_public}: {self.dialect.reason(error)}") from error


def _is_at_fault(error: Exception) -> bool:
    """Whether the statement itself is wrong. A disk, a lock or a server that is gone may be well again."""
    if isinstance(error, DBAPIError):
        return isinstance(error, IntegrityError | DataError | ProgrammingError | NotSupportedError)
    return isinstance(error, StatementError)  # no driver has seen it


def open_database(url: str) -> Database:
    """Open the record, making or upgrading it where needed. Raises `DatabaseError`; then nothing has changed.

    url: such as `sqlite:///memtrend.db` (relative to the working directory) or `postgresql://host/memtrend`.
    """
    database = Database(url)
    try:
        with database.read() as connection:
            current = _revision(connection, database)
        with database._plain_errors("open"):
            database.dialect.settle(database._engine)  # not before it is known to be ours: it stays so
        if current != REVISIONS[-1]:
            with closing(Database(url, UPGRADE_SECONDS)) as patient:
                _migrate(patient)
    except BaseException:
        database._engine.dispose()  # no more than that: it may be somebody else's
        raise
    return database


def open_as_it_stands(url: str) -> Database:
    """Open the record to be read, and neither make nor upgrade it. Raises `DatabaseError`, also where there
    is none yet and where it is of an older memtrend."""
    database = Database(url)
    try:
        current = None
        if database.dialect.find():
            with database.read() as connection:
                current = _revision(connection, database)
        if current is None:
            raise DatabaseError(f"there is no record at {database.url_public}: memtrend collect makes it")
        if current != REVISIONS[-1]:
            raise DatabaseError(
                f"{database.url_public} is of revision {current}, this memtrend works with {REVISIONS[-1]}: "
                "it is being upgraded, or waits for memtrend collect to begin with it"
            )
    except BaseException:
        database._engine.dispose()
        raise
    return database


def _revision(connection: Connection, database: Database) -> str | None:
    """The revision of the record, None for a new one. Raises `DatabaseError` for what is not ours."""
    names = sa.inspect(connection).get_table_names()
    if not names:
        return None
    where, thing = database.url_public, database.dialect.thing
    known = f"this memtrend knows up to {REVISIONS[-1]}"
    if "alembic_version" not in names or "case_result" not in names:
        raise DatabaseError(
            f"{where} holds other tables ({', '.join(names[:3])}), not a record of memtrend; "
            f"name a {thing} of its own in database.url"
        )
    revision: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if revision not in REVISIONS:
        raise DatabaseError(
            f"{where} was written by a newer memtrend (revision {revision}; {known}); "
            f"upgrade memtrend, or go back to {_way_back(database)}, or name another {thing} in database.url"
        )
    return revision


def _way_back(database: Database) -> str:
    from store.backup import copy_to_go_back_to  # it builds on this module

    found = copy_to_go_back_to(database.dialect.url)
    if found is None:
        return "a backup from before it"
    return f"the copy that was kept before the upgrade: memtrend restore {found}"


def _migrate(database: Database) -> None:
    """Upgrade in one write transaction: the first of several processes does it, the others find it done. Of
    what was there before a copy is kept, taken while nobody else can write."""
    with database.write() as connection, ExitStack() as kept:
        current = _revision(connection, database)
        if current == REVISIONS[-1]:
            return
        if current is not None and database.dialect.url.get_backend_name() == "sqlite":
            kept.enter_context(_kept_before(database))
        try:
            _upgrade(connection)
            database.dialect.after_upgrade(connection)
        except SQLAlchemyError as error:
            raise DatabaseError(
                f"cannot upgrade {database.url_public} from revision {current or 'none'} to {REVISIONS[-1]}: "
                f"{database.dialect.reason(error)}; nothing was changed"
            ) from error


@contextmanager
def _kept_before(database: Database) -> Iterator[None]:
    from store.backup import kept_before  # it builds on this module

    _tell(f"upgrading {database.url_public} to revision {REVISIONS[-1]}, as soon as it is copied")
    with kept_before(database.dialect.url, REVISIONS[-1]) as copy:
        _tell(f"what was there before is kept: {copy}")
        yield


def _tell(message: str) -> None:
    """Once in a record's life, whoever opens it."""
    from store import logs  # takes its time to import, and is needed once in a record's life

    logs.say(f"memtrend: {message}")


def _upgrade(connection: Connection) -> None:
    from alembic import command  # half a second to import, and needed once in a record's life
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
