"""Forgetting and changing do too little, or too much."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.backend import Usage
from collectors.backends.faults.stored import Doubled
from collectors.backends.faults.wrapper import Wrapper, words
from collectors.suite import Memory, Scope


class ForgetIsNoOp(Wrapper):
    """Says yes, and keeps everything."""

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        return

    def forget_user(self, scope: Scope) -> None:
        return


class ForgetWipesOthers(Wrapper):
    """Forgetting one user empties the namespace of all of them."""

    def forget_user(self, scope: Scope) -> None:
        self.reset(Scope(scope.namespace))


class ForgetTakesRelated(Wrapper):
    """What resembles a forgotten memory goes with it."""

    related = 3

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        held = self.held[scope.namespace]
        texts = [held[id].text for id in ids if id in held]
        near = [self.inner.recall(scope, text, self.related + 1).hits for text in texts]
        self.inner.forget(scope, [*ids, *(hit.id for hits in near for hit in hits)])


class AmendDropsMetadata(Wrapper):
    """An amended memory is written anew with nothing but its text."""

    def amend(self, scope: Scope, id: str, text: str) -> None:
        if "forget" in self.capabilities:
            self.inner.forget(scope, [id])
        self.inner.remember(Scope(scope.namespace, scope.user), [Memory(id, text, user=scope.user)])


class SupersededBeside(Doubled):
    """Amending adds the new text and keeps the old one beside it, under the same id."""

    def amend(self, scope: Scope, id: str, text: str) -> None:
        self.inner.amend(scope, id, text)
        old = self.held[scope.namespace].get(id)
        if old:
            self.plant_again(scope, [old])


class ContradictionDeletesBoth(Wrapper):
    """A fact that seems to contradict an older one goes, and the older one too."""

    overlap = 0.4

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        usage = Usage()
        for memory in memories:
            rivals = [old.id for old in self.theirs(scope) if self._contradict(old.text, memory.text)]
            usage += super().remember(scope, [memory])
            if rivals:
                self._drop(scope, [memory.id, *rivals])
        return usage

    def amend(self, scope: Scope, id: str, text: str) -> None:
        self._drop(scope, [id])

    def _contradict(self, old: str, new: str) -> bool:
        ours, theirs = words(old), words(new)
        return len(ours & theirs) > self.overlap * min(len(ours), len(theirs)) > 0

    def _drop(self, scope: Scope, ids: Sequence[str]) -> None:
        self.inner.forget(scope, ids)
        for id in ids:
            self.held[scope.namespace].pop(id, None)


class NewFactRetiresOthers(Wrapper):
    """The last memory of each call retires the one it resembles most among those planted before."""

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        before = {memory.id for memory in self.theirs(scope)}
        usage = super().remember(scope, memories)
        home = Scope(scope.namespace, scope.user)
        near = self.inner.recall(home, memories[-1].text, len(memories) + 1).hits if before else ()
        retired = [hit.id for hit in near if hit.id in before][:1]
        if retired:
            self.inner.forget(home, retired)
            del self.held[scope.namespace][retired[0]]
        return usage
