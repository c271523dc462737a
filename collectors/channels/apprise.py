"""Whatever `apprise` reaches: mail, Teams, PagerDuty and the rest, as plain text."""

from __future__ import annotations

import logging
from importlib import import_module

from collectors.channels import Refused
from collectors.message import headline, literal, plain_text
from store.alert_words import Message
from store.sections import ChannelSection

_TYPES = {"critical": "failure", "high": "failure", "normal": "warning", "info": "info"}
MOST_TITLE = 150
_OVER = ("resolved", "retracted", "intended", "died")


class Apprise:
    """`url` may hold several addresses, with blanks or line ends between them; a message has arrived once all
    have taken it."""

    def __init__(self, name: str, section: ChannelSection, timeout: float) -> None:
        assert section.url is not None
        try:
            apprise = import_module("apprise")
        except ImportError:
            raise Refused("apprise is not installed: make install EXTRAS=apprise") from None
        logging.getLogger("apprise").setLevel(
            logging.CRITICAL + 1
        )  # it logs addresses, and they hold secrets
        self._service = apprise.Apprise(asset=apprise.AppriseAsset(http_redirects=False))
        self._text = apprise.NotifyFormat.TEXT
        urls = [_bounded(url, timeout) for url in section.url.get_secret_value().split()]
        if not self._service.add(urls):
            raise Refused("its url holds an address that apprise does not know; set another one")

    def send(self, message: Message) -> None:
        kind = "success" if message.state in _OVER else _TYPES[message.severity]
        title = literal(headline(message), MOST_TITLE)
        told = {"title": title, "body": plain_text(message), "body_format": self._text}
        if not self._service.notify(notify_type=kind, **told):
            raise Refused("apprise could not deliver it to every address")

    def close(self) -> None:
        self._service.clear()


def _bounded(url: str, timeout: float) -> str:
    """With the time that it may take, and in parts where a service takes no long text, unless the address
    says so itself."""
    given = {"cto=": f"cto={timeout}", "rto=": f"rto={timeout}", "overflow=": "overflow=split"}
    added = "&".join(value for name, value in given.items() if name not in url)
    return f"{url}{'&' if '?' in url else '?'}{added}" if added else url
