"""Which channels hear of a step of an alert, and how often one would hear a false alarm. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from collectors import message as messages
from store.alert_kinds import at_least
from store.alert_life import Incident, Step
from store.alert_messages import frozen
from store.alert_words import message
from store.sections import AlertsSection, ChannelSection
from store.writes import NewDelivery, Route

TOLD = frozenset({"opened", "grew", "reopened"})
"""Steps that a channel hears by what it asks for. `unmuted` is one where the alert is open still."""
SUSPICIONS = frozenset({"untaken", "suspected"})
"""Steps that a channel hears that asks for suspicions."""
FOLLOWING = frozenset({"died", "acknowledged", "resolved", "retracted", "intended"})
"""Steps that a channel hears that heard of the alert before."""
ENDS = FOLLOWING - {"acknowledged"}
"""Of them, those after which there is nothing left to be told when a mute is over."""

Sections = Mapping[str, ChannelSection]


def route(sections: Sections, alerts: AlertsSection) -> Route:
    """Who is told of a step. Of muted alerts only the end is told, drills only to channels for drills,
    suspicions only to channels that ask for them. What ends is told where it was told that it began:
    `NewDelivery.follows`, since the record alone knows where that was."""

    def routed(incident: Incident, step: Step, step_id: int) -> Iterator[NewDelivery]:
        if incident.muted_until is not None and step.action not in ENDS:
            return
        for name, section in sections.items():
            follows = _follows(section, incident, step)
            if follows is not None:
                yield _delivery(name, alerts.base_url, incident, step, step_id, follows)

    return routed


def _follows(section: ChannelSection, incident: Incident, step: Step) -> bool | None:
    """False: it is told for itself. True: only where something was told before. None: not at all."""
    if incident.drill and not section.drills:
        return None
    if step.action in FOLLOWING:
        return True
    if step.action in SUSPICIONS:
        return False if section.suspicions and asks_for(section, incident) else None
    if step.action in TOLD:
        return not asks_for(section, incident)
    if step.action == "unmuted" and incident.state == "open" and asks_for(section, incident):
        return False
    return None


def asks_for(section: ChannelSection, incident: Incident) -> bool:
    """Whether a channel is for alerts like this one. A drill passes every filter: it is to arrive."""
    if incident.drill:
        return section.drills
    kinds = {signal.key.kind for signal in incident.standing or incident.signals}
    return (
        at_least(incident.kind.severity, section.severity)
        and (not section.owners or incident.owner in section.owners)
        and (not section.tags or bool({*section.tags} & {*incident.tags}))
        and (not section.kinds or bool({*section.kinds} & kinds))
    )


def _delivery(
    name: str, base_url: str, incident: Incident, step: Step, step_id: int, follows: bool
) -> NewDelivery:
    """No text of a memory: the sender adds those, where the channel may have them."""
    key = f"alert {incident.id} step {step_id} channel {name}"
    told = message(incident, step, key, base_url)
    urgent = incident.drill or incident.kind.severity == "critical"
    kind = "drill" if incident.drill else "alert" if step.action in TOLD | SUSPICIONS else "update"
    return NewDelivery(key, name, kind, frozen(told), urgent, follows)


def daily_lines(
    sections: Sections, alerts: AlertsSection, incidents: Iterable[Incident], day: date
) -> list[NewDelivery]:
    """One message a day for each channel that has alerts open which nobody has acknowledged: the key names
    the day, so that asking again does nothing."""
    if not alerts.daily:
        return []
    standing = [one for one in incidents if one.state == "open" and not one.drill and one.muted_until is None]
    found = []
    for name, section in sections.items():
        own = [(one, _page(alerts.base_url, one)) for one in standing if asks_for(section, one)]
        if own:
            key = daily_key(day, name)
            found.append(NewDelivery(key, name, "daily", frozen(messages.daily(key, own))))
    return found


def daily_key(day: date, channel: str) -> str:
    return f"daily {day.isoformat()} channel {channel}"


def _page(base_url: str, incident: Incident) -> str:
    return f"{base_url.rstrip('/')}/alert?alert={incident.id}" if base_url else ""
