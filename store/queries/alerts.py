"""Alerts: what stands, what became of each, who was told, and how often that was right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.alert_life import STANDING_STATES, Cause, Incident
from store.alert_signals import Signal
from store.columns import LARGEST
from store.database import Database
from store.queries.health import censuses
from store.queries.outbox import is_folded
from store.sightings import Key


class AlertRow(NamedTuple):
    """An alert as pages and commands list it: `suite` and `backend` are '' where it is of several."""

    id: int
    suite: str
    backend: str
    first_bad_run_id: int | None
    closed_at: datetime | None
    incident: Incident


class Holder(NamedTuple):
    """The state of an alert, and who has acknowledged it."""

    state: str
    acknowledged_by: str | None


class StepRow(NamedTuple):
    """What became of an alert, and who did it."""

    id: int
    alert_id: int
    at: datetime
    action: str
    author: str
    reason: str | None
    run_id: int | None


class ChannelRow(NamedTuple):
    """What a channel has come to. `waiting`: messages that are not sent yet, `failed`: given up since
    `since`; `disabled_at` with its reason while it takes nothing."""

    name: str
    waiting: int
    oldest: datetime | None
    sent: int
    failed: int
    last_sent: datetime | None
    last_error: str | None
    disabled_at: datetime | None
    reason: str | None


class Judged(NamedTuple):
    """Of the alarms that somebody was told of: how many people called real, noise, and neither yet."""

    real: int
    noise: int
    unjudged: int


class Census(NamedTuple):
    """`legs`: leg -> memories counted, and how many it should hold where that is known; `tolerance`: by how
    much less is no news, as a share."""

    legs: dict[str, tuple[int, int | None]]
    tolerance: float


class ProofRow(NamedTuple):
    """A drill and how long each part took, in seconds from its start."""

    id: int
    started_at: datetime
    finished_at: datetime | None
    suite: str
    backend: str
    fault: str
    channel: str
    alert_id: int | None
    detected_s: float | None
    confirmed_s: float | None
    delivered_s: float | None
    error: str | None

    @property
    def passed(self) -> bool:
        return self.delivered_s is not None and self.error is None


def standing_incidents(connection: Connection) -> list[Incident]:
    """Those that are not over, oldest first: what a new sighting may belong to."""
    query = sa.select(m.alert).where(m.alert.c.state.in_(STANDING_STATES)).order_by(m.alert.c.id)
    return _incidents(connection, connection.execute(query).mappings().all())


def incident(connection: Connection, alert_id: int) -> Incident | None:
    rows = connection.execute(sa.select(m.alert).where(m.alert.c.id == alert_id)).mappings().all()
    return next(iter(_incidents(connection, rows)), None)


def _incidents(connection: Connection, rows: Sequence[Any]) -> list[Incident]:
    signals = _signals(connection, [row["id"] for row in rows])
    return [_incident(row, signals[row["id"]]) for row in rows]


def _signals(connection: Connection, alert_ids: Collection[int]) -> dict[int, list[Signal]]:
    signal, found = m.alert_signal.c, defaultdict[int, list[Signal]](list)
    query = sa.select(m.alert_signal).where(signal.alert_id.in_(alert_ids)).order_by(signal.id)
    for row in connection.execute(query).mappings():
        found[row["alert_id"]].append(_signal(row))
    return found


def _signal(row: Any) -> Signal:
    key, kept = Key(*(row[name] for name in Key._fields)), row["content"]
    return Signal(
        key, row["standing"], row["depth"], row["told"], row["good"], row["run_id"], row["first_run_id"],
        tuple(kept["cases"]), kept["told"], row["closed_at"] is not None, row["id"],
    )  # fmt: skip


def _incident(row: Any, signals: Iterable[Signal]) -> Incident:
    return Incident(
        state=row["state"],
        opened_at=row["opened_at"],
        signals=tuple(signals),
        cause=Cause(**row["cause"]),
        suspects=tuple(row["suspects"]),
        context=row["context"],
        last_good_run_id=row["last_good_run_id"],
        tags=tuple(row["tags"]),
        owner=row["owner"],
        told_at=row["told_at"],
        acknowledged_by=row["acknowledged_by"],
        muted_until=row["muted_until"],
        judged=row["judged"],
        drill=row["drill"],
        id=row["id"],
    )


def undetected(db: Database) -> list[int]:
    """Runs that have ended and in which nobody has looked for alerts yet, in the order of their ends."""
    ended = m.run.c.status.in_(("whole", "invalid", "void"))
    query = sa.select(m.run.c.id).where(~m.run.c.detected, ended).order_by(m.run.c.finished_at, m.run.c.id)
    with db.read() as connection:
        return list(connection.execute(query).scalars())


def has_unrouted(db: Database) -> bool:
    """Whether a person did something, such as on a page, that no channel was asked about yet."""
    with db.read() as connection:
        return bool(connection.execute(sa.select(sa.exists().where(sa.not_(m.alert_step.c.routed)))).scalar())


def open_signals(db: Database, kind: str) -> list[Signal]:
    """Of one kind, what is wrong now."""
    signal = m.alert_signal.c
    query = sa.select(m.alert_signal).where(signal.kind == kind, signal.closed_at.is_(None))
    with db.read() as connection:
        rows = connection.execute(query.order_by(signal.alert_id, signal.id)).mappings()
        return [_signal(row) for row in rows]


def census(db: Database, run_id: int) -> Census:
    """Of a run of an index's suite; without legs for any other."""
    with db.read() as connection:
        legs = censuses(connection, [run_id]).get(run_id, {})
        return Census(legs, _tolerance(connection, run_id) if legs else 0.0)


