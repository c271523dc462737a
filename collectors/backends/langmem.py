"""langmem's tools over langgraph's store in memory, called as an agent calls them: manage and search.

The tools choose their own ids, carry no metadata, and tell apart by namespace alone: (namespace, user,
domain, session), where "~" stands for none. A question is asked of the prefix that it names; one with a
session and no domain of each namespace that the store lists for the session.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, NamedTuple

from collectors.backend import Backend, BackendConfig, Hit, Recall, Usage
from collectors.backends.base import (
    faulty,
    refuse_foreign,
    refuse_options,
    require_leg,
    unknown_memory,
    well_formed,
)
from collectors.backends.handed import handed_in
from collectors.backends.langgraph import (
    ALL_ROWS,
    Place,
    best,
    explained,
    installed,
    label,
    scored,
    vendors_own,
)
from collectors.suite import Memory, Scope

LEVELS = ("namespace", "user", "domain", "session")


class _Kept(NamedTuple):
    """A planted memory as the vendor knows it: where it lies, under which id."""

    place: Place
    key: str


class LangMem(Backend):
    """Which of the vendor's ids is which memory is known to this handle alone: the tools do not tell."""

    legs = ()

    def __init__(self, config: BackendConfig) -> None:
        refuse_options(config)
        if config.directory is not None:
            raise faulty(config, "langmem keeps nothing in a directory here")
        embedder = handed_in(config)
        self._made_by = embedder.versions
        declared = {"amend", "forget", "forget_user", "count", "ids"}
        self.capabilities = frozenset(declared | ({"deterministic"} if embedder.deterministic else set()))
        self._kept: defaultdict[str, dict[tuple[str, str], _Kept]] = defaultdict(dict)
        with vendors_own(config, "langmem==0.0.30"):
            from langgraph.store.memory import InMemoryStore
            from langmem import create_manage_memory_tool, create_search_memory_tool

            self._store = InMemoryStore(index={"dims": embedder.dimensions, "embed": embedder.embed})
            # Filled in from the configuration of each call, as an agent's are.
            levels = tuple(f"{{{level}}}" for level in LEVELS)
            self._manage = create_manage_memory_tool(namespace=levels, store=self._store)
            self._search = [
                create_search_memory_tool(namespace=levels[: depth + 1], store=self._store)
                for depth in range(len(levels))
            ]

    @classmethod
    def is_local(cls, config: BackendConfig) -> bool:
        return True

    def reset(self, scope: Scope) -> None:
        refuse_foreign(scope.namespace)
        self._delete(scope.namespace, list(self._kept[scope.namespace]))

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        for memory in memories:
            place = _place(scope, memory.domain, memory.session or scope.session)
            said = self._managed(place, action="create", content=well_formed(memory.text))
            # "created memory 4f0c...": no other way to learn the id.
            kept = _Kept(place, said.rpartition(" ")[2])
            self._kept[scope.namespace][scope.user, memory.id] = kept
        return Usage()

    def settle(self, scope: Scope) -> None:
        """Nothing to wait for: what one call wrote the next one reads."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        found = [self._searched(place, well_formed(query), k) for place in self._asked(scope)]
        planted = {kept.key: id for (_, id), kept in self._kept[scope.namespace].items()}
        return Recall(tuple(_hit(item, planted) for item in best(found, k)))

    def amend(self, scope: Scope, id: str, text: str) -> None:
        """Of an id that is not there the vendor would make a memory, and call it updated."""
        kept = self._kept[scope.namespace].get((scope.user, id))
        if kept is None:
            raise unknown_memory(scope, id)
        self._managed(kept.place, action="update", id=kept.key, content=well_formed(text))

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self._delete(scope.namespace, [(scope.user, id) for id in ids])

    def forget_user(self, scope: Scope) -> None:
        theirs = [name for name in self._kept[scope.namespace] if name[0] == scope.user]
        self._delete(scope.namespace, theirs)

    def count(self, scope: Scope) -> Mapping[str, int]:
        return {"memories": len(self._searched((label(scope.namespace),), "", ALL_ROWS))}

    def versions(self) -> Mapping[str, str]:
        return {
            "langmem": version("langmem"),
            **installed("langgraph", "langgraph-checkpoint", "numpy"),
            "store": "memory",
            "distance": "cosine",
            "embedded": "$",  # the whole value, `{"content": ...}`, which is the default of the vendor's
            **self._made_by,
        }

    # The tools

    def _managed(self, place: Place, **arguments: str) -> str:
        with explained("manage_memory"):
            said: str = self._manage.invoke(arguments, config=_at(place))
        return said

    def _searched(self, place: Place, query: str, k: int) -> list[Any]:
        with explained("search_memory"):
            said = self._search[len(place) - 1].invoke({"query": query, "limit": k}, config=_at(place))
        return [SimpleNamespace(**item) for item in json.loads(said)]

    def _asked(self, scope: Scope) -> list[Place]:
        user = (label(scope.namespace), label(scope.user))
        if scope.domains:
            within = () if scope.session is None else (label(scope.session),)
            return [(*user, label(domain), *within) for domain in scope.domains]
        if scope.session is None:
            return [user]
        # Only the store can tell which domains there are. It takes a `*` in what it is asked for anything.
        session = label(scope.session)
        listed = self._store.list_namespaces(prefix=user, suffix=(session,), limit=ALL_ROWS)
        return [place for place in listed if (*place[:2], place[-1]) == (*user, session)]

    def _delete(self, namespace: str, names: Sequence[tuple[str, str]]) -> None:
        for name in names:
            if kept := self._kept[namespace].get(name):
                self._managed(kept.place, action="delete", id=kept.key)
                del self._kept[namespace][name]


def _place(scope: Scope, domain: str | None, session: str | None) -> Place:
    return label(scope.namespace), label(scope.user), label(domain or ""), label(session or "")


def _at(place: Place) -> dict[str, dict[str, str]]:
    return {"configurable": dict(zip(LEVELS, place, strict=False))}


def _hit(item: Any, planted: Mapping[str, str]) -> Hit:
    return Hit(planted.get(item.key, item.key), item.value["content"], scored(item.score))
