"""What a record in a file has of its own: its modes, its log, and what can be wrong with a file."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from store import queries, writes
from store.database import Database, DatabaseError, open_database
from store.dialects import base
from tests.store.processes import PROCESSES


@pytest.fixture
def kind() -> str:
    return "sqlite"


def test_a_new_file_is_set_up_for_many_processes(db: Database) -> None:
    """A record is in WAL mode, waits for locks, checks foreign keys, and can give space back later."""
    with db.read() as connection:
        pragmas = ("journal_mode", "busy_timeout", "foreign_keys", "auto_vacuum", "synchronous")
        values = [connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() for pragma in pragmas]
    assert values == ["wal", 10_000, 1, 2, 1]


def test_opening_again_changes_nothing(url: str, tmp_path: Path) -> None:
    """A record that is up to date is opened without a write."""
    open_database(url).close()
    before = (tmp_path / "record.db").read_bytes()
    open_database(url).close()
    assert (tmp_path / "record.db").read_bytes() == before


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A folder that does not exist is named, and not made."""
    with pytest.raises(DatabaseError, match=r"the folder .*nowhere does not exist"):
        open_database(f"sqlite:///{tmp_path / 'nowhere' / 'record.db'}")
    assert not (tmp_path / "nowhere").exists()


def test_what_is_no_database_is_refused(url: str, tmp_path: Path) -> None:
    """A text file is not taken for a record, and stays as it is."""
    (tmp_path / "record.db").write_text("the shopping list\n" * 100)
    with pytest.raises(DatabaseError, match="not an SQLite database; name another file"):
        open_database(url)
    assert (tmp_path / "record.db").read_text().startswith("the shopping list")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder in the place of the file is an error in words."""
    with pytest.raises(DatabaseError, match="cannot be opened; check"):
        open_database(f"sqlite:///{tmp_path}")


def _add_mark_as_nobody(url: str, said: Connection) -> None:
    if os.geteuid() == 0:  # root may write anything
        os.seteuid(65534)
    try:
        writes.add_mark(open_database(url), "deploy")
    except DatabaseError as error:
        said.send(str(error))


def test_a_read_only_file_is_named() -> None:
    """A file that this user may not write gives an error that says so."""
    with tempfile.TemporaryDirectory() as name:  # not below pytest's own, which only its user may enter
        folder = Path(name)
        url = f"sqlite:///{folder / 'record.db'}"
        open_database(url).close()
        (folder / "record.db").chmod(0o444)
        folder.chmod(0o555)
        receiver, sender = PROCESSES.Pipe(duplex=False)
        child = PROCESSES.Process(target=_add_mark_as_nobody, args=(url, sender))
        child.start()
        child.join(30)
        assert receiver.poll(), "it was written"
        folder.chmod(0o755)
    assert "read-only; make the file and its folder writable" in receiver.recv()


FILL_UP = """
import resource
import sys
from store import writes
from store.database import DatabaseError, open_database
from store.records import CaseOutcome, CaseRecord, NewRun, ScenarioOutcome, SuiteRecord

db = open_database(sys.argv[1])
names = [f"c{i}" for i in range(50)]
version = writes.register_suite(
    db, SuiteRecord("s", "golden", "own", "1", 0, tuple(CaseRecord(name, "h", "?") for name in names))
)
backend = writes.register_backend(db, "b", "keyword", {})
run = writes.open_run(db, NewRun(version, backend, None, "cli", 1, 50, 1, "1"))
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
stored = 0
try:
    while True:
        score, detail = {"pass": 1.0}, {"reply": "x" * 200}
        cases = tuple(CaseOutcome(name, stored, "ok", scores=score, detail=detail) for name in names)
        writes.save_scenario(db, run, ScenarioOutcome("one", stored, "ok", cases=cases), 1)
        stored += 1
except DatabaseError as error:
    print(stored, error, sep="\\n")
"""


def test_a_full_disk_is_named_and_breaks_nothing(url: str, tmp_path: Path) -> None:
    """When no space is left, the error says so, and the record holds exactly what was stored before."""
    said = subprocess.run([sys.executable, "-c", FILL_UP, url], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    stored, error = said.stdout.splitlines()
    assert "record.db" in error
    assert "the disk failed or is full" in error or "no space left" in error
    connection = sqlite3.connect(tmp_path / "record.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    counts = [
        connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("scenario_result", "case_result", "score", "detail")
    ]
    assert int(stored) > 0
    assert counts == [int(stored), *[50 * int(stored)] * 3]
    assert connection.execute("SELECT cases_done FROM run").fetchone() == (50 * int(stored),)
    connection.close()


def test_closing_empties_the_log(url: str, tmp_path: Path) -> None:
    """What was written is in the file itself after a close, even while another process has the file open."""
    db, other = open_database(url), open_database(url)
    for _ in range(50):
        writes.add_event(db, "info", "test", "x" * 1000)
    assert len(queries.events(other)) > 0
    (log,) = tmp_path.glob("*-wal")
    assert log.stat().st_size > 50_000
    db.close()
    assert log.stat().st_size == 0
    other.close()
    assert not log.exists()


def test_closing_waits_for_nobody(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A close while another process reads leaves the log to that one, at once."""
    monkeypatch.setattr(base, "BUSY_SECONDS", 3600.0)
    db, other = open_database(url), open_database(url)
    with other.read() as reading:
        reading.exec_driver_sql("SELECT count(*) FROM event")
        writes.add_event(db, "info", "test", "said while it reads")
        db.close()
    assert [event.message for event in queries.events(other)] == ["said while it reads"]
    other.close()


def test_a_refused_file_is_not_touched(url: str, tmp_path: Path) -> None:
    """Not a byte of another program's file is changed, and nothing is laid beside it."""
    connection = sqlite3.connect(tmp_path / "record.db")
    connection.execute("CREATE TABLE customers (id INTEGER)")
    connection.close()
    before = (tmp_path / "record.db").read_bytes()
    with pytest.raises(DatabaseError, match="customers"):
        open_database(url)
    assert (tmp_path / "record.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["record.db"]
