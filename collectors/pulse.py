"""One collector leads: the lease that says so, and the heartbeat that says it lives."""

from __future__ import annotations

import os
import socket
import threading
import time
from types import TracebackType
from typing import Literal

from collectors.lease import Sightings, is_of_this_machine, named, release_those_of_the_dead, take, whoami
from collectors.process import say
from store import logs, queries, writes
from store.database import Database
from store.errors import StoreError
from store.queries import LeaseRow

LOG = logs.get("collector")
NAME = writes.LEADER_LEASE
BEAT_S = 5.0
TTL_S = 20.0
RETRY_S = 0.5
PATIENCE_S = 5.0
"""How much longer than a claim lasts one is waited for that may be of a process that is gone."""


class CollectorBusy(StoreError):
    """Another collector has the database; the message names it."""


class Pulse:
    """Takes the collector's lease on entry, keeps it and the heartbeat going on a thread of its own, gives it
    back on exit. `stand_by`: while another has it, wait. `lost`: another collector took over meanwhile; then
    `stop` was set. `token`: the fencing token under which this one leads, 0 while it does not."""

    def __init__(self, db: Database, stop: threading.Event, *, stand_by: bool = False) -> None:
        self.db, self.stop, self.stand_by = db, stop, stand_by
        self.lost, self.token = False, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="memtrend-pulse", daemon=True)

    def __enter__(self) -> Pulse:
        self.token = self._acquire()
        if self.token:
            writes.beat(self.db, NAME, os.getpid(), socket.gethostname())
            self._thread.start()
        return self

    def _acquire(self) -> int:
        """0 when asked to stop meanwhile. One that was killed leaves its lease behind; where its machine has
        our name, a container that was started again, say, the lease is waited for."""
        give_up, told, seen = time.monotonic() + TTL_S + PATIENCE_S, False, Sightings()
        while not self.stop.is_set():
            before = next((row for row in queries.leases(self.db) if row.name == NAME), None)
            release_those_of_the_dead(self.db)
            if token := take(self.db, NAME, TTL_S, seen):
                if before and (told or not before.given_back):
                    self._tell_succession(before)
                return token
            holder = next((row for row in queries.leases(self.db) if row.name == NAME and row.held), None)
            if holder and not self.stand_by and (_may_live(holder) or time.monotonic() > give_up):
                raise CollectorBusy(_refusal(self.db, holder))
            if holder and self.stand_by and not told:
                told = True
                say(f"standing by: {named(holder.owner)} leads")
            self.stop.wait(RETRY_S)
        return 0

    def _tell_succession(self, before: LeaseRow) -> None:
        """Another led until now: one that ended, for which this one stood by, or one that was killed."""
        how = "which gave it back" if before.given_back else "which did not give it back"
        level: Literal["info", "warning"] = "info" if before.given_back else "warning"
        writes.add_event(self.db, level, NAME, f"{whoami()} took over the lead from {before.owner}, {how}")

    def _beat_on(self) -> None:
        """What keeps beats from being written is told once: it may last for days."""
        silent = False
        while not self.lost and not self._ended.wait(BEAT_S):
            try:
                self._beat()
            except StoreError as error:  # the next beat may succeed before the lease runs out
                if not silent:
                    LOG.error("no heartbeat", reason=str(error))
                silent = True
            else:
                if silent and not self.lost:
                    LOG.info("the heart beats again")
                silent = False

    def _beat(self) -> None:
        if writes.renew_lease(self.db, NAME, self.token, TTL_S):
            writes.beat(self.db, NAME, os.getpid(), socket.gethostname())
            return
        self.lost = True
        self.stop.set()  # first: the record may refuse the event
        writes.add_event(self.db, "error", NAME, f"{whoami()} stopped: another collector took over")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self.token:
            self._thread.join()
            writes.release_lease(self.db, NAME, self.token)


def _may_live(holder: LeaseRow) -> bool:
    """Whether it is a process that can be told from one of this host's past."""
    return is_of_this_machine(holder.owner) or not holder.owner.startswith(socket.gethostname())


def _refusal(db: Database, holder: LeaseRow) -> str:
    return (
        f"{db.url_public} has a collector already: {named(holder.owner)}; one is enough. "
        "Stop that one first, or start this one with --stand-by; if it is gone, its claim ends by itself "
        f"within {TTL_S:.0f} s"
    )
