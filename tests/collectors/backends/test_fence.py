"""A worker of a local backend reaches this machine and nothing else, and what it asked for is told."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from collectors.backends.fence import is_here, leads_here

ROOT = Path(__file__).parents[3]
PROGRAM = """
import asyncio, http.client, os, socket, threading, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

os.environ["https_proxy"] = "http://127.0.0.1:9"
from collectors.backends.fence import Fence

fence = Fence()
fence.close()

def refused(call):
    try:
        call()
    except OSError as error:
        return "refused, since this backend" in str(error)
    return False

udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
assert refused(lambda: socket.create_connection(("example.org", 443), 5))
assert refused(lambda: socket.socket().connect(("192.0.2.1", 80)))
assert refused(lambda: socket.socket().connect_ex(("192.0.2.2", 80)))
assert refused(lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80, 0, 0)))
assert refused(lambda: udp.sendto(b"x", ("192.0.2.3", 53)))
assert refused(lambda: udp.sendto(b"x", 0, ("192.0.2.3", 53)))
assert refused(lambda: udp.sendmsg([b"x"], [], 0, ("192.0.2.4", 53)))
assert refused(lambda: socket.gethostbyname("by-name.example.org"))
assert refused(lambda: socket.gethostbyname_ex("by-name.example.org"))
assert refused(lambda: urllib.request.urlopen("https://telemetry.example.org/", timeout=5))
assert refused(lambda: asyncio.run(asyncio.open_connection("async.example.org", 443)))
assert fence.read() == [
    "example.org", "192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.3", "192.0.2.4",
    "by-name.example.org", "telemetry.example.org", "async.example.org",
]
assert fence.read() == []

class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()
    def log_message(self, *told):
        pass

server = HTTPServer(("127.0.0.1", 0), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
for host in ("127.0.0.1", "localhost"):
    connection = http.client.HTTPConnection(host, server.server_port, timeout=5)
    connection.request("GET", "/")
    assert connection.getresponse().status == 204
left, right = socket.socketpair()
left.send(b"here")
assert right.recv(4) == b"here"
assert fence.read() == []
print("all of it")
"""


def test_this_machine_alone() -> None:
    """Names, addresses, datagrams, libraries and event loops are refused; loopback works."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("all of it\n", 0), done.stderr


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *((host, True) for host in ("localhost", "LOCALHOST.", b"localhost", "127.0.0.1", "127.8.9.1")),
        *((host, True) for host in ("::1", "0.0.0.0", "::", "", None, "::1%lo", "::ffff:127.0.0.1")),
        *((host, False) for host in ("localhost.example.org", "127.0.0.1.nip.io", "10.0.0.1")),
        *((host, False) for host in ("169.254.169.254", "example.org", b"example.org")),
        *((host, False) for host in ("fe80::1%eth0", "::ffff:8.8.8.8")),
    ],
)  # fmt: skip
def test_what_is_here(host: object, here: bool) -> None:
    """Loopback by address or by its own name; no name that merely looks like it."""
    assert is_here(host) is here


@pytest.mark.parametrize(
    ("place", "here"),
    [
        ("127.0.0.2", True),
        ("[::1]", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost:11434", True),
        ("http://localhost:6333/x", True),
        ("https://user:key@[::1]:6333", True),
        ("postgresql:///x", True),
        ("postgresql://127.0.0.1:1,localhost:2/x", True),
        ("host=/run/postgresql dbname='a b'", True),
        ("host=127.0.0.1 hostaddr=127.0.0.1", True),
        ("2001:db8::1", False),
        ("::ffff:192.0.2.1", False),
        ("db.example:6333", False),
        ("http://localhost.example", False),
        ("https://localhost@db.example", False),
        ("postgresql://127.0.0.1:1,db.example:2/x", False),
        ("postgresql://localhost/x?hostaddr=192.0.2.1", False),
        ("postgresql:///x?service=production", False),
        ("host=127.0.0.1,db.example", False),
        ("dbname=x", False),
        ("AccountEndpoint=https://localhost;AccountKey=k", False),
        ("s3://bucket/x", False),
        ("host='", False),
        ("http://[::1", False),
        ("", False),
        (None, False),
    ],
)
def test_an_address_leads_here_or_elsewhere(place: str | None, here: bool) -> None:
    """One that names several hosts leads here if all of them are this machine; one that cannot be read does
    not."""
    assert leads_here(place) == here
