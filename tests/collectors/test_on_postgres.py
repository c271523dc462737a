"""The command line on a record that a PostgreSQL server keeps: the same words, runs and leases."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from store import queries, writes
from store.database import Database, open_database
from tests.databases import TEMPLATE, Databases
from tests.postgres import PASSWORD
from tests.waiting import until

MEMTREND = Path(sys.executable).with_name("memtrend")
WAIT_S = 60.0
CONFIGURATION = """
[database]
url_file = "url"
[backends.keyword]
type = "keyword"
[backends.nothing]
type = "nothing"
"""


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    with databases.fresh(TEMPLATE) as fresh:
        yield fresh.replace("postgresql+psycopg:", "postgresql:")


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    with closing(open_database(url)) as opened:
        yield opened


def home(folder: Path, url: str) -> Path:
    """A folder in which memtrend finds its configuration, and keeps what is its own."""
    folder.mkdir()
    (folder / "url").write_text(url)
    (folder / "memtrend.toml").write_text(CONFIGURATION)
    return folder


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [MEMTREND, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ask(folder: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run([MEMTREND, *arguments], cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == code, done.stdout + done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    return done.stdout


def test_from_a_run_to_its_verdict(tmp_path: Path, url: str) -> None:
    """A run is made, listed, shown, judged and exported, and `doctor` names the server."""
    folder = home(tmp_path / "home", url)
    (made,) = json.loads(ask(folder, "run", "-s", "smoke", "-b", "keyword", "--json"))["runs"]
    assert made["status"] == "whole"
    (listed,) = json.loads(ask(folder, "runs", "--json"))["runs"]
    assert listed == made
    shown = json.loads(ask(folder, "show", "1", "--json"))
    passes = [case["passed"] for case in shown["cases"] if case["passed"] is not None]
    assert sum(passes) / len(passes) == pytest.approx(made["metrics"]["pass"]["mean"])
    assert json.loads(ask(folder, "verdict", "1", "--json", code=3))["verdict"] == "cannot_tell"
    assert ask(folder, "export").count("\n") == 1 + len(shown["cases"])
    told = ask(folder, "doctor")
    assert "postgresql://postgres:***@" in told
    assert ", PostgreSQL 1" in told


def _leader(db: Database) -> str:
    held = [row.owner for row in queries.leases(db) if row.name == writes.LEADER_LEASE and row.held]
    return held[0].rpartition(":")[2] if held else ""


def test_a_stand_by_takes_over(tmp_path: Path, url: str, db: Database) -> None:
    """Of two collectors in two folders one leads; when it is killed the other does what is asked next, and
    each request is answered once."""
    folders = [home(tmp_path / name, url) for name in ("one", "two")]
    first = start(folders[0], "collect")
    try:
        until(lambda: _leader(db) == str(first.pid), "the first leads", WAIT_S)
        second = start(folders[1], "collect", "--stand-by")
        try:
            asked = [_asked_and_answered(db)]
            first.kill()
            first.wait(10)
            until(lambda: _leader(db) == str(second.pid), "the second leads", WAIT_S)
            asked.append(_asked_and_answered(db))
            assert [row.id for row in queries.runs(db)] == [run for ids in asked[::-1] for run in ids]
            second.terminate()
            assert second.wait(30) == 0
        finally:
            second.kill()
            second.communicate()
    finally:
        first.kill()
        first.communicate()
    assert _leader(db) == ""


def _asked_and_answered(db: Database) -> list[int]:
    """The runs that a request led to."""
    asked = writes.add_request(db, "run", {"suite": "smoke", "backend": "keyword"})

    def row() -> queries.RequestRow:
        return next(row for row in queries.requests(db) if row.id == asked)

    until(lambda: row().state in ("done", "failed"), "the request is answered", WAIT_S)
    assert row().error is None
    return row().run_ids


def test_compares(tmp_path: Path, url: str, db: Database) -> None:
    """Two backends are asked in turns, and the same again is answered from the record."""
    folder = home(tmp_path / "one", url)
    asked = ("compare", "keyword", "nothing", "--suite", "smoke", "--json")
    first, again = (json.loads(ask(folder, *asked, code=1)) for _ in range(2))
    assert (first["verdict"], first["a"]["trials"], first["b"]["trials"]) == ("inferior", 4, 4)
    assert (again["interval"], again["lost"]) == (first["interval"], first["lost"])
    assert [row.subset for row in queries.runs(db)] == [queries.COMPARED] * 2
