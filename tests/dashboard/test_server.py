"""What machines ask for, answered by the app itself, without a socket."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
import time_machine

from dashboard import machines, server
from store import queries, writes
from store.database import open_database
from tests.dashboard.conftest import Seeded

Get = Callable[[str], tuple[int, Any]]


def ask(where: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        inside = httpx.ASGITransport(app=server.app)
        async with httpx.AsyncClient(transport=inside, base_url="http://127.0.0.1") as client:
            return await client.get(where)

    return asyncio.run(asked())


@pytest.fixture
def get(monkeypatch: pytest.MonkeyPatch, seeded: Seeded) -> Iterator[Get]:
    """Status and JSON, over the seeded record unless the environment says otherwise by then."""
    monkeypatch.setenv("MEMTREND_DATABASE__URL", seeded.url)

    def get_(where: str) -> tuple[int, Any]:
        answer = ask(where)
        return answer.status_code, answer.json()

    machines.forget()
    yield get_
    machines.forget()


def test_a_machine_reads_runs(get: Get, seeded: Seeded) -> None:
    """/api/runs lists runs newest first by the filters given, looks marked by their subset, and /api/runs/ID
    adds the cases."""
    status, found = get("/api/runs?suite=golden&backend=mem0&status=whole&limit=2")
    assert status == 200
    assert [run["backend"] for run in found["runs"]] == ["mem0", "mem0"]
    with closing(open_database(seeded.url)) as db:
        whole = queries.runs(db, suites=["golden"], backends=["mem0"], statuses=["whole"], limit=None)
    assert found["total"] == len(whole)
    assert sum(row.subset == "" for row in whole) == 36
    status, run = get(f"/api/runs/{found['runs'][0]['id']}")
    assert status == 200
    assert len(run["cases"]) == 29


@pytest.mark.parametrize(
    ("where", "status", "says"),
    [
        ("/api/nothing", 404, "/api/runs"),
        ("/api", 404, "/api/runs"),
        ("/api/runs/999999", 404, "no run 999999"),
        (f"/api/runs/{10**30}", 404, "no run 1000"),
        (f"/api/runs/{'9' * 5000}", 404, "no run 9999"),
        ("/api/runs/last", 404, "no run last"),
        ("/api/runs/\u0663", 404, "no run"),
        ("/api/runs/request-9", 404, "no request-9"),
        (f"/api/runs/request-{10**30}", 404, "no request-1000"),
        ("/api/runs/request-", 404, "no request-"),
        ("/api/runs?limit=many", 400, "limit"),
        (f"/api/runs?limit={10**30}", 400, "limit"),
        (f"/api/runs?offset={10**30}", 400, "offset"),
    ],
)
def test_a_wrong_call_gets_an_answer_in_json(where: str, status: int, says: str, get: Get) -> None:
    """Unknown paths and bad values are answered by status and words, not by the page."""
    code, answer = get(where)
    assert code == status
    assert says in answer["error"]


def test_health_tells_record_and_collector(get: Get) -> None:
    """/healthz reads the record and gives the age of the collector's heartbeat."""
    status, answer = get("/healthz")
    assert (status, answer["ok"]) == (200, True)
    assert answer["collector_heartbeat_age_s"] >= 0


def test_health_asks_for_the_collector_when_told_to(
    get: Get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collector that never lived, or has not said so for a minute, is 503 for who requires it, and 200 for
    who does not."""
    url = f"sqlite:///{tmp_path}/quiet.db"
    monkeypatch.setenv("MEMTREND_DATABASE__URL", url)
    status, answer = get("/healthz?collector=required")
    assert (status, answer["ok"], answer["collector_heartbeat_age_s"]) == (503, False, None)
    assert "never said" in answer["error"]
    with closing(open_database(url)) as db:
        writes.beat(db, "collector", 1, "here")
    assert get("/healthz?collector=required")[:1] == (200,)
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=61), tick=False):
        status, answer = get("/healthz?collector=required")
        assert (status, answer["ok"], answer["collector_alive"]) == (503, False, False)
        assert "61 s ago" in answer["error"]
        status, answer = get("/healthz")
        assert (status, answer["ok"], answer["collector_alive"]) == (200, True, False)


def test_health_refuses_what_it_does_not_know(get: Get) -> None:
    """A misspelt requirement is no requirement that holds."""
    status, answer = get("/healthz?collector=yes")
    assert (status, answer["field"]) == (400, "collector")


@pytest.mark.parametrize("where", ["/healthz", "/metrics", "/api/runs", "/api/runs/1"])
def test_a_broken_record_is_503(
    where: str, get: Get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the record cannot be read, health and API say so, and where."""
    (tmp_path / "bad.db").write_text("this is not a database, however long one reads on in it, line by line")
    monkeypatch.setenv("MEMTREND_DATABASE__URL", f"sqlite:///{tmp_path}/bad.db")
    status, answer = get(where)
    assert status == 503
    assert "bad.db" in answer["error"]


@pytest.mark.parametrize("where", ["/healthz", "/metrics", "/api/runs", "/api/runs/1"])
def test_a_broken_configuration_is_503(where: str, get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the configuration cannot be read, health and API name the key, never its value."""
    monkeypatch.setenv("MEMTREND_DATABASES__URL", "hush-hush")
    status, answer = get(where)
    assert status == 503
    assert "MEMTREND_DATABASES__URL" in answer["error"]
    assert "hush-hush" not in answer["error"]


def test_what_pages_draw_with_is_loaded_before_anybody_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the server waits for its first viewer, each of them is loaded, once."""
    loaded: list[str] = []
    monkeypatch.setattr(server, "import_module", loaded.append)
    server._load()
    assert loaded == list(server.DRAW)
    assert all(find_spec(name) for name in loaded)


def test_large_answers_are_packed(get: Get) -> None:
    """Scripts of megabytes leave compressed."""
    script = re.search(r'src="\.?/?(static/js/index\.[^"]+\.js)"', ask("/").text)
    assert script is not None
    answer = ask(f"/{script[1]}")
    assert answer.headers["Content-Encoding"] == "gzip"
