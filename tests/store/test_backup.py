"""Copies of a record: whole, of one moment, and put back without losing anything."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.engine import URL, make_url

from store import backup, queries, writes
from store.database import Database, DatabaseError, open_database
from store.errors import NoRecord


@pytest.fixture
def url(tmp_path: Path) -> URL:
    return make_url(f"sqlite:///{tmp_path / 'memtrend.db'}")


@pytest.fixture
def db(url: URL) -> Iterator[Database]:
    database = open_database(url.render_as_string())
    yield database
    database.close()


def _messages(path: Path) -> list[str]:
    with closing(open_database(f"sqlite:///{path}")) as db:
        return [event.message for event in queries.events(db, limit=1_000_000)]


WRITE_ON = """
import sys
from store.database import open_database
from store.writes.common import insert_event
db = open_database(sys.argv[1])
for _ in range(1000):
    with db.write() as connection:
        insert_event(connection, "info", "test", "x" * 4000, None)
        insert_event(connection, "info", "test", "y" * 4000, None)
print("ready", flush=True)
while True:
    with db.write() as connection:
        insert_event(connection, "info", "test", "x" * 4000, None)
        insert_event(connection, "info", "test", "y" * 4000, None)
"""


@pytest.fixture
def writer(url: URL) -> Iterator[subprocess.Popen[str]]:
    """A process that goes on writing pairs of rows."""
    command = [sys.executable, "-c", WRITE_ON, url.render_as_string()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_a_copy_is_of_one_moment(url: URL, tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    """A copy taken while another process writes is whole, and holds no half of what was written at once."""
    reported: list[tuple[int, int]] = []
    made = backup.backup(url, tmp_path / "copy.db", report=lambda done, of: reported.append((done, of)))
    assert writer.poll() is None
    assert reported[-1][0] == reported[-1][1] == made.bytes
    assert made.bytes == (tmp_path / "copy.db").stat().st_size
    told = _messages(tmp_path / "copy.db")
    assert len(told) >= 2000
    assert len([one for one in told if one[0] == "x"]) * 2 == len(told)


def test_a_copy_is_one_file_that_as_few_may_read(db: Database, url: URL, tmp_path: Path) -> None:
    """A copy has nothing beside it, and the permissions of the record."""
    (tmp_path / "memtrend.db").chmod(0o600)
    (tmp_path / "to").mkdir()
    backup.backup(url, tmp_path / "to" / "copy.db")
    (copy,) = (tmp_path / "to").iterdir()
    assert copy.stat().st_mode & 0o777 == 0o600


def test_nothing_is_overwritten_unasked(db: Database, url: URL, tmp_path: Path) -> None:
    """A file that is there stays unless --force says otherwise; the record itself stays in any case."""
    copy = tmp_path / "copy.db"
    copy.write_text("a letter")
    with pytest.raises(DatabaseError, match=r"is there already.*--force"):
        backup.backup(url, copy)
    assert copy.read_text() == "a letter"
    backup.backup(url, copy, force=True)
    assert backup.verified(copy).runs == 0
    with pytest.raises(DatabaseError, match="is there already; name another file"):
        backup.backup(url, tmp_path / "memtrend.db", force=True)


def test_a_server_has_tools_of_its_own(tmp_path: Path) -> None:
    """A record on PostgreSQL is refused with what copies it, without its password."""
    with pytest.raises(DatabaseError, match="pg_dump") as error:
        backup.backup(make_url("postgresql://user:hush@host/db?password=quiet"), tmp_path / "copy")
    assert not {"hush", "quiet"} & set(re.split(r"\W", str(error.value)))


def test_no_record_is_made_to_be_copied(url: URL, tmp_path: Path) -> None:
    """Where there is no record, none is made."""
    with pytest.raises(NoRecord, match=r"no record at .*memtrend\.db: name"):
        backup.backup(url, tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


FULL = """
import resource, sys
from pathlib import Path
from sqlalchemy.engine import make_url
from store import backup
from store.database import DatabaseError
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
try:
    backup.backup(make_url(sys.argv[1]), Path(sys.argv[2]), force=True)
except DatabaseError as error:
    print(error)
