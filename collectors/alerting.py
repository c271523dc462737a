"""What is done about alerts as runs end and time goes by: by the collector between two ticks, and by commands
that made runs where no collector leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

from collectors import routing
from collectors.configured import confirm_after, suite_confirm
from collectors.delivery import Sender
from collectors.detection import LOG, SOURCE, detect, detect_missed
from collectors.proofs import detect_unproven
from store import alert_words, queries, writes
from store.alert_life import Incident, Turned, unlooked, unmute
from store.database import Database
from store.errors import StoreError
from store.queries import OwedLook
from store.settings import Settings
from store.sightings import OF_A_VERDICT

EVERY = timedelta(minutes=1)
"""How often it is asked what only time brings: missed runs, looks that are due, mutes that have ended."""
REMIND_H = 7
"""The hour, UTC, after which channels are reminded of what is open."""
NEVER = datetime.min.replace(tzinfo=UTC)


def route(settings: Settings) -> writes.Route:
    """Who is told of what, as configured."""
    return routing.route(settings.channels, settings.alerts)


class Alerting:
    """What the collector that leads, under the token `leader`, does about alerts. What fails for a fault of
    ours is told once, and the rest is done all the same."""

    def __init__(self, db: Database, leader: int) -> None:
        self.db, self.leader = db, leader
        self._asked = NEVER
        self._given_up: set[int] = set()
        self._faulty: set[str] = set()

    def tick(self, settings: Settings, now: datetime) -> None:
        told = route(settings)
        turned = detect(self.db, settings, told, self._given_up)
        if queries.has_unrouted(self.db):
            self._try("what people did", lambda: writes.route_people(self.db, told))
        if turned or abs(now - self._asked) >= EVERY:
            self._asked = now
            self._ask_the_time(settings, now, told)

    def _ask_the_time(self, settings: Settings, now: datetime, told: writes.Route) -> None:
        self._try("missed runs", lambda: detect_missed(self.db, settings, now, told))
        self._try("proofs", lambda: detect_unproven(self.db, settings, now, told))
        self._try("mutes", lambda: unmute_over(self.db, now, told))
        self._try("reminders", lambda: remind(self.db, settings, now))
        self._try("third looks", lambda: self._ask_for_looks(settings, now))

    def _try(self, what: str, do: Callable[[], object]) -> None:
        try:
            do()
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  the collector outlives whatever is wrong with one alert
            if what not in self._faulty:
                self._faulty.add(what)
                LOG.error("alerts could not be seen to", what=what, exc_info=error)
                said = f"alerts: {what} could not be seen to: {type(error).__name__}"
                writes.add_event(self.db, "error", SOURCE, said)

    def _ask_for_looks(self, settings: Settings, now: datetime) -> None:
        for owed in queries.owed_looks(self.db):
            self._ask_for_look(settings, owed, now)

    def _ask_for_look(self, settings: Settings, owed: OwedLook, now: datetime) -> None:
        """Once its time has come, unless it costs too much: then it stays as it is, and says so."""
        most = suite_confirm(settings, owed.suite).max_cost
        if most is not None and owed.cost > most:
            why = f"asking once more would cost about ${owed.cost:.2f}, more than max_cost = {most}"
            self.not_looked(owed.run_id, why)
        elif now - owed.ended_at >= confirm_after(settings, owed.suite):
            writes.ask_for_look(self.db, owed.run_id, self.leader)

    def not_looked(self, run_id: int, why: str) -> None:
        """The look that would settle what is suspected of a run is not taken: the alert says so."""

        def decide(known: Sequence[Incident]) -> Iterable[Turned]:
            return [unlooked(one, why) for one in known if waits_for(one, run_id)]

        writes.turn_alerts(self.db, decide)
        writes.add_event(self.db, "warning", SOURCE, f"run {run_id} is not looked at again: {why}", run_id)


def remind(db: Database, settings: Settings, now: datetime) -> None:
    """Once a day, of what was told before today and is open still."""
    if now.hour < REMIND_H or not settings.alerts.daily:
        return
    today = now.date()
    to_remind = {
        name: section
        for name, section in settings.channels.items()
        if not queries.is_queued(db, routing.daily_key(today, name))
    }
    if not to_remind:
        return
    rows = queries.alerts(db, states=["open"], limit=None)
    open_ = [row.incident for row in rows if row.incident.told_at and row.incident.told_at.date() < today]
    if lines := routing.daily_lines(to_remind, settings.alerts, open_, today):
        writes.send_later(db, lines)


def waits_for(incident: Incident, run_id: int) -> bool:
    """Whether a look at that run would say more of it."""
    told = [one for one in incident.standing if one.key.kind in OF_A_VERDICT]
    return any(run_id in (one.first_run_id, one.run_id) for one in told)


def unmute_over(db: Database, now: datetime, told: writes.Route) -> None:
    """Alerts whose mute has ended speak again."""

    def decide(known: Sequence[Incident]) -> Iterable[Turned]:
        return [unmute(one) for one in known if one.muted_until is not None and one.muted_until <= now]

    if queries.muted_over(db, now):
        writes.turn_alerts(db, decide, told)


def after_runs(db: Database, settings: Settings, say: Callable[[str], None]) -> None:
    """What runs that a command has made mean for alerts, told at once: to who gave it, and to the channels,
    with what waits for them. Where a collector leads, it is its matter."""
    if any(one.held for one in queries.leases(db) if one.name == writes.LEADER_LEASE):
        return
    for turned in detect(db, settings, route(settings)):
        if any(step.action in ("opened", "reopened", "grew") for step in turned.steps):
            it = turned.incident
            say(f"alert {it.id}: {alert_words.title(it)}; memtrend alerts show {it.id}")
    with closing(Sender(db, settings.channels)) as sender:
        sender.send_due()
