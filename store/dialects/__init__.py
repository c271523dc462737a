"""What differs from one database to the other. All else is one code for both."""

from __future__ import annotations

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from store.dialects import base
from store.dialects.base import Dialect
from store.dialects.postgres import Postgres
from store.dialects.sqlite import Sqlite
from store.errors import DatabaseError

KNOWN = "known: sqlite:///memtrend.db, postgresql://USER:PASSWORD@HOST/DATABASE"

_DIALECTS: dict[str, type[Dialect]] = {"sqlite": Sqlite, "postgresql": Postgres, "postgres": Postgres}


def dialect_of(url: str | URL, busy_seconds: float | None = None) -> Dialect:
    """The database that a URL names, not opened yet. busy_seconds: `BUSY_SECONDS` by default. Raises
    `DatabaseError` for a URL that cannot be."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # whose texts may show a part of the password
        raise DatabaseError("database.url is not a URL; write it as sqlite:///memtrend.db") from None
    dialect = _DIALECTS.get(parsed.drivername.partition("+")[0])
    if dialect is None:
        raise DatabaseError(f"database.url: {parsed.get_backend_name()!r} cannot hold the record; {KNOWN}")
    return dialect(parsed, base.BUSY_SECONDS if busy_seconds is None else busy_seconds)
