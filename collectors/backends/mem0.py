"""mem0, 0.1.118 to 2.2.1: the vendor's configuration verbatim, its defaults untouched where it is silent.

Options: `config` (what `Memory.from_config` takes), `infer` (an LLM extracts facts; default off), `search`
(keywords of its `search`, such as threshold and rerank), `price` (`input` and `output` of its LLM, USD for a
million tokens). Without `config.vector_store`: Qdrant on local disk. Without `config.embedder`: memtrend's,
so that a comparison of backends is not one of embedders.

A namespace is an agent id, a user a user id, a session a run id. So the vendor's own separation of users is
what is under test, and one filter lists all of a namespace, without a list of its users kept beside it.

The planted id is in the metadata and, since up to 2.0.0 an update loses all of that, in the name of who spoke
too, which is kept. So a changed memory still has its id, and what else it lost shows.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from collectors.backend import Backend, BackendConfig, BackendError, Hit, Recall, Usage, undeclared
from collectors.backends.base import (
    ID_KEY,
    PASSING_STATUS,
    described,
    faulty,
    refuse_foreign,
    refuse_strangers,
    require_leg,
    revealed,
    unknown_memory,
    unknown_options,
    wait_until,
    well_formed,
)
from collectors.backends.fence import leads_here
from collectors.backends.handed import HandedIn, handed_in
from collectors.backends.mem0_releases import (
    SPACY_MODEL,
    Row,
    bm25_encoder,
    close,
    close_telemetry,
    generation,
    vendor,
)
from collectors.backends.mem0_usage import PRICED, Meter
from collectors.suite import Memory, Scope, digest

OURS_IN_SEARCH = frozenset({"query", "filters", "top_k", "limit", "user_id", "agent_id", "run_id"})
SPEAKER = f"{ID_KEY}:"
"""Before the planted id, where it stands as a speaker's name."""
SERVICES = ("llm", "embedder", "vector_store", "graph_store", "reranker")
"""Sections of the vendor's configuration that may name another machine."""
STORES = frozenset({"vector_store", "graph_store"})
PLACE = re.compile(
    r"(^|_)(path|hosts?|[a-z]*url|uri|endpoint|address|server|connection_string|cloud_id|prox(y|ies))$"
)
"""Keys of the vendor's that say where something is."""


class _Options(NamedTuple):
    config: dict[str, Any]
    infer: bool
    search: dict[str, Any]
    price: dict[str, float]


