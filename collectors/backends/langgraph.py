"""langgraph's store, in memory, in SQLite or in PostgreSQL, as an agent's code calls it.

Options: `store` ("memory", "sqlite", "postgres"; default "memory"), `url` (of a PostgreSQL database), `index`
(the vendor's index configuration, laid over memtrend's, which says the embedder and the field `text`).

A memory lies under its id in (namespace, user), or (namespace, user, session): a question without a session
is a search of the user's prefix, one with it of the session's. So the vendor's matching of prefixes is what
keeps users and sessions apart, and is under test. A domain is a filter on the value.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from collectors.backend import Backend, BackendConfig, BackendError, Hit, Recall, Usage, undeclared
from collectors.backends.base import (
    ID_KEY,
    described,
    faulty,
    refuse_foreign,
    refuse_strangers,
    require_leg,
    unknown_memory,
    unknown_options,
    wait_until,
    well_formed,
)
from collectors.backends.fence import leads_here
from collectors.backends.handed import handed_in
from collectors.suite import Memory, Scope, digest

Place = tuple[str, ...]
"""A namespace of the vendor's."""

ALL_ROWS = 1_000_000
"""Asked for in listings: the vendor's default is 10."""
OURS_IN_INDEX = frozenset({"dims", "embed"})
ESCAPED = str.maketrans({".": "~2E", "\0": "~00", "~": "~7E"})
"""The vendor refuses a label with a period or a NUL. `%` would be a wildcard in older releases."""
TRACING = tuple(
    f"{vendor}_{switch}" for vendor in ("LANGSMITH", "LANGCHAIN") for switch in ("TRACING_V2", "TRACING")
)
"""The vendor goes by the first of these that says anything: the environment must win by none of them."""
PASSING = frozenset({"OperationalError", "InterfaceError"})
"""Errors of a database, by their names in PEP 249, that may pass."""


@dataclass(frozen=True, slots=True)
class _Options:
    store: str = "memory"
    url: str = ""
    index: Mapping[str, Any] = field(default_factory=dict)


