"""Messages as the outbox keeps them, and the one that anybody may ask for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from store.alert_words import Message, Named


def frozen(message: Message) -> dict[str, Any]:
    """As JSON values, for the outbox."""
    told = message._asdict()
    for name in ("cases", "listed"):
        told[name] = [named._asdict() for named in told[name]]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}


def thawed(payload: Mapping[str, Any]) -> Message:
    """What was frozen, be it by another release."""
    known = {name: value for name, value in payload.items() if name in Message._fields}
    told: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in known.items()
    }
    for name in ("cases", "listed"):
        told[name] = tuple(Named(**named) for named in told.get(name, ()))
    return Message(**told)


def sample(key: str, channel: str) -> Message:
    """What a test of a channel tells."""
    told = "Whoever reads this would have been told of an alert as well."
    title = f"A test of channel {channel}: nothing is wrong"
    return Message(key, "test", None, "test", "normal", "", title, told)
