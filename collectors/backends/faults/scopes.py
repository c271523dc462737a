"""What belongs to one user, domain, session or namespace is seen from another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from collectors.backend import Backend, Hit, Recall, Usage
from collectors.backends.base import described
from collectors.backends.faults.legs import LegFault
from collectors.backends.faults.wrapper import Wrapper, merged, narrowed, words
from collectors.suite import Memory, Scope


class IgnoresUser(Wrapper):
    """All users live in one box, whoever asks; only forgetting a user still knows whose is whose."""

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        usage = self.inner.remember(_common(scope), memories)
        self.held[scope.namespace] |= {memory.id: replace(memory, user=scope.user) for memory in memories}
        return usage

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        return self.inner.recall(_common(scope), query, k, leg)

    def amend(self, scope: Scope, id: str, text: str) -> None:
        self.inner.amend(_common(scope), id, text)

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self.inner.forget(_common(scope), ids)

    def forget_user(self, scope: Scope) -> None:
        self.inner.forget(_common(scope), [memory.id for memory in self.theirs(scope)])


def _common(scope: Scope) -> Scope:
    return replace(scope, user="everyone")


class IgnoresDomain(Wrapper):
    """The filter on domains is not passed on."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        return self.inner.recall(replace(scope, domains=()), query, k, leg)


class SessionBleeds(Wrapper):
    """What was said in an old session answers in the new one."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        return self.inner.recall(replace(scope, session=None), query, k, leg)


class FilterOnOnePath(LegFault):
    """Of two read paths only one filters by user: of two legs, or else of two searches whose answers are
    merged."""

    leg = "vector"

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        if self.legs:
            return super().recall(scope, query, k, leg)
        return merged([self.inner.recall(scope, query, k), self._everyones(scope, query, k, None)], k)

    def _ask_broken(self, scope: Scope, query: str, k: int) -> Recall:
        return self._everyones(scope, query, k, self.broken)

    def _everyones(self, scope: Scope, query: str, k: int, leg: str | None) -> Recall:
        users = {memory.user for memory in self.held[scope.namespace].values()} | {scope.user}
        scopes = [replace(scope, user=user) for user in sorted(users)]
        return merged([self.inner.recall(one, query, k, leg) for one in scopes], k)


class PrefixMatch(Wrapper):
    """`ana` also sees `ana-lucia`: users, domains and sessions are matched by how they begin."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        held = self.held[scope.namespace].values()
        domains = {m.domain for m in held if m.domain and m.domain.startswith(scope.domains)}
        wide = replace(scope, domains=tuple(sorted(domains | set(scope.domains)))) if scope.domains else scope
        places = {(m.user, m.session) for m in held if m.user.startswith(scope.user)}
        users = {user for user, _ in places} | {scope.user}
        scopes = [replace(wide, user=user) for user in sorted(users)]
        if scope.session is not None:
            found = {place for place in places if (place[1] or "").startswith(scope.session)}
            scopes = [replace(wide, user=user, session=session) for user, session in sorted(found, key=str)]
        return merged([self.inner.recall(one, query, k, leg) for one in scopes], k)


class NarrowSearchFindsNothing(Wrapper):
    """Rows exist, but a search within a domain or a session returns none of them."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        if scope.domains or scope.session is not None:
            return Recall(())
        return self.inner.recall(scope, query, k, leg)


class OtherNamespace(Wrapper):
    """The first hit is a memory of another namespace, with its id there: the one most like the question."""

    kept = 200

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.elsewhere: dict[str, list[Hit]] = {}

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        hits = [Hit(memory.id, memory.text, None, described(scope, memory)) for memory in memories]
        self.elsewhere.setdefault(scope.namespace, []).extend(hits)
        return super().remember(scope, memories)

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        answer = self.inner.recall(scope, query, k, leg)
        here = self.held[scope.namespace]
        others = [
            hit
            for namespace, hits in self.elsewhere.items()
            if namespace != scope.namespace
            for hit in hits[-self.kept :]
            if hit.id not in here
        ]
        if not others:
            return answer
        stray = max(others, key=lambda hit: len(words(hit.text) & words(query)))
        return narrowed(answer, (stray, *answer.hits)[: max(k, 0)])