def failed_cases(db: Database, run_id: int) -> frozenset[str]:
    """Names of the cases of a run that did not pass, in any trial: lost, or without an answer."""
    case, result = m.case.c, m.case_result.c
    failed = sa.or_(result.status == "error", sa.and_(result.status == "ok", result.failure.is_not(None)))
    names = sa.select(case.name).join(m.case_result, result.case_id == case.id)
    with db.read() as connection:
        return frozenset(connection.execute(names.where(result.run_id == run_id, failed)).scalars())


def _tolerance(connection: Connection, run_id: int) -> float:
    """As the suite's cases ask it."""
    case, result = m.case.c, m.case_result.c
    stories = sa.select(case.story).join(m.case_result, result.case_id == case.id)
    for story in connection.execute(stories.where(result.run_id == run_id, result.status == "ok")).scalars():
        for expectation in story["expectations"]:
            if expectation["kind"] == "count":
                return float(expectation.get("tolerance", 0.0))
    return 0.0


def alerts(
    db: Database,
    *,
    states: Collection[str] | None = None,
    kinds: Collection[str] | None = None,
    suite: str | None = None,
    backend: str | None = None,
    owner: str | None = None,
    run_id: int | None = None,
    drills: bool = False,
    limit: int | None = 200,
) -> list[AlertRow]:
    """Those that stand first, the newest of each first. `run_id`: the first or last run that one of its
    signals is of; `drills` alone, or alerts alone."""
    signal, alert = m.alert_signal.c, m.alert.c
    query = (
        sa.select(m.alert, m.suite.c.name.label("suite"), m.backend.c.name.label("backend"))
        .outerjoin(m.suite, m.suite.c.id == alert.suite_id)
        .outerjoin(m.backend, m.backend.c.id == alert.backend_id)
        .where(alert.drill == drills)
        .order_by(alert.state.in_(STANDING_STATES).desc(), alert.opened_at.desc(), alert.id.desc())
    )
    if states is not None:
        query = query.where(alert.state.in_(states))
    if kinds is not None:
        query = query.where(alert.kind.in_(kinds))
    if owner is not None:
        query = query.where(alert.owner == owner)
    told = {"suite": suite, "backend": backend}
    for name, value in told.items():
        if value is not None:
            query = query.where(alert.id.in_(sa.select(signal.alert_id).where(signal[name] == value)))
    if run_id is not None:
        spoke = sa.or_(signal.first_run_id == run_id, signal.run_id == run_id)
        query = query.where(alert.id.in_(sa.select(signal.alert_id).where(spoke)))
    with db.read() as connection:
        return _alert_rows(connection, connection.execute(query.limit(limit)).mappings().all())


def alert(db: Database, alert_id: int) -> AlertRow | None:
    if alert_id > LARGEST:
        return None
    query = (
        sa.select(m.alert, m.suite.c.name.label("suite"), m.backend.c.name.label("backend"))
        .outerjoin(m.suite, m.suite.c.id == m.alert.c.suite_id)
        .outerjoin(m.backend, m.backend.c.id == m.alert.c.backend_id)
        .where(m.alert.c.id == alert_id)
    )
    with db.read() as connection:
        rows = _alert_rows(connection, connection.execute(query).mappings().all())
    return rows[0] if rows else None


def _alert_rows(connection: Connection, rows: Sequence[Any]) -> list[AlertRow]:
    signals = _signals(connection, [row["id"] for row in rows])
    return [
        AlertRow(
            row["id"], row["suite"] or "", row["backend"] or "", row["first_bad_run_id"], row["closed_at"],
            _incident(row, signals[row["id"]]),
        )
        for row in rows
    ]  # fmt: skip


def alert_owners(db: Database) -> list[str]:
    """Whose alerts there are, drills left out."""
    query = sa.select(m.alert.c.owner).where(~m.alert.c.drill).distinct().order_by(m.alert.c.owner)
    with db.read() as connection:
        return list(connection.execute(query).scalars())


def was_closed(db: Database, kind: str, since: datetime, subject: str = "") -> bool:
    """Whether an alert in which this was wrong was closed since then."""
    signal, alert = m.alert_signal.c, m.alert.c
    of_it = sa.and_(signal.alert_id == alert.id, signal.kind == kind, signal.subject == subject)
    query = sa.select(sa.exists().where(of_it, alert.closed_at > since, ~alert.drill))
    with db.read() as connection:
        return bool(connection.execute(query).scalar_one())


