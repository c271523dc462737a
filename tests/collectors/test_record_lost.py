"""The record's disk is full, and its file removed, replaced or made read-only, under a real collector."""

import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from store import queries, writes
from store.database import open_database
from store.errors import RecordGone, RecordReplaced
from tests.collectors import collecting
from tests.collectors.collecting import Process, ended, expect, told, until

NOBODY = 65534
CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.slow]
type = "sluggish:Slow"
[suites.mine]
path = "mine.jsonl"
[schedules.night]
every = "30d"
suites = ["mine"]
"""


pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("patience")]


@pytest.fixture
def home(home, linted_record):
    (home / "memtrend.toml").write_text(CONFIG)
    (home / "sluggish.py").write_text(collecting.SLOW)
    collecting.write_suite(home, 20)
    shutil.copy(linted_record, home / "record.db")
    return home


@pytest.fixture
def db(home):
    db = open_database(f"sqlite:///{home / 'record.db'}")
    yield db
    db.close()


class Patched(Process):
    """A program that makes something of `memtrend` its own, and starts it. Its words pass a pipe: as a file
    they would not fit on a disk that is full, either."""

    def __init__(self, home, program, *arguments):
        self.said = home / "said.txt"
        command = [sys.executable, "-c", program, *arguments]
        with self.said.open("a") as said:
            self.writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=said)
        with self.writer.stdin as pipe:
            self.process = subprocess.Popen(command, cwd=home, stdout=pipe, stderr=pipe)

    def __exit__(self, *_):
        super().__exit__()
        self.writer.wait()


def said(home):
    return (home / "said.txt").read_text()


def beats(db, process):
    until(lambda: any(beat.pid == process.pid for beat in queries.heartbeats(db)), "the collector beats")


def fires(db):
    """Let the time of the schedule come, and wait until its run is done."""
    before = len(ended(db, "night"))
    expect(db, "night", datetime.now(UTC))
    until(lambda: len(ended(db, "night")) > before, "the fire is over")
    assert {fire.state for fire in ended(db, "night")} == {"done"}


# A disk that is full


HOLDING = """
import time
from pathlib import Path

class Slow:
    def __init__(self):
        self.texts = []
    def write(self, text):
        self.texts.append(text)
    def search(self, query, k):
        if "room 9?" in query:
            Path("holds").touch()
            while not Path("go").exists():
                time.sleep(0.02)
        return self.texts[:k]
"""
"""Waits with the answer to one question in the middle."""

FULL_AT_THE_CLOSING = """
import resource
from pathlib import Path
from collectors import cli
from store import writes

close_run = writes.close_run

def closing(*arguments, **named):
    if not Path("full").exists():
        Path("full").touch()
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    return close_run(*arguments, **named)

