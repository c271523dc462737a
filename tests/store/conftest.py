"""A record of its own for each test, in a real file and in a real server's database, and what fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.database import Database, open_database
from tests.databases import TEMPLATE
from tests.store.seeding import Seed


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    """Every test of the record is one of both databases."""
    return str(request.param)


@pytest.fixture
def empty_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of a record that nobody has made yet."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'record.db'}"
    else:
        with request.getfixturevalue("databases").fresh("template1") as fresh:
            yield fresh


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of a record with nothing in it."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'record.db'}"
    else:
        with request.getfixturevalue("databases").fresh(TEMPLATE) as fresh:
            yield fresh


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
