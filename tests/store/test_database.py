"""Opening a record, its transactions, and its errors in plain words, in either database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier

import pytest
import sqlalchemy as sa

from store.database import REVISIONS, Database, DatabaseError, open_database
from store.dialects import base
from tests.store.processes import PROCESSES


@contextmanager
def behind(url: str) -> Iterator[sa.Connection]:
    """Another program in the same database."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def test_alembic_is_imported_only_to_migrate(url: str) -> None:
    """Opening a record that is up to date does not pay for loading alembic."""
    open_database(url).close()
    script = "import sys, store.database as d; d.open_database(sys.argv[1]); print('alembic' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def _open_together(url: str, barrier: Barrier) -> None:
    barrier.wait(30)
    open_database(url).close()


def test_six_processes_open_a_new_record_at_once(empty_url: str) -> None:
    """Six processes that open a new record at the same moment all succeed, and it is migrated once."""
    barrier = PROCESSES.Barrier(6)
    openers = [PROCESSES.Process(target=_open_together, args=(empty_url, barrier)) for _ in range(6)]
    for opener in openers:
        opener.start()
    for opener in openers:
        opener.join(60)
    assert [opener.exitcode for opener in openers] == [0] * 6
    with behind(empty_url) as connection:
        revisions = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars().all()
    assert revisions == [REVISIONS[-1]]


def test_a_failed_migration_leaves_nothing(empty_url: str) -> None:
    """A migration that fails half-way says so and leaves no table behind."""
    with behind(empty_url) as connection:  # in the way of a table in the middle
        connection.exec_driver_sql("CREATE VIEW score AS SELECT 1 AS one")
    with pytest.raises(DatabaseError, match=r"cannot upgrade .* from revision none .*nothing was changed"):
        open_database(empty_url)
    with behind(empty_url) as connection:
        assert sa.inspect(connection).get_table_names() == []


def test_a_newer_revision_is_refused(url: str) -> None:
    """A record of a newer memtrend is left alone, with the way out."""
    open_database(url).close()
    with behind(url) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseError, match=r"newer memtrend \(revision 9999.*upgrade memtrend"):
        open_database(url)


def test_tables_of_others_are_refused(empty_url: str) -> None:
    """A database of another program is never migrated into."""
    with behind(empty_url) as connection:
        connection.exec_driver_sql("CREATE TABLE customers (id INTEGER)")
    with pytest.raises(DatabaseError, match=r"customers.*not a record of memtrend.*database\.url"):
        open_database(empty_url)
    with behind(empty_url) as connection:
        assert sa.inspect(connection).get_table_names() == ["customers"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("memtrend.db", "not a URL; write it as sqlite:///memtrend.db"),
        ("mysql://user:hush@host/db", "'mysql' cannot hold the record; known: sqlite"),
        ("postgresql+asyncpg://user:hush@host/db", "the driver 'asyncpg' is not known"),
        ("postgresql://user:hush@host", "names no database"),
        ("postgresql://user:pass@hush:word/db", "not a URL"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
    ],
)
def test_urls_that_cannot_be(given: str, said: str) -> None:
    """A URL that names no SQLite file is refused with one that does, and no password is shown."""
    with pytest.raises(DatabaseError) as error:
        open_database(given)
    assert said in str(error.value)
    assert "hush" not in str(error.value)


def test_a_lock_held_too_long_is_named(db: Database, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that waits in vain for another process says so, and what to do."""
    monkeypatch.setattr(base, "BUSY_SECONDS", 0.05)
    other = open_database(url)
    with db.write(), pytest.raises(DatabaseError, match="another process held the write lock"), other.write():
        pass
    other.close()


def test_a_transaction_that_raises_leaves_nothing(db: Database) -> None:
    """Whatever is raised inside a write, none of it is stored."""

    def write_and_fail() -> None:
        with db.write() as connection:
            connection.exec_driver_sql("INSERT INTO scorer (version) VALUES ('1')")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    with db.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM scorer").scalar() == 0


def test_a_reader_sees_one_state(db: Database, url: str) -> None:
    """Two questions in one read agree, though another process writes in between."""
    other = open_database(url)
    count = "SELECT count(*) FROM scorer"
    with db.read() as connection:
        before = connection.exec_driver_sql(count).scalar()
        with other.write() as writer:
            writer.exec_driver_sql("INSERT INTO scorer (version) VALUES ('1')")
        assert connection.exec_driver_sql(count).scalar() == before
    other.close()
