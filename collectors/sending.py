"""The collector's senders: threads beside the worker, so that a message leaves while a run goes on, and no
run waits for a channel."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from collectors.delivery import PACE, Pace, Sender
from store import writes
from store.database import Database
from store.sections import ChannelSection

JOIN_S = 2.0
"""How long the end waits for the messages under way. Where it is not enough, they are sent again by their
keys."""


class Sending:
    """Sends to the channels that are configured, and to others once others are. Each has a thread of its own:
    one that answers slowly, or never, holds up no other."""

    def __init__(self, db: Database, pace: Pace = PACE) -> None:
        self.db, self.pace = db, pace
        self._sections: Mapping[str, ChannelSection] | None = None
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def follow(self, sections: Mapping[str, ChannelSection]) -> None:
        """Send to these from now on; what waits for others is dropped. A sender that is at work finishes its
        message: any number may work on one record."""
        if sections == self._sections:
            return
        writes.drop_others(self.db, sections)
        self._stop.set()
        self._sections, self._stop = dict(sections), threading.Event()
        self._threads = [self._sender(name, section) for name, section in sections.items()]

    def _sender(self, name: str, section: ChannelSection) -> threading.Thread:
        sender = Sender(self.db, {name: section}, self.pace)
        thread = threading.Thread(
            target=sender.run, args=(self._stop,), name=f"memtrend-sender {name}", daemon=True
        )
        thread.start()
        return thread

    def end(self) -> None:
        self._stop.set()
        give_up = time.monotonic() + JOIN_S
        for thread in self._threads:
            thread.join(max(give_up - time.monotonic(), 0))
