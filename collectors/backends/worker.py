"""A backend in an environment of its own: the verbs of its adapter, asked over a pipe.

Runs as a script under the Python of that environment, which holds nothing of memtrend's: stdlib only, as are
the modules of ours that it imports. Ends with its pipe; its leash sees to it, whatever the adapter does then.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import IO, Any

if __name__ == "__main__":
    # The package by its place alone: on the path its folder would bring neighbours along.
    package = ModuleType("collectors")
    package.__path__ = [str(Path(__file__).parents[1])]
    sys.modules["collectors"] = package

from collectors.backend import (
    PROGRAMMING_ERRORS,
    Backend,
    BackendConfig,
    BackendError,
    is_local,
    open_backend,
)
from collectors.backends.fence import Fence
from collectors.packages import environment
from collectors.timing import Timed, timed
from collectors.wire import PROTOCOL, encoded, from_recall, from_usage, receive, send, to_memory, to_scope

CLOSING_S = 3.0
"""How long a worker without a collector may take to close its store."""


def main() -> None:
    questions, answers = _own_pipes()
    first = receive(questions) or sys.exit()
    worker = _Worker(first["given"], answers)
    worker.answer(first["id"], worker.open)
    while question := receive(questions):
        worker.answer(question["id"], lambda: worker.made(question["call"], question["given"]))
    worker.leave()


def _own_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Stdin and stdout for the protocol alone: what else reads finds nothing, what else prints goes to
    stderr, be it C."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return questions, answers


class _Worker:
    def __init__(self, hello: Mapping[str, Any], answers: IO[bytes]) -> None:
        self._hello, self._answers, self._fence = hello, answers, Fence()
        self._backend: Backend | None = None

    def answer(self, id: int, call: Callable[[], Timed]) -> None:
        """One answer for one question, whatever the adapter raises or returns."""
        try:
            value, ms = call()
            said = encoded({"id": id, "value": value, "ms": ms, "refused": self._fence.read()})
        except BaseException as error:  # noqa: BLE001  an SDK that calls sys.exit() must not end the run
            traceback.print_exc()
            said = encoded({"id": id, **_told(error), "refused": self._fence.read()})
        send(self._answers, said)

    def open(self) -> Timed:
        hello = self._hello
        if hello["protocol"] != PROTOCOL:
            raise BackendError(
                f"protocol {hello['protocol']} asked of a worker of {PROTOCOL}", permanent=True
            )
        sys.path += hello["path"]
        directory = hello["directory"] and Path(hello["directory"])
        config = BackendConfig(hello["name"], hello["type"], hello["options"], hello["embedder"], directory)
        if is_local(config):
            self._fence.close()
        opened = timed(lambda: open_backend(config))
        self._backend = backend = opened.value
        told = {
            "protocol": PROTOCOL,
            "capabilities": sorted(backend.capabilities),
            "legs": list(backend.legs),
        }
        return Timed(told, opened.ms)

    def made(self, call: str, given: Mapping[str, Any]) -> Timed:
        assert self._backend is not None
        arguments = {name: _READ.get(name, _as_it_is)(value) for name, value in given.items()}
        if call == "environment":
            return timed(lambda: environment(arguments["names"], self._hello["type"]))
        if call == "close":
            backend, self._backend = self._backend, None
            return timed(backend.close)
        verb = getattr(self._backend, call)
        made = timed(lambda: verb(**arguments))
        return made._replace(value=_TOLD.get(call, _as_it_is)(made.value))

    def leave(self) -> None:
        """The store is closed, unless that takes too long; and without the endings that an SDK hangs on the
        interpreter, which may print, or hang."""
        if self._backend is not None:
            closing = threading.Thread(target=self._backend.close, daemon=True)
            closing.start()
            closing.join(CLOSING_S)
        sys.stderr.flush()
        os._exit(0)


def _as_it_is(value: Any) -> Any:
    return value


_READ: Mapping[str, Callable[[Any], Any]] = {
    "scope": to_scope,
    "memories": lambda told: [to_memory(memory) for memory in told],
    "names": set,
}
_TOLD: Mapping[str, Callable[[Any], Any]] = {
    "remember": from_usage,
    "recall": from_recall,
    "say": from_recall,
    "count": dict,
    "versions": dict,
}


def _told(error: BaseException) -> dict[str, Any]:
    """Our own errors speak for themselves; of others their kind says whether asking again may help."""
    if isinstance(error, BackendError):
        return {"error": str(error), "permanent": error.permanent}
    permanent = isinstance(error, PROGRAMMING_ERRORS) or not isinstance(error, Exception)
    return {"error": f"{type(error).__name__}: {error}", "permanent": permanent}


if __name__ == "__main__":
    # Under the name by which others import it, or its classes would be there twice.
    from collectors.backends import worker

    worker.main()
