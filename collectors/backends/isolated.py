"""Any backend in an environment of its own: the verbs of its adapter, spoken over a pipe to a worker.

The worker holds the store; this holds the worker. When it ends by itself the handle is gone, and whoever
holds it needs another one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from pydantic import SecretStr

from collectors import envs
from collectors.backend import (
    NAMESPACE_PREFIX,
    Backend,
    BackendConfig,
    BackendError,
    BackendGone,
    Isolation,
    Recall,
    Usage,
    undeclared,
)
from collectors.backends import worker
from collectors.backends.handed import SERVED
from collectors.packages import project
from collectors.suite import Memory, Scope
from collectors.timing import took
from collectors.wire import PROTOCOL, from_memory, from_scope, receive, send, to_recall

CLOSING_S = 2 * worker.CLOSING_S
JOURNAL = 16 * 1024
"""Characters kept of the beginning of what a worker prints, and as many of its end."""
LOCK = ".memtrend-lock"
QUIET = {"DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}


class Isolated(Backend):
    """What a worker's backend declares, it declares; but for `concurrent`, since a pipe is asked one thing
    after the other. Latencies are the worker's."""

    def __init__(self, config: BackendConfig, isolation: Isolation) -> None:
        self._config, self._isolation = config, isolation
        self._asked, self._asking = 0, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._held = ExitStack()
        self._printed = _Printed()
        self._refused: dict[str, None] = {}
        try:
            self._start()
            told = self._call("open", self._hello())
        except BaseException:
            self.abandon()
            raise
        self.capabilities = frozenset(told["capabilities"]) - {"concurrent"}
        self.legs = tuple(told["legs"])

    # The verbs

    def reset(self, scope: Scope) -> None:
        self._call("reset", {"scope": from_scope(scope)})

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        told = [from_memory(memory) for memory in memories]
        return Usage(**self._call("remember", {"scope": from_scope(scope), "memories": told}))

    def settle(self, scope: Scope) -> None:
        self._call("settle", {"scope": from_scope(scope)})

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        given = {"scope": from_scope(scope), "query": query, "k": k, "leg": leg}
        return to_recall(self._call("recall", given))

    def amend(self, scope: Scope, id: str, text: str) -> None:
        self._declared("amend", {"scope": from_scope(scope), "id": id, "text": text})

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self._declared("forget", {"scope": from_scope(scope), "ids": list(ids)})

    def forget_user(self, scope: Scope) -> None:
        self._declared("forget_user", {"scope": from_scope(scope)})

    def count(self, scope: Scope) -> Mapping[str, int]:
        counted: Mapping[str, int] = self._declared("count", {"scope": from_scope(scope)})
        return counted

    def say(self, scope: Scope, turn: str) -> Recall:
        return to_recall(self._declared("say", {"scope": from_scope(scope), "turn": turn}))

    def versions(self) -> Mapping[str, str]:
        told: Mapping[str, str] = self._call("versions", {})
        return told

    def environment(self) -> Mapping[str, Any]:
        """Of the worker."""
        packages = [self._isolation.package, *self._isolation.extra]
        names = sorted({*map(project, packages), *self.versions()})
        told: Mapping[str, Any] = self._call("environment", {"names": names})
        return told

    def journal(self) -> str:
        refused = [f"refused: {', '.join(self._refused)}"] if self._refused else []
        return "\n".join([*refused, *filter(None, [self._printed.text()])])

    def close(self) -> None:
        """Let the store be closed, then the worker ends; it is killed where it does not."""
        if self._ended:
            return
        try:
            self._call("close", {})
        finally:
            self._end(CLOSING_S)

    def abandon(self) -> None:
        self._end(0.0)

    # The worker

    def _start(self) -> None:
        env, lock = self._held.enter_context(envs.using(self._isolation))
        scratch = self._held.enter_context(_Scratch())
        self._scratch = scratch.path
        command = [str(env.executable), "-I", "-X", "utf8", worker.__file__]
        self._process = process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._surroundings(),
            cwd=self._scratch,
            start_new_session=True,  # what it starts can be ended with it, and Ctrl-C is for the collector
            pass_fds=[lock.fileno(), scratch.lock.fileno()],
        )
        self._printed.read(_pipe(process.stderr))

    def _surroundings(self) -> dict[str, str]:
        """A home of its own, so that nothing is left in the user's; models that were fetched stay known."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().startswith(("MEMTREND_", "PYTHON", "VIRTUAL_ENV"))
        }
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        scratch = str(self._scratch)
        return {**kept, **QUIET, "HOME": scratch, "TMPDIR": scratch, "XDG_CACHE_HOME": cache}

    def _hello(self) -> dict[str, Any]:
        from collectors.embedding_server import EmbeddingServer

        server = EmbeddingServer(self._config.embedder)
        self._held.callback(server.close)
        directory = self._config.directory
        return {
            "protocol": PROTOCOL,
            "name": self._config.name,
            "type": self._config.type,
            "options": _revealed(self._config.options),
            "embedder": {SERVED: {"url": server.url, "token": server.token}},
            "directory": str(directory) if directory else None,
            "scratch": str(self._scratch),
            "path": _beside(self._config.type),
        }

    def _declared(self, verb: str, given: Mapping[str, Any]) -> Any:
        if verb not in self.capabilities:
            raise undeclared(self, verb)
        return self._call(verb, given)

    def _call(self, verb: str, given: Mapping[str, Any]) -> Any:
        """Raises `BackendError` as the adapter did, `BackendGone` when the worker is not there to answer."""
        with self._asking:
            self._asked += 1
            answer = self._exchanged({"id": self._asked, "call": verb, "given": given})
        if answer is None or answer["id"] != self._asked:
            raise self._gone()
        self._refused |= dict.fromkeys(answer.get("refused", ()))
        if "error" in answer:
            raise BackendError(answer["error"], permanent=answer["permanent"])
        took(answer["ms"])
        return answer["value"]

    def _exchanged(self, question: Mapping[str, Any]) -> dict[str, Any] | None:
        process = self._process
        if process is None or self._ended:
            raise BackendGone(f"the worker of {self._isolation.package} was closed")
        with suppress(OSError, ValueError):  # a pipe that broke, or was closed by `abandon` meanwhile
            send(_pipe(process.stdin), question)
            return receive(_pipe(process.stdout))
        return None

    def _gone(self) -> BackendGone:
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        ending = _ending(self._process.poll())
        said = self._printed.last_line()
        return BackendGone(
            f"the worker of {self._isolation.package} {ending}" + (f": {said}" if said else "")
        )

    def _end(self, grace_s: float) -> None:
        self._ended = True
        if self._process:
            _end(self._process, grace_s)
            self._printed.finish()
        self._held.close()


def _end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """Its pipe ends, so it will, by itself or not, and all that it started with it."""
    with suppress(OSError):
        _pipe(process.stdin).close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace_s)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _pipe(process.stdout).close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _ending(code: int | None) -> str:
    if code is None:
        return "answered out of turn"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _beside(type: str) -> list[str]:
    """Where a class of the user's own is found: it may lie beside the configuration."""
    found = find_spec(type.partition(":")[0]) if ":" in type else None
    levels = type.partition(":")[0].count(".")
    return [str(Path(found.origin).parents[levels])] if found and found.origin else []


