"""What the tests of chroma, qdrant and lancedb share: memories to plant, and a hand in the vendor's store."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from collectors import envs
from collectors.backend import Backend, BackendConfig, BackendError, Hit, Isolation, open_backend
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

Open = Callable[..., Backend]
"""Takes a directory, an embedder and the options of the section, all of which may be left out."""


def opening(type: str, isolation: Isolation) -> Iterator[Open]:
    """For a fixture: opens backends of this type, each in its environment, and lets go of them."""
    opened: list[Backend] = []

    def open(directory: Path | None = None, embedder: str = "wordllama", **options: Any) -> Backend:
        opened.append(open_backend(BackendConfig("ours", type, options, embedder, directory, isolation)))
        return opened[-1]

    yield open
    for backend in opened:
        backend.abandon()


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


class Beside(NamedTuple):
    """Somebody else on the same store. `foreign`, a script, puts a row into the box of this name in this
    directory, made where it is not there; `left` prints how many rows each box of a directory holds."""

    isolation: Isolation
    foreign: str
    left: str

    def is_left_alone(self, open: Open, directory: Path, begun: bool) -> None:
        """A box that memtrend did not make, or, `begun` by it, with a row of another's, is not reset."""
        if begun:
            backend = open(directory)
            plant(backend, BOX, FERRY)
            backend.close()
        run_beside(self.isolation, self.foreign, str(directory), BOX.namespace)
        backend = open(directory)
        with pytest.raises(BackendError, match="is left alone") as raised:
            backend.reset(BOX)
        assert raised.value.permanent
        backend.close()
        assert self.boxes(directory) == str({BOX.namespace: 1 + begun})

    def is_left_nothing(self, open: Open, directory: Path) -> None:
        """A box of memtrend's that was reset is gone from the vendor's list, too."""
        backend = open(directory)
        plant(backend, BOX, FERRY)
        backend.reset(BOX)
        backend.close()
        assert self.boxes(directory) == "{}"

    def boxes(self, directory: Path) -> str:
        return run_beside(self.isolation, self.left, str(directory)).strip()


def ranks_as_exact_cosine(backend: Backend) -> None:
    """At the same embedder it answers as memtrend's own exact search: what differs is never the store."""
    exact = open_backend(BackendConfig("exact", "dense"))
    exact.reset(BOX)
    for one in (exact, backend):
        plant(one, BOX, FERRY, VIOLIN, STORM)
    here, there = found(exact), found(backend)
    assert [hit.id for hit in there] == [hit.id for hit in here]
    assert [hit.score for hit in there] == pytest.approx([hit.score for hit in here], abs=1e-6)


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
