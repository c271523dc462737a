"""A little memory server on loopback, with any manners a test wants. It speaks two contracts:

the common one (`/add`, `/search`, `/reset`, and `/update`, `/delete`, `/delete_user`, `/count`), in which a
user is a `user_id` and memories keep the ids they are given, and one with everything otherwise (`/v2/...`):
tenants and users in the path, ids of its own, distances, pages, a list of memories at a time.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from collectors.backend import Backend, BackendConfig, open_backend
from collectors.suite import Memory, Scope

PAGE = 2
"""Hits on a page of the second contract."""


@dataclass
class Asked:
    """A request: `path` as sent, without its query; `query` with all values of a name; `body` as JSON."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any

    @property
    def parts(self) -> list[str]:
        return [unquote(part) for part in self.path.split("/")[1:]]


@dataclass
class Reply:
    """What a script answers with. `dropped`: the connection ends without an answer; `until`: not before this
    happens; `endless`: the body goes on, a byte at a time, until this happens."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    dropped: bool = False
    until: threading.Event | None = None
    endless: threading.Event | None = None


@dataclass
class Row:
    tenant: str
    user: str
    id: str
    text: str
    session: str | None
    metadata: dict[str, Any]


class MemoryServer:
    """`script` may answer in place of it; `token` is asked of everyone, and repeated to who has another;
    `late`: searches that find nothing yet, as where an index is filled in the background; `wipes`: a reset
    drops the memories of everybody."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.asked: list[Asked] = []
        self.script: Callable[[Asked], Reply | None] = lambda asked: None
        self.token = ""
        self.late = 0
        self.wipes = False
        self._ids, self._lock = count(1), threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that gave up
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if reply := self.script(asked):
            return reply
        given = asked.headers.get("authorization", "")
        if self.token and given != f"Bearer {self.token}":
            return Reply(401, {"error": f"no such key: {given}"})
        with self._lock:
            return self._second(asked) if asked.parts[0] == "v2" else self._common(asked)

    # The common contract

    def _common(self, asked: Asked) -> Reply:
        body, user = asked.body or {}, (asked.body or {}).get("user_id", "")
        match asked.path:
            case "/add":
                self._drop(lambda row: (row.user, row.id) == (user, body["id"]))
                self._add("", user, body["id"], body["text"], body.get("session_id"), body["metadata"])
                return Reply(body={"status": "ok", "usage": {"tokens": len(body["text"].split())}})
            case "/search":
                found = self._search("", user, body["query"], body.get("session_id"), body.get("domains"))
                return Reply(body={"results": [_hit(row, score) for row, score in found[: body["limit"]]]})
            case "/reset":
                return self._drop(lambda row: self.wipes or row.user == user)
            case "/update":
                return self._amend(lambda row: (row.user, row.id) == (user, body["id"]), body["text"])
            case "/delete":
                return self._drop(lambda row: (row.user, row.id) == (user, body["id"]), strict=True)
            case "/delete_user":
                return self._drop(lambda row: row.user == user)
            case "/count":
                return Reply(body={"count": sum(row.user.startswith(body["prefix"]) for row in self.rows)})
        return Reply(404, {"error": "no such path"})

    # The second contract

    def _second(self, asked: Asked) -> Reply:
        match asked.method, asked.parts[1:]:
            case "GET", ["version"]:
                return Reply(body={"name": "memories"}, headers={"X-Server-Version": "7.1"})
            case "GET", [tenant, "status"]:
                return Reply(body={"waiting": 0})
            case "GET", [tenant, "memories"]:
                return Reply(body={"all": [row.id for row in self.rows if row.tenant == tenant]})
            case "POST", [tenant, "users", user, "memories"]:
                return Reply(201, {"created": [{"uid": self._kept(tenant, user, one)} for one in asked.body]})
            case "GET", [tenant, "users", user, "search"]:
                return self._page(tenant, user, asked.query)
            case "PATCH", [tenant, "memories", uid]:
                return self._amend(lambda row: (row.tenant, row.id) == (tenant, uid), asked.body["content"])
            case "DELETE", [tenant, "memories", uid]:
                return self._drop(lambda row: (row.tenant, row.id) == (tenant, uid), strict=True)
            case "DELETE", [tenant, "users", user]:
                return self._drop(lambda row: (row.tenant, row.user) == (tenant, user))
            case "DELETE", [tenant]:
                return self._drop(lambda row: row.tenant == tenant)
        return Reply(404, {"error": "no such path"})

    def _kept(self, tenant: str, user: str, one: Mapping[str, Any]) -> str:
        uid = f"uid-{next(self._ids)}"
        self._add(tenant, user, uid, one["content"], one.get("thread"), one["attributes"])
        return uid

    def _page(self, tenant: str, user: str, query: Mapping[str, list[str]]) -> Reply:
        session = query.get("thread", [None])[0]
        found = self._search(tenant, user, query["q"][0], session, query.get("domain"))
        start, top = int(query.get("from", ["0"])[0]), int(query["top"][0])
        page = found[start : min(start + PAGE, top)]
        items = [
            {"uid": row.id, "content": row.text, "distance": 1 - score, "attributes": row.metadata}
            for row, score in page
        ]
        following = start + PAGE if start + PAGE < min(top, len(found)) else None
        return Reply(body={"data": {"groups": [{"items": items}]}, "page": {"next": following}})

    # The rows

    def _add(
        self, tenant: str, user: str, id: str, text: str, session: str | None, metadata: dict[str, Any]
    ) -> None:
        self.rows.append(Row(tenant, user, id, text, session, metadata))

    def _amend(self, wanted: Callable[[Row], bool], text: str) -> Reply:
        rows = [row for row in self.rows if wanted(row)]
        for row in rows:
            row.text = text
        return Reply(200 if rows else 404, {"changed": len(rows)})

    def _drop(self, wanted: Callable[[Row], bool], *, strict: bool = False) -> Reply:
        kept = [row for row in self.rows if not wanted(row)]
        gone, self.rows = len(self.rows) - len(kept), kept
        return Reply(404 if strict and not gone else 204)

    def _search(
        self, tenant: str, user: str, query: str, session: str | None, domains: list[str] | None
    ) -> list[tuple[Row, float]]:
        """The share of the question's words that a memory holds, rare ones counting more."""
        if self.late:
            self.late -= 1
            return []
        mine = [row for row in self.rows if (row.tenant, row.user) == (tenant, user)]
        rarity = _rarity(mine)
        asked = _words(query)
        whole = sum(rarity.get(word, 0.0) for word in asked) or 1.0
        scored = [
            (row, sum(rarity[word] for word in asked & _words(row.text)) / whole)
            for row in mine
            if session in (None, row.session) and (not domains or row.metadata.get("domain") in domains)
        ]
        return sorted(scored, key=lambda found: (-found[1], found[0].id))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _rarity(rows: list[Row]) -> dict[str, float]:
    texts = [_words(row.text) for row in rows]
    return {
        word: math.log(1 + len(texts) / sum(word in text for text in texts)) for word in set().union(*texts)
    }