def _revealed(value: Any) -> Any:
    """With secrets in the clear: they go to the adapter over a pipe, and nowhere else."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return {name: _revealed(inner) for name, inner in value.items()}
    return [_revealed(inner) for inner in value] if isinstance(value, list | tuple) else value


class _Scratch:
    """A folder for what a worker leaves lying about. The worker removes it too, should this process be
    killed; what both had to leave behind goes when the next one is made. `lock` is held as long as one of
    them lives: a process id would say nothing to another container."""

    PREFIX = f"{NAMESPACE_PREFIX}worker-"

    def __enter__(self) -> _Scratch:
        for left in Path(tempfile.gettempdir()).glob(f"{self.PREFIX}*"):
            _sweep(left)
        self.path = Path(tempfile.mkdtemp(prefix=self.PREFIX))
        self.lock = (self.path / LOCK).open("w")
        fcntl.flock(self.lock, fcntl.LOCK_SH)
        return self

    def __exit__(self, *raised: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.close()


def _sweep(left: Path) -> None:
    """One without a lock is just being made, or not ours to judge."""
    with suppress(OSError), (left / LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(left, ignore_errors=True)


class _Printed:
    """What a worker prints: its beginning and its end, as it comes."""

    def __init__(self) -> None:
        self._head, self._tail, self._size = "", deque[str](), 0
        self._reader: threading.Thread | None = None

    def read(self, pipe: IO[bytes]) -> None:
        self._reader = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._reader.start()

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while part := os.read(pipe.fileno(), 65536):
                self._add(part.decode("utf-8", "replace"))

    def _add(self, text: str) -> None:
        room = JOURNAL - len(self._head)
        self._head += text[:room]
        if text[room:]:
            self._tail.append(text[room:])
            self._size += len(text[room:])
        while self._tail and self._size - len(self._tail[0]) >= JOURNAL:
            self._size -= len(self._tail.popleft())

    def finish(self) -> None:
        if self._reader:
            self._reader.join(1.0)

    def text(self) -> str:
        tail = "".join(list(self._tail))
        return self._head + (f"\n[...]\n{tail[-JOURNAL:]}" if len(tail) > JOURNAL else tail)

    def last_line(self) -> str:
        return next((line.strip() for line in reversed(self.text().splitlines()) if line.strip()), "")