class LangGraph(Backend):
    """A score is the similarity of what the store embeds, and so comparable within one store alone."""

    legs = ()

    def __init__(self, config: BackendConfig) -> None:
        self._options, embedder = _parsed(config), handed_in(config)
        self._made_by, self._last = embedder.versions, dict[str, tuple[Place, str]]()
        self.capabilities = self._declared(config, embedder.deterministic)
        index = {"dims": embedder.dimensions, "embed": embedder.embed, "fields": ["text"]}
        with (
            ExitStack() as ending,
            vendors_own(config, "langgraph==1.2.24"),
            explained(f"opening of backend {config.name}"),
        ):
            opening = _Opening(self._options, {**index, **self._options.index}, self._file(config), ending)
            self._store, self._about = STORES[self._options.store](opening)
            self._ending = weakref.finalize(self, ending.pop_all().close)

    @classmethod
    def is_local(cls, config: BackendConfig) -> bool:
        return config.options.get("store") != "postgres" or leads_here(config.options.get("url"))

    def reset(self, scope: Scope) -> None:
        refuse_foreign(scope.namespace)
        rows = self._rows(_box(scope))
        refuse_strangers(scope.namespace, sum(ID_KEY not in row.value for row in rows))
        self._delete(rows)

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        for memory in memories:
            place = _place(scope, memory.session or scope.session)
            with explained("put"):
                self._store.put(place, memory.id, _value(scope, memory))
            self._last[scope.namespace] = place, memory.id
        return Usage()

    def settle(self, scope: Scope) -> None:
        """Wait until what was written last is there: at once in one process, later behind a replica."""
        if last := self._last.get(scope.namespace):
            wait_until(lambda: self._store.get(*last) is not None, "what was written last")

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        place, asked = _place(scope, scope.session), well_formed(query)
        # A filter has no "one of these": several domains are several searches.
        among: Iterable[dict[str, str] | None] = [{"domain": domain} for domain in scope.domains] or [None]
        with explained("search"):
            found = [self._store.search(place, query=asked, filter=one, limit=k) for one in among]
        return Recall(tuple(_hit(item) for item in best(found, k)))

    def amend(self, scope: Scope, id: str, text: str) -> None:
        rows = self._planted(scope, id)
        if not rows:
            raise unknown_memory(scope, id)
        for row in rows:
            with explained("put"):
                self._store.put(row.namespace, row.key, {**row.value, "text": well_formed(text)})

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self._delete([row for id in ids for row in self._planted(scope, id)])

    def forget_user(self, scope: Scope) -> None:
        if "forget_user" not in self.capabilities:
            raise undeclared(self, "forget_user")
        self._delete(self._rows(_place(scope)))

    def count(self, scope: Scope) -> Mapping[str, int]:
        return {"memories": len(self._rows(_box(scope)))}

    def versions(self) -> Mapping[str, str]:
        index = self._store.index_config
        return {
            **installed("langgraph", "langgraph-checkpoint"),
            "store": self._options.store,
            **self._about,
            "distance": index.get("distance_type", "cosine"),
            # SqliteStore takes no notice of `fields`, and embeds the whole value: its scores are others'.
            "embedded": ", ".join(path for path, _ in index["__tokenized_fields"]),
            **self._made_by,
        }

    def close(self) -> None:
        self._ending()

    def _file(self, config: BackendConfig) -> Path | None:
        """Where a store on disk keeps its items: vectors of two kinds must not meet in one file."""
        name = f"store-{digest([self._made_by, self._options.index])}.sqlite"
        return config.directory / name if config.directory else None

    def _declared(self, config: BackendConfig, steady: bool) -> frozenset[str]:
        own_store = self._options.store != "postgres"
        declared = {
            "amend": True,
            "forget": True,
            # Somebody else's database may hold the same user's own memories.
            "forget_user": own_store,
            "count": True,
            "durable": config.directory is not None or not own_store,
            "deterministic": steady and own_store,
            "ids": True,
            "metadata": True,
        }
        return frozenset(name for name, holds in declared.items() if holds)

    # Items, as the vendor lists them

    def _rows(self, place: Place, among: Mapping[str, str] | None = None) -> list[Any]:
        """Those within the place itself, since what is listed gets deleted: releases before 3.1.1 of the
        SQLite and the PostgreSQL store list what begins alike, too."""
        with explained("search"):
            listed = self._store.search(place, filter=among, limit=ALL_ROWS)
        return [item for item in listed if tuple(item.namespace)[: len(place)] == place]

    def _planted(self, scope: Scope, id: str) -> list[Any]:
        return self._rows(_place(scope), {ID_KEY: id})

    def _delete(self, rows: Sequence[Any]) -> None:
        for row in rows:
            with explained("delete"):
                self._store.delete(row.namespace, row.key)
        gone = {(tuple(row.namespace), row.key) for row in rows}
        self._last = {namespace: last for namespace, last in self._last.items() if last not in gone}


# Names and values, as a user of the vendor's would have them


def label(name: str) -> str:
    """The name as the vendor takes it in a namespace, and no two names alike."""
    return name.translate(ESCAPED) or "~"


def _box(scope: Scope) -> Place:
    return (label(scope.namespace),)


def _place(scope: Scope, session: str | None = None) -> Place:
    within = () if session is None else (label(session),)
    return (*_box(scope), label(scope.user), *within)


def _value(scope: Scope, memory: Memory) -> dict[str, Any]:
    filtered = {ID_KEY: memory.id} if memory.domain is None else {ID_KEY: memory.id, "domain": memory.domain}
    return {"text": well_formed(memory.text), **filtered, "metadata": described(scope, memory)}


def _hit(item: Any) -> Hit:
    """Under the planted id, or the vendor's key where memtrend did not plant it."""
    value = item.value
    return Hit(
        value.get(ID_KEY, item.key), value.get("text", ""), scored(item.score), value.get("metadata", {})
    )


def scored(score: float | None) -> float | None:
    """A blank question has no direction, and so no similarity: some stores say None, others NaN."""
    return score if score == score else None


def best(answers: Sequence[Sequence[Any]], k: int) -> list[Any]:
    """The answer, or of several the k best by score."""
    if len(answers) == 1:
        return list(answers[0])
    found = [item for answer in answers for item in answer]
    return sorted(found, key=lambda item: -(scored(item.score) or 0.0))[:k]


# Opening


class _Opening(NamedTuple):
    """`file` is None where nothing is to be kept; `ending` closes what is entered into it."""

    options: _Options
    indexing: dict[str, Any]
    file: Path | None
    ending: ExitStack