class Mem0(Backend):
    """With `infer` a hit's id is that of the memory which its fact was taken from, and nothing can be
    amended, since one planted memory may be several of the vendor's."""

    legs = ()

    def __init__(self, config: BackendConfig) -> None:
        self._vendor = vendor()
        self._options = _parsed(config)
        named = self._options.config.get("embedder")
        self._embedder = None if named else handed_in(config)
        self._made_by = self._embedder.versions if self._embedder else _model("embedder", named or {})
        self._meter, self._last = Meter(self._options.price), dict[str, str]()
        self.capabilities = self._declared(config)
        self._directory = config.directory or Path(tempfile.mkdtemp(prefix="memtrend-mem0-"))
        self._endings: list[Callable[[], Any]] = []
        if config.directory is None:
            self._endings.append(weakref.finalize(self, shutil.rmtree, self._directory))
        self._directory.mkdir(parents=True, exist_ok=True)
        _take_over(self._directory)
        with explained(f"configuration of backend {config.name}"):
            self._memory = self._opened()
        self._release = generation(self._memory)
        # At the end of the interpreter Qdrant's client would complain that modules are gone.
        self._endings.insert(0, weakref.finalize(self, close, self._memory))
        _holders[self._directory] = self

    def reset(self, scope: Scope) -> None:
        refuse_foreign(scope.namespace)
        rows = self._rows(_everyone(scope))
        refuse_strangers(scope.namespace, sum(_planted_id(row) is None for row in rows))
        self._delete(rows)
        self._release.drop_messages(_entity(scope.namespace))

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        """One `add` for each memory: only so is it known which memory a fact was taken from."""
        for memory in memories:
            with explained("add"):
                changed = self._memory.add(
                    [self._message(memory)],
                    **_entities(scope, memory.session or scope.session),
                    metadata={**described(scope, memory), ID_KEY: memory.id},
                    infer=self._options.infer,
                )["results"]
            self._gone({row["id"] for row in changed if row["event"] == "DELETE"})
            for row in changed:
                if row["event"] != "DELETE":
                    self._last[scope.namespace] = row["id"]
        return self._meter.read()

    def settle(self, scope: Scope) -> None:
        """Wait until what was written last is listed: at once in a local store, later in some others."""
        last = self._last.get(scope.namespace)
        if last:
            wait_until(lambda: last in self._listed(scope), "what was written last")

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        entities = _entities(scope, scope.session)
        with explained("search"):
            rows = self._release.search(
                well_formed(query), entities, scope.domains, k, **self._options.search
            )
        return Recall(tuple(map(_hit, rows)), self._meter.read())

    def amend(self, scope: Scope, id: str, text: str) -> None:
        if "amend" not in self.capabilities:
            raise undeclared(self, "amend")
        rows = self._planted(scope, [id])
        if not rows:
            raise unknown_memory(scope, id)
        with explained("update"):
            self._memory.update(rows[0]["id"], well_formed(text))

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self._delete(self._planted(scope, ids))

    def forget_user(self, scope: Scope) -> None:
        if "forget_user" not in self.capabilities:
            raise undeclared(self, "forget_user")
        # The vendor's own call, as a team would make it: up to 1.0.5 it takes every user with it.
        with explained("delete_all"):
            self._memory.delete_all(**_entities(scope))
        self._last.clear()

    def count(self, scope: Scope) -> Mapping[str, int]:
        return {"memories": len(self._rows(_everyone(scope)))}

    def versions(self) -> Mapping[str, str]:
        configuration = self._memory.config
        inferring = {
            **_model("llm", configuration.llm.model_dump()),
            "extraction_prompt": digest(self._release.prompts()),
        }
        return {
            "mem0ai": version("mem0ai"),
            "vector_store": configuration.vector_store.provider,
            **self._qdrant(),
            "keyword_search": "on" if getattr(self._memory.vector_store, "_bm25_encoder", None) else "off",
            "entities": "on" if find_spec(SPACY_MODEL) else "off",
            **self._made_by,
            **(inferring if self._options.infer else {}),
        }

    def close(self) -> None:
        for ending in self._endings:
            ending()

    @classmethod
    def is_local(cls, config: BackendConfig) -> bool:
        """Whether every service that it is configured with is a path or an address of this machine, and none
        of another."""
        named = config.options.get("config", {})
        return all(_is_here(named[name]) for name in SERVICES if name in named)

    # Opening

    def _opened(self) -> Any:
        # What `from_config` does, but for logging a faulty configuration together with its keys.
        configuration = self._vendor.configs.base.MemoryConfig(**{**self._defaults(), **self._options.config})
        memory = self._vendor.Memory(configuration)
        close_telemetry(memory)
        if self._embedder:
            memory.embedding_model = _HandedIn(self._embedder, memory.embedding_model.config)
        if hasattr(memory.vector_store, "_bm25_encoder"):
            memory.vector_store._bm25_encoder = bm25_encoder()
        self._meter.attach(memory.llm)
        return memory

    def _defaults(self) -> dict[str, Any]:
        """What stands in for sections that the configuration leaves out. The placeholder is never called:
        the embedder is replaced, and without an `llm` nothing is inferred."""
        placeholder = {"provider": "openai", "config": {"api_key": "unused"}}
        store = {
            "path": str(self._directory / "qdrant"),
            "on_disk": True,
            # Vectors of two embedders must not meet in one collection.
            "collection_name": f"memtrend-{digest(self._made_by)}",
            **({"embedding_model_dims": self._dimensions()} if self._dimensions() else {}),
        }
        return {
            "history_db_path": str(self._directory / "history.db"),
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": placeholder,
            "llm": deepcopy(placeholder),
        }

    def _dimensions(self) -> int | None:
        if self._embedder:
            return self._embedder.dimensions
        named: int | None = self._options.config["embedder"].get("config", {}).get("embedding_dims")
        return named

    def _declared(self, config: BackendConfig) -> frozenset[str]:
        infer, named = self._options.infer, self._options.config
        # Never deterministic: a local Qdrant, opened again, may order exact ties another way.
        declared = {
            "amend": not infer,
            "forget": True,
            # Somebody else's store may hold the same user's own memories, and a graph's call for one agent's
            # takes those of all.
            "forget_user": not STORES & named.keys(),
            "count": True,
            "durable": "vector_store" in named or config.directory is not None,
            "ids": True,
            "metadata": True,
        }
        return frozenset(name for name, holds in declared.items() if holds)

    def _qdrant(self) -> dict[str, str]:
        """What else decides the answers of the store that is there by default, here or as a server."""
        if self._memory.config.vector_store.provider != "qdrant":
            return {}
        store = self._memory.vector_store
        server = {} if store.is_local else {"qdrant": str(store.client.info().version)}
        return {"qdrant-client": version("qdrant-client"), **server, "distance": "cosine"}

    # Rows, as the vendor lists them

    def _rows(self, entities: Mapping[str, str]) -> list[Row]:
        with explained("get_all"):
            return self._release.listed(entities)

    def _listed(self, scope: Scope) -> set[str]:
        """The vendor's ids in the namespace."""
        return {row["id"] for row in self._rows(_everyone(scope))}

    def _planted(self, scope: Scope, ids: Sequence[str]) -> list[Row]:
        wanted = set(ids)
        return [row for row in self._rows(_entities(scope)) if _planted_id(row) in wanted]

    def _delete(self, rows: Sequence[Row]) -> None:
        # One by one: `delete_all` empties the stores of every user up to 1.0.5.
        for row in rows:
            with explained("delete"):
                self._memory.delete(row["id"])
        self._gone({row["id"] for row in rows})

    def _gone(self, ids: set[str]) -> None:
        """Not to be waited for."""
        self._last = {namespace: last for namespace, last in self._last.items() if last not in ids}

    def _message(self, memory: Memory) -> dict[str, str]:
        """With `infer` no memory is amended, and a model would read the name."""
        name = {} if self._options.infer else {"name": f"{SPEAKER}{memory.id}"}
        return {"role": memory.role, "content": well_formed(memory.text), **name}


