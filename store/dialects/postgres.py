"""All that PostgreSQL alone knows: a server, one writer at a time by an advisory lock, and text without NUL.

That lock makes a write what it is in SQLite: it waits its turn at the beginning, and then sees all that was
written before. Nothing has to be tried again, and no two writers can wait for each other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine

from store.dialects.base import Dialect, hook
from store.errors import DatabaseError

if TYPE_CHECKING:
    import psycopg

WRITE_LOCK = 0x6D656D7472656E64
"""`memtrend` in eight bytes: the key of the lock, in its database."""

IDLE_SECONDS = 60.0
"""A transaction that says nothing for so long is ended by the server: whoever began it is gone."""

CONNECT_SECONDS = 10
RETRY_SECONDS = 0.1


class Postgres(Dialect):
    thing = "database"
    # A reader sees one state over all its questions. A writer sees what was there when it got its turn.
    reading: ClassVar[Mapping[str, Any]] = {
        "isolation_level": "REPEATABLE READ",
        "postgresql_readonly": True,
    }
    writing: ClassVar[Mapping[str, Any]] = {"isolation_level": "READ COMMITTED"}

    @property
    def url_public(self) -> str:
        shown = {name: value if name in _SHOWN else _HIDDEN for name, value in self.url.query.items()}
        public = self.url.set(drivername="postgresql", query=shown)
        return public.render_as_string(hide_password=True)

    def checked(self, url: URL) -> URL:
        driver = url.drivername.partition("+")[2]
        if driver not in ("", "psycopg"):
            raise DatabaseError(
                f"database.url: the driver {driver!r} is not known; write it as postgresql://..."
            )
        if not url.database:
            raise DatabaseError(
                "database.url names no database; write it as postgresql://USER:PASSWORD@HOST/DATABASE"
            )
        return url.set(drivername="postgresql+psycopg")

    def engine(self) -> Engine:
        try:
            import_module("psycopg")
        except ImportError as error:
            raise DatabaseError(
                "database.url: psycopg is not installed: make install EXTRAS=postgres"
            ) from error
        engine = sa.create_engine(
            self.url,
            hide_parameters=True,  # they hold memories, and an error would tell them
            pool_pre_ping=True,  # the server may have been restarted since
            connect_args={"connect_timeout": CONNECT_SECONDS, "application_name": "memtrend"},
        )
        sa.event.listen(engine, "do_connect", _Patient(self.busy_seconds).connect)
        sa.event.listen(engine, "connect", self._on_connect)
        sa.event.listen(engine, "before_cursor_execute", _before_execute, retval=True)
        return hook(engine, self)

    def _on_connect(self, connection: psycopg.Connection[Any], _record: object) -> None:
        connection.autocommit = True  # what is set within a transaction ends with it
        connection.execute(f"SET lock_timeout = {self.busy_seconds * 1000:.0f}")
        connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_SECONDS * 1000:.0f}")
        connection.autocommit = False

    def begin(self, connection: Connection, writes: bool) -> None:
        if writes:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")

    def settle(self, engine: Engine) -> None:
        with engine.connect() as connection:
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise DatabaseError(
                f"{self.url_public} is encoded in {encoding}, which cannot hold every text; make a database "
                "WITH ENCODING 'UTF8' TEMPLATE template0, and name it in database.url"
            )

    def after_upgrade(self, connection: Connection) -> None:
        """Text sorts by its bytes, as in SQLite and in Python, whatever language the server speaks."""
        for table, column in connection.execute(_SORTED_OTHERWISE).all():
            name = connection.dialect.identifier_preparer.quote
            connection.exec_driver_sql(
                f'ALTER TABLE {name(table)} ALTER COLUMN {name(column)} TYPE TEXT COLLATE "C"'
            )

    def before_close(self, engine: Engine) -> None:
        """Nothing."""

    def check(self) -> None:
        """A connection is to a database by its name: it cannot be another one meanwhile."""

    def server(self, connection: Connection) -> str:
        return f"PostgreSQL {connection.exec_driver_sql('SHOW server_version').scalar_one()}"

    def size(self, connection: Connection) -> int:
        return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())

    def is_own_error(self, error: Exception) -> bool:
        return type(error).__module__.partition(".")[0] == "psycopg"

    def own_reason(self, error: Exception) -> str:
        state = getattr(error, "sqlstate", None) or ""
        told = next((_REASONS[state[:n]] for n in (5, 3, 2) if state[:n] in _REASONS), None)
        if told:
            return told.format(seconds=self.busy_seconds)
        first = " ".join(str(error).split("\n")[:1])
        if not state:
            return f"the server cannot be reached ({first}); see that it runs, and check database.url"
        return first


_HIDDEN = "***"
_SHOWN = frozenset({
    "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "gssencmode",
    "host", "hostaddr", "keepalives", "options", "passfile", "port", "service", "sslcert", "sslcrl", "sslkey",
    "sslmode", "sslrootcert", "target_session_attrs", "user",
})  # fmt: skip
"""Parameters of a connection that hold no secret; a password under a misspelt one is hidden, too."""

_SORTED_OTHERWISE = sa.text(
    "SELECT table_name, column_name FROM information_schema.columns "
    "WHERE table_schema = current_schema() AND data_type IN ('text', 'character varying') "
    "AND table_name <> 'alembic_version' AND collation_name IS DISTINCT FROM 'C'"
)


class _Patient:
    """Connects. A server that was there before and is not now is being restarted, and waited for as long as a
    lock would be; one that never was is a wrong URL, which is told at once."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._was_there = seconds, False

    def connect(self, dialect: sa.Dialect, _record: object, arguments: Any, options: Any) -> Any:
        deadline = time.monotonic() + (self._seconds if self._was_there else 0)
        while True:
            try:
                made = dialect.connect(*arguments, **options)
                self._was_there = True
                return made
            except dialect.loaded_dbapi.OperationalError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_SECONDS)


def _before_execute(
    _connection: Connection, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
) -> tuple[str, Any]:
    if isinstance(parameters, list):
        return statement, [_without_nul(row) for row in parameters]
    return statement, _without_nul(parameters)


def _without_nul(row: Any) -> Any:
    """Which PostgreSQL's text cannot hold. Only the mark that there was one is kept."""
    if not isinstance(row, dict) or not any(
        isinstance(value, str) and "\0" in value for value in row.values()
    ):
        return row
    return {
        name: value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
        for name, value in row.items()
    }


_REASONS = {
    "55P03": "another process held the write lock for more than {seconds:.0f} s; "
    "find it in pg_stat_activity (application_name memtrend), then do it again",
    "28": "the server refuses this user; check the user and the password in database.url",
    "3D000": "the server has no database of that name; make it with createdb",
    "42501": "this user may not; make it the owner of the database, or of a schema of its own that the URL "
    "names: ?options=-csearch_path%3DSCHEMA",
    "3F000": "the server has no schema of the name that search_path gives; make it with CREATE SCHEMA",
    "25006": "it is read-only, a stand-by perhaps; name the primary in database.url",
    "53100": "no space left on the server's disk; free some, then do it again "
    "(what was stored before is intact)",
    "53300": "the server has no connection left; raise its max_connections, or close others",
    "57014": "the server ended it, by this user's statement_timeout perhaps; raise that, then do it again",
    "57P": "the server is stopping or starting; do it again when it runs",
    "22003": "a number is larger than the record holds; no id is",
    "25P03": "it said nothing for too long within one transaction, and the server ended it; do it again",
}
