"""The outbox, sent: claim a message, send it, record that. At least once, and never again after the record.

Between sending and recording a process can die: then the claim ends, and the message is sent again under the
same key. No transaction spans a network call.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import NamedTuple
from uuid import uuid4

from collectors import message as messages
from collectors.channels import TIMEOUT_S, Channel, Refused, open_channel
from collectors.lease import whoami
from store import logs, queries, writes
from store.alert_messages import frozen, thawed
from store.alert_words import Message
from store.database import Database
from store.errors import StoreError
from store.sections import ChannelSection

LOG = logs.get("delivery")
GONE = frozenset({404, 410})
"""By which a channel says that it is no more."""

Opener = Callable[[str, ChannelSection, float], Channel]


class Pace(NamedTuple):
    """How patient a sender is, in seconds. The wait after the first failure is `first_s` and doubles, up to
    an hour; a message is given up after `attempts`, about a day. After a failure that passes, the channel is
    left alone for `rest_s` at most, or as long as it asks for. `claim_s`: at most `writes.CLAIM_S`."""

    first_s: float = 5.0
    attempts: int = 32
    rest_s: float = 30.0
    timeout_s: float = TIMEOUT_S
    claim_s: float = writes.CLAIM_S
    poll_s: float = 1.0


PACE = Pace()


def backoff_s(key: str, attempts: int, first_s: float = PACE.first_s) -> float:
    """How long a message waits after so many attempts: doubled each time, a fifth more or less by its key."""
    longest = writes.LONGEST_WAIT_S / 1.2
    return min(first_s * 2.0 ** (attempts - 1), longest) * random.Random(f"{key} {attempts}").uniform(
        0.8, 1.2
    )


class Sender:
    """Sends what is due, on one thread. Any number may work on one record."""

    def __init__(
        self,
        db: Database,
        sections: Mapping[str, ChannelSection],
        pace: Pace = PACE,
        opener: Opener = open_channel,
    ) -> None:
        self._db, self._pace, self._opener = db, pace, opener
        self._sections = dict(sections)
        self._owner = f"{whoami()} {uuid4().hex[:8]}"
        self._open: dict[str, Channel] = {}
        self._rests: dict[str, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Send until `stop`. A record that cannot be written now is tried again."""
        try:
            while not stop.is_set():
                if not self._round_or_less():
                    stop.wait(self._pace.poll_s)
        finally:
            self.close()

    def _round_or_less(self) -> int:
        try:
            return self.round()
        except StoreError as error:
            LOG.warning("messages wait, since the record cannot be used", error=str(error))
        except Exception as error:  # the sender outlives whatever is wrong with one message
            LOG.error("messages wait, for a fault of ours", exc_info=error)
        return 0

    def send_due(self) -> int:
        """Send all that is due and may go now. How many messages were tried."""
        tried = 0
        while done := self.round():
            tried += done
        return tried

    def round(self) -> int:
        """Send the next message of each channel, so that none waits for another's. How many were tried."""
        now = time.monotonic()
        awake = [one for one in self._sections.items() if now >= self._rests.get(one[0], 0.0)]
        return sum(self._next(name, section) for name, section in awake)

    def close(self) -> None:
        for channel in self._open.values():
            channel.close()
        self._open.clear()

    def _next(self, name: str, section: ChannelSection) -> bool:
        """What goes within an hour is `rate` messages, urgent ones apart. What waits and would be more
        becomes one, as soon as there is room for that."""
        load = queries.channel_load(self._db, name)
        if load.disabled == address(section):
            return False
        if load.disabled is not None:
            writes.enable_channel(self._db, name, "its url is another one now")
        room = section.rate - load.sent
        if load.waiting > room > 0:
            self._fold(name, section)
        claim = writes.claim_delivery(
            self._db, name, self._owner, urgent=room < 1, seconds=self._pace.claim_s
        )
        if claim is None:
            return False
        self._deliver(claim, section)
        return True

    def _fold(self, name: str, section: ChannelSection) -> None:
        waiting = queries.waiting(self._db, name)
        if len(waiting) < 2:  # another sender was quicker
            return
        key = f"digest {waiting[0].id} to {waiting[-1].id} channel {name}"
        told = messages.digest(name, section.rate, key, [one.payload for one in waiting])
        digest = writes.NewDelivery(key, name, "digest", frozen(told))
        writes.fold(self._db, digest, waiting[-1].id, len(waiting))

    def _deliver(self, claim: writes.Claim, section: ChannelSection) -> None:
        try:
            status = _guarded(lambda: self._send(claim, section))
        except Refused as refused:
            self._refused(claim, section, refused)
            return
        if not writes.mark_sent(self._db, claim, status):
            LOG.warning("a message was sent too late, and may arrive twice", key=claim.key)

    def _send(self, claim: writes.Claim, section: ChannelSection) -> int | None:
        if claim.attempts > self._pace.attempts:
            raise Refused("whoever sent it died of it each time", permanent=True)
        message = thawed(claim.payload)
        if section.include_text:
            message = message._replace(texts=_texts(self._db, message))
        if claim.channel not in self._open:
            self._open[claim.channel] = self._opener(claim.channel, section, self._pace.timeout_s)
        return self._open[claim.channel].send(message)

    def _refused(self, claim: writes.Claim, section: ChannelSection, refused: Refused) -> None:
        told = str(refused)
        if refused.status in GONE:
            reason = f"{told}: it is gone; set its new url, or: memtrend alerts test {claim.channel}"
            writes.disable_channel(self._db, claim, refused.status, reason, address(section))
        elif refused.permanent or claim.attempts >= self._pace.attempts:
            writes.give_up(self._db, claim, refused.status, told)
        else:
            wait = max(backoff_s(claim.key, claim.attempts, self._pace.first_s), refused.retry_after)
            writes.put_off(self._db, claim, wait, refused.status, told)
            rest = max(min(wait, self._pace.rest_s), min(refused.retry_after, writes.LONGEST_WAIT_S))
            self._rests[claim.channel] = time.monotonic() + rest
        LOG.warning("a message was not taken", key=claim.key, why=told, attempt=claim.attempts)


