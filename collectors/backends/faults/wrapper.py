"""A backend around another one, doing as that one does: what every fault begins with."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from collectors.backend import Backend, Hit, Recall, Usage
from collectors.suite import Memory, Scope

WIDE = 10_000
"""More hits than any namespace of a suite holds."""


class Wrapper(Backend):
    """Passes every verb on; a fault overrides those that it breaks. `held` is what was planted, by namespace
    and id and in that order, for faults that need to know; they touch no store but through verbs."""

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        self.capabilities, self.legs = inner.capabilities, inner.legs
        self.held: dict[str, dict[str, Memory]] = defaultdict(dict)

    def reset(self, scope: Scope) -> None:
        self.inner.reset(scope)
        self.held.pop(scope.namespace, None)

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        usage = self.inner.remember(scope, memories)
        self.held[scope.namespace] |= {
            memory.id: replace(memory, user=scope.user, session=memory.session or scope.session)
            for memory in memories
        }
        return usage

    def settle(self, scope: Scope) -> None:
        self.inner.settle(scope)

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        return self.inner.recall(scope, query, k, leg)

    def close(self) -> None:
        self.inner.close()

    def amend(self, scope: Scope, id: str, text: str) -> None:
        self.inner.amend(scope, id, text)

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self.inner.forget(scope, ids)

    def forget_user(self, scope: Scope) -> None:
        self.inner.forget_user(scope)

    def count(self, scope: Scope) -> Mapping[str, int]:
        return self.inner.count(scope)

    def say(self, scope: Scope, turn: str) -> Recall:
        return self.inner.say(scope, turn)

    def versions(self) -> Mapping[str, str]:
        return self.inner.versions()

    # For faults

    def theirs(self, scope: Scope) -> list[Memory]:
        """What the user has planted in the namespace, oldest first."""
        return [memory for memory in self.held[scope.namespace].values() if memory.user == scope.user]


def narrowed(answer: Recall, hits: Iterable[Hit]) -> Recall:
    """The answer with these hits in place of its own."""
    return replace(answer, hits=tuple(hits))


def merged(answers: Sequence[Recall], k: int) -> Recall:
    """One answer out of several, by score, as if all had been ranked together."""
    ranked = [(-(hit.score or 0.0), rank, hit) for one in answers for rank, hit in enumerate(one.hits)]
    hits = [hit for *_, hit in sorted(ranked, key=lambda row: row[:2])]
    return Recall(tuple(hits[: max(k, 0)]), sum((one.usage for one in answers), Usage()))


def words(text: str) -> frozenset[str]:
    """What a text is about, roughly: its words of four letters and more."""
    return frozenset(re.findall(r"\w{4,}", text.lower()))
