"""Alerts night by night, as the record would keep them, for tests of their life."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from store.alert_life import STANDING_STATES, Facts, Incident, Turned, advance
from store.sightings import Key, Sighting, Standing

START = datetime(2026, 3, 1, 3, tzinfo=UTC)
REGRESSION = Key("regression", "golden", "mem0")
LEAK = Key("leak", "golden", "mem0")
LEAKED = {"leak": {"before": 0.9, "after": 0.8}}


def sighting(standing: Standing, key: Key = REGRESSION, depth: float = 0.1, **more: Any) -> Sighting:
    return Sighting(key, standing, depth, **more)


class History:
    """Alerts as the record would keep them, and every step that was ever made, with its night."""

    def __init__(self) -> None:
        self.alerts: list[Incident] = []
        self.steps: list[tuple[int, str]] = []
        self.night = self.others = 0

    def sees(
        self, *seen: Sighting, night: int | None = None, beside: bool = False, **facts: Any
    ) -> list[str]:
        """The run of the next night, or another one `beside` it; of an earlier `night` it is a look at that.
        Returns the steps."""
        again = night is not None
        self.night += not (again or beside)
        self.others += beside
        run = night or (1000 + self.others if beside else self.night)
        standing = [one for one in self.alerts if one.state in STANDING_STATES]
        at = START + timedelta(days=self.night)
        return self.keep(advance(standing, seen, Facts(at, run, again, **facts)))

    def keep(self, turned: Iterable[Turned]) -> list[str]:
        made = []
        for incident, steps in turned:
            if incident.id is None:
                incident = incident._replace(id=len(self.alerts) + 1)
                self.alerts.append(incident)
            self.alerts[incident.id - 1] = incident  # type: ignore[operator]
            made += [step.action for step in steps]
        self.steps += [(self.night, action) for action in made]
        return made

    @property
    def states(self) -> list[str]:
        return [one.state for one in self.alerts]
