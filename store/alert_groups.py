"""Which alert a sighting belongs to: the one that is open for the same cause. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from store.alert_kinds import KINDS

if TYPE_CHECKING:
    from store.alert_life import Facts, Incident
    from store.sightings import Sighting

TOGETHER = timedelta(days=1)
"""Within which alerts of several backends with one suspect, or a shared cause, are one."""


def under(incident: Incident, sighting: Sighting, facts: Facts) -> bool:
    """Whether it is one more of a kind that comes together, or something worse is open that it cannot be told
    apart from."""
    key = sighting.key
    alike = [one for one in incident.standing if one.key.kind == key.kind and KINDS[key.kind].scope]
    whole = any(KINDS[key.kind].scope == "all" or one.key.backend == key.backend for one in alike)
    return whole or incident.silences(key)


FALLS = ("critical", "regression", "leak", "threshold")
"""Kinds by which one fall of a series may show, at once or night by night."""


def same_fall(incident: Incident, sighting: Sighting, facts: Facts) -> bool:
    key = sighting.key
    return key.kind in FALLS and any(
        one.key.kind in FALLS and one.key[1:3] == key[1:3] for one in incident.standing
    )


def same_run(incident: Incident, sighting: Sighting, facts: Facts) -> bool:
    same = facts.run_id is not None and any(one.first_run_id == facts.run_id for one in incident.standing)
    return same and _one_way(incident, sighting)


def same_cause(incident: Incident, sighting: Sighting, facts: Facts) -> bool:
    if not _one_way(incident, sighting) or facts.at - incident.opened_at > TOGETHER:
        return False
    suspect = bool(facts.suspect) and incident.cause.suspect == facts.suspect
    return suspect or (facts.shared and incident.cause.shared)


def _one_way(incident: Incident, sighting: Sighting) -> bool:
    """What got better is no part of what got worse."""
    better = [one.key.kind == "improvement" for one in incident.standing]
    return bool(better) and all(one == (sighting.key.kind == "improvement") for one in better)
