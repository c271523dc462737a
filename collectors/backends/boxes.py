"""What vector stores share: a box of the vendor's (a collection, a table) for each namespace, and in it a row
for each memory.

The box is memtrend's own: made with the first memory, dropped by `reset`, so that a run leaves none behind,
and marked with the embedder that filled it. What keeps users, sessions and domains apart is the vendor's.
Stdlib only: a worker imports this.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from collectors.backend import Backend, BackendConfig, BackendError, Hit, Recall, Usage, undeclared
from collectors.backends.base import (
    ID_KEY,
    described,
    faulty,
    refuse_foreign,
    refuse_strangers,
    require_leg,
    revealed,
    unknown_memory,
    unknown_options,
    wait_until,
    well_formed,
)
from collectors.backends.handed import handed_in
from collectors.suite import Memory, Scope, digest

MARK = "memtrend"
"""The key under which a box bears its mark."""


class Row(NamedTuple):
    """One memory for the vendor: `key` a UUID, `metadata` as it is to come back, the planted id among it."""

    key: str
    text: str
    vector: list[float]
    metadata: dict[str, Any]

    @property
    def id(self) -> str:
        id: str = self.metadata[ID_KEY]
        return id


class Question(NamedTuple):
    """`vector` is of the text; `leg` None asks as the backend is configured to."""

    scope: Scope
    text: str
    vector: list[float]
    k: int
    leg: str | None


class Box(Protocol):
    """A vendor's collection, as it is asked."""

    mark: str | None
    """Of whoever made it: the embedder's where memtrend did, else None."""

    def strangers(self) -> int:
        """How many rows are not memtrend's."""
        ...

    def put(self, rows: Sequence[Row]) -> None:
        """Add rows, no two of one key; what has the same key is replaced."""
        ...

    def holds(self, key: str) -> bool:
        """Whether it is listed."""
        ...

    def search(self, question: Question) -> list[Hit]: ...

    def edit(self, key: str, text: str, vector: list[float]) -> None:
        """Replace text and vector, and leave the rest to the vendor."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Delete what there is of these, which are some."""
        ...

    def delete_user(self, user: str) -> None: ...

    def count(self) -> Mapping[str, int]: ...


