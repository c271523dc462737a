"""Real systems as they are opened in tests: each a release in an environment of its own.

A row is a name, how it is configured, and what is known of it. Rows that are not `quick` are tested by
`make test-backends` alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from collectors.backend import BackendConfig, BackendError, Isolation

KEEPS = frozenset({"forget", "count", "ids", "metadata"})
OWN = KEEPS | {"amend", "forget_user"}
CHANGES = OWN | {"deterministic"}


class Fault(NamedTuple):
    """What a *backend* does wrong, and how a test of the contract fails by it: an answer that is not what it
    should be, or an error of the backend's."""

    why: str
    raises: type[Exception] = AssertionError


@dataclass(frozen=True)
class System:
    """`declared`: what it must declare, but for `durable`, which it must on disk alone. `deviates`: tests of
    the contract that the *backend* fails, and why; they must go on failing until it is mended."""

    name: str
    type: str
    isolation: Isolation
    declared: frozenset[str]
    indexes: tuple[str, ...] = ("memories",)
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    in_memory: bool = True
    on_disk: bool = True
    deviates: Mapping[str, Fault] = field(default_factory=dict)

    def config(self, directory: Path | None = None) -> BackendConfig:
        return BackendConfig(self.name, self.type, self.options, "wordllama", directory, self.isolation)


LOADS_EXTENSIONS = "" if hasattr(sqlite3.Connection, "enable_load_extension") else "/usr/bin/python3"
"""A Python whose sqlite3 does, where this one's does not."""
WIPES = Fault("delete_all(user_id=...) empties the store of every user")
LOSES = Fault("update drops the metadata")
REFUSES = Fault("the documented filter by several values is an error over Qdrant", BackendError)
DEVIATES = {
    **dict.fromkeys(
        ("test_forgets_a_user", "test_counts_by_index", "test_takes_any_user_and_session"),
        (WIPES, "0.1.118", "1.0.5"),
    ),
    "test_amends_only_the_text": (LOSES, "0.1.118", "2.0.0"),
    "test_domains_are_apart": (REFUSES, "1.0.0", "1.0.6"),
}
"""Of mem0: test -> what its releases do, the first of them and the last."""


def _mem0(release: str, *, quick: bool = False) -> System:
    faults = {
        test: fault
        for test, (fault, first, last) in DEVIATES.items()
        if _order(first) <= _order(release) <= _order(last)
    }
    isolation = Isolation(f"mem0ai=={release}")
    return System(f"mem0-{release}", "mem0", isolation, OWN, quick=quick, deviates=faults)


def _order(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def _langgraph(name: str, *extra: str, python: str = "", **fields: Any) -> System:
    return System(
        f"langgraph-{name}", "langgraph", Isolation("langgraph==1.2.24", extra, python), CHANGES, **fields
    )


CHROMA = Isolation("chromadb==1.5.9")


def _lancedb(search: str, *legs: str, deterministic: bool = False) -> System:
    declared = OWN | {"legs"} | ({"deterministic"} if deterministic else set())
    isolation = Isolation("lancedb==0.40.0")
    return System(f"lancedb-{search}", "lancedb", isolation, declared, legs, {"search": search})


SYSTEMS = (
    _mem0("0.1.118"),
    _mem0("1.0.0"),
    _mem0("1.0.3", quick=True),
    _mem0("1.0.6"),
    _mem0("1.0.11"),
    _mem0("2.0.0"),
    _mem0("2.0.20"),
    _mem0("2.2.1", quick=True),
    _langgraph("memory", quick=True, on_disk=False),
    _langgraph(
        "sqlite",
        "langgraph-checkpoint-sqlite==3.1.2",
        python=LOADS_EXTENSIONS,
        quick=True,
        options={"store": "sqlite"},
    ),
    System("chroma", "chroma", CHROMA, OWN, quick=True),
    System("chroma-cosine", "chroma", CHROMA, OWN, options={"space": "cosine"}),
    System("qdrant", "qdrant", Isolation("qdrant-client==1.20.0"), OWN),
    _lancedb("hybrid", "keyword", "vector"),
    _lancedb("vector", "vector", deterministic=True),
    _lancedb("fts", "keyword"),
    System("langmem", "langmem", Isolation("langmem==0.0.30"), CHANGES - {"metadata"}, on_disk=False),
)
