"""What a backend ought to hold at one moment of a scenario."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from collectors.backend import Hit
from collectors.suite import Amend, Forget, ForgetUser, Memory, Plant, Reopen, Session, Step


@dataclass(slots=True)
class History:
    """Everything planted, amended and forgotten so far, by memory id, in planting order."""

    held: dict[str, Memory] = field(default_factory=dict)
    forgotten: dict[str, Memory] = field(default_factory=dict)
    replaced: dict[str, Memory] = field(default_factory=dict)
    """Memories as they read before their text was amended."""
    reopened: frozenset[str] = frozenset()
    """Memories that were there when the backend was last closed and opened again."""
    session: str | None = None
    """Of the last `Session` step: where a memory without a session of its own is planted."""

    def follow(self, step: Step) -> None:
        match step:
            case Plant(memories):
                self.held |= {memory.id: self.placed(memory) for memory in memories}
            case Session(id):
                self.session = id
            case Amend(id, text) if id in self.held:
                self.replaced[id] = self.held[id]
                self.held[id] = replace(self.held[id], text=text)
            case Forget(ids):
                self._forget(ids)
            case ForgetUser(user):
                self._forget([memory.id for memory in self.held.values() if memory.user == user])
            case Reopen():
                self.reopened = frozenset(self.held)
            case _:
                pass

    def of(self, hit: Hit) -> Memory | None:
        """The memory held that a hit is: by its id, else by its words."""
        alike = (memory for memory in self.held.values() if memory.text == hit.text)
        return self.held.get(hit.id) or next(alike, None)

    def knows(self, id: str) -> bool:
        """Whether a memory of this id was ever planted."""
        return id in self.held or id in self.forgotten

    def is_older(self, one: Memory, other: Memory) -> bool:
        """By event time where both have one and these differ, else by planting."""
        if one.at and other.at and one.at != other.at:
            return one.at < other.at
        order = list(self.held)
        return order.index(one.id) < order.index(other.id)

    def copy(self) -> History:
        """As it is now, whatever follows."""
        return replace(
            self, held=dict(self.held), forgotten=dict(self.forgotten), replaced=dict(self.replaced)
        )

    def placed(self, memory: Memory) -> Memory:
        """With the session that it is planted in."""
        return memory if memory.session or not self.session else replace(memory, session=self.session)

    def _forget(self, ids: Iterable[str]) -> None:
        self.forgotten |= {id: self.held.pop(id) for id in ids if id in self.held}
