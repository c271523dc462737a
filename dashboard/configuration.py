"""The configuration that pages and answers to machines go by: one for the process, from its start on."""

from __future__ import annotations

import time

from store import health_words, queries
from store.database import Database
from store.settings import Settings, SettingsError, load_settings

FRESH_S = 1.0
"""How old what was read may be, so that a token that is exchanged counts at once."""

EVENTS = 500
"""Of so many events of the collector it is read what it says of its configuration."""


class _InForce:
    """What was read last without an error, and the error since."""

    def __init__(self) -> None:
        self._kept: Settings | None = None
        self._problem = ""
        self._until = 0.0

    def settings(self) -> Settings:
        now = time.monotonic()
        if self._kept is None or now >= self._until:
            self._until = now + FRESH_S
            try:
                self._kept, self._problem = _read(self._kept), ""
            except SettingsError as error:
                if self._kept is None:
                    raise
                self._problem = str(error)
        return self._kept

    def refresh(self) -> None:
        self._until = 0.0

    def problem(self) -> str:
        self.refresh()
        self.settings()
        return self._problem


def _read(former: Settings | None) -> Settings:
    """A file that is gone for a moment, while it is saved say, is none that asks for the defaults."""
    found = load_settings()
    if former and former.source and not found.source:
        raise SettingsError(f"{former.source} is gone: put it back, or start anew for the defaults")
    return found


_in_force = _InForce()


def settings() -> Settings:
    """What is in force. While the configuration is broken, that is what it was before; raises `SettingsError`
    where there is nothing before."""
    return _in_force.settings()


def refresh() -> None:
    """Read it anew when next asked."""
    _in_force.refresh()


def problem() -> str:
    """What is wrong with it at this moment, by key and line, so that the former stays in force; "" while it
    is in force itself. Raises `SettingsError` as `settings` does."""
    return _in_force.problem()


def refused(db: Database) -> str:
    """The same as a sentence, and also where only the collector does not take the configuration over."""
    if found := problem():
        return f"{health_words.BROKEN}, so the former stays in force: {found}"
    beats = [beat for beat in queries.heartbeats(db) if beat.name.startswith(health_words.COLLECTOR)]
    newest = max(beats, key=lambda beat: beat.at, default=None)
    told = queries.events(db, EVENTS, levels=["info", "error"])
    own = [(event.at, event.message) for event in told if event.source == health_words.COLLECTOR]
    return health_words.refused_configuration(own, newest.started_at if newest else None)
