"""What the embedded backends share: memories as rows of SQLite, in a box for each namespace and user.

A subclass adds one index over the rows. Nothing here ranks.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from collectors.backend import NAMESPACE_PREFIX, Backend, BackendConfig, BackendError, Hit, Usage
from collectors.suite import Memory, Scope

APPLICATION_ID = 0x6D656D74
"""Marks an SQLite file as made by memtrend; a file with tables and without it is somebody else's."""

ID_KEY = "memtrend_id"
"""Carries the planted id in a vendor's metadata, and marks a row as planted by memtrend."""

SETTLE_TIMEOUT_S = 20.0
PASSING_STATUS = frozenset({408, 409, 425, 429})
"""Of HTTP, with all of 5xx: what another try may cure."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS namespace (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS box (
    id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, user TEXT NOT NULL, UNIQUE (namespace, user)
);
CREATE TABLE IF NOT EXISTS memory (
    seq INTEGER PRIMARY KEY, box INTEGER NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, at TEXT, domain TEXT,
    session TEXT, metadata TEXT NOT NULL, UNIQUE (box, id)
);
"""


class Row(NamedTuple):
    """One stored memory; `seq` grows in the order of planting, `at` is ISO 8601, `metadata` JSON."""

    seq: int
    id: str
    text: str
    at: str | None
    domain: str | None
    session: str | None
    metadata: str

    def hit(self, score: float | None) -> Hit:
        return Hit(self.id, self.text, score, json.loads(self.metadata))


COLUMNS = ", ".join(f"memory.{column}" for column in Row._fields)


def refuse_foreign(namespace: str) -> None:
    """Raise for a namespace that memtrend cannot have made."""
    if not namespace.startswith(NAMESPACE_PREFIX):
        raise BackendError(
            f"namespace {namespace!r} is not memtrend's: its own begin with {NAMESPACE_PREFIX!r}",
            permanent=True,
        )


def refuse_strangers(namespace: str, strangers: int) -> None:
    """Raise for a namespace that holds memories which memtrend did not plant."""
    if strangers:
        raise BackendError(
            f"{namespace!r} is left alone: {strangers} memories in it are not memtrend's", permanent=True
        )


def missing_extra(extra: str) -> BackendError:
    return BackendError(f"{extra} is not installed: make install EXTRAS={extra}", permanent=True)


def unknown_namespace(namespace: str) -> BackendError:
    return BackendError(
        f"namespace {namespace!r} does not exist in this store: a run makes its own, and a standing index is "
        "there before",
        permanent=True,
    )


def unknown_memory(scope: Scope, id: str) -> BackendError:
    return BackendError(f"no memory {id!r} of user {scope.user!r} in {scope.namespace!r}", permanent=True)


def faulty(config: BackendConfig, *faults: str) -> BackendError:
    """What is wrong with the section of a backend."""
    return BackendError(f"backend {config.name}: {'; '.join(faults)}", permanent=True)


def refuse_options(config: BackendConfig) -> None:
    """Raise where something was configured that would have no effect."""
    given = [name for name, value in config.options.items() if value]
    if given:
        raise faulty(config, f"{config.type} takes no {', '.join(given)}")


def unknown_options(config: BackendConfig, known: Sequence[str]) -> list[str]:
    """A fault for each option that the adapter does not know. Every section may hold an empty `config`."""
    given = {name for name, value in config.options.items() if name != "config" or value}
    return [f"unknown option {name!r}; known: {', '.join(known)}" for name in sorted(given - set(known))]


def revealed(value: Any) -> Any:
    """A copy, since a vendor may write into what it is given, with secrets in the clear for it alone. In a
    worker they are plain texts before."""
    if hasattr(value, "get_secret_value"):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return {name: revealed(inner) for name, inner in value.items()}
    return [revealed(inner) for inner in value] if isinstance(value, list | tuple) else value


def require_leg(backend: Backend, leg: str | None) -> None:
    if leg is not None and leg not in backend.legs:
        legs = ", ".join(backend.legs) or "none"
        raise BackendError(f"{type(backend).__name__} has no leg {leg!r}; its legs: {legs}", permanent=True)


