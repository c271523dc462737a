"""A stand-in for Slack: takes what is posted on loopback, and keeps it in a file, a line each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

from collectors.demo.folder import CHANNEL_URL, MESSAGES

POLL_S = 0.05


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, *arguments: object, file: Path, lock: Lock) -> None:
        self._file, self._lock = file, lock
        super().__init__(*arguments)  # type: ignore[arg-type]  # it handles the request in there

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode("utf-8")
        with self._lock, self._file.open("a", encoding="utf-8") as file:
            file.write(f"{body}\n")
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_arguments: object) -> None:
        pass


@contextmanager
def receiving(folder: Path) -> Iterator[None]:
    """Listen on a free port, which the demo's channel learns from its file."""
    handler = partial(_Handler, file=folder / MESSAGES, lock=Lock())
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        (folder / CHANNEL_URL).write_text(f"http://127.0.0.1:{server.server_port}/services/demo")
        Thread(target=server.serve_forever, args=(POLL_S,), daemon=True).start()
        yield
        server.shutdown()
