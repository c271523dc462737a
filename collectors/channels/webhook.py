"""A JSON document sent to an address of one's own, signed: docs/alerts.md says how it is verified."""

from __future__ import annotations

import hashlib
import hmac
import time

from collectors.channels.posting import Posting
from store.alert_messages import frozen
from store.alert_words import Message
from store.columns import to_json
from store.sections import ChannelSection

VERSION = 1
"""Of the document. What is added to it changes nothing; what is renamed or removed makes a new one."""
TIMESTAMP, SIGNATURE, KEY = "Memtrend-Timestamp", "Memtrend-Signature", "Idempotency-Key"


class Webhook:
    def __init__(self, name: str, section: ChannelSection, timeout: float) -> None:
        assert section.url is not None
        self._secret = section.secret.get_secret_value() if section.secret else ""
        self._posting = Posting(section.url.get_secret_value(), timeout)

    def send(self, message: Message) -> int:
        body = to_json({"version": VERSION, **frozen(message)}).encode()
        headers = {KEY: message.key}
        if self._secret:
            at = str(int(time.time()))
            headers |= {TIMESTAMP: at, SIGNATURE: f"v1={signature(self._secret, at, body)}"}
        return self._posting.post(body, headers)

    def close(self) -> None:
        self._posting.close()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 of timestamp, dot and body, in hexadecimal digits."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