class _HandedIn:
    """memtrend's embedder in the vendor's shape."""

    def __init__(self, embedder: HandedIn, config: Any) -> None:
        self._embedder, self.config = embedder, config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return self._embedder.embed(texts)


def _entities(scope: Scope, session: str | None = None) -> dict[str, str]:
    run = {} if session is None else {"run_id": _entity(session)}
    return {**_everyone(scope), "user_id": _entity(scope.user), **run}


def _everyone(scope: Scope) -> dict[str, str]:
    return {"agent_id": _entity(scope.namespace)}


def _entity(name: str) -> str:
    """The name as the vendor takes it: it refuses blanks, and in a filter * would stand for anyone."""
    return quote(name, safe="@+:/", errors="surrogatepass")


def _planted_id(row: Row) -> str | None:
    """None where memtrend did not plant it."""
    planted: str | None = (row.get("metadata") or {}).get(ID_KEY)
    speaker = row.get("actor_id") or ""
    return planted or (speaker.removeprefix(SPEAKER) if speaker.startswith(SPEAKER) else None)


def _hit(row: Row) -> Hit:
    """Under the planted id, or the vendor's own where memtrend did not plant it."""
    metadata = {name: value for name, value in (row.get("metadata") or {}).items() if name != ID_KEY}
    if row.get("role"):
        metadata["role"] = row["role"]  # the vendor moves it out of the metadata
    return Hit(_planted_id(row) or row["id"], row["memory"], row.get("score"), metadata)


def _model(what: str, section: Mapping[str, Any]) -> dict[str, str]:
    """Provider and model of a section of the vendor's configuration, and nothing secret."""
    model = (section.get("config") or {}).get("model")
    named = {f"{what}.provider": section.get("provider"), f"{what}.model": model}
    return {name: str(value) for name, value in named.items() if value}


def _parsed(config: BackendConfig) -> _Options:
    options = _Options(
        config=revealed(config.options.get("config", {})),
        infer=config.options.get("infer", False),
        search=revealed(config.options.get("search", {})),
        price=dict(config.options.get("price", {})),
    )
    faults = unknown_options(config, _Options._fields)
    faults += [
        f"search.{name} is memtrend's to set" for name in sorted(OURS_IN_SEARCH & options.search.keys())
    ]
    if options.infer and "llm" not in options.config:
        faults.append("infer needs config.llm: the model that extracts, and whoever pays for it")
    faults += [
        f"price is {' and '.join(PRICED)}, USD for a million tokens, not {name} = {usd!r}"
        for name, usd in options.price.items()
        if name not in PRICED or not isinstance(usd, int | float)
    ]
    if faults:
        raise faulty(config, *faults)
    return options


def _is_here(section: Mapping[str, Any]) -> bool:
    """Whether a section names a place, and none that is not this machine's."""
    places = list(_places(revealed(section.get("config") or {})))
    return bool(places) and all(map(leads_here, places))


def _places(value: Any, name: str = "") -> Iterator[str]:
    """Whatever says where something is, by its key, or because it is a URL."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _places(inner, key)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _places(inner, name)
    elif isinstance(value, str) and ("://" in value or PLACE.search(name)):
        is_path = name.endswith("path") and "://" not in value
        yield str(Path(value).absolute()) if is_path else value


@contextmanager
def explained(call: str) -> Iterator[None]:
    """What the vendor raises, where asking again is useless: faulty values, refused keys. The rest passes."""
    try:
        yield
    except ValueError as error:
        raise BackendError(f"mem0 {call}: {_faults(error)}", permanent=True) from None
    except Exception as error:
        statuses = [getattr(raised, "status_code", None) for raised in (error, error.__cause__)]
        if any(status and 400 <= status < 500 and status not in PASSING_STATUS for status in statuses):
            raise BackendError(f"mem0 {call}: {error}", permanent=True) from error
        raise


def _faults(error: ValueError) -> str:
    """Without the values, which pydantic would show."""
    listed = getattr(error, "errors", None)
    if listed is None:
        return str(error)
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in listed())


_holders: weakref.WeakValueDictionary[Path, Mem0] = weakref.WeakValueDictionary()


def _take_over(directory: Path) -> None:
    """Close who holds the directory in this process: a handle left behind after a call that hung, without
    which the lock of the local store would stay for good."""
    if holder := _holders.get(directory):
        holder.close()
