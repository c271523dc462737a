"""mem0, in process: the vendor's configuration verbatim, its defaults untouched where it is silent.

Options: `config` (what `Memory.from_config` takes), `infer` (an LLM extracts facts; default off), `search`
(keywords of its `search`, such as threshold and rerank). Without `config.vector_store`: Qdrant on local disk.
Without `config.embedder`: memtrend's own, so that a comparison of backends is not one of embedders.

A namespace is an agent id, a user a user id, a session a run id. So the vendor's own separation of users is
what is under test, and one filter lists all of a namespace, without a list of its users kept beside it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import stamina
from pydantic import SecretStr, ValidationError

from collectors.backend import Backend, BackendConfig, BackendError, Hit, Recall, Usage, undeclared
from collectors.backends.base import (
    ID_KEY,
    described,
    missing_extra,
    refuse_foreign,
    require_leg,
    unknown_memory,
    well_formed,
)
from collectors.embedding import Embedder, embedder_versions, open_embedder
from collectors.suite import Memory, Scope, digest

OURS_IN_SEARCH = frozenset({"query", "filters", "top_k"})
ALL_ROWS = 1_000_000
"""Asked for in listings: the vendor's default is 20."""
SETTLE_TIMEOUT_S = 20.0
SPACY_MODEL = "en_core_web_sm"
PASSING_STATUS = frozenset({408, 409, 425, 429})


class _Options(NamedTuple):
    config: dict[str, Any]
    infer: bool
    search: dict[str, Any]


