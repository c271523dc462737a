"""A record of its own for each test, in a real file, and retries without their pauses."""

import pytest
import stamina

from store.database import open_database


@pytest.fixture
def db(tmp_path):
    database = open_database(f"sqlite:///{tmp_path / 'record.db'}")
    yield database
    database.close()


@pytest.fixture
def no_pauses():
    stamina.set_testing(True, attempts=10, cap=True)
    yield
    stamina.set_testing(False)
