"""What is spent, by day and run: it stays when results go, and tells a day from the next."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from store import models as m
from store.database import upsert
from store.writes.common import now


def spend(connection: Connection, run_id: int, money: float) -> None:
    """Add USD to what the run spent today, in UTC."""
    if money > 0:
        added = upsert(m.spent).values(day=now().date().isoformat(), run_id=run_id, money=money)
        same = ["day", "run_id"]
        connection.execute(
            added.on_conflict_do_update(index_elements=same, set_={"money": m.spent.c.money + money})
        )
