"""Where alerts are told: what a channel owes its sender, and which types there are.

A type is a file here and a row in `CHANNELS`. It is imported when a channel of it is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol

from store.alert_words import Message
from store.sections import ChannelSection

CHANNELS = {
    "slack": "collectors.channels.slack:Slack",
    "webhook": "collectors.channels.webhook:Webhook",
    "apprise": "collectors.channels.apprise:Apprise",
}
TIMEOUT_S = 10.0
"""To connect, and between two signs of life of the other side."""


class Refused(Exception):
    """A message was not taken. `permanent`: no use to send it again; `retry_after`: seconds that the other
    side wants to be left alone, 0 where it did not say; `status` of HTTP, None where there was no answer. The
    text names no address and repeats nothing of what was answered: either may hold a secret."""

    def __init__(
        self, reason: str, *, permanent: bool = False, retry_after: float = 0.0, status: int | None = None
    ) -> None:
        super().__init__(reason)
        self.permanent, self.retry_after, self.status = permanent, retry_after, status


class Channel(Protocol):
    """Sends one message at a time, on the thread that opened it."""

    def send(self, message: Message) -> int | None:
        """Returns the status of HTTP, None where there is none. Raises `Refused`."""

    def close(self) -> None:
        """Give back what was opened."""


def open_channel(name: str, section: ChannelSection, timeout: float = TIMEOUT_S) -> Channel:
    """A channel as it is configured. `timeout` in seconds. Raises `Refused` where its package is missing."""
    module, _, attribute = CHANNELS[section.type].partition(":")
    opened: Callable[[str, ChannelSection, float], Channel] = getattr(import_module(module), attribute)
    return opened(name, section, timeout)
