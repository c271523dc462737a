"""A record of its own for each test, in a real file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from store.database import Database, open_database


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'record.db'}"


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    database = open_database(url)
    yield database
    database.close()
