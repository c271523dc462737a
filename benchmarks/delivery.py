"""What delivery costs: messages of the outbox through the sender to a server on loopback, against a plain
loop of httpx that posts the same bodies and keeps nothing.

They take turns, so that what else the machine does weighs on both; the ratio is the median over the pairs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from benchmarks.measure import Bar, pairs, parser, tell
from collectors.channels.slack import payload
from collectors.delivery import Sender
from store import queries, writes
from store.alert_messages import frozen
from store.alert_words import Message
from store.columns import to_json
from store.database import open_database
from store.sections import ChannelSection

MAX_SECONDS = 10.0


def main() -> int:
    given = parser(__doc__)
    given.add_argument("--rows", type=int, default=1_000, help="messages a side")
    given.add_argument("--pairs", type=int, default=3)
    arguments = given.parse_args()
    with _server() as url:
        times = pairs(
            arguments.pairs, lambda: _sent(url, arguments.rows), lambda: _posted(url, arguments.rows)
        )
    ours = statistics.median(sender for sender, _ in times)
    ratio = statistics.median(sender / loop for sender, loop in times)
    bars = [Bar(f"seconds_for_{arguments.rows}_messages", round(ours, 2), MAX_SECONDS)]
    lines = [
        f"{arguments.rows:,} messages: {sender:.2f} s claimed, sent and recorded, {loop:.2f} s by httpx alone"
        for sender, loop in times
    ]
    return tell(arguments.json, [*lines, f"ratio: {ratio:.1f} x"], bars)


def _sent(url: str, rows: int) -> float:
    """Every message has arrived and is recorded, or there is no figure."""
    with tempfile.TemporaryDirectory(prefix="memtrend-bench-") as folder:
        db = open_database(f"sqlite:///{Path(folder) / 'record.db'}")
        channel = ChannelSection.model_validate({"type": "slack", "url": url, "rate": rows})
        told = (_message(number) for number in range(rows))
        writes.send_later(db, (writes.NewDelivery(one.key, "team", "alert", frozen(one)) for one in told))
        sender = Sender(db, {"team": channel})
        begin = time.perf_counter()
        sender.send_due()
        seconds = time.perf_counter() - begin
        sender.close()
        if queries.channel_load(db, "team") != (rows, 0, None):
            raise SystemExit("not every message arrived")
        db.close()
    return seconds


def _posted(url: str, rows: int) -> float:
    bodies = [to_json(payload(_message(number))).encode() for number in range(rows)]
    with httpx.Client() as client:
        begin = time.perf_counter()
        for body in bodies:
            client.post(url, content=body, headers={"content-type": "application/json"}).raise_for_status()
        return time.perf_counter() - begin


def _message(number: int) -> Message:
    """As large as one of a regression."""
    base = "https://memtrend.example.org"
    return Message(
        key=f"alert {number} step {number} channel team",
        action="opened",
        alert_id=number,
        kind="regression",
        severity="high",
        state="open",
        title=f"backend-{number} on golden got worse",
        evidence="4 of 180 cases that had passed in 10 nights failed in at least 3 of 4 trials.",
        difference="−2.1 points (−4.0 to −0.3), n 89",
        suite="golden",
        backend=f"backend-{number}",
        since="2026-11-30T03:12:00+00:00",
        suspects=("mem0ai 2.0.0 → 2.2.1",) * 3,
        urls={"open": f"{base}/alert?alert={number}"},
    )


@contextmanager
def _server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments: object) -> None:
        pass


if __name__ == "__main__":
    sys.exit(main())
