"""What a database has to answer for itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

BUSY_SECONDS = 10.0
"""So long a writer waits for its turn."""
UPGRADE_SECONDS = 900.0
"""So long whoever opens the record waits for another process that upgrades it: it may have gigabytes to copy
first."""


class Dialect(ABC):
    """One database, by its URL. `thing` is what a record is there; `reading` and `writing` are the options
    under which a connection is taken for either; `busy_seconds`: so long a writer waits for its turn."""

    thing: ClassVar[str]
    reading: ClassVar[Mapping[str, Any]] = {}
    writing: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, url: URL, busy_seconds: float) -> None:
        self.url, self.busy_seconds = self.checked(url), busy_seconds

    @property
    def url_public(self) -> str:
        """The URL without a password."""
        return self.url.render_as_string(hide_password=True)

    @abstractmethod
    def checked(self, url: URL) -> URL:
        """The URL as SQLAlchemy takes it. Raises `DatabaseError` for one that cannot be."""

    def find(self) -> bool:
        """Whether there is something to open. From now on what lies there is the record, and none is made."""
        return True

    @abstractmethod
    def engine(self) -> Engine:
        """Connections that nobody has opened yet. Raises `DatabaseError` where the driver is missing."""

    @abstractmethod
    def begin(self, connection: Connection, writes: bool) -> None:
        """A transaction begins. One that writes waits its turn here: from now on nobody else writes."""

    @abstractmethod
    def settle(self, engine: Engine) -> None:
        """The database is ours, or will be: see to what stays with it."""

    @abstractmethod
    def after_upgrade(self, connection: Connection) -> None:
        """Within the transaction that migrated."""

    @abstractmethod
    def before_close(self, engine: Engine) -> None:
        """What is left to do; it fails in silence, since closing must not."""

    @abstractmethod
    def server(self, connection: Connection) -> str:
        """Name and version of what keeps the record."""

    @abstractmethod
    def size(self, connection: Connection) -> int:
        """Bytes that the record takes."""

    @abstractmethod
    def check(self) -> None:
        """Raises `RecordGone` and `RecordReplaced` where the record is not what was opened any more."""

    def trouble(self) -> str | None:
        """What keeps the record from being written, with what to do next, as far as it shows without a
        write; None where nothing does."""
        return None

    def shared_by(self) -> str | None:
        """The kind of network file system that the record lies on, where it cannot be kept on one."""
        return None

    @abstractmethod
    def is_own_error(self, error: Exception) -> bool:
        """Whether the driver raised it."""

    @abstractmethod
    def own_reason(self, error: Exception) -> str:
        """An error of the driver in plain words, with what to do next, without a secret."""

    def reason(self, error: Exception) -> str:
        """The same for whatever was raised."""
        original = getattr(error, "orig", None) or error
        if self.is_own_error(original):
            return self.own_reason(original)
        return f"{type(error).__name__}: {error}"

    def is_database_error(self, error: Exception) -> bool:
        return isinstance(error, SQLAlchemyError) or self.is_own_error(error)


def hook(engine: Engine, dialect: Dialect) -> Engine:
    """Let the dialect know when a transaction begins."""

    def begun(connection: Connection) -> None:
        dialect.begin(connection, bool(connection.get_execution_options().get("memtrend_write")))

    sa.event.listen(engine, "begin", begun)
    return engine