"""


def test_a_full_disk_leaves_the_former_copy(db: Database, url: URL, tmp_path: Path) -> None:
    """A copy that finds no room says so, and what stood in its place before is untouched."""
    (tmp_path / "to").mkdir()
    copy = tmp_path / "to" / "copy.db"
    backup.backup(url, copy)
    before = copy.read_bytes()
    said = subprocess.run(
        [sys.executable, "-c", FULL, url.render_as_string(), copy], capture_output=True, text=True
    )
    assert "disk" in said.stdout, said.stderr
    assert [path.read_bytes() for path in (tmp_path / "to").iterdir()] == [before]


# Putting back


KILLED = """
import os, signal, sys
from pathlib import Path
from sqlalchemy.engine import make_url
from store import backup
backup.PAGES = 1
die = lambda done, of: os.kill(os.getpid(), signal.SIGKILL) if done > of / 2 else None
backup.backup(make_url(sys.argv[1]), Path(sys.argv[2]), force=True, report=die)
"""


def test_a_killed_copy_takes_no_name(db: Database, url: URL, tmp_path: Path) -> None:
    """A copy that is killed half-way is not there under its name, nor in place of the former one; the next
    one is whole."""
    copy = tmp_path / "copy.db"
    for former in (None, b"former"):
        if former:
            copy.write_bytes(former)
        done = subprocess.run([sys.executable, "-c", KILLED, url.render_as_string(), copy])
        assert done.returncode == -signal.SIGKILL
        assert (copy.read_bytes() if copy.exists() else None) == former
    assert backup.backup(url, copy, force=True) == backup.verified(copy)


def test_restoring_keeps_what_was_there(url: URL, tmp_path: Path) -> None:
    """The copy is the record again, and what was the record is kept beside it, each time."""
    record, copy = tmp_path / "memtrend.db", tmp_path / "copy.db"
    with closing(open_database(url.render_as_string())) as db:
        writes.add_event(db, "info", "test", "before")
        backup.backup(url, copy)
        writes.add_event(db, "info", "test", "after")
    done = backup.restore(url, copy)
    assert done.kept == tmp_path / "memtrend.db.before-restore"
    assert _messages(record) == ["before"]
    assert _messages(done.kept) == ["after", "before"]
    assert backup.restore(url, done.kept).kept == tmp_path / "memtrend.db.before-restore-2"
    assert _messages(record) == ["after", "before"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_restoring_needs_no_record(url: URL, tmp_path: Path) -> None:
    """On a machine that has no record yet, the copy becomes it."""
    with closing(open_database(url.render_as_string())) as db:
        writes.add_event(db, "info", "test", "moved")
        backup.backup(url, tmp_path / "copy.db")
    (tmp_path / "memtrend.db").unlink()
    assert backup.restore(url, tmp_path / "copy.db").kept is None
    assert _messages(tmp_path / "memtrend.db") == ["moved"]


@pytest.mark.parametrize("lease", ["collector", "backend:mem0"])
def test_a_record_at_work_is_not_replaced(db: Database, url: URL, tmp_path: Path, lease: str) -> None:
    """While a collector or a run holds its lease, restoring is refused with its name."""
    backup.backup(url, tmp_path / "copy.db")
    writes.acquire_lease(db, lease, "there:7", 60)
    db.close()
    with pytest.raises(DatabaseError, match=rf"{lease} \(process there:7\)"):
        backup.restore(url, tmp_path / "copy.db")
    assert not list(tmp_path.glob("*before-restore*"))


def test_a_record_that_is_open_is_not_replaced(
    url: URL, tmp_path: Path, writer: subprocess.Popen[str]
) -> None:
    """While another process has the file open, restoring is refused; once it is gone, it works."""
    backup.backup(url, tmp_path / "copy.db")
    with pytest.raises(DatabaseError, match="another process"):
        backup.restore(url, tmp_path / "copy.db")
    writer.kill()
    writer.wait()
    assert backup.restore(url, tmp_path / "copy.db").kept


def test_what_is_no_sound_copy_is_refused(db: Database, url: URL, tmp_path: Path) -> None:
    """A copy that is cut, another database, or one of a newer memtrend changes nothing."""
    copy = tmp_path / "copy.db"
    for _ in range(100):
        writes.add_event(db, "info", "test", "x" * 4000)
    backup.backup(url, copy)
    db.close()
    before = (tmp_path / "memtrend.db").read_bytes()
    whole = copy.read_bytes()
    copy.write_bytes(whole[: len(whole) // 2 // 4096 * 4096])
    with pytest.raises(DatabaseError, match="damaged"):
        backup.restore(url, copy)
    copy.write_bytes(whole)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseError, match=r"newer memtrend.*upgrade memtrend"):
        backup.restore(url, copy)
    copy.unlink()
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER)")
    with pytest.raises(DatabaseError, match="no record of memtrend"):
        backup.restore(url, copy)
    assert (tmp_path / "memtrend.db").read_bytes() == before


def test_a_damaged_record_is_replaced_by_force(db: Database, url: URL, tmp_path: Path) -> None:
    """Nobody can tell who has a damaged record open, so that takes --force; the damaged one is kept too."""
    writes.add_event(db, "info", "test", "sound")
    backup.backup(url, tmp_path / "copy.db")
    db.close()
    (tmp_path / "memtrend.db").write_bytes(b"x" * 9000)
    with pytest.raises(DatabaseError, match=r"stop every memtrend.*--force"):
        backup.restore(url, tmp_path / "copy.db")
    backup.restore(url, tmp_path / "copy.db", force=True)
    assert _messages(tmp_path / "memtrend.db") == ["sound"]
    assert (tmp_path / "memtrend.db.before-restore").read_bytes() == b"x" * 9000
