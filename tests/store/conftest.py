"""A record of its own for each test, in a real file, and what fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.database import Database, open_database
from tests.store.seeding import Seed


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'record.db'}"


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    database = open_database(url)
    yield database
    database.close()


@pytest.fixture
def seed(db: Database) -> Seed:
    return Seed(db)


@pytest.fixture
def count(db: Database) -> Callable[[str], int]:
    """How many rows a table has."""

    def counted(table: str) -> int:
        with db.read() as connection:
            return int(connection.exec_driver_sql(f'SELECT count(*) FROM "{table}"').scalar_one())

    return counted
