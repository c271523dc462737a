"""What is under test: a memory store, or an agent with one, behind a handful of verbs.

An adapter is one file in `backends/` and one row in `BACKENDS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from collectors.census import Census
from collectors.suite import Memory, Scope

CAPABILITIES = frozenset(
    "amend forget forget_user count legs say durable concurrent deterministic ids metadata".split()  # noqa: SIM905
)
"""What a backend may declare, never found by hasattr. amend, forget, forget_user, count, say: the verb of
that name works. legs: `recall` can ask one index alone. durable: what was planted survives `close`.
concurrent: verbs are thread-safe across namespaces. deterministic: equal calls give equal answers.
ids: the ids planted come back on the hits. metadata: so does what was planted beside the text, under the
names of `Memory` (role, at, domain, session) and those of the memory's own metadata."""


class BackendError(Exception):
    """A call that failed. `permanent` ones (a bad key, a missing package) are never retried."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


PROGRAMMING_ERRORS = (TypeError, AttributeError, NameError, NotImplementedError, ImportError)
"""Raised by a backend, these mean a bug that asking again does not mend."""


class BackendGone(BackendError):
    """What answers behind the handle is gone, with all that it held: only another handle will answer."""

    def __init__(self, message: str = "the backend is gone") -> None:
        super().__init__(message, permanent=True)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call cost: model calls, tokens, money (USD)."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory that came back. `id` is the planted id where the backend declares `ids`; `score` is the
    backend's own, higher is better, None where it gives none."""

    id: str
    text: str
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recall:
    """An answer: hits best first, exactly as the backend returned them."""

    hits: tuple[Hit, ...]
    usage: Usage = Usage()
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What came back for one probe, raw. Exactly one of `error` and an answer holds: an errored probe has
    no hits to score. `skipped` names the capability whose lack makes the probe not applicable.
    `latency_ms` is of the call that answered; `attempts` counts the calls made. `census` is what came back
    where memories were counted instead of asked for. `again` is what came back for the same question asked a
    second time, where the question wants that and the second answer was another one."""

    hits: tuple[Hit, ...] = ()
    reply: str | None = None
    latency_ms: float | None = None
    attempts: int = 1
    usage: Usage = Usage()
    error: str | None = None
    skipped: str | None = None
    census: Census | None = None
    again: tuple[Hit, ...] | None = None


class Backend(Protocol):
    """The verbs. Those below `close` are called only where `capabilities` declares them."""

    capabilities: frozenset[str]
    legs: tuple[str, ...] = ()
    """Names of the indexes that `recall` can ask alone and that `count` counts."""

    def reset(self, scope: Scope) -> None:
        """Make the namespace and leave it empty; refuse one that memtrend did not create."""
        ...

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        """Plant memories of one user and session. Never retried in place."""
        ...

    def settle(self, scope: Scope) -> None:
        """Return when what was planted can be found, or raise `BackendError`."""
        ...

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        """The k best memories for the query within the scope, best first."""
        ...

    def close(self) -> None:
        """Give back what was opened; with `durable`, opening again finds what was planted."""
        ...

    def amend(self, scope: Scope, id: str, text: str) -> None:
        raise undeclared(self, "amend")

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        raise undeclared(self, "forget")

    def forget_user(self, scope: Scope) -> None:
        raise undeclared(self, "forget_user")

    def count(self, scope: Scope) -> Mapping[str, int]:
        """Memories in the namespace, of all users, by index."""
        raise undeclared(self, "count")

    def say(self, scope: Scope, turn: str) -> Recall:
        raise undeclared(self, "say")

    def versions(self) -> Mapping[str, str]:
        """What only the backend knows of itself: server version, container digest, model names."""
        return {}

    def environment(self) -> Mapping[str, Any] | None:
        """Packages and Python of the process that it runs in, as `packages.environment` tells them; None
        where that is this one."""
        return None

    def journal(self) -> str:
        """What there is to be told of its process beside the answers: what it printed, what was refused it.
        May be asked after `close` and `abandon`."""
        return ""

    def abandon(self) -> None:
        """Let go at once of all that the handle holds: a call on it hangs, and nobody will wait for it."""
        return

    @classmethod
    def is_local(cls, config: BackendConfig) -> bool:
        """Whether it needs nothing beyond this machine: its worker then refuses every other address."""
        return False


def undeclared(backend: object, verb: str) -> BackendError:
    return BackendError(f"{type(backend).__name__} does not declare {verb!r}", permanent=True)


@dataclass(frozen=True, slots=True)
class Isolation:
    """The environment of its own that a backend runs in: a release (`mem0ai==2.0.20`), the packages it takes
    with it, and the Python (a version or a path; "" for that of this process). `home` is where environments
    are kept; None for the place that is usual."""

    package: str
    extra: tuple[str, ...] = ()
    python: str = ""
    home: Path | None = None


@dataclass(frozen=True, slots=True)
class BackendConfig:
    """A configured backend, an *instance*: one name, one lease. Picklable.

    `type` is a row of `BACKENDS` or "package.module:Class"; `options` are the vendor's own, verbatim;
    `embedder` is the embedder's specification (see `embedding.py`); `directory` is where a store on disk
    may live, None keeps it in memory; with `isolation` it runs in an environment of its own.
    """

    name: str
    type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    embedder: str | Mapping[str, Any] = "wordllama"
    directory: Path | None = None
    isolation: Isolation | None = None


BACKENDS = {
    "keyword": "collectors.backends.keyword:Keyword",
    "dense": "collectors.backends.dense:Dense",
    "hybrid": "collectors.backends.hybrid:Hybrid",
    "nothing": "collectors.backends.floors:Nothing",
    "everything": "collectors.backends.floors:Everything",
    "mem0": "collectors.backends.mem0:Mem0",
    "langgraph": "collectors.backends.langgraph:LangGraph",
    "langmem": "collectors.backends.langmem:LangMem",
    "chroma": "collectors.backends.chroma:Chroma",
    "qdrant": "collectors.backends.qdrant:Qdrant",
    "lancedb": "collectors.backends.lancedb:LanceDB",
    "http": "collectors.backends.http:Http",
    "faulty": "collectors.backends.faulty:open_faulty",
}
"""Type -> dotted path of a class, or function, that makes a backend of a `BackendConfig`. Imported on use."""

OPTIONS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(BACKENDS, frozenset()),
    "mem0": frozenset({"infer", "search", "price"}),
    "langgraph": frozenset({"store", "url", "index"}),
    "chroma": frozenset({"space"}),
    "lancedb": frozenset({"search"}),
    "http": frozenset(
        "url token headers timeout rate higher_is_better capabilities requests answers".split()  # noqa: SIM905
    ),
    "faulty": frozenset({"of", "fault", "requires", "releases", "share", "flip", "seed", "night", "since"}),
}
"""Type -> what its section may hold beside the keys of every section: known without importing it."""

OUTER_STORES: Mapping[str, frozenset[str]] = {
    "mem0": frozenset({"config.vector_store", "config.graph_store", "config.history_db_path"}),
    "langgraph": frozenset({"url"}),
    "chroma": frozenset({"config"}),
    "qdrant": frozenset({"config"}),
}
"""Type -> keys of its section that name a store which is not memtrend's to make: two releases would share
it."""

IN_PROCESS = frozenset({"dense", "hybrid", "http"})
"""Types that take more than the standard library and one SDK, and so have no release to run in."""

NAMESPACE_PREFIX = "memtrend-"
"""Every namespace begins with this; `reset` refuses any other."""


def is_local(config: BackendConfig) -> bool:
    """Whether the adapter says of this configuration that it needs this machine alone."""
    adapter = _resolve(BACKENDS[config.type]) if config.type in BACKENDS else None
    return isinstance(adapter, type) and bool(adapter.is_local(config))  # type: ignore[attr-defined]


def open_backend(config: BackendConfig) -> Backend:
    """Open an instance. Raises `BackendError(permanent=True)` for an unknown type or a missing package."""
    if config.isolation and config.type != "faulty":  # which wraps what runs in there
        from collectors.backends.isolated import Isolated

        return Isolated(config, config.isolation)
    if config.type in BACKENDS:
        backend: Backend = _resolve(BACKENDS[config.type])(config)
        return backend
    if ":" not in config.type:
        known = ", ".join(sorted(BACKENDS))
        raise BackendError(
            f'backend {config.name}: unknown type {config.type!r}; known: {known}, or "package.module:Class"',
            permanent=True,
        )
    from collectors.backends.custom import adapt, find

    return adapt(find(config.type), config)


def _resolve(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise BackendError(f"cannot load {path}: {error}", permanent=True) from error
