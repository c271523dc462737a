"""Calls to a backend that may hang, fail or be interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import stamina

from collectors import envs
from collectors.backend import (
    PROGRAMMING_ERRORS,
    Backend,
    BackendConfig,
    BackendError,
    BackendGone,
    Isolation,
    open_backend,
)
from collectors.timing import Timed, timed
from store.hiding import redacted

T = TypeVar("T")

POLL_S = 0.2
OPENING_S = 150.0
"""More than a worker gives its adapter, which tells better what it was."""
GRACE_S = 5.0
"""How long a call in flight may go on after a stop was asked for: a checkpoint is promised within 10 s."""


class Stopped(Exception):
    """The run was asked to stop; the scenario in flight is thrown away."""


class CallTimeout(BackendGone):
    """A call that did not come back in time; its thread, and with it the handle, is left behind."""


Reply = SimpleQueue[Timed | Exception]


class Line:
    """One daemon thread on which calls are made, so that one that hangs can be left behind. Calls of a
    line never overlap; the time of each is taken on its own thread."""

    def __init__(self, timeout_s: float, stop: threading.Event) -> None:
        self.timeout_s, self.stop = timeout_s, stop
        self._hangs = False
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Reply] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="memtrend-calls", daemon=True).start()

    def _work(self) -> None:
        while job := self._jobs.get():
            call, reply = job
            reply.put(_made(call))

    def __call__(self, call: Callable[[], Any]) -> Timed:
        """Raises what the call raises, `CallTimeout`, or `Stopped`."""
        if self.stop.is_set():
            raise Stopped
        if self._hangs:
            raise CallTimeout("not called, since an earlier call still hangs")
        # A queue of its own for each call, so that a late answer meets no later question; a Future would
        # do the same at three times the cost, which a backend in memory feels.
        reply: Reply = SimpleQueue()
        in_context = copy_context()  # what the backend logs is about the case in hand
        self._jobs.put((lambda: in_context.run(call), reply))
        made = self._awaited(reply)
        if isinstance(made, Exception):
            raise made
        return made

    def _awaited(self, reply: Reply) -> Timed | Exception:
        deadline = time.monotonic() + self.timeout_s
        while True:
            left = deadline - time.monotonic()
            with suppress(Empty):
                return reply.get(timeout=max(0.0, min(POLL_S, left)))
            if left <= 0:
                self._hangs = True
                raise CallTimeout(f"no answer within {self.timeout_s:g} s")
            if self.stop.is_set():
                self._wait_for_the_last(reply, min(deadline, time.monotonic() + GRACE_S))

    def _wait_for_the_last(self, reply: Reply, deadline: float) -> NoReturn:
        """Give a call in flight its grace, then stop whatever it did."""
        with suppress(Empty):
            reply.get(timeout=max(0.0, deadline - time.monotonic()))
        raise Stopped

    def close(self) -> None:
        self._jobs.put(None)


def _made(call: Callable[[], Any]) -> Timed | Exception:
    try:
        return timed(call)
    except Exception as error:  # noqa: BLE001  whatever a backend raises belongs to its caller
        return error
    except BaseException as error:  # noqa: BLE001  an SDK that calls sys.exit() must not end the run
        return BackendError(describe(error), permanent=True)


def is_transient(error: Exception) -> bool:
    """Whether asking again may help: not after a permanent error, a bug, a timeout or a stop."""
    if isinstance(error, BackendError):
        return not error.permanent
    return not isinstance(error, (*PROGRAMMING_ERRORS, Stopped))


class Attempted(NamedTuple):
    """`value` None and `error` set: every attempt failed."""

    value: Any
    ms: float | None
    attempts: int
    error: Exception | None


def attempt(line: Line, call: Callable[[], Any], attempts: int) -> Attempted:
    """Call, and again after transient errors with growing pauses. Raises `BackendGone` and `Stopped`."""
    made = 0

    def once() -> Timed:
        nonlocal made
        made += 1
        return line(call)

    asking = stamina.RetryingCaller(attempts=attempts, timeout=None, wait_max=2.0).on(is_transient)
    try:
        timed = asking(once)
    except (BackendGone, Stopped):
        raise
    except Exception as error:  # noqa: BLE001  an adapter may raise anything; it becomes the case's error
        return Attempted(None, None, made, error)
    return Attempted(timed.value, timed.ms, made, None)


def make_environment(isolation: Isolation, stop: threading.Event) -> None:
    """Make the environment of a release, unless it is there. Raises `BackendError`, and `Stopped`."""
    try:
        with envs.using(isolation, stop):
            return
    except BackendError:
        if stop.is_set():
            raise Stopped from None
        raise


class _Slot:
    """Where one handle is opened, once. `lock` is held while it is being opened."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.backend: Backend | None = None


