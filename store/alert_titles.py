"""What alerts come to, as titles and lines of pages: of all together, of one, of the proof, and how often the
alarms were right. Pure.

Text that comes back holds names as they are: who shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from store import alert_words, words
from store.alert_life import STANDING_STATES, TOLD_STATES, Incident
from store.stats.intervals import wilson

if TYPE_CHECKING:
    from store.queries import ChannelRow, DeliveryRow, Holder, Judged, ProofRow, StepRow

LONGEST_VALUE = 24
"""Characters of a version in a title."""
MONTH = timedelta(days=30)


def alerts_title(standing: Sequence[Holder], closed: int) -> str:
    """ "Two alerts are open; nobody has taken one of them". `closed`: how many are over."""
    told = [one for one in standing if one.state in TOLD_STATES]
    if not told:
        return _quiet(len(standing), closed)
    free = [one for one in told if one.acknowledged_by is None]
    return f"{_counted(len(told))} open; {_owned(told, free)}"


def _counted(n: int) -> str:
    return _capital(f"{words.spelled(n)} {'alert is' if n == 1 else 'alerts are'}")


def _owned(told: Sequence[Holder], free: Sequence[Holder]) -> str:
    if not free:
        names = list(dict.fromkeys(one.acknowledged_by or "" for one in told))
        whose = {1: "it", 2: "both"}.get(len(told), "all of them")
        return f"{names[0]} has {whose}" if len(names) == 1 else "each has somebody"
    if len(free) < len(told):
        return f"nobody has taken {words.spelled(len(free))} of them"
    return f"nobody has taken {'it' if len(told) == 1 else 'them'}"


def _quiet(suspicions: int, closed: int) -> str:
    if suspicions:
        what = "suspicion is" if suspicions == 1 else "suspicions are"
        return f"No alert is open; {words.spelled(suspicions)} {what} being looked at"
    return "No alert is open" if closed else "No alert yet"


def alert_title(incident: Incident) -> str:
    """What is wrong and where, and what is suspected: "mem0 on golden got worse when mem0ai went from 2.0.0
    to 2.0.20"."""
    said = alert_words.title(incident)
    first = next((one for one in incident.suspects if not one["moved_before"]), None)
    if first is None or incident.kind.name in _UNCAUSED:
        return said
    return f"{said}{_came_with(first)}"


_UNCAUSED = ("failing", "missed", "proof", "improvement", "leak")
"""Kinds of which what changed before says little."""


def _came_with(suspect: Mapping[str, Any]) -> str:
    old, new = (_short(suspect[name]) for name in ("old", "new"))
    if not old and not new:
        return ""
    if not old or not new:
        return f" when {suspect['name']} {'came' if new else 'went'}"
    return f" when {suspect['name']} went from {old} to {new}"


def _short(value: Any) -> str:
    """Only what reads as a version; a long text is told below."""
    text = "" if value is None else str(value)
    return text if len(text) <= LONGEST_VALUE else "another value"


def holder(incident: Incident) -> str:
    """Who looks after it: "nobody has it", "priya has it"."""
    if incident.state not in STANDING_STATES:
        return f"it was {incident.acknowledged_by}'s" if incident.acknowledged_by else "nobody had it"
    if incident.state not in TOLD_STATES:
        return "nobody was told yet"
    return f"{incident.acknowledged_by} has it" if incident.acknowledged_by else "nobody has it"


def since(incident: Incident, opened: str, now: datetime) -> str:
    """ "open since 10 Nov, 03:24, 20 days". `opened`: when it was seen first, as the viewer reads it."""
    return f"{alert_words.STATES[incident.state].lower()} since {opened}, {lasted(incident.opened_at, now)}"


def lasted(start: datetime, end: datetime) -> str:
    """ "20 days", "6 h"."""
    span = max(end - start, timedelta(0))
    if span >= timedelta(days=2):
        return f"{span.days} days"
    hours = round(span / timedelta(hours=1))
    return f"{hours} h" if hours >= 2 else words.duration(span.total_seconds())


# What became of it ------------------------------------------------------------------------------------------

_STEPS = {
    "untaken": "stays a suspicion: it is not looked at again",
    "suspected": "suspected: a second look bore it out",
    "died": "came to nothing",
    "opened": "opened",
    "joined": "joined",
    "grew": "fell further",
    "reopened": "fell further, opened again",
    "resolved": "resolved",
    "retracted": "retracted: the evidence is gone",
    "acknowledged": "acknowledged",
    "muted": "muted",
    "unmuted": "heard again",
    "intended": "called an intended change",
    "judged": "judged",
}


def step(one: StepRow) -> str:
    """ "acknowledged by priya: looking at the upgrade"."""
    who = f" by {one.author}" if one.author != "memtrend" else ""
    return f"{_STEPS.get(one.action, one.action)}{who}{f': {one.reason}' if one.reason else ''}"


def delivery(one: DeliveryRow) -> str:
    """What came of a message: "2 tries, HTTP 200", "HTTP 404: no such hook"."""
    tries = words.count(one.attempts, "try", "tries") if one.attempts > 1 else ""
    told = one.error or ""
    status = f"HTTP {one.status}" if one.status and not told.startswith("HTTP") else ""
    return ", ".join(filter(None, [tries, ": ".join(filter(None, [status, told]))]))


# How often it was right -------------------------------------------------------------------------------------


def precision(found: Judged) -> str:
    """ "4 of 6 judged alarms were real (30.0 to 90.3 %); 3 not judged yet"."""
    n = found.real + found.noise
    left = f"{found.unjudged} not judged yet" if found.unjudged else ""
    if not n:
        return f"No alarm was judged real or noise; {left}" if left else "No alarm yet to be judged"
    bounds = wilson(found.real, n)
    told = (
        f"{found.real} of {n} judged alarms were real ({words.interval('pass', bounds.low, bounds.high)} %)"
    )
    return "; ".join(filter(None, [told, left]))


def budget(accepted: float, noise: int, span: timedelta) -> str:
    """ "2 of 3 false alarms in 90 days": what a channel had, of what it accepts."""
    most = accepted * (span / MONTH)
    return f"{noise} of {most:.3g} false {'alarm' if most == 1 else 'alarms'} in {span.days} days"


def is_overdrawn(accepted: float, noise: int, span: timedelta) -> bool:
    return noise > accepted * (span / MONTH)


def channel(one: ChannelRow, disabled: str) -> str:
    """What a channel's state is: "off since 12 Nov, 04:10: HTTP 404". `disabled`: since when, as the viewer
    reads it."""
    if one.disabled_at is not None:
        return f"off since {disabled}: {one.reason}"
    if one.waiting:
        return f"{words.count(one.waiting, 'message')} waiting"
    return "ready" if one.last_error is None else "last message failed"


def proof(newest: ProofRow | None, now: datetime) -> str:
    """How old the newest proof of the whole path is."""
    if newest is None:
        return "Alarm never proven"
    if newest.passed:
        return f"Alarm proven {words.ago(newest.finished_at or newest.started_at, now)}"
    if newest.finished_at is None and newest.error is None:
        return f"A proof of the alarm is under way, begun {words.ago(newest.started_at, now)}"
    return f"Last proof of the alarm failed {words.ago(newest.finished_at or newest.started_at, now)}"


def dead_man(answered: datetime | None, now: datetime) -> str:
    """Since when whoever watches the collector from elsewhere has not heard of it."""
    if answered is None:
        return "The dead-man switch has never answered"
    return f"The dead-man switch answered {words.ago(answered, now)}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
