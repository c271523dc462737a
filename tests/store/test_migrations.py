"""The migrations and the models tell the same story."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import sqlalchemy as sa

from store import models
from store.database import REVISIONS, open_database


def _schema(path: Path) -> dict[str, str]:
    """Every CREATE statement of the file by name, blanks evened out."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return {name: " ".join(sql.split()) for name, sql in rows if name != "alembic_version"}


def test_models_are_what_migrations_make(tmp_path: Path) -> None:
    """A record made by the migrations has exactly the tables, keys and indexes of the models."""
    open_database(f"sqlite:///{tmp_path / 'migrated.db'}").close()
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'modelled.db'}")
    models.Base.metadata.create_all(engine)
    engine.dispose()
    assert _schema(tmp_path / "migrated.db") == _schema(tmp_path / "modelled.db")


def test_known_revisions_are_a_chain() -> None:
    """The revisions that opening knows are those of the migrations, in their order."""
    from alembic.script import ScriptDirectory

    from store.database import MIGRATIONS

    chain = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]
    assert tuple(reversed(chain)) == REVISIONS
