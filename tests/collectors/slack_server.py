"""A server on loopback that stands for Slack's incoming webhooks: it refuses what Slack's documentation of
Block Kit forbids, and fails in the ways in which servers do."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

MARKUP = re.compile(r"<([^>]*)>")


class Post(NamedTuple):
    """What arrived. `problems`: what Slack would refuse it for."""

    headers: dict[str, str]
    body: bytes
    problems: list[str]

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def key(self) -> str:
        """As the last block tells it."""
        return str(self.told["blocks"][-1]["elements"][0]["text"])


class Answer(NamedTuple):
    """How one request is met: with a status, or, `drop`, not at all; `first` is waited for before it."""

    status: int = 200
    headers: Mapping[str, str] = {}
    drop: bool = False
    first: threading.Event | None = None


class SlackServer:
    """`answers`: what the next requests are met with, in their order; then all is well. Without `strict`, any
    document is taken."""

    def __init__(self, strict: bool = True) -> None:
        self.strict = strict
        self.posts: list[Post] = []
        self.accepted: list[Post] = []
        self.answers: list[Answer] = []
        self.on_post: Callable[[Post], None] = lambda post: None
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/services/T0/B0/s3cretpath"

    def answer_to(self, post: Post) -> Answer:
        with self._lock:
            self.posts.append(post)
            answer = self.answers.pop(0) if self.answers else Answer()
        self.on_post(post)
        if answer.first is not None:
            answer.first.wait(60)
        if answer.status == 200 and post.problems and self.strict:
            answer = Answer(400)
        if answer.status == 200 and not answer.drop:
            with self._lock:
                self.accepted.append(post)
        return answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        slack = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = slack.answer_to(Post(headers, body, problems(body)))
                if answer.drop:
                    self.close_connection = True
                    return
                said = b"ok" if answer.status == 200 else b"invalid_payload s3cretpath"
                self.send_response_only(answer.status)
                for name, value in {**answer.headers, "Content-Length": str(len(said))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *arguments: object) -> None:
                pass

        return Handler

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def running(strict: bool = True) -> Iterator[SlackServer]:
    server = SlackServer(strict)
    server.start()
    yield server
    server.stop()


# What Slack refuses


def problems(body: bytes) -> list[str]:
    """Everything about a message that the documentation forbids."""
    try:
        told = json.loads(body)
    except ValueError:
        return ["no JSON"]
    if not isinstance(told, dict):
        return ["no object"]
    found = [f"unknown key {key}" for key in told.keys() - {"text", "blocks", "unfurl_links", "unfurl_media"}]
    if not _is_text(told.get("text"), 40_000):
        found.append("text: none, or too long")
    blocks = told.get("blocks")
    if not isinstance(blocks, list) or not 1 <= len(blocks) <= 50:
        return [*found, "blocks: 1 to 50"]
    for number, block in enumerate(blocks):
        found += [f"block {number}: {problem}" for problem in _BLOCKS.get(block.get("type"), _unknown)(block)]
    return found


def _unknown(block: dict[str, Any]) -> Iterator[str]:
    yield f"type {block.get('type')}"


def _header(block: dict[str, Any]) -> Iterator[str]:
    yield from _only(block, "text", "block_id")
    yield from _text(block.get("text"), 150, ("plain_text",))


def _section(block: dict[str, Any]) -> Iterator[str]:
    yield from _only(block, "text", "fields", "block_id", "accessory", "expand")
    if "text" not in block and "fields" not in block:
        yield "neither text nor fields"
    if "text" in block:
        yield from _text(block["text"], 3000)
    if "fields" in block:
        if not 1 <= len(block["fields"]) <= 10:
            yield "fields: 1 to 10"
        for field in block["fields"]:
            yield from _text(field, 2000)


def _context(block: dict[str, Any]) -> Iterator[str]:
    yield from _only(block, "elements", "block_id")
    if not 1 <= len(block.get("elements", ())) <= 10:
        yield "elements: 1 to 10"
    for element in block.get("elements", ()):
        yield from _text(element, 3000)


def _text(text: Any, most: int, types: tuple[str, ...] = ("plain_text", "mrkdwn")) -> Iterator[str]:
    if not isinstance(text, dict) or text.get("type") not in types:
        yield f"text: no {' or '.join(types)}"
        return
    if not _is_text(text.get("text"), most):
        yield f"text: 1 to {most} characters, not {len(str(text.get('text')))}"
    yield from _only(text, "text", "emoji" if text["type"] == "plain_text" else "verbatim")
    if text["type"] == "mrkdwn":
        yield from _markup(text["text"])


def _markup(text: str) -> Iterator[str]:
    """What rings or links: of what stands between < and >, links alone are expected here."""
    for inside in MARKUP.findall(text):
        if not re.match(r"https?://", inside):
            yield f"markup <{inside}>"
    if "<" in MARKUP.sub("", text) or ">" in MARKUP.sub("", text):
        yield "a < or > that is not escaped"
    if re.search(r"&(?!amp;|lt;|gt;)", text):
        yield "a & that is not escaped"


def _only(thing: dict[str, Any], *known: str) -> Iterator[str]:
    yield from (f"unknown key {key}" for key in thing.keys() - {"type", *known})


def _is_text(value: Any, most: int) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= most


_BLOCKS = {"header": _header, "section": _section, "context": _context}
"""No actions: a webhook has nobody who answers when a button is clicked."""
