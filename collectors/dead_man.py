"""The dead-man switch: an address that hears from the collector every minute, so that somebody else notices
when it does not. No tick waits for it, and no failure of it is one of the collector's."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import httpx
from pydantic import SecretStr

from store import writes
from store.database import Database
from store.errors import StoreError
from store.health_words import DEAD_MAN

NAME = DEAD_MAN
EVERY_S = 60.0
COMPLAIN_S = 3600.0
TIMEOUT_S = 5.0
"""To connect, and for the first words of the answer, of which none but the status is read."""
JOIN_S = 2.0


class DeadMan:
    """Pings at most once a minute, on a thread of its own, and one ping at a time. The address is a secret:
    nothing that is said repeats it."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self.db, self.clock = db, clock
        self._pinging: threading.Thread | None = None
        self._pinged = self._complained = -COMPLAIN_S

    def tick(self, url: SecretStr | None) -> None:
        """Ping, if there is an address and it is time. Returns at once."""
        busy = self._pinging is not None and self._pinging.is_alive()
        if url is None or busy or self.clock() - self._pinged < EVERY_S:
            return
        self._pinged = self.clock()
        self._pinging = threading.Thread(
            target=self._ping, args=(url,), name="memtrend-dead-man", daemon=True
        )
        self._pinging.start()

    def end(self) -> None:
        """Wait a little for the ping under way."""
        if self._pinging is not None:
            self._pinging.join(JOIN_S)

    def _ping(self, url: SecretStr) -> None:
        problem = _problem(url.get_secret_value())
        with suppress(StoreError):  # the record refuses: others say so
            if problem is None:
                writes.beat(self.db, NAME, os.getpid(), socket.gethostname())
            elif self.clock() - self._complained >= COMPLAIN_S:
                self._complained = self.clock()
                told = (
                    f"[alerts] dead_man_url is not reached: {problem}; whoever watches it will think us dead"
                )
                writes.add_event(self.db, "warning", NAME, told)


def _problem(url: str) -> str | None:
    """Why a ping was no ping, in words that hold nothing of the address."""
    try:
        with httpx.stream("GET", url, timeout=TIMEOUT_S) as answer:
            return None if answer.is_success else f"it answers {answer.status_code}"
    except Exception as error:  # noqa: BLE001  an address may be wrong in any way
        return type(error).__name__
