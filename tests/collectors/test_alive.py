"""`memtrend alive`: what a health check is told."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import time_machine

from collectors.alive_commands import what_is_dead
from store import writes
from store.database import REVISIONS, open_database
from store.settings import Settings, load_settings

HERE = socket.gethostname()
START = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)


@contextmanager
def listening(told: Any) -> Iterator[int]:
    """The port of a server that answers this and nothing else."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(told if isinstance(told, bytes) else json.dumps(told).encode())

        def log_message(self, *_: Any) -> None:
            """Not on stderr."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def of(tmp_path, monkeypatch) -> Settings:
    """Settings whose dashboard listens nowhere, with a record of their own."""
    monkeypatch.chdir(tmp_path)
    settings = load_settings()
    with socket.create_server(("127.0.0.1", 0)) as free:
        settings.dashboard.port = free.getsockname()[1]
    return settings


def beat(of: Settings, host: str) -> None:
    with time_machine.travel(START, tick=False), closing(open_database(_url(of))) as db:
        writes.beat(db, "collector", 7, host)


def _url(of: Settings) -> str:
    return of.database.url.get_secret_value()


def later(seconds: float) -> time_machine.travel:
    return time_machine.travel(START + timedelta(seconds=seconds), tick=False)


def dashboard(*, collector: bool) -> dict[str, Any]:
    return {"ok": True, "collector_alive": collector}


def test_where_nothing_ran_nothing_lives(of) -> None:
    """Neither a dashboard nor a collector: both are named as missing."""
    open_database(_url(of)).close()
    said = what_is_dead(of)
    assert said
    assert "none has said that it lives" in said
    assert f"no dashboard listens at http://127.0.0.1:{of.dashboard.port}" in said


def test_a_check_makes_no_record(of, tmp_path) -> None:
    """Where there is none the check says so, also beside a dashboard, and makes none."""
    for port in (of.dashboard.port, None):
        with listening(dashboard(collector=False)) as answering:
            of.dashboard.port = port or answering
            assert "there is no record at sqlite:" in (what_is_dead(of) or "")
    assert [*tmp_path.iterdir()] == []


def test_a_check_upgrades_no_record(of, tmp_path) -> None:
    """A record of an older release is unhealthy, with its revision, and stays as it is."""
    beat(of, HERE)
    with closing(sqlite3.connect("memtrend.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", REVISIONS[:1])
    with later(5):
        assert f"is of revision {REVISIONS[0]}" in (what_is_dead(of) or "")
    with closing(sqlite3.connect("memtrend.db")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [REVISIONS[:1]]
    assert not [*tmp_path.glob("*before*")]


def test_a_collector_alone_lives_by_its_heartbeat(of) -> None:
    """Its word counts for a minute, and then no more."""
    beat(of, HERE)
    with later(59):
        assert what_is_dead(of) is None
    with later(62):
        assert "is 62 s old" in (what_is_dead(of) or "")


def test_a_stand_by_lives_by_anothers_heartbeat(of) -> None:
    """The collector of another machine counts for who stands by for it alone, and only while it lives."""
    beat(of, "elsewhere")
    with later(5):
        assert what_is_dead(of)
        assert what_is_dead(of, stand_by=True) is None
    with later(62):
        assert what_is_dead(of, stand_by=True)


def test_a_dashboard_alone_lives_without_a_collector(of) -> None:
    """One that answers is well where no collector of this machine has led, dead ones elsewhere or not."""
    open_database(_url(of)).close()
    with listening(dashboard(collector=False)) as of.dashboard.port:
        assert what_is_dead(of) is None
        beat(of, "elsewhere")
        with later(62):
            assert what_is_dead(of) is None


def test_both_live_while_both_do(of) -> None:
    """Beside a dashboard that answers, a collector of this machine that fell silent is told."""
    beat(of, HERE)
    with listening(dashboard(collector=True)) as of.dashboard.port:
        assert what_is_dead(of) is None
    with listening(dashboard(collector=False)) as of.dashboard.port, later(62):
        assert "the last word of one is 62 s old" in (what_is_dead(of) or "")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"ok": False, "error": "the record is gone"}, "the record is gone"),
        (b"<html>", "does not answer as a dashboard does"),
        ({}, "does not answer as a dashboard does"),
        ([], "does not answer as a dashboard does"),
    ],
)
def test_a_sick_dashboard_is_told(of, told: Any, said: str) -> None:
    """What is wrong by its own word is repeated, and another program on its port is no dashboard."""
    beat(of, HERE)
    with listening(told) as of.dashboard.port:
        assert said in (what_is_dead(of) or "")
