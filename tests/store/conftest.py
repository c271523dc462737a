"""A record of its own for each test, in a real file and in a real server's database, and what fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count as counting
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from store.database import Database, open_database
from tests.postgres import server
from tests.store.seeding import Seed

TEMPLATE = "template_of_tests"
NUMBERS = counting(1)


class Databases(NamedTuple):
    """Those of a running server. `engine` is for what no transaction may do."""

    url: sa.URL
    engine: sa.Engine

    @contextmanager
    def fresh(self, template: str) -> Iterator[str]:
        """The URL of a new one, which goes again."""
        name = f"test_{next(NUMBERS)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield self.named(name)
        self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def named(self, name: str) -> str:
        return self.url.set(database=name).render_as_string(hide_password=False)

    def run(self, statement: str) -> None:
        with self.engine.connect() as connection:
            connection.exec_driver_sql(statement)


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """A server with one record, of which a copy is made faster than a new record."""
    with server() as running:
        url = sa.make_url(running.url).set(drivername="postgresql+psycopg")
        engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        found = Databases(url, engine)
        found.run(f"CREATE DATABASE {TEMPLATE}")
        open_database(found.named(TEMPLATE)).close()
        yield found
        engine.dispose()


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
