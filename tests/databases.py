"""Databases of a real PostgreSQL server: one for each test, as quickly made as can be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count as counting
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from store.database import open_database
from tests.postgres import server

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
