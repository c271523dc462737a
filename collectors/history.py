"""What a backend ought to hold at one moment of a scenario."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from collectors.suite import Amend, Forget, ForgetUser, Memory, Plant, Session, Step


@dataclass(slots=True)
class History:
    """Everything planted, amended and forgotten so far, by memory id, in planting order."""

    held: dict[str, Memory] = field(default_factory=dict)
    forgotten: dict[str, Memory] = field(default_factory=dict)
    replaced: dict[str, Memory] = field(default_factory=dict)
    """Memories as they read before their text was amended."""
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
            case _:
                pass

    def placed(self, memory: Memory) -> Memory:
        """With the session that it is planted in."""
        return memory if memory.session or not self.session else replace(memory, session=self.session)

    def _forget(self, ids: Iterable[str]) -> None:
        self.forgotten |= {id: self.held.pop(id) for id in ids if id in self.held}
