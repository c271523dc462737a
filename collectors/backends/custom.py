"""A user's own memory, by `type = "package.module:Class"`: the one place where a backend is judged by the
methods it has.

Two shapes: our verbs (`reset`, `remember`, `recall`, and the optional ones), or the smallest harness there
is (`write(text)`, `search(query, k)`, `count()`). What they raise passes through; what they return is brought
into our types, or refused with a sentence.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any

from collectors.backend import (
    CAPABILITIES,
    Backend,
    BackendConfig,
    BackendError,
    Hit,
    Recall,
    Usage,
    undeclared,
)
from collectors.backends.base import (
    ID_KEY,
    described,
    refuse_foreign,
    require_leg,
    unknown_namespace,
    well_formed,
)
from collectors.suite import Memory, Scope, digest

VERBS = ("amend", "forget", "forget_user", "count", "say")


def find(path: str) -> Any:
    """The class or object at "package.module:Name", from what is installed or from the current directory."""
    module_name, _, name = path.partition(":")
    # At the end of the path: a user's own `store` must not take the place of ours.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        module = import_module(module_name)
    except Exception as error:  # a user's module may raise anything while it is imported
        raise BackendError(
            f"cannot import {module_name}: {type(error).__name__}: {error}", permanent=True
        ) from error
    if not hasattr(module, name):
        public = ", ".join(sorted(found for found in vars(module) if not found.startswith("_"))) or "nothing"
        raise BackendError(f"{module_name} has no {name!r}; it has: {public}", permanent=True)
    return getattr(module, name)


def adapt(target: Any, config: BackendConfig) -> Backend:
    """A backend over a user's class, made with the configured options, or over an object as it is."""
    if _has(target, "remember", "recall"):
        _require(target, config, ("reset", "remember", "recall"))
        return Verbs(_made(target, config.type, config.options), config)
    _require(target, config, ("write", "search"))
    return Harness(target, config)


class Verbs(Backend):
    """A class with our verbs. `settle`, `close`, `capabilities` and `legs` may be missing: without
    `capabilities` it declares the optional verbs that it has, and its legs."""

    def __init__(self, target: Any, config: BackendConfig) -> None:
        self._target, self._name = target, config.type
        self.legs = tuple(getattr(target, "legs", ()))
        found = {verb for verb in VERBS if _has(target, verb)} | ({"legs"} if self.legs else set())
        self.capabilities = _capabilities(target, config.type, found)
        for verb in self.capabilities.intersection(VERBS) - found:
            raise BackendError(f"{config.type} declares {verb!r} and has no method {verb}", permanent=True)

    def reset(self, scope: Scope) -> None:
        refuse_foreign(scope.namespace)
        self._target.reset(scope)

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        usage = self._target.remember(scope, memories)
        if usage is not None and not isinstance(usage, Usage):
            raise _wrong(self._name, "remember", usage, "None or Usage")
        return usage or Usage()

    def settle(self, scope: Scope) -> None:
        if _has(self._target, "settle"):
            self._target.settle(scope)

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        asked = {} if leg is None else {"leg": leg}
        return _recall(self._name, "recall", self._target.recall(scope, query, k, **asked))

    def close(self) -> None:
        if _has(self._target, "close"):
            self._target.close()

    def amend(self, scope: Scope, id: str, text: str) -> None:
        self._declared("amend")(scope, id, text)

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self._declared("forget")(scope, ids)

    def forget_user(self, scope: Scope) -> None:
        self._declared("forget_user")(scope)

    def count(self, scope: Scope) -> Mapping[str, int]:
        return _counts(self._name, self._declared("count")(scope), self.legs)

    def say(self, scope: Scope, turn: str) -> Recall:
        return _recall(self._name, "say", self._declared("say")(scope, turn))

    def versions(self) -> Mapping[str, str]:
        return dict(self._target.versions()) if _has(self._target, "versions") else {}

    def _declared(self, verb: str) -> Callable[..., Any]:
        if verb not in self.capabilities:
            raise undeclared(self._target, verb)
        method: Callable[..., Any] = getattr(self._target, verb)
        return method


