"""Slack, through an incoming webhook: Block Kit within its limits, and no name that could do anything there.

Limits and markup as Slack documents them for blocks and for text objects. Text that is not ours (names of
cases, backends, owners, reasons) is shown as it is as far as it does nothing: what would ring, link, format
or turn the line around is replaced by what looks like it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from collectors.channels.posting import Posting
from collectors.message import (
    MOST_NAME,
    Fact,
    causes,
    facts,
    harmless,
    headline,
    literal,
    losses,
    reference,
)
from store.alert_words import Message, Named
from store.columns import to_json
from store.sections import ChannelSection

Block = dict[str, Any]

MOST_TEXT, MOST_HEADER, MOST_FIELD, MOST_FIELDS, MOST_URL = 3000, 150, 2000, 10, 3000
_LINKS = {
    "open": "Open the alert",
    "run": "Run",
    "compare": "Compare with the last good run",
    "trend": "Trend",
    "acknowledge": "Acknowledge",
}
"""Links and no buttons: Slack reports every click on a button to an app, and warns of one that does not
answer."""
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ALIKE = str.maketrans({"*": "∗", "~": "∼", "`": "ˋ"})  # noqa: RUF001  that they are alike is the point
_EMPHASIS = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_EMOJI = re.compile(r":(?=[^\W\d][\w+-]*:|[+-]1:)")


class Slack:
    def __init__(self, name: str, section: ChannelSection, timeout: float) -> None:
        assert section.url is not None
        self._posting = Posting(section.url.get_secret_value(), timeout)

    def send(self, message: Message) -> int:
        return self._posting.post(to_json(payload(message)).encode(), {})

    def close(self) -> None:
        self._posting.close()


def payload(message: Message) -> dict[str, Any]:
    """What the webhook is sent. `text` is for notifications, which show no blocks."""
    told = f"{headline(message)}: {message.evidence} ({reference(message)})"
    return {
        "text": escaped(told, MOST_TEXT),
        "blocks": list(_blocks(message)),
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _blocks(message: Message) -> Iterable[Block]:
    yield {"type": "header", "text": _literal(headline(message), MOST_HEADER)}
    if message.evidence:
        yield _section(escaped(message.evidence, MOST_TEXT))
    if fields := [_field(fact) for fact in facts(message)[:MOST_FIELDS]]:
        yield {"type": "section", "fields": fields}
    for told in (losses(message), causes(message)):
        if told:
            yield _section(_lines(map(_line, told)))
    if message.listed:
        yield _section(_lines(f"• {_named(one)}" for one in message.listed))
    if links := [_named(Named(words, url)) for words, url in _links(message)]:
        yield _section(_cut("", links, MOST_TEXT, "  ·  "))
    yield {"type": "context", "elements": [_marked(escaped(reference(message), MOST_TEXT))]}


def _links(message: Message) -> Iterable[tuple[str, str]]:
    urls = ((words, message.urls.get(name, "")) for name, words in _LINKS.items())
    return ((words, url) for words, url in urls if _may_link(url))


def _section(text: str) -> Block:
    return {"type": "section", "text": _marked(text)}


def _field(fact: Fact) -> Block:
    return _marked(_cut(f"*{fact.label}*\n", [_named(one) for one in fact.values], MOST_FIELD))


def _line(fact: Fact) -> str:
    between = "; " if len(fact.values) > 1 else ""
    return _cut(f"*{fact.label}*  ", [_named(one) for one in fact.values], MOST_TEXT, between)


def _cut(label: str, parts: Sequence[str], limit: int, between: str = "; ") -> str:
    """As many whole parts as there is room for: half a link would be none."""
    told = label
    for number, part in enumerate(parts):
        added = f"{between if number else ''}{part}"
        if len(told) + len(added) > limit - 2:
            return f"{told} …"
        told += added
    return told


def _lines(lines: Iterable[str]) -> str:
    return _cut("", list(lines), MOST_TEXT, "\n")


def _named(one: Named) -> str:
    name = escaped(one.name, MOST_NAME)
    if not name or not _may_link(one.url):
        return name
    return f"<{one.url.replace('&', '&amp;')}|{name.replace('|', '¦')}>"


def _may_link(url: str) -> bool:
    """Ours are quoted; one that could end the link early is none."""
    return bool(re.fullmatch(r"https?://[^\s<>|]+", url)) and len(url.replace("&", "&amp;")) <= MOST_URL


def _literal(text: str, limit: int) -> Block:
    """Slack formats nothing in it, and unescapes nothing."""
    return {"type": "plain_text", "text": literal(text, limit), "emoji": False}


def _marked(text: str) -> Block:
    """`verbatim`: Slack makes no links of what merely looks like one."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


# Names that do nothing


def escaped(text: str, limit: int) -> str:
    """Harmless where Slack reads its markup, and at most `limit` characters with all entities."""
    plain = _EMPHASIS.sub("＿", harmless(text[: 2 * limit]).translate(_ALIKE))  # noqa: RUF001
    plain = _EMOJI.sub("∶", plain)  # noqa: RUF001
    told = plain.translate(_ENTITIES)
    if len(told) <= limit and len(text) <= 2 * limit:
        return told
    kept, size = [], 0
    for char in plain:
        written = char.translate(_ENTITIES)
        size += len(written)
        if size > limit - 1:
            break
        kept.append(written)
    return "".join([*kept, "…"])