def _memory(opening: _Opening) -> tuple[Any, dict[str, str]]:
    from langgraph.store.memory import InMemoryStore

    return InMemoryStore(index=opening.indexing), installed("numpy")


def _sqlite(opening: _Opening) -> tuple[Any, dict[str, str]]:
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        raise BackendError(
            "this Python's sqlite3 loads no extensions, which the vectors of SqliteStore need: take another, "
            'such as python = "/usr/bin/python3"',
            permanent=True,
        )
    from langgraph.store.sqlite import SqliteStore

    file, ending = opening.file, opening.ending
    if file is None:
        file = Path(ending.enter_context(TemporaryDirectory(prefix="memtrend-langgraph-"))) / "store.sqlite"
    file.parent.mkdir(parents=True, exist_ok=True)
    store = ending.enter_context(SqliteStore.from_conn_string(str(file), index=opening.indexing))
    store.setup()
    about = installed("langgraph-checkpoint-sqlite", "sqlite-vec")
    return store, {**about, "sqlite": sqlite3.sqlite_version}


def _postgres(opening: _Opening) -> tuple[Any, dict[str, str]]:
    from langgraph.store.postgres import PostgresStore

    url = opening.options.url
    with _connected(url) as connection:
        # A pool, since a single connection of the vendor's is never made anew.
        pool = {"min_size": 1, "max_size": 1}
        opened = PostgresStore.from_conn_string(url, pool_config=pool, index=opening.indexing)
        store = opening.ending.enter_context(opened)
        store.setup()
        extension = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        about = installed("langgraph-checkpoint-postgres", "psycopg")
        server = connection.info.parameter_status("server_version")
        return store, {**about, "postgresql": server, "pgvector": extension.fetchone()[0]}


STORES: Mapping[str, Callable[[_Opening], tuple[Any, dict[str, str]]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgres": _postgres,
}
"""Each opens a store and tells what else decides its answers."""


def _connected(url: str) -> Any:
    """A first connection, whose failing never shows the password."""
    import psycopg

    try:
        secret = psycopg.conninfo.conninfo_to_dict(url).get("password")
    except psycopg.ProgrammingError:
        raise BackendError(
            "url is none of a PostgreSQL database: postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
            permanent=True,
        ) from None
    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as error:
        said = str(error).replace(str(secret), "***") if secret else str(error)
        refused = "authentication failed" in said  # no code tells it from a server that is not up yet
        raise BackendError(f"PostgreSQL does not let us in: {said}", permanent=refused) from None


def _parsed(config: BackendConfig) -> _Options:
    known = [option.name for option in fields(_Options)]
    if faults := unknown_options(config, known):
        raise faulty(config, *faults)
    options = _Options(**{name: value for name, value in config.options.items() if value})
    faults = [f"index.{name} is memtrend's to set" for name in sorted(OURS_IN_INDEX & options.index.keys())]
    if options.store not in STORES:
        faults.append(f"unknown store {options.store!r}; known: {', '.join(STORES)}")
    if (options.store == "postgres") != bool(options.url):
        faults.append('url belongs to store = "postgres", which needs it')
    if config.directory is not None and options.store != "sqlite":
        faults.append(f'store = "{options.store}" keeps nothing in a directory; store = "sqlite" does')
    if faults:
        raise faulty(config, *faults)
    return options


# What the adapters over this SDK share


def installed(*packages: str) -> dict[str, str]:
    """The versions of those that are."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@contextmanager
def vendors_own(config: BackendConfig, package: str) -> Iterator[None]:
    """Import the SDK within: it then sends no traces, and a part that is missing is named."""
    os.environ.update(dict.fromkeys(TRACING, "false"))
    try:
        yield
    except ImportError as error:
        advice = f"say package = {package!r}, and with = [...] for the package of the store"
        raise faulty(config, f"{error}: {advice}") from error


@contextmanager
def explained(call: str) -> Iterator[None]:
    """What the vendor raises for faulty values is for good; what a database may recover from is not."""
    try:
        yield
    except ValueError as error:
        raise BackendError(f"langgraph {call}: {error}", permanent=True) from error
    except Exception as error:
        names = {kind.__name__ for kind in type(error).__mro__}
        if "DatabaseError" not in names and not names & PASSING:
            raise
        raise BackendError(f"langgraph {call}: {error}", permanent=not names & PASSING) from error
