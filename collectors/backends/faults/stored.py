"""What is stored is not what was planted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from collectors.backend import Recall, Usage
from collectors.backends.faults.wrapper import Wrapper, narrowed
from collectors.suite import Memory, Scope, digest


class Doubled(Wrapper):
    """Can plant a memory a second time, as a row of its own that comes back under the same id."""

    mark = "#again"

    def plant_again(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        return self.inner.remember(scope, [replace(memory, id=memory.id + self.mark) for memory in memories])

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        answer = self.inner.recall(scope, query, k, leg)
        return narrowed(answer, [replace(hit, id=hit.id.removesuffix(self.mark)) for hit in answer.hits])

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self.inner.forget(scope, [*ids, *(id + self.mark for id in ids)])


class StoredTwice(Doubled):
    """Every memory is there twice."""

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        return super().remember(scope, memories) + self.plant_again(scope, memories)

    def amend(self, scope: Scope, id: str, text: str) -> None:
        for one in (id, id + self.mark):
            self.inner.amend(scope, one, text)


class EventTimeIsNow(Wrapper):
    """When it happened becomes when it was stored."""

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        return super().remember(scope, [replace(memory, at=datetime.now(UTC)) for memory in memories])


class SpeakerSwapped(Wrapper):
    """The user said what the assistant said, and the other way round."""

    other = {"user": "assistant", "assistant": "user"}  # noqa: RUF012

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        return super().remember(scope, [replace(m, role=self.other.get(m.role, m.role)) for m in memories])


class TextCut(Wrapper):
    """Only the beginning of a text is stored."""

    characters = 64

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        return super().remember(scope, [replace(m, text=m.text[: self.characters]) for m in memories])

    def amend(self, scope: Scope, id: str, text: str) -> None:
        self.inner.amend(scope, id, text[: self.characters])


class IdsLost(Wrapper):
    """Hits bear ids that nobody planted."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        answer = self.inner.recall(scope, query, k, leg)
        return narrowed(answer, [replace(hit, id=digest(hit.id)) for hit in answer.hits])


class LastWriteLost(Wrapper):
    """The last memory of each call is never flushed."""

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        kept = memories[:-1]
        return super().remember(scope, kept) if kept else Usage()


class LostOnReopen(Wrapper):
    """What was planted is gone when the store is closed."""

    def close(self) -> None:
        for namespace in list(self.held):
            self.inner.reset(Scope(namespace))
        self.inner.close()
