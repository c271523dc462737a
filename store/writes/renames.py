"""A backend gets another name, and keeps its series."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import NOW, Database
from store.errors import StoreError
from store.writes.common import changed, insert_event
from store.writes.leases import backend_lease


class Renamed(NamedTuple):
    """`runs`: how many keep their series; `control`: the new name of its control, None where it has none."""

    runs: int
    control: str | None


def rename_backend(db: Database, old: str, new: str, author: str) -> Renamed:
    """Rename it wherever the record names it, its control (`old-control`) with it, in one transaction. Raises
    `StoreError` for a name that is unknown or taken, while a run has one of them, and while a collector
    leads: by the configuration that it has, it would begin a series of the old name. A row of the new name
    without a run, which a collector writes once the configuration names it, is no obstacle."""
    with db.write() as connection:
        _refuse_led(connection)
        control = _control_of(connection, old)
        pairs = {old: new, **({control: f"{new}-control"} if control else {})}
        for name, other in pairs.items():
            _refuse_held(connection, name, other)
            _make_room(connection, other)
        for name, other in pairs.items():
            _rename(connection, name, other)
        runs = _count(connection, m.run, _id(connection, new))
        insert_event(connection, "info", "backend", f"{author} renamed backend {old} to {new}", None)
        changed(connection)
    return Renamed(runs, pairs.get(control) if control else None)


def _control_of(connection: Connection, old: str) -> str | None:
    """Its name, where it has made runs beside the backend's."""
    if _id(connection, old) is None:
        raise StoreError(f"no backend {old!r} is in the record; memtrend runs shows their names")
    control = _id(connection, f"{old}-control")
    of_a_control = sa.exists().where(m.control.c.control_id == m.run.c.id)
    made = sa.select(m.run.c.id).where(m.run.c.backend_id == control, of_a_control).limit(1)
    return f"{old}-control" if connection.execute(made).first() else None


def _id(connection: Connection, name: str) -> int | None:
    found: int | None = connection.execute(sa.select(m.backend.c.id).where(m.backend.c.name == name)).scalar()
    return found


def _refuse_led(connection: Connection) -> None:
    led = sa.select(m.lease.c.owner).where(m.lease.c.name == m.LEADER_LEASE, m.lease.c.expires > NOW)
    if owner := connection.execute(led).scalar():
        raise StoreError(
            f"stop the collector first: {owner} leads, and would begin a new series under the old name; "
            "start it again once memtrend.toml has the new one"
        )


def _refuse_held(connection: Connection, *names: str) -> None:
    leases = [backend_lease(name) for name in names]
    held = sa.select(m.lease.c.name).where(m.lease.c.name.in_(leases), m.lease.c.expires > NOW)
    if found := connection.execute(held).scalar():
        name = found.removeprefix(m.BACKEND_LEASE)
        raise StoreError(f"backend {name} is in use by a run; rename when it has ended, or cancel it")


def _make_room(connection: Connection, name: str) -> None:
    """Raises `StoreError` for the name of a backend that has a series."""
    taken = _id(connection, name)
    if taken is None:
        return
    if any(_count(connection, table, taken) for table in (m.run, m.baseline_change, m.expected_count)):
        raise StoreError(f"backend {name} has a series of its own already; choose another name")
    connection.execute(m.backend.delete().where(m.backend.c.id == taken))


def _count(connection: Connection, table: sa.Table, backend_id: int | None) -> int:
    query = sa.select(sa.func.count()).select_from(table).where(table.c.backend_id == backend_id)
    return int(connection.execute(query).scalar_one())


def _rename(connection: Connection, old: str, new: str) -> None:
    connection.execute(m.backend.update().where(m.backend.c.name == old).values(name=new))
    connection.execute(m.mutant.update().where(m.mutant.c.backend == old).values(backend=new))
    signal = m.alert_signal
    connection.execute(signal.update().where(signal.c.backend == old).values(backend=new))
    _rename_lease(connection, backend_lease(old), backend_lease(new))
    waiting = sa.select(m.request.c.id, m.request.c.payload).where(m.request.c.state == "queued")
    for row in connection.execute(waiting).all():
        if row.payload.get("backend") == old:
            payload = {**row.payload, "backend": new}
            connection.execute(m.request.update().where(m.request.c.id == row.id).values(payload=payload))


def _rename_lease(connection: Connection, old: str, new: str) -> None:
    """Its token goes on rising, so that whoever held either lease once is still refused."""
    both = m.lease.c.name.in_([old, new])
    token = connection.execute(sa.select(sa.func.max(m.lease.c.token)).where(both)).scalar()
    if token is not None:
        connection.execute(m.lease.delete().where(both))
        connection.execute(m.lease.insert().values(name=new, owner="", token=token, expires=0.0))
