"""A backend instance belongs to one run at a time: the lease that says so, kept alive while the run lasts."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from collectors.calls import Stopped
from store import queries, writes
from store.database import Database
from store.errors import DatabaseError, StoreError
from store.queries import LeaseRow

TTL_S = 30.0
POLL_S = 1.0

_kept: dict[tuple[str, str], int] = {}
"""Record and name of a lease -> the token with which this process would have given it back, and the record
refused. Until it is seen to be given back, or taken by another."""


class InstanceBusy(Exception):
    """Another run has the backend; the message names it."""


class StopBeside(threading.Event):
    """The stop of a control: its run's stops it too, and it stops nothing but itself."""

    def __init__(self, of: threading.Event) -> None:
        super().__init__()
        self._of = of

    def is_set(self) -> bool:
        return super().is_set() or self._of.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Sees its run's stop when the time is over: whoever waits here does so in short steps."""
        return super().wait(timeout) or self.is_set()


class Sightings:
    """Since when leases are as they are, by this process's own monotonic clock. The clock of a machine may be
    set, which makes a lease that is renewed look expired, and one that was left look fresh: whoever holds one
    renews it, so what counts beside the clock is whether it stays as it is."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[tuple[int, float], float]] = {}

    def is_left(self, row: LeaseRow, ttl_s: float) -> bool:
        """Whether nobody holds it: given back, or not renewed for half its time after it expired, or for all
        of its time whatever the clock says. It is renewed three times in its time."""
        now, state = time.monotonic(), (row.token, row.ends)
        if row.name not in self._since or self._since[row.name][0] != state:
            self._since[row.name] = (state, now)
        unchanged = now - self._since[row.name][1]
        return row.given_back or unchanged > ttl_s + POLL_S or (not row.held and unchanged > ttl_s / 2)


def take(db: Database, name: str, ttl_s: float, seen: Sightings) -> int | None:
    """Take a lease that nobody holds. Returns its fencing token, or None: ask again with the same `seen`."""
    row = next((row for row in queries.leases(db) if row.name == name), None)
    if row is not None and not seen.is_left(row, ttl_s):
        return None
    return writes.acquire_lease(db, name, whoami(), ttl_s, left=row)


class BackendLease:
    """Takes the lease on entry, renews it and looks for a cancel on a thread of its own, gives it back on
    exit. `stop` is the run's: it is set from outside, by a cancel, or when the lease is lost; `reason` says
    which of the latter it was."""

    def __init__(self, db: Database, backend: str, stop: threading.Event) -> None:
        self.db, self.backend, self.stop = db, backend, stop
        self.token = 0
        self.reason: str | None = None
        self._run_id: int | None = None
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="memtrend-lease", daemon=True)

    def __enter__(self) -> BackendLease:
        token = self._take()
        if token is None:
            raise InstanceBusy(
                f"backend {self.backend} is in use by another run; wait for it, or stop it: "
                f"memtrend runs --status running{self._by()}"
            )
        self.token = token
        self._keeper.start()
        return self

    def _take(self) -> int | None:
        """None while another run has it. One that has expired and was not given back is looked at until it is
        renewed, because the clock was set, or has been left. Raises `Stopped`."""
        seen = Sightings()
        while True:
            release_those_of_the_dead(self.db)
            if (token := take(self.db, self.name, TTL_S, seen)) or self._is_held():
                return token
            if self.stop.wait(POLL_S):
                raise Stopped

    def _by(self) -> str:
        """Who has it, unless it was given back meanwhile."""
        held = (row.owner for row in queries.leases(self.db) if row.name == self.name and row.held)
        return next((f" ({named(owner)})" for owner in held), "")

    def _is_held(self) -> bool:
        return any(row.held for row in queries.leases(self.db) if row.name == self.name)

    @property
    def name(self) -> str:
        return writes.backend_lease(self.backend)

    def watch(self, run_id: int) -> None:
        """From now on, a cancel of this run stops it."""
        self._run_id = run_id

    def _keep(self) -> None:
        renewed, by_clock = time.monotonic(), time.time()
        while not self._ended.wait(POLL_S):
            with suppress(StoreError):  # a lease lasts for a while: the record may be writable again by then
                was_set = abs(time.time() - by_clock) > TTL_S / 3  # the clock: then nothing holds by it now
                if time.monotonic() - renewed > TTL_S / 3 or was_set:
                    if not writes.renew_lease(self.db, self.name, self.token, TTL_S):
                        return self._stop("another process took the backend over")
                    renewed, by_clock = time.monotonic(), time.time()
                if self._run_id is not None and queries.is_cancelled(self.db, self._run_id):
                    return self._stop("cancelled")

    def _stop(self, reason: str) -> None:
        self.reason = reason
        self.stop.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._keeper.join()
        try:
            writes.release_lease(self.db, self.name, self.token)
        except DatabaseError:  # what the run came to is told all the same
            _kept[self.db.url_public, self.name] = self.token


def whoami() -> str:
    """The owner that a lease names: machine and process."""
    return f"{_machine()}:{os.getpid()}"


def named(owner: str) -> str:
    """The owner of a lease in words."""
    machine, _, pid = owner.rpartition(":")
    return f"process {pid} on {machine}"


def _machine() -> str:
    """Where a pid means one process: the host and, since containers may share its name, the pid namespace."""
    with suppress(OSError):
        return f"{socket.gethostname()}-{Path('/proc/self/ns/pid').stat().st_ino}"
    return socket.gethostname()


def is_of_this_machine(owner: str) -> bool:
    return owner.rpartition(":")[0] == _machine()


def release_those_of_the_dead(db: Database) -> None:
    """Give back what processes of this machine held when they were killed, so that nobody has to wait until
    it expires, and what this one could not. What a process of another machine holds is its own until then."""
    for lease in queries.leases(db):
        here = (db.url_public, lease.name)
        kept = _kept.get(here)
        if not lease.given_back and (kept == lease.token or _is_dead(lease.owner)):
            writes.release_lease(db, lease.name, lease.token)
        if kept is not None and kept <= lease.token:
            _kept.pop(here, None)


def _is_dead(owner: str) -> bool:
    if not is_of_this_machine(owner):
        return False
    try:
        os.kill(int(owner.rpartition(":")[2]), 0)
    except PermissionError:  # it lives, under another user
        return False
    except ProcessLookupError:
        return True
    return False
