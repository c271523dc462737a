"""The floors that no one should be proud to beat: a store that returns nothing, one that returns all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from collectors.backend import Backend, BackendConfig, Recall, Usage
from collectors.backends.base import (
    Row,
    SqliteStore,
    eligible,
    explained,
    refuse_foreign,
    refuse_options,
    require_leg,
    unknown_namespace,
)
from collectors.suite import Memory, Scope


class Nothing(Backend):
    """Takes everything, returns nothing. It declares what an empty answer can be judged by, so that its
    score is that of saying nothing, in every case where that can be scored."""

    capabilities = frozenset({"amend", "forget", "forget_user", "ids", "metadata", "deterministic"})
    legs = ()

    def __init__(self, config: BackendConfig) -> None:
        refuse_options(config)
        self._namespaces: set[str] = set()

    def reset(self, scope: Scope) -> None:
        refuse_foreign(scope.namespace)
        self._namespaces.add(scope.namespace)

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        self.settle(scope)
        return Usage()

    def settle(self, scope: Scope) -> None:
        if scope.namespace not in self._namespaces:
            raise unknown_namespace(scope.namespace)

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        self.settle(scope)
        return Recall(())

    def amend(self, scope: Scope, id: str, text: str) -> None:
        self.settle(scope)

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self.settle(scope)

    def forget_user(self, scope: Scope) -> None:
        self.settle(scope)

    def close(self) -> None:
        self._namespaces.clear()


class Everything(SqliteStore):
    """Every memory within the scope, newest first whatever the query, and all of them whatever k."""

    index = "memories"

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        with explained(self._where):
            box = self._box(scope)
            rows = [] if box is None else self._rows(box)
        among = [row for row in rows if eligible(scope, row)]
        return Recall(tuple(row.hit(None) for row in sorted(among, key=_age)))


def _age(row: Row) -> tuple[float, int]:
    """Sorts the newest first: by event time, a memory without one being oldest, then by planting."""
    at = -datetime.fromisoformat(row.at).timestamp() if row.at else float("inf")
    return (at, -row.seq)
