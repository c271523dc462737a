"""Memories as a user writes them, in both shapes, under the name of a module that is not there."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest

from collectors.backend import Backend, BackendConfig, open_backend
from collectors.suite import Memory, Scope

BOX = Scope("memtrend-test-1", "anna")
MEMORIES = [
    Memory("m-1", "The gate closes at 21:40.", at=datetime(2026, 1, 2, tzinfo=UTC), domain="work"),
    Memory("m-2", "The ferry leaves at 22:30.", metadata={"source": "call"}),
]


class Smallest:
    """As small as a memory gets: three methods, no users, plain texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, text: str) -> None:
        self.texts.append(text)

    def search(self, query: str, k: int) -> list[str]:
        words = query.lower().split()
        return [text for text in self.texts if any(word in text.lower() for word in words)][:k]

    def count(self) -> int:
        return len(self.texts)


class WithKeywords:
    """Takes whom a memory is of, and its metadata; finds by user."""

    capabilities = frozenset({"ids"})

    def __init__(self, namespace: str, limit: int = 100) -> None:
        self.namespace, self.limit, self.rows = namespace, limit, list[dict[str, Any]]()
        self.closed = 0

    def write(self, text: str, *, id: str, user_id: str, metadata: dict[str, Any]) -> None:
        self.rows.append({"id": id, "text": text, "user": user_id, "metadata": metadata})

    def search(self, query: str, k: int, user_id: str = "nobody") -> list[dict[str, Any]]:
        rows = [row for row in self.rows if row["user"] == user_id]
        return [{**row, "score": 1 / (n + 1)} for n, row in enumerate(rows)][: min(k, self.limit)]

    def close(self) -> None:
        self.closed += 1


class OurVerbs:
    """The verbs that must be there, and a few that may."""

    def __init__(self) -> None:
        self.rows: dict[Scope, dict[str, Memory]] = {}

    def reset(self, scope: Scope) -> None:
        self.rows = {other: rows for other, rows in self.rows.items() if other.namespace != scope.namespace}

    def remember(self, scope: Scope, memories: list[Memory]) -> None:
        self.rows.setdefault(scope, {}).update({memory.id: memory for memory in memories})

    def recall(self, scope: Scope, query: str, k: int) -> list[tuple[str, str, float]]:
        rows = self.rows.get(scope, {})
        shared = {id: len(set(query.split()) & set(memory.text.split())) for id, memory in rows.items()}
        return [(id, rows[id].text, float(n)) for id, n in sorted(shared.items(), key=lambda x: -x[1])[:k]]

    def forget(self, scope: Scope, ids: list[str]) -> None:
        for id in ids:
            self.rows.get(scope, {}).pop(id, None)

    def count(self, scope: Scope) -> int:
        return sum(len(rows) for other, rows in self.rows.items() if other.namespace == scope.namespace)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module `my_memory` that a test fills with classes."""
    module = ModuleType("my_memory")
    monkeypatch.setitem(sys.modules, "my_memory", module)
    return module


def opened(module: ModuleType, target: Any, **options: Any) -> Backend:
    module.Mine = target  # type: ignore[attr-defined]
    return open_backend(BackendConfig("mine", "my_memory:Mine", options))


def planted(backend: Backend, scope: Scope = BOX) -> Backend:
    backend.reset(scope)
    backend.remember(scope, MEMORIES)
    backend.settle(scope)
    return backend
