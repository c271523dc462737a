"""What channels tell, as facts, the same in every kind of channel. Pure.

Facts are as they are: who puts them in words makes them harmless for where they go.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from store import words
from store.alert_kinds import KINDS, SEVERITIES
from store.alert_life import Incident
from store.alert_messages import thawed
from store.alert_words import STATES, Message, Named, evidence, title

MOST_LISTED = 15
"""Alerts that a digest or a daily line names."""
MOST_TEXTS = 3
MOST_NAME, MOST_SENTENCE = 600, 3000
"""Characters of one name in a line, and of what stands alone."""
_RINGS = re.compile(r"@(?=channel|here|everyone)", re.IGNORECASE)

_ACTIONS = {
    "untaken": "Suspicion, not looked at again",
    "suspected": "Suspicion, not confirmed yet",
    "died": "Came to nothing",
    "grew": "Fell further",
    "reopened": "Fell further, open again",
    "acknowledged": "Acknowledged",
    "unmuted": "Still open",
    "resolved": "Resolved",
    "retracted": "Retracted",
    "intended": "Intended",
}


class Fact(NamedTuple):
    """A line of a message: what it is about, and values that may be links."""

    label: str
    values: tuple[Named, ...]


# In words


def headline(message: Message) -> str:
    """ "High: mem0 got worse on golden"; of an update what has become of it, of a drill that it is one."""
    lead = _ACTIONS.get(message.action, "")
    if message.action == "opened":
        lead = message.severity.capitalize()
    told = f"{lead}: {message.title}" if lead else message.title
    return f"DRILL, nothing is wrong: {told}" if message.drill else told


def facts(message: Message) -> list[Fact]:
    """What is known beside headline and evidence, the most telling first; nothing that is not known."""
    told = [
        ("Verdict", _plain(_verdict(message))),
        ("Backend", _plain(message.backend)),
        ("Suite", _plain(message.suite)),
        ("Run", _linked(str(message.run_id or ""), message.urls.get("run", ""))),
        ("Pass rate", _plain(_pass_rate(message.figures))),
        ("Difference", _plain(message.difference)),
        ("Trials", _plain(f"{message.figures['trials']:g}" if message.figures.get("trials") else "")),
        ("First bad run", _plain(_day(message.since))),
        ("Owner", _plain(message.owner)),
        ("By", _plain(f"{message.author}: {message.reason}" if message.reason else message.author)),
    ]
    return [Fact(label, values) for label, values in told if values]


def losses(message: Message) -> list[Fact]:
    """How many were lost and gained, in which way, and which; the worst tags."""
    return [Fact(label, values) for label, values in _losses(message) if values]


def _losses(message: Message) -> list[tuple[str, tuple[Named, ...]]]:
    lost, gained = (int(message.figures.get(name, 0)) for name in ("lost", "gained"))
    how = ", ".join(f"{kind} {n}" for kind, n in message.failures.items())
    more = (Named(f"{message.more_cases} more", message.urls.get("open", "")),) if message.more_cases else ()
    return [
        ("Lost", _plain((f"{lost} ({how})" if how else str(lost)) if lost or how else "")),
        ("Gained", _plain(str(gained) if gained else "")),
        ("Lost cases", (*message.cases, *more)),
        ("Worst tags", tuple(Named(tag, "") for tag in message.tags)),
    ]


def causes(message: Message) -> list[Fact]:
    """What may have done it, and what could not be seen."""
    told = [
        ("Suspects", tuple(Named(suspect, "") for suspect in message.suspects)),
        ("Control", _plain(message.control)),
        ("Blind spot", _plain(message.blind_spot)),
        ("Texts", tuple(Named(text, "") for text in message.texts[:MOST_TEXTS])),
    ]
    return [Fact(label, values) for label, values in told if values]


def reference(message: Message) -> str:
    """By which a second copy is known as one, and an update finds its alert."""
    return message.key


def plain_text(message: Message) -> str:
    """All of it as lines of text, for channels that know nothing else; names do nothing there."""
    told = [*facts(message), *losses(message), *causes(message)]
    lines = [f"{fact.label}: {'; '.join(_short(named) for named in fact.values)}" for fact in told]
    listed = [f"- {_short(named)}" for named in message.listed]
    links = [f"{name.capitalize()}: {url}" for name, url in message.urls.items()]
    evidence = literal(message.evidence, MOST_SENTENCE)
    return "\n".join([evidence, *listed, "", *lines, *links, "", reference(message)]).strip()


def _short(named: Named) -> str:
    return literal(named.name, MOST_NAME)


def harmless(text: str) -> str:
    """On one line, without what cannot be seen: control characters, marks that turn the direction of text,
    halves of characters. Nobody is rung, and nothing becomes a link."""
    seen = text if text.isprintable() else "".join(map(_seen, text))
    told = _RINGS.sub("＠", " ".join(seen.split()))  # noqa: RUF001
    return told.replace("://", "：//")  # noqa: RUF001


def _seen(char: str) -> str:
    if char.isspace():
        return " "
    return "" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn") else char


def literal(text: str, limit: int) -> str:
    """Harmless where nothing can be escaped: in nobody's markup, and at most `limit` characters."""
    told = harmless(text).replace("<", "‹").replace(">", "›")  # noqa: RUF001
    return told if len(told) <= limit else f"{told[: limit - 1]}…"


