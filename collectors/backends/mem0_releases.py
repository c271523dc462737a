"""mem0's import without calls home, and its two generations behind the same calls. Stdlib and mem0 only.

Up to 1.x a scope is said in keywords, since 2.0 in filters. What is not said stays the vendor's default, it
is under test. `add`, `update`, `delete` and `delete_all` are called alike in all of them.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any, Protocol

from collectors.backend import BackendError
from collectors.backends.base import missing_extra

Row = dict[str, Any]
"""One memory as the vendor lists it: id, memory, perhaps score, metadata, role, actor_id."""

ALL_ROWS = 1_000_000
"""Asked for in listings: the vendor's default is 100, since 2.0 it is 20."""
SPACY_MODEL = "en_core_web_sm"
DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Generation(Protocol):
    """`entities`: agent_id, and where they narrow it user_id and run_id."""

    def search(
        self, query: str, entities: Mapping[str, str], domains: Sequence[str], k: int, **options: Any
    ) -> list[Row]:
        """The k best, of these domains where there are any, best first."""
        ...

    def listed(self, entities: Mapping[str, str]) -> list[Row]: ...

    def drop_messages(self, agent_id: str) -> None:
        """Those that are kept beside the memories, to be shown to the LLM."""
        ...

    def prompts(self) -> list[str | None]:
        """What the LLM is asked with, but for dates: they change daily."""
        ...


class ByKeywords:
    """0.1 and 1.x."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._operators = hasattr(memory, "_has_advanced_operators")

    def search(
        self, query: str, entities: Mapping[str, str], domains: Sequence[str], k: int, **options: Any
    ) -> list[Row]:
        """For several domains 1.x documents `in`, which 1.0.0 to 1.0.6 then refuse over Qdrant; 0.1 knows
        equality alone, and its users ask for each domain in turn."""
        if len(domains) > 1 and not self._operators:
            rows = [row for domain in domains for row in self.search(query, entities, [domain], k, **options)]
            return sorted(rows, key=lambda row: row["score"], reverse=True)[:k]
        among: Any = domains[0] if len(domains) == 1 else {"in": list(domains)}
        filters = {"domain": among} if domains else None
        return _results(self._memory.search(query, **entities, filters=filters, limit=k, **options))

    def listed(self, entities: Mapping[str, str]) -> list[Row]:
        return _results(self._memory.get_all(**entities, limit=ALL_ROWS))

    def drop_messages(self, agent_id: str) -> None:
        """None are kept."""

    def prompts(self) -> list[str | None]:
        theirs = import_module("mem0.configs.prompts")
        names = "FACT_RETRIEVAL", "USER_MEMORY_EXTRACTION", "AGENT_MEMORY_EXTRACTION", "DEFAULT_UPDATE_MEMORY"
        return [
            *(DATE.sub("", getattr(theirs, f"{name}_PROMPT", "")) for name in names),
            self._memory.config.custom_fact_extraction_prompt,
            self._memory.config.custom_update_memory_prompt,
        ]


class ByFilters:
    """2.x."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        expires = "show_expired" in signature(memory.get_all).parameters
        self._all: dict[str, Any] = {"top_k": ALL_ROWS, **({"show_expired": True} if expires else {})}

    def search(
        self, query: str, entities: Mapping[str, str], domains: Sequence[str], k: int, **options: Any
    ) -> list[Row]:
        among = {"domain": {"in": list(domains)}} if domains else {}
        return _results(self._memory.search(query, filters={**entities, **among}, top_k=k, **options))

    def listed(self, entities: Mapping[str, str]) -> list[Row]:
        return _results(self._memory.get_all(filters=dict(entities), **self._all))

    def drop_messages(self, agent_id: str) -> None:
        """No call of the vendor's reaches them, but one that empties the whole store."""
        beginning = f"agent_id={agent_id}&"
        with self._memory.db.connection as database:
            database.execute("DELETE FROM messages WHERE instr(session_scope, ?) = 1", [beginning])

    def prompts(self) -> list[str | None]:
        theirs = import_module("mem0.configs.prompts")
        return [theirs.ADDITIVE_EXTRACTION_PROMPT, self._memory.custom_instructions]


def generation(memory: Any) -> Generation:
    """That of this release, told by how it is called."""
    return (ByFilters if "top_k" in signature(memory.search).parameters else ByKeywords)(memory)


def _results(answer: Any) -> list[Row]:
    rows: list[Row] = answer["results"]
    return rows


@lru_cache(maxsize=1)
def vendor() -> Any:
    """The package, imported so that it neither calls home nor writes into the home directory."""
    directory = tempfile.mkdtemp(prefix="memtrend-mem0-home-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=directory)
    try:
        mem0 = import_module("mem0")
        main: Any = import_module("mem0.memory.main")
    except ImportError as error:
        advice = f'{missing_extra("mem0")}, or give the backend package = "mem0ai==2.2.1"'
        raise BackendError(advice, permanent=True) from error
    # Up to 1.0.5 its switch leaves it a new thread, and an entry in a store of its own, for every call.
    main.capture_event = _unsaid
    _quiet_spacy()
    return mem0


def _unsaid(*_: Any, **__: Any) -> None:
    """What telemetry would have sent."""


def _quiet_spacy() -> None:
    """Without its model the entity half would try to download it, and complain when it cannot."""
    if find_spec(SPACY_MODEL) is None and find_spec("mem0.utils.spacy_models"):
        models: Any = import_module("mem0.utils.spacy_models")
        models._load_failed_full = models._load_failed_lemma = True


@lru_cache(maxsize=1)
def bm25_encoder() -> Any:
    """The vendor's keyword half, if its model is on this machine. Left to itself it asks the network, and
    without one keeps the first call waiting for 39 s."""
    try:
        return import_module("fastembed").SparseTextEmbedding("Qdrant/bm25", local_files_only=True)
    except (ImportError, ValueError, OSError):
        return False


def close_telemetry(memory: Any) -> None:
    """The store which releases up to 1.0.5 keep for it: all handles of a process would share its lock."""
    _let_go(getattr(memory, "_telemetry_vector_store", None))


def close(memory: Any) -> None:
    _let_go(memory.vector_store)
    memory.db.close()


def _let_go(store: Any) -> None:
    let_go = getattr(getattr(store, "client", None), "close", None)
    if let_go:
        let_go()
