"""Keyword and vector together, fused by reciprocal rank: a memory scores 1 / (60 + rank) in each index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from collectors.backend import Backend, BackendConfig, Hit, Recall, Usage
from collectors.backends.base import require_leg
from collectors.backends.dense import Dense
from collectors.backends.keyword import Keyword
from collectors.suite import Memory, Scope

RANK_OFFSET = 60


class Hybrid(Backend):
    """Two whole stores behind one set of verbs; `indexes` may be wrapped, so that one can be made to fail."""

    legs = ("keyword", "vector")

    def __init__(self, config: BackendConfig) -> None:
        self.indexes: dict[str, Backend] = {"keyword": Keyword(config), "vector": Dense(config)}
        self.capabilities = reduce(frozenset.__and__, (index.capabilities for index in self._indexes))

    @property
    def _indexes(self) -> tuple[Backend, ...]:
        return tuple(self.indexes.values())

    def reset(self, scope: Scope) -> None:
        for index in self._indexes:
            index.reset(scope)

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        return sum((index.remember(scope, memories) for index in self._indexes), Usage())

    def settle(self, scope: Scope) -> None:
        for index in self._indexes:
            index.settle(scope)

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        if leg is not None:
            return self.indexes[leg].recall(scope, query, k)
        # Deeper than k: what is middling in both lists may be best of all.
        answers = [index.recall(scope, query, max(50, 4 * k)) for index in self._indexes]
        usage = sum((answer.usage for answer in answers), Usage())
        return Recall(fused([answer.hits for answer in answers])[: max(k, 0)], usage)

    def amend(self, scope: Scope, id: str, text: str) -> None:
        for index in self._indexes:
            index.amend(scope, id, text)

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        for index in self._indexes:
            index.forget(scope, ids)

    def forget_user(self, scope: Scope) -> None:
        for index in self._indexes:
            index.forget_user(scope)

    def count(self, scope: Scope) -> Mapping[str, int]:
        return {name: number for index in self._indexes for name, number in index.count(scope).items()}

    def versions(self) -> Mapping[str, str]:
        return {name: version for index in self._indexes for name, version in index.versions().items()}

    def close(self) -> None:
        for index in self._indexes:
            index.close()


def fused(rankings: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    """One ranking out of several, best first, ties by id; the score is the sum of reciprocal ranks."""
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            scores[hit.id] = scores.get(hit.id, 0.0) + 1 / (RANK_OFFSET + rank)
            hits[hit.id] = hit
    order = sorted(scores, key=lambda id: (-scores[id], id))
    return tuple(Hit(id, hits[id].text, scores[id], hits[id].metadata) for id in order)