class Instance:
    """A configured backend with at most one open handle that is handed out. A handle that is gone, after a
    call that hung, which may be the opening itself, or with the process behind it, is abandoned: scenarios in
    flight keep theirs, later ones get a new one."""

    def __init__(
        self, config: BackendConfig, open: Callable[[BackendConfig], Backend] = open_backend
    ) -> None:
        self.config, self._open = config, open
        self._slot, self._changing = _Slot(), threading.Lock()
        self._opened: list[Backend] = []
        self._journals: list[str] = []

    def handle(self) -> Backend:
        slot = self._slot
        with slot.lock:
            if slot.backend is None:
                slot.backend = self._kept(slot, self._open(self.config))
            return slot.backend

    def _kept(self, slot: _Slot, opened: Backend) -> Backend:
        """Unless nobody waits for it any more: it took too long to open."""
        with self._changing:
            if self._slot is slot:
                self._opened.append(opened)
                return opened
        opened.abandon()
        raise BackendGone("it opened when nobody waited for it any more")

    def prepare(self, stop: threading.Event) -> None:
        """Open the handle, with all that this takes: an environment may be minutes in the making, and an
        SDK's import longer than a call. Raises what opening does, and `Stopped`."""
        if self.config.isolation:
            make_environment(self.config.isolation, stop)
            line = Line(OPENING_S, stop)
            try:
                line(self.handle)
            finally:
                line.close()

    def abandon(self, gone: Backend | None) -> None:
        """Hand out another handle than the one that is gone, None when it hangs in its opening. One that was
        opened since, for another scenario, stays."""
        with self._changing:
            if self._slot.backend is gone:
                self._slot = _Slot()
        if gone is not None:
            gone.abandon()

    def open_anew(self) -> None:
        """Hand out another handle from now on."""
        self.abandon(self._slot.backend)

    def close(self) -> None:
        with self._changing:
            slot, self._slot = self._slot, _Slot()
        if slot.backend is not None:
            slot.backend.close()
            self._told(slot.backend)

    def abandon_all(self) -> None:
        """Let go of every handle, be it in the middle of closing."""
        for backend in self._opened:
            backend.abandon()

    def journal(self) -> str:
        """What the processes of all its handles had to tell."""
        return "\n".join(filter(None, [*self._journals, *(backend.journal() for backend in self._opened)]))

    def _told(self, closed: Backend) -> None:
        """Of a handle that is gone its journal stays."""
        with self._changing:
            self._journals.append(closed.journal())
            self._opened.remove(closed)


class _OnLine:
    def __init__(self, backend: Backend, line: Line) -> None:
        self._backend, self._line = backend, line

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._backend, name)
        if not callable(found):
            return found
        return lambda *given, **named: self._line(lambda: found(*given, **named)).value


def on_line(backend: Backend, line: Line) -> Backend:
    """The backend, its verbs called on the line: each may take its time, and hang."""
    return cast(Backend, _OnLine(backend, line))


def describe(error: BaseException) -> str:
    """`Kind: message` without secrets, first 500 characters. Our own errors speak for themselves."""
    text = redacted(str(error)) or "no message"
    said = text if isinstance(error, BackendError) else f"{type(error).__name__}: {text}"
    return said[:500].encode("utf-8", "replace").decode()  # no record can hold a lone surrogate
