"""Any backend in an environment of its own: the verbs of its adapter, spoken over a pipe to a worker.

The worker holds the store; this holds the worker. When it ends by itself the handle is gone, and whoever
holds it needs another one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from collectors import envs, leash
from collectors.backend import (
    Backend,
    BackendConfig,
    BackendError,
    BackendGone,
    Isolation,
    Recall,
    Usage,
    is_local,
    undeclared,
)
from collectors.backends import worker
from collectors.backends.base import revealed
from collectors.backends.handed import SERVED
from collectors.leashed import Leashed
from collectors.packages import project
from collectors.scratch import Printed, scratch
from collectors.suite import Memory, Scope
from collectors.timing import took
from collectors.wire import PROTOCOL, WireError, encoded, from_memory, from_scope, receive, send, to_recall

OPENING_S = 120.0
"""How long an adapter may take to open: an SDK's import alone may take many seconds on a busy machine."""
CLOSING_S = worker.CLOSING_S + leash.GRACE_S
FENCED = frozenset("PATH LANG LANGUAGE TZ TERM USER LOGNAME SSL_CERT_FILE SSL_CERT_DIR".split())  # noqa: SIM905
"""With LC_*, OMP_* and the like: all that a worker is told of our environment where it needs this machine
alone."""
QUIET = {"DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}


class Isolated(Backend):
    """What a worker's backend declares, it declares; but for `concurrent`, since a pipe is asked one thing
    after the other. Latencies are the worker's."""

    def __init__(self, config: BackendConfig, isolation: Isolation) -> None:
        self._config, self._isolation = config, isolation
        self._asked, self._asking = 0, threading.Lock()
        self._leashed: Leashed | None = None
        self._over: str | None = None
        self._held = ExitStack()
        self._printed = Printed()
        self._refused: dict[str, None] = {}
        try:
            self._start()
            told = self._opened()
        except BaseException:
            self._end(0.0, "was not opened")
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
        """Of the worker, and the hash of what says which files its packages were installed from."""
        packages = [self._isolation.package, *self._isolation.extra]
        names = sorted({*map(project, packages), *self.versions()})
        told: Mapping[str, Any] = self._call("environment", {"names": names})
        return {**told, "lock": self._lock}

    def journal(self) -> str:
        refused = [f"refused: {', '.join(self._refused)}"] if self._refused else []
        return "\n".join([*refused, *filter(None, [self._printed.text()])])

    def close(self) -> None:
        """Let the store be closed, then the worker ends; it is killed where it does not."""
        if self._over:
            return
        try:
            self._call("close", {})
        finally:
            self._end(CLOSING_S, "was closed")

    def abandon(self) -> None:
        self._end(0.0, "was left behind")

    # The worker

    def _start(self) -> None:
        env, in_use = self._held.enter_context(envs.using(self._isolation))
        self._lock = sha256((env.path / "lock.txt").read_bytes()).hexdigest()[:12]
        self._scratch, lock = self._held.enter_context(scratch())
        self._leashed = Leashed(
            [str(env.executable), "-I", "-X", "utf8", worker.__file__],
            folder=self._scratch,
            held=[in_use, lock],
            env=self._surroundings(),
            cwd=self._scratch,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._printed.read(_pipe(self._leashed.process.stderr))

    def _opened(self) -> dict[str, Any]:
        """Opening has a limit of its own: that of a call is too short for many an import."""
        late = threading.Timer(OPENING_S, self._end, (0.0, f"did not open within {OPENING_S:.0f} s"))
        late.daemon = True
        late.start()
        try:
            told: dict[str, Any] = self._call("open", self._hello())
            return told
        except BackendGone:
            raise
        except BackendError as error:  # what is said to be missing may be so in there alone
            told_of = f"{error} (in the environment of {self._isolation.package})"
            raise BackendError(told_of, permanent=error.permanent) from error
        finally:
            late.cancel()

    def _surroundings(self) -> dict[str, str]:
        """A home of its own, so that nothing is left in the user's; models that were fetched stay known. A
        backend that needs this machine alone is not told the secrets of others."""
        local = is_local(self._config)
        kept = {name: value for name, value in os.environ.items() if _is_told(name, local)}
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        home = str(self._scratch)
        return {**kept, **QUIET, "HOME": home, "TMPDIR": home, "XDG_CACHE_HOME": cache}

    def _hello(self) -> dict[str, Any]:
        from collectors.embedding_server import EmbeddingServer

        server = EmbeddingServer(self._config.embedder)
        self._held.callback(server.close)
        directory = self._config.directory
        return {
            "protocol": PROTOCOL,
            "name": self._config.name,
            "type": self._config.type,
            "options": revealed(self._config.options),
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
        self._refused |= dict.fromkeys(answer.get("refused", ()))
        if "error" in answer:
            raise BackendError(answer["error"], permanent=answer["permanent"])
        took(answer["ms"])
        return answer["value"]

    def _exchanged(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if self._over or self._leashed is None:
            raise self._gone(self._over or "was not started")
        process, line, answer = self._leashed.process, encoded(question), None
        try:
            with suppress(OSError, ValueError):  # a pipe that broke, or was closed by `abandon` meanwhile
                send(_pipe(process.stdin), line)
                answer = receive(_pipe(process.stdout))
        except WireError as error:
            self._end(0.0, f"said {error}")
        if answer is None:
            raise self._gone(self._how_it_ended(process))
        if answer.get("id") != question["id"]:
            raise self._gone("answered out of turn")
        return answer

    def _how_it_ended(self, process: subprocess.Popen[bytes]) -> str:
        """As this side has ended it, or by itself."""
        if self._over:
            return self._over
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        return _ending(process.poll())

    def _gone(self, how: str) -> BackendGone:
        said = self._printed.last_line()
        told = f": {said}" if said else ""
        return BackendGone(f"the worker of {self._isolation.package} {how}{told}")

    def _end(self, grace_s: float, how: str) -> None:
        """Once; `how` is what a later call is told."""
        self._over = self._over or how
        if self._leashed:
            process = self._leashed.process
            if grace_s:  # at the end of its pipe a worker leaves; one that does not read it would keep us
                _close(process.stdin)
            self._leashed.end(grace_s)
            self._printed.finish()
            _close(process.stdin)
            _close(process.stdout)
        self._held.close()


def _close(pipe: IO[bytes] | None) -> None:
    with suppress(OSError, ValueError):  # what was not sent is lost with the worker
        _pipe(pipe).close()


def _is_told(name: str, local: bool) -> bool:
    if name.upper().startswith(("MEMTREND_", "PYTHON", "VIRTUAL_ENV")):
        return False
    return not local or name in FENCED or name.startswith(("LC_", "OMP_", "MKL_", "OPENBLAS_"))


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _ending(code: int | None) -> str:
    if code is None:
        return "closed its pipe"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _beside(type: str) -> list[str]:
    """The folder in which a class of the user's own lies, beside the configuration for one; found by its
    name alone, since its module may import what this process has not got. None for what is installed: an
    environment has its own packages."""
    top = type.partition(":")[0].partition(".")[0]
    for entry in sys.path if ":" in type else ():
        folder = Path(entry or ".").resolve()
        if (folder / f"{top}.py").is_file() or (folder / top).is_dir():
            return [] if {"site-packages", "dist-packages"} & {*folder.parts} else [str(folder)]
    return []