class Mem0(Backend):
    """With `infer` a hit's id is that of the memory which its fact was taken from, and nothing can be
    amended, since one planted memory may be several of the vendor's."""

    legs = ()

    def __init__(self, config: BackendConfig) -> None:
        self._vendor = _vendor()
        self._options = _parsed(config)
        named = self._options.config.get("embedder")
        self._embedder = None if named else open_embedder(config.embedder)
        self._made_by = (
            embedder_versions(self._embedder) if self._embedder else _model("embedder", named or {})
        )
        self._meter, self._last = _Meter(), dict[str, str]()
        self.capabilities = self._declared(config)
        self._directory = config.directory or Path(tempfile.mkdtemp(prefix="memtrend-mem0-"))
        self._endings: list[Callable[[], Any]] = []
        if config.directory is None:
            self._endings.append(weakref.finalize(self, shutil.rmtree, self._directory))
        self._directory.mkdir(parents=True, exist_ok=True)
        _take_over(self._directory)
        with explained(f"configuration of backend {config.name}"):
            self._memory = self._opened()
        # At the end of the interpreter Qdrant's client would complain that modules are gone.
        self._endings.insert(0, weakref.finalize(self, _close, self._memory))
        _holders[self._directory] = self

    def reset(self, scope: Scope) -> None:
        refuse_foreign(scope.namespace)
        rows = self._rows(_everyone(scope))
        strangers = [row for row in rows if ID_KEY not in (row.get("metadata") or {})]
        if strangers:
            raise BackendError(
                f"{scope.namespace!r} is left alone: {len(strangers)} memories in it are not memtrend's",
                permanent=True,
            )
        self._delete(rows)

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        """One `add` for each memory: only so is it known which memory a fact was taken from."""
        for memory in memories:
            with explained("add"):
                added = self._memory.add(
                    [{"role": memory.role, "content": well_formed(memory.text)}],
                    **_filters(scope, memory.session or scope.session),
                    metadata={**described(scope, memory), ID_KEY: memory.id},
                    infer=self._options.infer,
                )["results"]
            if added:
                self._last[scope.namespace] = added[-1]["id"]
        return self._meter.read()

    def settle(self, scope: Scope) -> None:
        """Wait until what was written last is listed: at once in a local store, later in some others."""
        last = self._last.get(scope.namespace)
        for attempt in stamina.retry_context(
            on=_Unsettled, attempts=None, timeout=SETTLE_TIMEOUT_S, wait_max=1.0
        ):
            with attempt:
                if last and all(row["id"] != last for row in self._rows(_everyone(scope))):
                    raise _Unsettled("what was written last is not listed yet")

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        among = {"domain": {"in": list(scope.domains)}} if scope.domains else {}
        filters = {**_filters(scope, scope.session), **among}
        with explained("search"):
            found = self._memory.search(well_formed(query), filters=filters, top_k=k, **self._options.search)
        return Recall(tuple(_hit(row) for row in found["results"]), self._meter.read())

    def amend(self, scope: Scope, id: str, text: str) -> None:
        if "amend" not in self.capabilities:
            raise undeclared(self, "amend")
        rows = self._planted(scope, [id])
        if not rows:
            raise unknown_memory(scope, id)
        with explained("update"):
            self._memory.update(rows[0]["id"], text=well_formed(text))

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self._delete(self._planted(scope, ids))

    def forget_user(self, scope: Scope) -> None:
        if "forget_user" not in self.capabilities:
            raise undeclared(self, "forget_user")
        self._delete(self._rows(_filters(scope)))

    def count(self, scope: Scope) -> Mapping[str, int]:
        return {"memories": len(self._rows(_everyone(scope)))}

    def versions(self) -> Mapping[str, str]:
        configuration = self._memory.config
        inferring = {
            **_model("llm", configuration.llm.model_dump()),
            "extraction_prompt": self._prompt_digest(),
        }
        return {
            "mem0ai": version("mem0ai"),
            "vector_store": configuration.vector_store.provider,
            "keyword_search": "on" if getattr(self._memory.vector_store, "_bm25_encoder", None) else "off",
            "entities": "on" if find_spec(SPACY_MODEL) else "off",
            **self._made_by,
            **(inferring if self._options.infer else {}),
        }

    def close(self) -> None:
        for ending in self._endings:
            ending()

    # Opening

    def _opened(self) -> Any:
        # What `from_config` does, but for logging a faulty configuration together with its keys.
        configuration = self._vendor.configs.base.MemoryConfig(**{**self._defaults(), **self._options.config})
        memory = self._vendor.Memory(configuration)
        if self._embedder:
            memory.embedding_model = _HandedIn(self._embedder, memory.embedding_model.config)
        if hasattr(memory.vector_store, "_bm25_encoder"):
            memory.vector_store._bm25_encoder = _bm25_encoder()
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
        infer, own_store = self._options.infer, "vector_store" in self._options.config
        steady = self._embedder is not None and self._embedder.deterministic
        declared = {
            "amend": not infer,
            "forget": True,
            # Somebody else's store may hold the same user's own memories.
            "forget_user": not own_store,
            "count": True,
            "durable": own_store or config.directory is not None,
            "deterministic": steady and not own_store and not infer,
            "ids": True,
            "metadata": True,
        }
        return frozenset(name for name, holds in declared.items() if holds)

    def _prompt_digest(self) -> str:
        from mem0.configs.prompts import ADDITIVE_EXTRACTION_PROMPT

        return digest([ADDITIVE_EXTRACTION_PROMPT, self._memory.custom_instructions])

    # Rows, as the vendor lists them

    def _rows(self, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        with explained("get_all"):
            listed = self._memory.get_all(filters=dict(filters), top_k=ALL_ROWS, show_expired=True)
        rows: list[dict[str, Any]] = listed["results"]
        return rows

    def _planted(self, scope: Scope, ids: Sequence[str]) -> list[dict[str, Any]]:
        wanted = set(ids)
        return [row for row in self._rows(_filters(scope)) if _planted_id(row) in wanted]

    def _delete(self, rows: Sequence[Mapping[str, Any]]) -> None:
        # One by one: `delete_all` emptied the stores of every user in five published releases.
        for row in rows:
            with explained("delete"):
                self._memory.delete(row["id"])
        gone = {row["id"] for row in rows}
        self._last = {namespace: last for namespace, last in self._last.items() if last not in gone}


class _Unsettled(BackendError):
    """Not to be found yet."""


class _HandedIn:
    """memtrend's embedder in the vendor's shape."""

    def __init__(self, embedder: Embedder, config: Any) -> None:
        self._embedder, self.config = embedder, config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed(texts).tolist()
        return vectors


class _Meter:
    """Counts what the vendor asks of its LLM; tokens where the provider lets its answers be seen."""

    def __init__(self) -> None:
        self._used = Usage()

    def attach(self, llm: Any) -> None:
        asked = llm.generate_response

        def counted(*positional: Any, **named: Any) -> Any:
            self._used += Usage(calls=1)
            return asked(*positional, **named)

        llm.generate_response = counted
        if getattr(llm.config, "response_callback", "missing") is None:
            llm.config.response_callback = self._answered

    def _answered(self, llm: Any, response: Any, asked: Any) -> None:
        self._used += Usage(tokens=getattr(response.usage, "total_tokens", None) or 0)

    def read(self) -> Usage:
        """What was used since the last reading."""
        used, self._used = self._used, Usage()
        return used


def _filters(scope: Scope, session: str | None = None) -> dict[str, str]:
    run = {} if session is None else {"run_id": _entity(session)}
    return {**_everyone(scope), "user_id": _entity(scope.user), **run}


def _everyone(scope: Scope) -> dict[str, str]:
    return {"agent_id": _entity(scope.namespace)}


def _entity(name: str) -> str:
    """The name as the vendor takes it: it refuses blanks, and in a filter * would stand for anyone."""
    return quote(name, safe="@+:/", errors="surrogatepass")


def _planted_id(row: Mapping[str, Any]) -> str | None:
    planted: str | None = (row.get("metadata") or {}).get(ID_KEY)
    return planted


def _hit(row: Mapping[str, Any]) -> Hit:
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
    unknown = sorted(config.options.keys() - set(_Options._fields))
    options = _Options(
        config=_revealed(config.options.get("config", {})),
        infer=config.options.get("infer", False),
        search=_revealed(config.options.get("search", {})),
    )
    faults = [f"unknown option {name!r}; known: {', '.join(_Options._fields)}" for name in unknown]
    faults += [
        f"search.{name} is memtrend's to set" for name in sorted(OURS_IN_SEARCH & options.search.keys())
    ]
    if options.infer and "llm" not in options.config:
        faults.append("infer needs config.llm: the model that extracts, and whoever pays for it")
    if faults:
        raise BackendError(f"backend {config.name}: {'; '.join(faults)}", permanent=True)
    return options


def _revealed(value: Any) -> Any:
    """A copy, since the vendor writes into what it is given, with secrets in the clear for it alone."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return {name: _revealed(inner) for name, inner in value.items()}
    return [_revealed(inner) for inner in value] if isinstance(value, list | tuple) else value


@contextmanager
def explained(call: str) -> Iterator[None]:
    """What the vendor raises, where asking again is useless: faulty values, refused keys. The rest passes."""
    try:
        yield
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise BackendError(f"mem0 {call}: {faults}", permanent=True) from None
    except ValueError as error:
        raise BackendError(f"mem0 {call}: {error}", permanent=True) from error
    except Exception as error:
        statuses = [getattr(raised, "status_code", None) for raised in (error, error.__cause__)]
        if any(status and 400 <= status < 500 and status not in PASSING_STATUS for status in statuses):
            raise BackendError(f"mem0 {call}: {error}", permanent=True) from error
        raise


@lru_cache(maxsize=1)
def _vendor() -> Any:
    """The package, imported so that it neither calls home nor writes into the home directory."""
    directory = tempfile.mkdtemp(prefix="memtrend-mem0-home-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=directory)
    try:
        import mem0
        import mem0.configs.base
    except ImportError as error:
        raise missing_extra("mem0") from error
    if find_spec(SPACY_MODEL) is None:
        # Its entity half would try to download the model, and complain when it cannot.
        models: Any = import_module("mem0.utils.spacy_models")
        models._load_failed_full = models._load_failed_lemma = True
    return mem0


@lru_cache(maxsize=1)
def _bm25_encoder() -> Any:
    """The vendor's keyword half, if its model is on this machine. Left to itself it asks the network, and
    without one keeps the first call waiting for 39 s."""
    try:
        return import_module("fastembed").SparseTextEmbedding("Qdrant/bm25", local_files_only=True)
    except (ImportError, ValueError, OSError):
        return False


_holders: weakref.WeakValueDictionary[Path, Mem0] = weakref.WeakValueDictionary()


def _take_over(directory: Path) -> None:
    """Close who holds the directory in this process: a handle left behind after a call that hung, without
    which the lock of the local store would stay for good."""
    if holder := _holders.get(directory):
        holder.close()


def _close(memory: Any) -> None:
    close = getattr(getattr(memory.vector_store, "client", None), "close", None)
    if close:
        close()
    memory.close()
