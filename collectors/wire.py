"""What the collector and a worker say to each other: one JSON document a line, ASCII, either way.

A question is {"id", "call", "given"}, an answer {"id", "value", "ms"} or {"id", "error", "permanent"}; either
answer may bear "refused", the addresses that were asked for since the last one and not reached. Stdlib only,
and no pickles: a worker runs somebody else's code, and its answers are data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import IO, Any

from collectors.backend import BackendError, Hit, Recall, Usage
from collectors.suite import Memory, Scope

PROTOCOL = 1
"""Told by either side when a worker starts; another number is refused."""
LARGEST = 256 * 2**20
"""Bytes of a message: a collector must not run out of memory over one answer."""


class WireError(Exception):
    """What came over the pipe is no message."""


def encoded(message: Mapping[str, Any]) -> bytes:
    """Lone surrogates travel as escapes, and what JSON has no word for as its text. Raises a permanent
    `BackendError` for what has no text either: keys that are no words, a list that holds itself."""
    try:
        return json.dumps(message, default=_plain).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise BackendError(f"the adapter returned what JSON cannot tell: {error}", permanent=True) from error


def send(pipe: IO[bytes], line: bytes) -> None:
    pipe.write(line)
    pipe.flush()


def receive(pipe: IO[bytes]) -> dict[str, Any] | None:
    """The next message; None at the end of the pipe, which half a message is too. Raises `WireError`."""
    line = pipe.readline(LARGEST)
    if len(line) == LARGEST:
        raise WireError(f"a message of more than {LARGEST >> 20} MiB")
    if not line.endswith(b"\n"):
        return None
    try:
        message = json.loads(line)
    except ValueError as error:
        raise WireError(f"a line that is not JSON: {line[:80]!r}") from error
    if not isinstance(message, dict):
        raise WireError(f"a line that is no message: {line[:80]!r}")
    return message


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    number = getattr(value, "item", None)  # a vendor's scores may be numpy's
    with suppress(Exception):
        return number() if callable(number) else str(value)
    return repr(type(value))


# The words of the protocol as JSON, and back


def from_scope(scope: Scope) -> dict[str, Any]:
    return asdict(scope)


def to_scope(told: Mapping[str, Any]) -> Scope:
    return Scope(told["namespace"], told["user"], tuple(told["domains"]), told["session"])


def from_memory(memory: Memory) -> dict[str, Any]:
    return {**asdict(memory), "metadata": dict(memory.metadata)}


def to_memory(told: Mapping[str, Any]) -> Memory:
    at = told["at"] and datetime.fromisoformat(told["at"])
    return Memory(**{**told, "at": at})


def from_usage(usage: Any) -> dict[str, Any]:
    """Raises a permanent `BackendError` for anything else: an adapter that returns it is broken."""
    if not isinstance(usage, Usage):
        raise _not_a("Usage", usage)
    return asdict(usage)


def from_recall(recall: Any) -> dict[str, Any]:
    """Raises a permanent `BackendError` for anything else: an adapter that returns it is broken."""
    if not isinstance(recall, Recall) or not all(isinstance(hit, Hit) for hit in recall.hits):
        raise _not_a("Recall of Hits", recall)
    hits = [[hit.id, hit.text, hit.score, dict(hit.metadata)] for hit in recall.hits]
    return {"hits": hits, "usage": from_usage(recall.usage), "reply": recall.reply}


def to_recall(told: Mapping[str, Any]) -> Recall:
    return Recall(tuple(Hit(*hit) for hit in told["hits"]), Usage(**told["usage"]), told["reply"])


def _not_a(wanted: str, given: object) -> BackendError:
    return BackendError(f"the adapter returned {type(given).__name__}, not {wanted}", permanent=True)