writes.close_run = closing
cli.main()
"""
"""The disk is full from the moment on in which the first run is to be closed."""


def fill_the_disk(process):
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))


def is_told_and_made_good(home, db, process, done):
    """The collector says that nothing can be written, with the run at so many cases, and goes on with it once
    there is room."""
    until(lambda: "the record refuses" in said(home), "the collector says it")
    assert "record.db" in said(home)
    assert "MB are free there" in said(home)
    assert process.poll() is None
    assert [(run.status, run.cases_done) for run in queries.runs(db)] == [("running", done)]
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    # Given back and not gone on with yet, it is invalid.
    until(lambda: [fire.state for fire in ended(db, "night")] == ["done"], "the fire is done")
    assert "the disk failed or is full" in told(db, "nothing could be recorded since").message
    (run,) = queries.runs(db)
    assert (run.status, run.cases_done) == ("whole", run.cases_total)
    with closing(sqlite3.connect(home / "record.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_disk_that_is_full_within_a_run(home, db):
    """While nothing can be written, the collector says so, with the file, the room that is left and what to
    do, and lives on. Afterwards the run whose answer could not be stored is gone on with: it is whole,
    nothing of it is there twice, and an event tells how long nothing could be recorded."""
    (home / "sluggish.py").write_text(HOLDING)
    with Patched(home, "from collectors import cli; cli.main()", "collect") as process:
        beats(db, process)
        expect(db, "night", datetime.now(UTC))
        until((home / "holds").exists, "a run is at its tenth case")
        (before,) = queries.runs(db)
        fill_the_disk(process)
        (home / "go").touch()
        is_told_and_made_good(home, db, process, before.cases_done)
    assert before.cases_done < before.cases_total


def test_a_disk_that_is_full_while_a_run_is_closed(home, db):
    """The same for a run that has all its cases and lacks no more than its closing."""
    with Patched(home, FULL_AT_THE_CLOSING, "collect") as process:
        beats(db, process)
        expect(db, "night", datetime.now(UTC))
        until((home / "full").exists, "the run is to be closed")
        is_told_and_made_good(home, db, process, 20)


# A file that is removed, replaced, or read-only


def test_a_file_that_is_removed_takes_no_write(home, db):
    """Within seconds the collector says that the file is gone and what to do. Nothing is made in its place,
    nothing is written into what was removed, and once it is back all goes on."""
    with Process(home, "collect") as process:
        beats(db, process)
        fires(db)
        kept = home / "moved"
        kept.mkdir()
        for part in home.glob("record.db*"):
            part.rename(kept / part.name)
        until(lambda: "is gone" in said(home), "the collector says it")
        assert "memtrend restore" in said(home)
        with pytest.raises(RecordGone):
            writes.add_event(db, "info", "test", "lost")
        before = (kept / "record.db-wal").stat().st_mtime_ns
        until(lambda: said(home).count("no heartbeat"), "it would have written")
        assert (kept / "record.db-wal").stat().st_mtime_ns == before
        assert not (home / "record.db").exists()
        for part in kept.iterdir():
            part.rename(home / part.name)
        fires(db)
        assert "is gone" in told(db, "nothing could be recorded since").message
        assert process.poll() is None


def test_a_file_that_is_replaced_ends_the_collector(home, db, empty_record):
    """What a collector knows is of the record that it opened: it ends with 1 and says why, and writes nothing
    into the other one. Whoever starts it again starts it on that."""
    with Process(home, "collect") as process:
        beats(db, process)
        fires(db)
        shutil.copy(empty_record, home / "other.db")
        before = (home / "other.db").read_bytes()
        for part in home.glob("record.db-*"):
            part.unlink()
        (home / "other.db").rename(home / "record.db")
        assert process.wait(timeout=200) == 1
        assert "was replaced by another file" in said(home)
        assert "Traceback" not in said(home)
        with pytest.raises(RecordReplaced):
            queries.runs(db)
        assert (home / "record.db").read_bytes() == before
    with closing(open_database(db.url_public)) as new, Process(home, "collect") as process:
        beats(new, process)


@pytest.fixture
def shared_home(home):
    """A home that anybody may enter, and write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(home, Path(name) / "home"))
        for path in (Path(name), folder, *folder.iterdir()):
            path.chmod(0o777)
        yield folder


AS_NOBODY = f"""
import contextlib, os, sys
import collectors.collector
from collectors import cli

sys.argv = ["memtrend", "run", "--suite", "mine"]
with contextlib.suppress(SystemExit):
    cli.main()
os.geteuid() or os.setuid({NOBODY})
sys.argv = ["memtrend", "collect"]
cli.main()
"""
"""`memtrend collect` as a user whom modes of files bind: after a run, since that one may not read what would
be imported later."""


def test_a_file_made_read_only_is_told(shared_home):
    """A collector whose file was made read-only says so and what to do, though what it has open would still
    take its writes, and goes on once it may write again."""
    record = shared_home / "record.db"
    with closing(open_database(f"sqlite:///{record}")) as db:
        for part in shared_home.glob("record.db*"):
            part.chmod(0o666)
        with Patched(shared_home, AS_NOBODY) as process:
            beats(db, process)
            fires(db)
            record.chmod(0o444)
            until(lambda: "it is read-only" in said(shared_home), "the collector says it")
            assert "make the file and its folder writable" in said(shared_home)
            record.chmod(0o666)
            fires(db)
            assert process.poll() is None
