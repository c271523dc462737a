"""What every table stands on: a metadata of its own, since a hot reload defines all of them anew."""

from __future__ import annotations

from sqlalchemy import MetaData
from sqlmodel import SQLModel


class Base(SQLModel):
    metadata = MetaData()


WITHOUT_ROWID = {"sqlite_with_rowid": False}
"""For tables that are found by their key alone: SQLite then keeps the rows in its index."""
