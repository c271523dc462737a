"""The collector's sender: a thread beside the worker, so that a message leaves while a run goes on, and no
run waits for a channel."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from collectors.delivery import PACE, Pace, Sender
from store import writes
from store.database import Database
from store.sections import ChannelSection

JOIN_S = 2.0
"""How long the end waits for the message under way. Where it is not enough, that is sent again by its key."""


class Sending:
    """Sends to the channels that are configured, and to others once others are."""

    def __init__(self, db: Database, pace: Pace = PACE) -> None:
        self.db, self.pace = db, pace
        self._sections: Mapping[str, ChannelSection] | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, sections: Mapping[str, ChannelSection]) -> None:
        """Send to these from now on; what waits for others is dropped. A sender that is at work finishes its
        message: any number may work on one record."""
        if sections == self._sections:
            return
        writes.drop_others(self.db, sections)
        self._stop.set()
        self._sections, self._stop = dict(sections), threading.Event()
        sender = Sender(self.db, sections, self.pace)
        self._thread = threading.Thread(
            target=sender.run, args=(self._stop,), name="memtrend-sender", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
