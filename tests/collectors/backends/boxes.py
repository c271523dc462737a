"""What the tests of chroma, qdrant and lancedb share: memories to plant, and a hand in the vendor's store."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from collectors import envs
from collectors.backend import Backend, Hit, Isolation
from collectors.suite import Memory, Scope

BOX = Scope("memtrend-test-1", "anna")
FERRY, VIOLIN, STORM = (
    "The ferry to Bornholm leaves at seven.",
    "Violin lessons cost thirty euros.",
    "Ferries do not sail in storms.",
)
ASKED = "When does the ferry to Bornholm leave?"
ODD_METADATA: Mapping[str, Any] = {
    "text": "a name that the adapter uses too",
    "tags": ["gate", "winter"],
    "nested": {"deep": [1, {"er": None}]},
    "nothing": None,
    "many": 2**70,
    "share": 0.25,
    "sure": True,
    "memtrend": "ours",
    "naïve key": "日本語",
}

ADAPTER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from types import SimpleNamespace
from collectors.backends import handed
handed.handed_in = lambda config: SimpleNamespace(
    dimensions=3, deterministic=True, versions={{}}, embed=lambda texts: [[1.0, 0.0, 0.0] for _ in texts]
)
from collectors.backend import BackendConfig
from collectors.suite import Memory, Scope
scope = Scope("memtrend-test-1", "anna")
"""
"""How a script begins that opens an adapter beside its SDK, to look into both."""


def plant(backend: Backend, scope: Scope, *texts: str, **said: Any) -> None:
    backend.remember(scope, [Memory(f"m-{n}", text, **said) for n, text in enumerate(texts)])
    backend.settle(scope)


def found(backend: Backend, query: str = ASKED, k: int = 10, leg: str | None = None) -> tuple[Hit, ...]:
    return backend.recall(BOX, query, k, leg).hits


def run_beside(isolation: Isolation, script: str, *arguments: str) -> str:
    """What a script prints that uses the SDK itself, as somebody else on the same store."""
    with envs.using(isolation) as (env, _):
        command = [str(env.executable), "-I", "-c", script, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def answering(status: int, bodies: Mapping[str, str] = {}) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that answers everything with this status, and the paths that it was asked for.
    `bodies`: JSON by path; others are answered with `{}`."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            asked.append(self.path)
            body = bodies.get(self.path, "{}").encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_PATCH = do_GET

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