def _hit(row: Row, score: float) -> dict[str, Any]:
    return {"id": row.id, "text": row.text, "score": score, "metadata": row.metadata}


def _handler(server: MemoryServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length") or 0))
            place = urlsplit(self.path)
            asked = Asked(
                self.command,
                place.path,
                parse_qs(place.query, keep_blank_values=True),
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(sent) if sent else None,
            )
            self._reply(server.answer(asked))

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

        def _reply(self, reply: Reply) -> None:
            if reply.until:
                reply.until.wait(60)
            if reply.dropped:
                return
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.endless is None:
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            while reply.endless and not reply.endless.wait(0.005):
                self.wfile.write(b" ")
                self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler


# How a backend is told to speak to it

KEY = "sk-very/secret+1234"
BOX = Scope("memtrend-http-1", "anna")
PIANO = Memory("m-piano", "The piano tuner comes on the second Friday of the month.")
FERRY = Memory("m-ferry", "The night ferry from Ystad leaves at 22:30.", domain="travel")

MORE: dict[str, Any] = {
    "capabilities": ["ids", "metadata", "durable", "deterministic"],
    "answers": {"tokens": "usage.tokens"},
    "requests": {
        "amend": {
            "path": "/update",
            "body": {"id": "{namespace}/{user}/{id}", "user_id": "{namespace}/{user}", "text": "{text}"},
        },
        "forget": {
            "path": "/delete",
            "body": {"id": "{namespace}/{user}/{id}", "user_id": "{namespace}/{user}"},
        },
        "forget_user": {"path": "/delete_user", "body": {"user_id": "{namespace}/{user}"}},
        "count": {"path": "/count", "body": {"prefix": "{namespace}/"}},
    },
}
"""The common contract, and what the server can do beside it."""

USERS = "/v2/{namespace}/users/{user}"
OTHERWISE: dict[str, Any] = {
    "capabilities": ["ids", "metadata", "durable", "deterministic"],
    "higher_is_better": False,
    "requests": {
        "remember": {
            "path": f"{USERS}/memories",
            "body": "{memories}",
            "each": {"content": "{text}", "thread": "{session}", "attributes": "{metadata}"},
        },
        "recall": {
            "method": "GET",
            "path": f"{USERS}/search",
            "query": {
                "q": "{query}",
                "top": "{k}",
                "thread": "{session}",
                "domain": "{domains}",
                "from": "{cursor}",
            },
        },
        "reset": {"method": "DELETE", "path": "/v2/{namespace}"},
        "amend": {
            "method": "PATCH",
            "path": "/v2/{namespace}/memories/{stored}",
            "body": {"content": "{text}"},
        },
        "forget": {"method": "DELETE", "path": "/v2/{namespace}/memories/{stored}"},
        "forget_user": {"method": "DELETE", "path": USERS},
        "count": {"method": "GET", "path": "/v2/{namespace}/memories"},
        "settle": {"method": "GET", "path": "/v2/{namespace}/status"},
        "version": {"method": "GET", "path": "/v2/version"},
    },
    "answers": {
        "hits": "data.groups[*].items[*]",
        "id": "uid",
        "text": "content",
        "score": "distance",
        "metadata": "attributes",
        "stored": "created[*].uid",
        "next": "page.next",
        "count": "all",
        "settled": "waiting",
        "settled_is": 0,
        "version_header": "x-server-version",
    },
}


def configured(server: MemoryServer, options: Mapping[str, Any]) -> Backend:
    return open_backend(BackendConfig("ours", "http", {"url": server.url, **options}))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryServer]:
    """One for a test, stopped at its end."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = MemoryServer()
    yield server
    server.stop()


@pytest.fixture
def opened_as(server: MemoryServer) -> Iterator[Callable[..., Backend]]:
    """Opens backends on the server, their first reset behind them, so that requests can be counted."""
    backends: list[Backend] = []

    def open(**options: Any) -> Backend:
        backends.append(configured(server, options))
        backends[-1].reset(Scope("memtrend-before"))
        server.asked.clear()
        return backends[-1]

    yield open
    for backend in backends:
        backend.close()
