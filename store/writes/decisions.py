"""What people decide about baselines, and what that makes of the alerts that stand."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from store.alert_life import Incident, NotPossible, Turned, close, meant, settled
from store.alert_signals import Signal
from store.baselines import ACTIONS, Action
from store.database import Database
from store.errors import StoreError
from store.queries.alerts import standing_incidents
from store.writes.alerts import Route, act_in, keep
from store.writes.verdicts import decide_in


def decide_baseline(
    db: Database, suite: str, backend: str, action: Action, run_ids: Sequence[int], reason: str, author: str
) -> None:
    """Pin, hold, exclude, include, call intended, or reset. What is called intended, or held against nothing
    any more, is no alert either. Raises `StoreError` without a reason, for a run that is no whole run of this
    suite on this backend, and for an action that needs runs and has none."""
    if not reason.strip():
        raise StoreError("a change of a baseline needs a reason: say it in a few words")
    if action not in ACTIONS:
        raise StoreError(f"unknown action {action!r}; known: {', '.join(ACTIONS)}")
    if action != "reset" and not run_ids:
        raise StoreError(f"{action}: name the runs; memtrend runs lists them")
    with db.write() as connection:
        decide_in(connection, suite, backend, action, run_ids, reason, author)
        if action in ("intended", "reset"):
            _settle(connection, suite, backend, reason, author)


def _settle(connection: Connection, suite: str, backend: str, reason: str, author: str) -> None:
    found = [settled(it, suite, backend, author, reason) for it in standing_incidents(connection)]
    keep(connection, [turned for turned in found if turned], None)


def intend_alert(db: Database, alert_id: int, who: str, reason: str, route: Route | None = None) -> Turned:
    """A person says that the change was meant: the alert is over, and the baseline of each of its series
    begins anew with the change. Both or neither. Raises `StoreError` as `act_on_alert` does, and where
    nothing in it is held against a baseline."""
    begins: dict[tuple[str, str], int] = {}

    def intend(it: Incident) -> Turned:
        for signal in meant(it):
            series = (signal.key.suite, signal.key.backend)
            begins[series] = max(begins.get(series, 0), _begins(signal))
        if it.standing and not begins:
            raise NotPossible("nothing in it is held against a baseline, so none can be begun anew")
        return close(it, "intended", who, reason)

    with db.write() as connection:
        turned = act_in(connection, alert_id, intend, route)
        for (suite, backend), run_id in begins.items():
            decide_in(connection, suite, backend, "intended", [run_id], reason, who)
            _settle(connection, suite, backend, reason, who)
    return turned


def _begins(signal: Signal) -> int:
    """The first run of the new state."""
    leak = signal.content.get("leak")
    first = leak["first_bad"] if signal.key.kind == "leak" and leak else signal.first_run_id
    return int(first or 0)
