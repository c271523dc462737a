"""Alerts as they turn, and the messages that say so: an alert and what is to be told of it are written
together, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.alert_life import STANDING_STATES, Incident, NotPossible, Step, Turned
from store.alert_signals import Signal
from store.database import NOW, Database, upsert
from store.errors import StoreError
from store.hiding import redacted
from store.queries.alerts import incident, standing_incidents
from store.queries.outbox import is_folded
from store.writes.common import PROJECT, changed, insert, now


class NewDelivery(NamedTuple):
    """`key` names the message wherever it arrives; an `urgent` one waits for no rate; what `follows` is told
    only where something was told of the same alert before."""

    key: str
    channel: str
    kind: str
    payload: Mapping[str, Any]
    urgent: bool = False
    follows: bool = False


Decide = Callable[[Sequence[Incident]], Iterable[Turned]]
"""What is to become of the alerts that stand."""
Route = Callable[[Incident, Step, int], Iterable[NewDelivery]]
"""Who is told of a step, whose id is the last argument."""


def nobody(incident: Incident, step: Step, step_id: int) -> Iterable[NewDelivery]:
    """Where no channel is configured."""
    return ()


def turn_alerts(
    db: Database, decide: Decide, route: Route = nobody, *, run_id: int | None = None
) -> list[Turned]:
    """Let `decide` say what becomes of the alerts that stand, and keep it. Writers take turns, so two runs
    that end at once open no two alerts for one cause. Of a run it is decided once: where another process has
    done so, nothing happens."""
    with db.write() as connection:
        if run_id is not None and not _first_to_look(connection, run_id):
            return []
        return keep(connection, list(decide(standing_incidents(connection))), route)


def act_on_alert(
    db: Database, alert_id: int, act: Callable[[Incident], Turned], route: Route | None = None
) -> Turned:
    """What a person does to one alert. Who does not know the channels gives no `route`, and leaves it to
    `route_people`. Raises `StoreError` for an unknown one, and for what cannot be done to it."""
    with db.write() as connection:
        return act_in(connection, alert_id, act, route)


def act_in(
    connection: Connection, alert_id: int, act: Callable[[Incident], Turned], route: Route | None
) -> Turned:
    found = incident(connection, alert_id)
    if found is None:
        raise StoreError(f"no alert {alert_id}; memtrend alerts list shows them")
    try:
        return keep(connection, [act(found)], route)[0]
    except NotPossible as error:
        raise StoreError(f"alert {alert_id}: {error}") from None


def route_people(db: Database, route: Route) -> int:
    """Put to the channels what people did where nobody knew them, such as on a page. How many messages came
    of it; each step is put to them once."""
    step = m.alert_step.c
    with db.write() as connection:
        query = sa.select(m.alert_step).where(sa.not_(step.routed)).order_by(step.id)
        rows = connection.execute(query).mappings().all()
        queued = [_routed(connection, row, route) for row in rows]
        done = m.alert_step.update().where(step.id.in_([row["id"] for row in rows]))
        connection.execute(done.values(routed=True))
    return sum(queued)


def _routed(connection: Connection, row: Any, route: Route) -> int:
    step_id, alert_id = row["id"], row["alert_id"]
    found = incident(connection, alert_id)
    assert found is not None
    step = Step(row["action"], row["reason"] or "", row["author"], row["run_id"])
    told = route(found, step, step_id)
    return sum(queue_delivery(connection, delivery, alert_id, step_id) for delivery in told)


def _first_to_look(connection: Connection, run_id: int) -> bool:
    run = m.run.update().where(m.run.c.id == run_id, ~m.run.c.detected)
    return connection.execute(run.values(detected=True)).rowcount == 1


def keep(connection: Connection, turned: Sequence[Turned], route: Route | None) -> list[Turned]:
    kept = [_kept(connection, one, route) for one in turned]
    if kept:
        changed(connection)
    return kept


def _kept(connection: Connection, turned: Turned, route: Route | None) -> Turned:
    at, it = now(), turned.incident
    values = _alert_values(connection, it, at)
    if it.id is None:
        it = it._replace(id=insert(connection, m.alert, opened_at=it.opened_at, project=PROJECT, **values))
    else:
        changes = {**values, "closed_at": _closed(values["closed_at"])}
        connection.execute(m.alert.update().where(m.alert.c.id == it.id).values(**changes))
    assert it.id is not None
    for signal in it.signals:
        _keep_signal(connection, it, signal, at)
    for step in (one._replace(reason=redacted(one.reason)) for one in turned.steps):
        step_id = _keep_step(connection, it.id, step, at, routed=route is not None)
        for delivery in route(it, step, step_id) if route else ():
            queue_delivery(connection, delivery, it.id, step_id)
    return turned._replace(incident=it)


def _closed(at: datetime | None) -> sa.ColumnElement[Any] | None:
    """When it was over, which stays so when a person says something of it later."""
    closed_at = m.alert.c.closed_at
    return None if at is None else sa.func.coalesce(closed_at, sa.literal(at, closed_at.type))


def _alert_values(connection: Connection, it: Incident, at: datetime) -> dict[str, Any]:
    series = {(one.key.suite, one.key.backend) for one in it.standing or it.signals}
    suites, backends = ({one[place] for one in series} for place in (0, 1))
    firsts = [one.first_run_id for one in it.signals if one.first_run_id is not None]
    return {
        "kind": it.kind.name,
        "state": it.state,
        "severity": it.kind.severity,
        "suite_id": _id_of(connection, m.suite, suites),
        "backend_id": _id_of(connection, m.backend, backends),
        "first_bad_run_id": min(firsts, default=None),
        "last_good_run_id": it.last_good_run_id,
        "told_at": it.told_at,
        "closed_at": None if it.state in STANDING_STATES else at,
        "acknowledged_by": it.acknowledged_by,
        "muted_until": it.muted_until,
        "cause": it.cause._asdict(),
        "context": it.context,
        "suspects": list(it.suspects),
        "cases": list(it.cases),
        "tags": list(it.tags),
        "owner": it.owner,
        "judged": it.judged,
        "drill": it.drill,
    }


def _id_of(connection: Connection, table: sa.Table, names: set[str]) -> int | None:
    """Of the one name; None for several, or none that is known."""
    if len(names) != 1:
        return None
    found: int | None = connection.execute(sa.select(table.c.id).where(table.c.name.in_(names))).scalar()
    return found


def _keep_signal(connection: Connection, it: Incident, signal: Signal, at: datetime) -> None:
    values = {
        "standing": signal.standing,
        "depth": signal.depth,
        "told": signal.told,
        "good": signal.good,
        "run_id": signal.run_id,
        "first_run_id": signal.first_run_id,
        "content": {"told": signal.content, "cases": list(signal.cases)},
    }
    if signal.id is None:
        row = {**signal.key._asdict(), **values, "closed_at": at if signal.closed else None}
        insert(connection, m.alert_signal, alert_id=it.id, drill=it.drill, opened_at=at, **row)
        return
    old = m.alert_signal.c
    closed = sa.case((old.closed_at.is_(None), sa.literal(at, old.closed_at.type)), else_=old.closed_at)
    changes = {**values, **({"closed_at": closed} if signal.closed else {})}
    connection.execute(m.alert_signal.update().where(old.id == signal.id).values(**changes))


def _keep_step(connection: Connection, alert_id: int, step: Step, at: datetime, *, routed: bool) -> int:
    told = {"action": step.action, "author": step.author, "reason": step.reason or None}
    where = {"alert_id": alert_id, "at": at, "run_id": step.run_id}
    return insert(connection, m.alert_step, routed=routed, **where, **told)


# The outbox


def queue_delivery(
    connection: Connection, delivery: NewDelivery, alert_id: int | None = None, step_id: int | None = None
) -> bool:
    """Put a message into the outbox. False where one of that key is there already, and where it follows
    nothing."""
    if delivery.follows and not _heard_of(connection, alert_id, delivery.channel):
        return False
    row = upsert(m.delivery).values(
        key=delivery.key,
        channel=delivery.channel,
        kind=delivery.kind,
        urgent=delivery.urgent,
        alert_id=alert_id,
        step_id=step_id,
        payload=delivery.payload,
        state="queued",
        attempts=0,
        queued_at=now(),
        due=NOW,
    )
    new = row.on_conflict_do_nothing(index_elements=["key"]).returning(m.delivery.c.id)
    if delivery.urgent and alert_id is not None:
        _hurry(connection, alert_id, delivery.channel)
    return connection.execute(new).scalar() is not None


def _hurry(connection: Connection, alert_id: int, channel: str) -> None:
    """What a channel is to hear of an alert first waits no longer either, since their order is kept."""
    delivery = m.delivery.c
    before = sa.and_(delivery.alert_id == alert_id, delivery.channel == channel, delivery.state == "queued")
    connection.execute(m.delivery.update().where(before).values(urgent=True, due=NOW))


def _heard_of(connection: Connection, alert_id: int | None, channel: str) -> bool:
    """Whether a channel was told of an alert, be it in a digest, or will be."""
    delivery = m.delivery.c
    told = sa.or_(delivery.state.in_(("queued", "claimed", "sent")), is_folded())
    heard = sa.exists().where(delivery.alert_id == alert_id, delivery.channel == channel, told)
    return connection.execute(sa.select(heard)).scalar_one()


def send_later(db: Database, deliveries: Iterable[NewDelivery]) -> int:
    """Put messages that belong to no step into the outbox: tests, drills' echoes, daily lines. How many are
    new."""
    with db.write() as connection:
        return sum(queue_delivery(connection, one) for one in deliveries)


OVER = ("sent", "failed", "dropped")


def forget_payloads(db: Database, before: datetime) -> int:
    """Take what messages were made of that are over and older than that: their rows stay. How many."""
    delivery = m.delivery.c
    old = sa.and_(delivery.state.in_(OVER), delivery.queued_at < before, delivery.payload != {})
    with db.write() as connection:
        return connection.execute(m.delivery.update().where(old).values(payload={})).rowcount