class Harness(Backend):
    """A class with `write` and `search`, an instance of it for each namespace, opened when it is needed and
    closed when the namespace is dropped. Keywords that it names among
    its parameters are given: of a memory to `write`, of the scope to `search`, `namespace` to the class."""

    def __init__(self, target: Any, config: BackendConfig) -> None:
        self._target, self._name, self._options = target, config.type, config.options
        self._boxes: dict[str, Any] = {}
        self._dropped: set[str] = set()
        found = {"count"} if _has(target, "count") else set()
        self.capabilities = _capabilities(target, config.type, found) | found

    def reset(self, scope: Scope) -> None:
        refuse_foreign(scope.namespace)
        box = self._boxes.pop(scope.namespace, None)
        if box is None:
            self._dropped.discard(scope.namespace)
            self._boxes[scope.namespace] = self._emptied(scope.namespace)
        else:  # most scenarios end here: what none asks for again is not kept open
            self._dropped.add(scope.namespace)
            self._drop(box)

    def _drop(self, box: Any) -> None:
        try:
            _empty(box)
        finally:
            self._close(box)

    def _emptied(self, namespace: str) -> Any:
        box = self._open(namespace)
        _empty(box)
        if "count" in self.capabilities and (held := sum(self._counted(box).values())):
            self._close(box)
            raise BackendError(
                f"{self._name} holds {held} memories in a fresh namespace: give it a reset() that empties it",
                permanent=True,
            )
        return box

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        box = self._box(scope)
        for memory in memories:
            box.write(memory.text, **_accepted(box.write, _planted(scope, memory)))
        return Usage()

    def settle(self, scope: Scope) -> None:
        box = self._box(scope)
        if _has(box, "settle"):
            box.settle()

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        box = self._box(scope)
        about = {
            "user": scope.user,
            "user_id": scope.user,
            "domains": scope.domains,
            "session": scope.session,
        }
        return _recall(self._name, "search", box.search(query, k, **_accepted(box.search, about)))

    def count(self, scope: Scope) -> Mapping[str, int]:
        if "count" not in self.capabilities:
            raise undeclared(self._target, "count")
        return self._counted(self._box(scope))

    def _counted(self, box: Any) -> Mapping[str, int]:
        return _counts(self._name, box.count(), self.legs)

    def close(self) -> None:
        while self._boxes:
            self._close(self._boxes.popitem()[1])

    def _box(self, scope: Scope) -> Any:
        namespace = scope.namespace
        if namespace in self._dropped:
            self._dropped.remove(namespace)
            self._boxes[namespace] = self._emptied(namespace)
        if namespace not in self._boxes:
            if "durable" not in self.capabilities:
                raise unknown_namespace(namespace)
            self._boxes[namespace] = self._open(namespace)
        return self._boxes[namespace]

    def _open(self, namespace: str) -> Any:
        named = _accepted(self._target, {"namespace": namespace}) if isinstance(self._target, type) else {}
        return _made(self._target, self._name, {**self._options, **named})

    def _close(self, box: Any) -> None:
        if box is not None and _has(box, "close"):
            box.close()


def _empty(box: Any) -> None:
    """By its own `reset` or `clear`, where it has one."""
    for emptying in ("reset", "clear"):
        if _has(box, emptying):
            getattr(box, emptying)()
            break


def _has(target: Any, *methods: str) -> bool:
    return all(callable(getattr(target, method, None)) for method in methods)


def _require(target: Any, config: BackendConfig, methods: Iterable[str]) -> None:
    missing = [method for method in methods if not _has(target, method)]
    if missing:
        public = [name for name in dir(target) if not name.startswith("_") and _has(target, name)]
        raise BackendError(
            f"{config.type} has no {' and no '.join(missing)}; its methods: {', '.join(public) or 'none'}. "
            "Wanted: reset, remember and recall, or write and search (docs/backends.md, 'Your own')",
            permanent=True,
        )


