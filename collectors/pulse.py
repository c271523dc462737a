"""One collector a database: the lease that says so, and the heartbeat that says it lives."""

from __future__ import annotations

import logging
import os
import socket
import threading
from types import TracebackType

from collectors.lease import whoami
from store import queries, writes
from store.database import Database
from store.errors import StoreError
from store.queries import LeaseRow

LOG = logging.getLogger("memtrend.collector")
NAME = "collector"
BEAT_S = 5.0
TTL_S = 20.0
RETRY_S = 0.5


class CollectorBusy(StoreError):
    """Another collector has the database; the message names it."""


class Pulse:
    """Takes the collector's lease on entry, keeps it and the heartbeat going on a thread of its own, gives it
    back on exit. `lost`: another collector took over meanwhile; then `stop` was set."""

    def __init__(self, db: Database, stop: threading.Event) -> None:
        self.db, self.stop, self.lost = db, stop, False
        self._token: int | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="memtrend-pulse", daemon=True)

    def __enter__(self) -> Pulse:
        self._token = self._acquire()
        if self._token is not None:
            writes.beat(self.db, NAME, os.getpid(), socket.gethostname())
            self._thread.start()
        return self

    def _acquire(self) -> int | None:
        """Waits for the lease of a collector that was killed; None when asked to stop meanwhile."""
        while not self.stop.is_set():
            if (token := writes.acquire_lease(self.db, NAME, whoami(), TTL_S)) is not None:
                return token
            holder = next(
                (lease for lease in queries.leases(self.db) if lease.name == NAME and lease.held), None
            )
            if holder and not _has_died(holder):
                raise CollectorBusy(_refusal(self.db, holder))
            self.stop.wait(RETRY_S)
        return None

    def _beat_on(self) -> None:
        while not self._ended.wait(BEAT_S):
            try:
                self._beat()
            except StoreError as error:  # the next beat may succeed before the lease runs out
                LOG.error("memtrend collect: heartbeat: %s", error)
            if self.lost:
                return

    def _beat(self) -> None:
        assert self._token is not None
        if writes.renew_lease(self.db, NAME, self._token, TTL_S):
            writes.beat(self.db, NAME, os.getpid(), socket.gethostname())
            return
        self.lost = True
        writes.add_event(self.db, "error", NAME, f"{whoami()} stopped: another collector took over")
        self.stop.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._token is not None:
            self._thread.join()
            writes.release_lease(self.db, NAME, self._token)


def _refusal(db: Database, holder: LeaseRow) -> str:
    host, pid = _host_and_pid(holder)
    return (
        f"{db.url_public} has a collector already: process {pid} on {host}; one is enough. "
        f"Stop that one first; if it is gone, its claim ends by itself within {TTL_S:.0f} s"
    )


def _host_and_pid(holder: LeaseRow) -> tuple[str, int]:
    host, _, pid = holder.owner.rpartition(":")
    return host, int(pid)


def _has_died(holder: LeaseRow) -> bool:
    """Whether the holder was a process of this host that is no more. In a restarted container it may have
    had our own pid."""
    host, pid = _host_and_pid(holder)
    if host != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return pid == os.getpid()