def _texts(db: Database, message: Message) -> tuple[str, ...]:
    """What the lost cases that a message names ask, and what came back first. The outbox keeps none of it."""
    names = {one.name for one in message.cases}
    if not names or message.run_id is None or message.drill:  # the run of a drill is in no record
        return ()
    cases = [case for case in queries.run_cases(db, message.run_id) if case.case in names]
    return tuple(f"{case.case}: {case.query} → {case.first_hit or 'nothing'}" for case in cases)


def _guarded(send: Callable[[], int | None]) -> int | None:
    try:
        return send()
    except (Refused, StoreError):
        raise
    except Exception as error:  # noqa: BLE001  a library's own words may name the address
        raise Refused(f"it could not be sent ({type(error).__name__})") from None


def address(section: ChannelSection) -> str:
    """By which it is seen that a channel was given another url, without that url."""
    url = section.url.get_secret_value() if section.url else ""
    return hashlib.sha256(f"{section.type} {url}".encode()).hexdigest()[:16]


def try_channel(
    db: Database, name: str, section: ChannelSection, opener: Opener = open_channel
) -> int | None:
    """Send a test now, whatever waits, and keep what became of it. A channel that takes it and was disabled
    is sent to again. Returns the status of HTTP. Raises `Refused`."""
    row = writes.a_test(name)
    try:
        status = _guarded(lambda: _sent_once(opener(name, section, TIMEOUT_S), thawed(row.payload)))
    except Refused as refused:
        writes.record_test(db, row, refused.status, str(refused))
        raise
    writes.record_test(db, row, status, None)
    writes.enable_channel(db, name, "it took a test")
    return status


def _sent_once(channel: Channel, message: Message) -> int | None:
    with closing(channel):
        return channel.send(message)