def _made(target: Any, name: str, options: Mapping[str, Any]) -> Any:
    if not isinstance(target, type):
        if options:
            raise BackendError(f"{name} is an object, not a class: it can take no options", permanent=True)
        return target
    try:
        return target(**options)
    except TypeError as error:
        given = ", ".join(options) or "none"
        raise BackendError(f"{name} cannot be made with options {given}: {error}", permanent=True) from error


def _capabilities(target: Any, name: str, found: set[str]) -> frozenset[str]:
    """What the class itself declares, else what was found."""
    declared = frozenset(getattr(target, "capabilities", found))
    if unknown := declared - CAPABILITIES:
        known = ", ".join(sorted(CAPABILITIES))
        raise BackendError(f"{name} declares {', '.join(sorted(unknown))}; known: {known}", permanent=True)
    return declared


def _planted(scope: Scope, memory: Memory) -> dict[str, Any]:
    """All that `write` can be given of a memory beside its text."""
    metadata = {**described(scope, memory), ID_KEY: memory.id}
    fields = {name: getattr(memory, name) for name in ("id", "role", "at", "domain")}
    session = memory.session or scope.session
    return {**fields, "session": session, "user": scope.user, "user_id": scope.user, "metadata": metadata}


def _accepted(function: Callable[..., Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Those that the function names. `**anything` does not count: it may hand them on to one that cannot."""
    named = {
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    return {name: value for name, value in keywords.items() if name in named}


def _recall(name: str, verb: str, answer: Any) -> Recall:
    if isinstance(answer, Recall):
        return answer
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise _wrong(name, verb, answer, "a list of hits")
    return Recall(tuple(_hit(name, verb, entry) for entry in answer))


def _hit(name: str, verb: str, entry: Any) -> Hit:
    """A hit from a `Hit`, a mapping, (id, text, score), (text, score), (id, text) or a plain text."""
    match entry:
        case Hit():
            return entry
        case Mapping() if isinstance(entry.get("text"), str) and isinstance(entry.get("score"), Real | None):
            return _of_mapping(entry)
        case str(text):
            return _of(None, text, None)
        case (id, str(text), Real() | None as score):
            return _of(id, text, score)
        case (str(text), Real() | None as score):
            return _of(None, text, score)
        case (id, str(text)):
            return _of(id, text, None)
    wanted = 'a text, (text, score), (id, text, score) or {"id", "text", "score"}'
    raise _wrong(name, verb, entry, wanted, "a hit of ")


def _of_mapping(entry: Mapping[str, Any]) -> Hit:
    """Keys that are not ours count as metadata."""
    ours = ("id", "text", "score", "metadata")
    metadata = {**(entry.get("metadata") or {}), **{key: entry[key] for key in entry if key not in ours}}
    return _of(metadata.get(ID_KEY, entry.get("id")), entry["text"], entry.get("score"), metadata)


def _of(id: Any, text: str, score: Any, metadata: Mapping[str, Any] | None = None) -> Hit:
    """A hit without an id gets one of its text, so that equal texts are one memory."""
    text = well_formed(text)
    return Hit(
        digest(text) if id is None else str(id), text, None if score is None else float(score), metadata or {}
    )


def _counts(name: str, counted: Any, legs: tuple[str, ...]) -> Mapping[str, int]:
    if isinstance(counted, int) and not isinstance(counted, bool):
        return {legs[0] if len(legs) == 1 else "memories": counted}
    if isinstance(counted, Mapping) and all(isinstance(number, int) for number in counted.values()):
        return {str(index): number for index, number in counted.items()}
    raise _wrong(name, "count", counted, 'a number, or numbers by index: {"keyword": 3, "vector": 3}')


def _wrong(name: str, verb: str, value: object, wanted: str, what: str = "") -> BackendError:
    found = f"{type(value).__name__} {value!r:.80}"
    return BackendError(
        f"{what + ' ' if what else ''}{name}.{verb} is {found}; wanted: {wanted}", permanent=True
    )
