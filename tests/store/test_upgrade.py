"""From the first release to this one: nothing is lost, and there is a way back."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from store import backup, queries
from store.database import REVISIONS, DatabaseError, open_database
from store.dialects import base
from store.dialects.postgres import WRITE_LOCK
from tests.store import first_release
from tests.store.seeding import Seed

HEAD = REVISIONS[-1]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A record of the first release."""
    first_release.make(f"sqlite:///{tmp_path / 'memtrend.db'}")
    return tmp_path / "memtrend.db"


def _execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_every_row_is_kept(empty_url: str, revision: str) -> None:
    """A record of the first release, or of any later one, is brought up to date with all of its rows as they
    were, on either database; then it is written to like any other."""
    first_release.make(empty_url, revision)
    before = first_release.rows_of(empty_url)
    assert all(before.values())
    with closing(open_database(empty_url)) as db:
        assert [row.id for row in queries.runs(db)] == [3, 2, 1]
        assert queries.run_cases(db, 3)[0].first_hit == "under the mat"
        after = first_release.rows_of(empty_url)
        for table, rows in before.items():
            columns = rows[0].keys()
            assert [{name: row[name] for name in columns} for row in after[table]] == rows
        assert Seed(db).run(Seed(db).suite(), ["a"]) == 4


TURN = {
    "sqlite": ["PRAGMA journal_mode=WAL", "BEGIN IMMEDIATE"],
    "postgres": [f"SELECT pg_advisory_xact_lock({WRITE_LOCK})"],
}


@pytest.fixture
def held(kind: str, empty_url: str) -> Iterator[sa.Connection]:
    """A transaction of another process, which has the turn to write to a record of the first release."""
    first_release.make(empty_url)
    engine = sa.create_engine(empty_url)
    with engine.connect() as connection:
        for statement in TURN[kind]:
            connection.exec_driver_sql(statement)
        yield connection
    engine.dispose()


def test_who_comes_meanwhile_waits(
    empty_url: str, held: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade may take longer than any write has to wait for its turn: whoever opens the record meanwhile
    waits for it."""
    monkeypatch.setattr(base, "BUSY_SECONDS", 0.05)
    over = threading.Timer(1.0, held.commit)
    over.start()
    with closing(open_database(empty_url)) as db:
        assert len(queries.runs(db)) == 3
    over.join()


def test_a_copy_is_kept_before_an_upgrade(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What there was before an upgrade is kept beside it, once, as stderr says."""
    before = first_release.rows_of(f"sqlite:///{old}")
    for _ in range(2):
        open_database(f"sqlite:///{old}").close()
    kept = old.with_name(f"memtrend.db.before-{HEAD}")
    assert capsys.readouterr().err.count(str(kept)) == 1
    assert backup.verified(kept)[2:] == ("0001", 3)
    assert first_release.rows_of(f"sqlite:///{kept}") == before
    assert sorted(path.name for path in old.parent.iterdir()) == ["memtrend.db", kept.name]


def test_a_new_record_needs_no_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Making a record keeps and says nothing."""
    open_database(f"sqlite:///{tmp_path / 'memtrend.db'}").close()
    assert [path.name for path in tmp_path.iterdir()] == ["memtrend.db"]
    assert capsys.readouterr().err == ""


def test_an_upgrade_that_fails_leaves_no_copy(old: Path) -> None:
    """A failed upgrade changes nothing, so no copy of it piles up."""
    _execute(old, "CREATE VIEW removal AS SELECT 1 AS one")  # in the way of a table of the last revision
    with pytest.raises(DatabaseError, match="nothing was changed"):
        open_database(f"sqlite:///{old}")
    assert [path.name for path in old.parent.iterdir() if "before" in path.name] == []
    assert backup.verified(old).revision == "0001"


FULL = """
import resource, sys
from store.database import DatabaseError, open_database
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
try:
    open_database(sys.argv[1])
except DatabaseError as error:
    print(error)
"""


def test_no_upgrade_begins_without_room_for_a_copy(old: Path) -> None:
    """Where the disk is too full to keep a copy, the record stays at its revision, and it is said why."""
    _execute(old, "UPDATE detail SET content = hex(randomblob(20000))")
    said = subprocess.run([sys.executable, "-c", FULL, f"sqlite:///{old}"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert "was not upgraded, since no copy could be kept" in said.stdout
    assert backup.verified(old).revision == "0001"
    assert [path.name for path in old.parent.iterdir() if "before" in path.name] == []


def test_a_record_that_is_too_new_names_its_way_back(old: Path) -> None:
    """An older memtrend names the copy kept before a newer one came, and restoring that is enough."""
    url = f"sqlite:///{old}"
    open_database(url).close()
    kept = old.with_name("memtrend.db.before-9999")
    backup.backup(make_url(url), kept)
    _execute(old, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseError, match=rf"newer memtrend.*memtrend restore {kept}"):
        open_database(url)
    backup.restore(make_url(url), kept)
    open_database(url).close()
    assert backup.verified(old.with_name("memtrend.db.before-restore")).revision == "9999"
