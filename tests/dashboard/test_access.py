"""Under which names and with which token the server may be called."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from dashboard import configuration
from dashboard.hosts import is_known
from store import health_words, writes
from tests.dashboard.browser import served
from tests.dashboard.calls import RUN, TOKEN, Call
from tests.store.seeding import Seed

SCHEDULE = '[schedules.hourly]\nevery = "{}"\nsuites = ["smoke"]\n'


@pytest.mark.parametrize(
    ("host", "listens_on", "names", "known"),
    [
        ("127.0.0.1:8501", "127.0.0.1", [], True),
        ("localhost:8501", "127.0.0.1", [], True),
        ("LOCALHOST", "127.0.0.1", [], True),
        ("[::1]:8501", "::1", [], True),
        ("evil.example:8501", "127.0.0.1", [], False),
        ("localhost.evil.example", "127.0.0.1", [], False),
        ("127.0.0.1.evil.example", "localhost", [], False),
        ("", "127.0.0.1", [], False),
        ("[broken", "127.0.0.1", [], False),
        ("memtrend.example", "127.0.0.1", ["Memtrend.example"], True),
        ("memtrend.example.:443", "127.0.0.1", ["memtrend.example"], True),
        ("evil.example", "127.0.0.1", ["memtrend.example"], False),
        ("memtrend.example", "0.0.0.0", [], True),
        ("evil.example", "0.0.0.0", ["memtrend.example"], False),
        ("10.0.0.7:8501", "0.0.0.0", ["memtrend.example"], True),
    ],
)
def test_names_of_the_server(host: str, listens_on: str, names: list[str], known: bool) -> None:
    """A server that only this machine reaches goes by addresses, localhost and the names configured; one that
    others reach by any name until names are configured."""
    assert is_known(host, listens_on, names) is known


def _status(address: str, where: str, **headers: str) -> int:
    server = urlsplit(address)
    connection = http.client.HTTPConnection(server.hostname or "", server.port, timeout=30)
    connection.putrequest("GET", where, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_name_that_was_made_to_lead_here(record: Seed, tmp_path: Path) -> None:
    """A page of another site reads neither record nor pages by its own name, nor opens their socket."""
    socket = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13",
              "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    with served(str(record.db.url_public), tmp_path) as address:
        own, evil = urlsplit(address).netloc, "evil.example"
        for where in ("/", "/api/runs", "/metrics", "/healthz"):
            assert (_status(address, where, Host=own), _status(address, where, Host=evil)) == (200, 421)
        assert _status(address, "/_stcore/stream", Host=own, Origin=address, **socket) == 101
        assert _status(address, "/_stcore/stream", Host=evil, Origin=f"http://{evil}", **socket) == 421


def test_a_token_that_is_exchanged(
    call: Call, record: Seed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another token in its file counts without a start, and the former no longer; while the file is empty,
    the former stays."""
    monkeypatch.delenv("MEMTREND_API__TOKEN")
    monkeypatch.setenv("MEMTREND_API__TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setattr(configuration, "FRESH_S", 0.0)

    def codes() -> list[int]:
        bearers = [{"Authorization": f"Bearer {token}"} for token in (TOKEN, "another-token")]
        return [call("POST", "/api/runs", headers=bearer, json=RUN).status_code for bearer in bearers]

    (tmp_path / "token").write_text(TOKEN)
    assert codes() == [202, 401]
    (tmp_path / "token").write_text("another-token\n")
    assert codes() == [401, 202]
    (tmp_path / "token").write_text("")
    assert codes() == [401, 202]


def test_what_was_read_is_fresh_for_a_moment(call: Call, record: Seed) -> None:
    """The configuration is not read for each of many calls."""
    call("GET", "/healthz")
    assert configuration.settings() is configuration.settings()


@pytest.mark.parametrize(
    ("where", "field"),
    [
        ("/api/runs?sutie=golden", "sutie"),
        ("/api/runs?status=fine", "status"),
        ("/healthz?colector=required", "colector"),
    ],
)
def test_a_filter_that_is_misspelt(where: str, field: str, call: Call) -> None:
    """What would be left out of account is 400 by its name."""
    answer = call("GET", where)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert "known: " in answer.json()["error"]


def test_a_file_that_breaks_while_the_server_runs(
    record: Seed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/healthz and /metrics tell of a configuration that broke before anything was asked, without being
    unwell unless told that it is required, and of one that was mended; listening and end stand in the log."""
    file, good, fields = tmp_path / "memtrend.toml", SCHEDULE.format("1h"), ("ok", "configuration_broken")
    file.write_text(good)
    monkeypatch.setenv("MEMTREND_CONFIG", str(file))
    writes.add_event(record.db, "info", "collector", health_words.IN_FORCE)
    with served(str(record.db.url_public), tmp_path) as address:
        file.write_text(SCHEDULE.format("1x"))
        answer = httpx.get(f"{address}/healthz")
        assert (answer.status_code, *map(answer.json().get, fields)) == (200, True, True)
        assert answer.json()["configuration_error"].startswith(health_words.BROKEN)
        assert "schedules.hourly.every" in answer.json()["configuration_error"]
        assert "memtrend_configuration_broken 1.0\n" in httpx.get(f"{address}/metrics").text
        answer = httpx.get(f"{address}/healthz?configuration=required")
        assert (answer.status_code, answer.json()["ok"]) == (503, False)
        assert "schedules.hourly.every" in answer.json()["error"]
        file.write_text(good)
        answer = httpx.get(f"{address}/healthz?configuration=required")
        assert (answer.status_code, *map(answer.json().get, fields)) == (200, True, False)
        assert "memtrend_configuration_broken 0.0\n" in httpx.get(f"{address}/metrics").text
    entries = [json.loads(line) for line in (tmp_path / "server.log").read_text().splitlines()]
    own = [entry for entry in entries if entry["logger"] == "memtrend.dashboard"]
    assert [(entry["event"], entry.get("url")) for entry in own] == [
        ("the dashboard listens", address),
        ("the dashboard ends", None),
    ]


def test_a_configuration_that_only_the_collector_refuses(call: Call, record: Seed) -> None:
    """What a collector says that it did not take over counts as broken, too."""
    writes.add_event(record.db, "error", "collector", f"{health_words.BROKEN}: suites/mine.yaml: line 3")
    assert call("GET", "/healthz").json()["configuration_error"].endswith("mine.yaml: line 3")
    writes.add_event(record.db, "info", "collector", health_words.IN_FORCE)
    assert call("GET", "/healthz").json()["configuration_error"] is None