def _verdict(message: Message) -> str:
    if message.kind not in KINDS:
        return ""
    state = STATES.get(message.state, message.state)
    kind = KINDS[message.kind].words
    how_bad = f" ({message.severity})" if message.severity != kind.lower() else ""
    return f"{kind}{how_bad}, {state.lower()}"


def _pass_rate(figures: Mapping[str, float]) -> str:
    if "old" not in figures or "new" not in figures:
        return ""
    return f"{words.amount('pass', figures['old'])} → {words.amount('pass', figures['new'])}"


def _day(since: str) -> str:
    return f"{datetime.fromisoformat(since):%Y-%m-%d %H:%M} UTC" if since else ""


def _plain(text: str) -> tuple[Named, ...]:
    return _linked(text, "")


def _linked(text: str, url: str) -> tuple[Named, ...]:
    return (Named(text, url),) if text else ()


# Messages that are of no single step


def digest(channel: str, rate: int, key: str, payloads: Sequence[Mapping[str, Any]]) -> Message:
    """One message in the place of many that were too many for a channel; the worst are named, none twice."""
    told = [thawed(payload) for payload in payloads]
    newest = {one.alert_id or one.key: one for one in told}
    order = sorted(newest.values(), key=lambda one: -SEVERITIES.index(one.severity))
    by_severity = Counter(one.severity for one in newest.values())
    counts = ", ".join(f"{by_severity[name]:,} {name}" for name in reversed(SEVERITIES) if by_severity[name])
    n = words.count(len(told), "message")
    return _collected(
        key,
        "digest",
        f"{n} at once, of {words.count(len(newest), 'alert')}",
        f"More than the {rate} an hour that channel {channel} takes: {counts}. Each stands on the dashboard.",
        [Named(_listed(one.alert_id, headline(one)), one.urls.get("open", "")) for one in order],
    )


def daily(key: str, incidents: Iterable[tuple[Incident, str]]) -> Message:
    """What is still open, once a day. `incidents`: each with the address of its page, '' without one."""
    order = sorted(incidents, key=lambda one: -SEVERITIES.index(one[0].kind.severity))
    names = [Named(_listed(one.id, f"{title(one)}. {evidence(one)}"), url) for one, url in order]
    told = f"{words.count(len(order), 'alert')} still open"
    return _collected(key, "daily", told, "Nobody has acknowledged them, and they have not passed.", names)


def _collected(key: str, action: str, title: str, evidence: str, listed: Sequence[Named]) -> Message:
    shown = tuple(listed[:MOST_LISTED])
    more = len(listed) - len(shown)
    rest = (Named(f"and {more:,} more", ""),) if more else ()
    return Message(key, action, None, action, "normal", "", title, evidence, listed=(*shown, *rest))


def _listed(alert_id: int | None, told: str) -> str:
    return f"Alert {alert_id}: {told}" if alert_id else told