class Boxes(Backend):
    """All verbs, over boxes that a subclass finds, makes and drops.

    `own`: the store was made by memtrend. `exact`: equal calls give equal answers if the embedder's do.
    """

    vendor: ClassVar[str]
    """As errors name it."""
    indexes: tuple[str, ...] = ("memories",)
    """What `count` counts."""

    def __init__(self, config: BackendConfig, *, own: bool, exact: bool) -> None:
        self._embedder = handed_in(config)
        self._mark = digest(dict(self._embedder.versions))
        self._last: dict[str, str] = {}
        self._known: dict[str, Box] = {}
        declared = {
            "forget_user": own,  # somebody else's store may hold the same user's own memories
            "durable": not own or config.directory is not None,
            "deterministic": exact and self._embedder.deterministic,
            "legs": bool(self.legs),
        }
        always = {"amend", "forget", "count", "ids", "metadata"}
        self.capabilities = frozenset(always | {name for name, holds in declared.items() if holds})

    # The boxes, for subclasses.

    @abstractmethod
    def _box(self, namespace: str) -> Box | None:
        """The box of this namespace, if there is one."""

    @abstractmethod
    def _make(self, namespace: str) -> Box:
        """Make it, with `self._mark` on it."""

    @abstractmethod
    def _drop(self, namespace: str) -> None:
        """Unmake it with all that it holds."""

    @abstractmethod
    def _is_permanent(self, error: Exception) -> bool:
        """Whether the vendor would say the same again: faulty values, refused keys."""

    # The verbs.

    def reset(self, scope: Scope) -> None:
        """The box is gone afterwards: one that is not there is an empty one."""
        refuse_foreign(scope.namespace)
        with self._explained("reset"):
            if box := self._box(scope.namespace):
                _refuse_strange(scope.namespace, box)
                self._drop(scope.namespace)
        for remembered in (self._known, self._last):
            remembered.pop(scope.namespace, None)

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        wanted = {memory.id: memory for memory in memories}
        texts = [well_formed(memory.text) for memory in wanted.values()]
        rows = [
            Row(key_of(scope, memory.id), text, vector, {**described(scope, memory), ID_KEY: memory.id})
            for memory, text, vector in zip(wanted.values(), texts, self._embedder.embed(texts), strict=True)
        ]
        if rows:
            with self._explained("remember"):
                (self._found(scope) or self._made(scope)).put(rows)
            self._last[scope.namespace] = rows[-1].key
        return Usage()

    def settle(self, scope: Scope) -> None:
        """Wait until what was written last can be found: at once in a local store, later in some others."""
        last = self._last.get(scope.namespace)
        with self._explained("settle"):
            box = self._found(scope)
            if box and last:
                wait_until(lambda: box.holds(last), "what was written last")

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        text = well_formed(query)
        with self._explained("recall"):
            box = self._found(scope)
            if box is None:
                return Recall(())
            (vector,) = self._embedder.embed([text])
            return Recall(tuple(box.search(Question(scope, text, vector, k, leg))))

    def amend(self, scope: Scope, id: str, text: str) -> None:
        text, key = well_formed(text), key_of(scope, id)
        with self._explained("amend"):
            box = self._found(scope)
            if box is None or not box.holds(key):
                raise unknown_memory(scope, id)
            box.edit(key, text, *self._embedder.embed([text]))

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        keys = [key_of(scope, id) for id in ids]
        with self._explained("forget"):
            box = self._found(scope)
            if box and keys:
                box.delete(keys)
        if self._last.get(scope.namespace) in keys:
            del self._last[scope.namespace]

    def forget_user(self, scope: Scope) -> None:
        if "forget_user" not in self.capabilities:
            raise undeclared(self, "forget_user")
        with self._explained("forget_user"):
            if box := self._found(scope):
                box.delete_user(scope.user)
        self._last.pop(scope.namespace, None)

    def count(self, scope: Scope) -> Mapping[str, int]:
        with self._explained("count"):
            box = self._found(scope)
            return box.count() if box else dict.fromkeys(self.indexes, 0)

    def _found(self, scope: Scope) -> Box | None:
        """The box, where this embedder filled it. Looked up once, as whoever uses the vendor would."""
        box = self._known.get(scope.namespace) or self._box(scope.namespace)
        if box is None:
            return None
        if box.mark != self._mark:
            raise BackendError(
                f"{scope.namespace!r} was filled with another embedder, or not by memtrend: plant it again, "
                "or configure the embedder that filled it",
                permanent=True,
            )
        return self._known.setdefault(scope.namespace, box)

    def _made(self, scope: Scope) -> Box:
        return self._known.setdefault(scope.namespace, self._make(scope.namespace))

    @contextmanager
    def _explained(self, call: str) -> Iterator[None]:
        """What the vendor raises, where asking again is useless. The rest passes."""
        try:
            yield
        except BackendError:
            raise
        except Exception as error:
            if not self._is_permanent(error):
                raise
            raise BackendError(f"{self.vendor} {call}: {error}", permanent=True) from error


def _refuse_strange(namespace: str, box: Box) -> None:
    """Raise for a box, or for rows, that memtrend did not make."""
    if box.mark is None:
        raise BackendError(f"{namespace!r} is left alone: memtrend did not make it", permanent=True)
    refuse_strangers(namespace, box.strangers())


def key_of(scope: Scope, id: str) -> str:
    """A memory's key within its box: the same in every namespace, so that equal runs are equal."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([scope.user, id])))


class OwnDirectory:
    """Where a store of memtrend's own lives: where it was configured to, else a folder that goes with it."""

    def __init__(self, config: BackendConfig) -> None:
        self.path = config.directory or Path(tempfile.mkdtemp(prefix=f"memtrend-{config.type}-"))
        self.path.mkdir(parents=True, exist_ok=True)
        self.close = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        if config.directory:
            self.close.detach()  # called, it then does nothing


def options_of(config: BackendConfig, known: Sequence[str]) -> dict[str, Any]:
    """What was given for the adapter, secrets in the clear, since the vendor needs them."""
    if faults := unknown_options(config, known):
        raise faulty(config, *faults)
    options: dict[str, Any] = revealed({name: value for name, value in config.options.items() if value})
    return options


def refuse_keys(config: BackendConfig, known: frozenset[str]) -> None:
    """Raise where the vendor's configuration holds what cannot be passed on."""
    strange = sorted(config.options.get("config", {}).keys() - known)
    if strange:
        raise faulty(config, f"config takes no {strange[0]!r}; it takes {', '.join(sorted(known))}")


def missing_package(package: str) -> BackendError:
    return BackendError(
        f'{package.partition("==")[0]} is not installed: add package = "{package}" to the backend\'s section',
        permanent=True,
    )