def described(scope: Scope, memory: Memory) -> dict[str, Any]:
    """What comes back as a hit's metadata: the memory's own, then role, user, and where there are any
    domain, session and event time (ISO 8601). These names win over custom ones."""
    known = {
        "role": memory.role,
        "user": scope.user,
        "at": memory.at and memory.at.isoformat(),
        "domain": memory.domain,
        "session": memory.session or scope.session,
    }
    return {**memory.metadata, **{name: value for name, value in known.items() if value is not None}}


class NotInTime(BackendError):
    """What was waited for did not come."""


def wait_until(found: Callable[[], bool], what: str, timeout_s: float = SETTLE_TIMEOUT_S) -> None:
    """Return once it is found, asked again with growing pauses of at most 1 s. Raises `NotInTime`."""
    deadline, pause = time.monotonic() + timeout_s, 0.05
    while not found():
        if time.monotonic() + pause > deadline:
            raise NotInTime(f"{what} is not to be found after {timeout_s:g} s")
        time.sleep(pause)
        pause = min(2 * pause, 1.0)


def well_formed(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, since UTF-8, and so no store, can hold one."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def open_file(directory: Path | None, name: str, schema: str) -> sqlite3.Connection:
    """A database of memtrend's own, in memory without a directory. Raises for a file that is not."""
    path = ":memory:" if directory is None else str(directory / name)
    with explained(path):
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        # The runner calls from a helper thread, and from a new one after a timeout.
        database = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise BackendError(f"{path} was not made by memtrend: give another directory", permanent=True)
        database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
        database.executescript(
            f"BEGIN IMMEDIATE; {SCHEMA} {schema} PRAGMA application_id = {APPLICATION_ID}; COMMIT;"
        )
    return database


@contextmanager
def explained(where: str) -> Iterator[None]:
    """What a store on disk may raise becomes `BackendError`: locks and full disks may pass, the rest not."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise BackendError(
            f"{where}: a name holds a lone surrogate: {error.object!r}", permanent=True
        ) from error
    except (sqlite3.Error, OSError) as error:
        passing = isinstance(error, sqlite3.OperationalError)
        raise BackendError(f"{where}: {error}", permanent=not passing) from error


class SqliteStore(Backend):
    """All verbs but `recall`. Planting an id again replaces the memory; forgetting one that is not there is
    fine, amending it is an error. Users are apart because each has a box of its own."""

    index: ClassVar[str]
    """Names the index in `count`, and the file on disk."""
    schema: ClassVar[str] = ""
    """Tables of the index, if it has others than those of each box."""

    def __init__(self, config: BackendConfig) -> None:
        refuse_options(config)
        self._where = f"backend {config.name}"
        self._database = open_file(config.directory, f"{self.index}.sqlite", self.schema)
        declared = {"amend", "forget", "forget_user", "count", "ids", "metadata", "deterministic"}
        declared |= {"legs"} if self.legs else set()
        self.capabilities = frozenset(declared | ({"durable"} if config.directory else set()))

    @classmethod
    def is_local(cls, config: BackendConfig) -> bool:
        return True

    # The index, for subclasses.

    def _encode(self, texts: Sequence[str]) -> Sequence[Any]:
        """What the index keeps of each text; called outside of any transaction, since it may take long."""
        return texts

    def _create(self, box: int) -> None:
        """Make the index of a new box."""

    def _index(self, box: int, entries: Iterable[tuple[int, Any]]) -> None:
        """Add (seq, encoded text) pairs."""

    def _unindex(self, box: int, seqs: Sequence[int]) -> None:
        """Take rows out of the index."""

    def _drop(self, box: int) -> None:
        """Unmake the index of a box."""

    def _indexed(self, box: int) -> int:
        """How many memories the index holds."""
        found: int = self._database.execute("SELECT count(*) FROM memory WHERE box = ?", (box,)).fetchone()[0]
        return found

    # The verbs.

    def reset(self, scope: Scope) -> None:
        refuse_foreign(scope.namespace)
        with self._writing() as database:
            database.execute("INSERT OR IGNORE INTO namespace VALUES (?)", (scope.namespace,))
            for box in self._boxes(scope):
                self._remove_box(box)

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        wanted = {memory.id: memory for memory in memories}
        texts = [well_formed(memory.text) for memory in wanted.values()]
        encoded = self._encode(texts)
        with self._writing() as database:
            box = self._made_box(scope)
            self._remove(box, list(wanted))
            first = database.execute("SELECT coalesce(max(seq), 0) + 1 FROM memory").fetchone()[0]
            rows = zip(wanted.values(), texts, strict=True)
            database.executemany(
                "INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (seq, box, *_columns(scope, memory, text))
                    for seq, (memory, text) in enumerate(rows, first)
                ],
            )
            self._index(box, enumerate(encoded, first))
        return Usage()

    def settle(self, scope: Scope) -> None:
        """Nothing to wait for: what a transaction wrote the next statement reads."""

    def amend(self, scope: Scope, id: str, text: str) -> None:
        text = well_formed(text)
        encoded = self._encode([text])
        with self._writing() as database:
            box = self._box(scope)
            found = database.execute("SELECT seq FROM memory WHERE box = ? AND id = ?", (box, id)).fetchone()
            if box is None or found is None:
                raise unknown_memory(scope, id)
            self._unindex(box, found)
            database.execute("UPDATE memory SET text = ? WHERE seq = ?", (text, *found))
            self._index(box, [(*found, encoded[0])])

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        with self._writing():
            box = self._box(scope)
            if box is not None:
                self._remove(box, ids)

    def forget_user(self, scope: Scope) -> None:
        with self._writing():
            box = self._box(scope)
            if box is not None:
                self._remove_box(box)

    def count(self, scope: Scope) -> Mapping[str, int]:
        with explained(self._where):
            self._box(scope)
            return {self.index: sum(self._indexed(box) for box in self._boxes(scope))}

    def versions(self) -> Mapping[str, str]:
        return {"sqlite": sqlite3.sqlite_version}

    def close(self) -> None:
        self._database.close()

    # The rows.

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with explained(self._where), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield self._database

    def _box(self, scope: Scope) -> int | None:
        """The user's box, None while nothing was planted. Raises for a namespace that was never reset."""
        found = self._database.execute(
            "SELECT box.id FROM namespace LEFT JOIN box ON namespace = name AND user = ? WHERE name = ?",
            (scope.user, scope.namespace),
        ).fetchone()
        if found is None:
            raise unknown_namespace(scope.namespace)
        box: int | None = found[0]
        return box

    def _made_box(self, scope: Scope) -> int:
        box = self._box(scope)
        if box is None:
            names = (scope.namespace, scope.user)
            box = self._database.execute("INSERT INTO box (namespace, user) VALUES (?, ?)", names).lastrowid
            assert box is not None
            self._create(box)
        return box

    def _boxes(self, scope: Scope) -> list[int]:
        found = self._database.execute("SELECT id FROM box WHERE namespace = ?", (scope.namespace,))
        return [box for (box,) in found]

    def _remove(self, box: int, ids: Sequence[str]) -> None:
        wanted = "box = ? AND id IN (SELECT value FROM json_each(?))"
        values = (box, json.dumps(ids))
        seqs = [seq for (seq,) in self._database.execute(f"SELECT seq FROM memory WHERE {wanted}", values)]
        if seqs:
            self._unindex(box, seqs)
            self._database.execute(f"DELETE FROM memory WHERE {wanted}", values)

    def _remove_box(self, box: int) -> None:
        self._drop(box)
        self._database.execute("DELETE FROM memory WHERE box = ?", (box,))
        self._database.execute("DELETE FROM box WHERE id = ?", (box,))

    def _rows(self, box: int) -> list[Row]:
        found = self._database.execute(f"SELECT {COLUMNS} FROM memory WHERE box = ? ORDER BY seq", (box,))
        return [Row(*columns) for columns in found]


def _columns(scope: Scope, memory: Memory, text: str) -> tuple[str | None, ...]:
    known = described(scope, memory)
    return (
        memory.id,
        text,
        memory.at.isoformat() if memory.at else None,
        memory.domain,
        known.get("session"),
        json.dumps(known, default=str),
    )


def eligible(scope: Scope, row: Row) -> bool:
    """Whether this memory may answer: it is of the domains and of the session asked, where any are."""
    return (not scope.domains or row.domain in scope.domains) and scope.session in (None, row.session)
