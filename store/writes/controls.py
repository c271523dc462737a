"""A run and its control, begun together."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.errors import StoreError
from store.records import NewControl, NewRun
from store.writes.common import insert, upsert_named
from store.writes.runs import insert_run, refuse_controls_name


def open_pair(db: Database, new: NewRun, control: NewControl) -> tuple[int, int]:
    """Begin a run and its control's in one transaction, so that neither is ever without the other; returns
    their ids. Raises `StoreError` where the control's name is that of a backend with runs of its own, or the
    backend's that of a control."""
    with db.write() as connection:
        refuse_controls_name(connection, new)
        _refuse_taken(connection, control.name)
        run_id = insert_run(connection, new)
        values = {"type": control.type, "config": dict(control.config), "owner": new.owner}
        beside = replace(
            new,
            backend_id=upsert_named(connection, m.backend, control.name, values),
            environment_id=control.environment_id,
            token=control.token,
        )
        control_id = insert_run(connection, beside)
        insert(connection, m.control, control_id=control_id, run_id=run_id, release=control.release)
        return run_id, control_id


def _refuse_taken(connection: Connection, name: str) -> None:
    own = (
        sa.select(m.run.c.id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .outerjoin(m.control, m.control.c.control_id == m.run.c.id)
        .where(m.backend.c.name == name, m.run.c.subset == "", m.control.c.control_id.is_(None))
    )
    taken = connection.execute(own.order_by(m.run.c.id).limit(1)).scalar()
    if taken is not None:
        raise StoreError(
            f"the control would be called {name}, and a backend of that name has runs of its own (run "
            f"{taken}); give the backend that has the control another name"
        )