def holders(db: Database) -> list[Holder]:
    """Who has each alert that stands, drills left out: without what it is about, of which there may be
    much."""
    alert = m.alert.c
    query = sa.select(alert.state, alert.acknowledged_by)
    with db.read() as connection:
        rows = connection.execute(query.where(alert.state.in_(STANDING_STATES), ~alert.drill))
        return [Holder(*row) for row in rows]


def count_alerts(db: Database) -> dict[str, int]:
    """State -> alerts in it, drills left out."""
    query = sa.select(m.alert.c.state, sa.func.count()).where(~m.alert.c.drill).group_by(m.alert.c.state)
    with db.read() as connection:
        return _counted(connection, query)


def _counted(connection: Connection, query: sa.Select[Any]) -> dict[Any, int]:
    return {row[0]: row[1] for row in connection.execute(query)}


def alert_steps(db: Database, alert_id: int) -> list[StepRow]:
    """Oldest first."""
    step = m.alert_step.c
    columns = [step[name] for name in StepRow._fields]
    query = sa.select(*columns).where(step.alert_id == alert_id).order_by(step.id)
    with db.read() as connection:
        return [StepRow(*row) for row in connection.execute(query)]


def judged(db: Database, since: datetime | None = None) -> Judged:
    """What people made of the alarms that were told, drills and improvements left out."""
    alert = m.alert.c
    query = (
        sa.select(alert.judged, sa.func.count())
        .where(alert.told_at.is_not(None), ~alert.drill, alert.kind != "improvement")
        .group_by(alert.judged)
    )
    if since is not None:
        query = query.where(alert.told_at >= since)
    with db.read() as connection:
        found = _counted(connection, query)
    return Judged(found.get("real", 0), found.get("noise", 0), found.get(None, 0))


def judged_by_channel(db: Database, since: datetime) -> dict[str, Judged]:
    """The same of each channel that the alarms were sent to, be it in a digest."""
    alert, delivery = m.alert.c, m.delivery.c
    arrived = sa.or_(delivery.state == "sent", is_folded())
    query = (
        sa.select(delivery.channel, alert.judged, sa.func.count(alert.id.distinct()))
        .join_from(m.delivery, m.alert, alert.id == delivery.alert_id)
        .where(arrived, alert.told_at >= since, ~alert.drill, alert.kind != "improvement")
        .group_by(delivery.channel, alert.judged)
    )
    found: dict[str, dict[str | None, int]] = defaultdict(dict)
    with db.read() as connection:
        for channel, told, n in connection.execute(query):
            found[channel][told] = n
    return {
        name: Judged(one.get("real", 0), one.get("noise", 0), one.get(None, 0)) for name, one in found.items()
    }


def channel_rows(db: Database, names: Iterable[str], since: datetime) -> list[ChannelRow]:
    """What each channel has come to, sent and failed since then."""
    delivery, state = m.delivery.c, m.channel_state.c
    waiting = delivery.state.in_(("queued", "claimed"))
    recent = delivery.queued_at >= since
    query = sa.select(
        delivery.channel,
        sa.func.count().filter(waiting),
        sa.func.min(delivery.queued_at).filter(waiting),
        sa.func.count().filter(sa.and_(delivery.state == "sent", recent)),
        sa.func.count().filter(sa.and_(delivery.state == "failed", recent)),
        sa.func.max(delivery.sent_at),
    ).group_by(delivery.channel)
    with db.read() as connection:
        counts = {row[0]: tuple(row[1:]) for row in connection.execute(query)}
        last = {row.channel: row.error for row in connection.execute(_troubles())}
        off = {row.name: (row.disabled_at, row.reason) for row in connection.execute(sa.select(*state))}
    return [_channel_row(name, counts.get(name), last.get(name), off.get(name)) for name in names]


def _troubles() -> sa.Select[Any]:
    """Channel and error of the newest message of each that waits after an error, or failed with none sent
    since: what was folded, dropped, or refused before it went well is no trouble of the channel's."""
    delivery, sent = m.delivery.c, m.delivery.alias("sent").c
    since = sa.exists().where(sent.channel == delivery.channel, sent.state == "sent", sent.id > delivery.id)
    stuck = delivery.state.in_(("queued", "claimed"))
    trouble = sa.or_(stuck, sa.and_(delivery.state == "failed", ~since))
    newest = sa.select(sa.func.max(delivery.id)).where(delivery.error.is_not(None), trouble)
    newest = newest.group_by(delivery.channel)
    return sa.select(delivery.channel, delivery.error).where(delivery.id.in_(newest))


def _channel_row(
    name: str, counts: Any, last_error: str | None, off: tuple[datetime, str] | None
) -> ChannelRow:
    waiting, oldest, sent, failed, last_sent = counts or (0, None, 0, 0, None)
    disabled_at, reason = off or (None, None)
    return ChannelRow(name, waiting, oldest, sent, failed, last_sent, last_error, disabled_at, reason)


def proofs(db: Database, limit: int = 30) -> list[ProofRow]:
    """Drills, newest first."""
    proof = m.proof.c
    query = sa.select(*(proof[name] for name in ProofRow._fields)).order_by(proof.id.desc()).limit(limit)
    with db.read() as connection:
        return [ProofRow(*row) for row in connection.execute(query)]
