"""A memory behind a URL: what it is asked, what is made of its answers, and how it is treated."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from collectors import timing
from collectors.backend import Backend, BackendConfig, BackendError, Usage, open_backend
from collectors.backends import http as adapter
from collectors.backends import http_manners
from collectors.backends.base import ID_KEY, well_formed
from collectors.backends.http_manners import Pace, retry_after
from collectors.backends.http_words import filled, found, parsed, path_of, placeholders, quoted_whole
from collectors.contract import contract_report
from collectors.suite import Memory, Scope
from tests.collectors.backends import test_contract
from tests.collectors.backends.memory_server import Asked, MemoryServer, Reply

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
WAYS = {"more": MORE, "otherwise": OTHERWISE}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = MemoryServer()
    yield server
    server.stop()


@pytest.fixture
def opened_as(server: MemoryServer) -> Iterator[Callable[..., Backend]]:
    """Opens a backend on the server. Its first reset is behind it, so that requests can be counted."""
    backends: list[Backend] = []

    def open(**options: Any) -> Backend:
        backends.append(configured(server, options))
        backends[-1].reset(Scope("memtrend-before"))
        server.asked.clear()
        return backends[-1]

    yield open
    for backend in backends:
        backend.close()


def configured(server: MemoryServer, options: Mapping[str, Any]) -> Backend:
    return open_backend(BackendConfig("ours", "http", {"url": server.url, **options}))


@dataclass
class Opened:
    """As the contract class wants it: a backend that can be closed and opened again."""

    config: BackendConfig
    backend: Backend = field(init=False)
    type = "http"
    declared = frozenset({"amend", "forget", "forget_user", "count", *MORE["capabilities"]})
    indexes = ("memories",)
    keeps = True

    def __post_init__(self) -> None:
        self.backend = open_backend(self.config)

    def reopen(self) -> Backend:
        self.backend.close()
        self.backend = open_backend(self.config)
        return self.backend


def _asked_here(test: Callable[..., None]) -> Callable[..., None]:
    """A test of the contract as one of this module: those of its own module are opened by conftest."""

    @wraps(test, assigned=("__name__", "__doc__"))
    def asked(*given: Any, **named: Any) -> None:
        test(*given, **named)

    return asked


class TestHttpContract:
    """All that a memory owes its users, through either contract of the server."""

    for _name, _test in vars(test_contract.TestContract).items():
        if _name.startswith("test_"):
            locals()[_name] = _asked_here(_test)

    @pytest.fixture(params=WAYS.values(), ids=WAYS)
    def opened(self, request: pytest.FixtureRequest, server: MemoryServer) -> Iterator[Opened]:
        opened = Opened(BackendConfig("ours", "http", {"url": server.url, **request.param}))
        yield opened
        opened.backend.close()


class TestThreeLines:
    def test_the_url_alone_is_enough(self, server: MemoryServer) -> None:
        """A server of the common contract needs a URL and nothing else to keep what it owes."""
        report = contract_report(configured(server, {}), BOX.namespace)
        assert [result for result in report if not result.ok] == []

    def test_what_is_asked(self, server: MemoryServer, opened_as: Callable[..., Backend]) -> None:
        """The three requests are POSTs of what is documented, and name whom they are for."""
        backend = opened_as()
        backend.reset(BOX)
        backend.remember(replace(BOX, session="monday"), [PIANO])
        backend.recall(replace(BOX, domains=("work",)), "When?", 3)
        reset, again, add, search = server.asked
        user = f"{BOX.namespace}/anna"
        assert [asked.method for asked in server.asked] == ["POST"] * 4
        assert (reset.path, again.path, reset.body, again.body) == (
            *("/reset", "/reset"),
            *({"user_id": user}, {"user_id": user}),
        )
        assert (add.path, add.body) == (
            "/add",
            {
                "id": f"{user}/m-piano",
                "text": PIANO.text,
                "user_id": user,
                "session_id": "monday",
                "metadata": {"role": "user", "user": "anna", "session": "monday", ID_KEY: "m-piano"},
            },
        )
        assert (search.path, search.body) == (
            "/search",
            {"query": "When?", "user_id": user, "limit": 3, "domains": ["work"]},
        )

    @pytest.mark.parametrize(
        "answer",
        [
            {"results": [{"id": "x", "memory": PIANO.text, "score": 0.5}]},
            {"memories": [{"id": "x", "content": PIANO.text, "score": 0.5, "metadata": None}]},
            [{"id": "x", "text": PIANO.text, "score": "0.5", "metadata": {}}],
        ],
    )
    def test_usual_answers_are_understood(
        self, server: MemoryServer, opened_as: Callable[..., Backend], answer: Any
    ) -> None:
        """Lists of results under the usual names, or bare, are read without being configured."""
        backend = opened_as()
        server.script = lambda asked: Reply(body=answer)
        (hit,) = backend.recall(BOX, "When?", 3).hits
        assert (hit.id, hit.text, hit.score, hit.metadata) == ("x", PIANO.text, 0.5, {})

    def test_planted_ids_come_back(self, server: MemoryServer, opened_as: Callable[..., Backend]) -> None:
        """The planted id is read from the metadata, and where the server drops these, from its id."""
        backend = opened_as()
        user = f"{BOX.namespace}/anna"
        server.script = lambda asked: Reply(
            body=[
                {"id": "7", "text": "a", "metadata": {ID_KEY: "m-1", "x": 1}},
                {"id": f"{user}/m-2", "text": "b"},
                {"id": 3, "text": "c"},
                {"text": "d"},
            ]
        )
        hits = backend.recall(BOX, "When?", 3).hits
        assert [hit.id for hit in hits] == ["m-1", "m-2", "3", ""]
        assert hits[0].metadata == {"x": 1}

    def test_declares_nothing_that_was_not_said(self, server: MemoryServer) -> None:
        """Only what a request is configured for, or the section says, is declared."""
        assert configured(server, {}).capabilities == frozenset()
        counted = {"requests": {"count": MORE["requests"]["count"]}, "capabilities": ["concurrent"]}
        assert configured(server, counted).capabilities == {"count", "concurrent"}


class TestTemplated:
    def test_many_memories_are_one_request(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """With `each` a list goes out, shaped as it says, and what has nothing to say is left out."""
        backend = opened_as(**OTHERWISE)
        backend.remember(BOX, [PIANO, FERRY])
        (asked,) = [asked for asked in server.asked if asked.method == "POST"]
        assert [sorted(entry) for entry in asked.body] == [["attributes", "content"]] * 2
        assert [entry["content"] for entry in asked.body] == [PIANO.text, FERRY.text]
        backend.remember(BOX, [])
        assert [asked.method for asked in server.asked].count("POST") == 1

    def test_a_changed_path_keeps_the_rest(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """Of a request that is given in part the rest is the common contract's, but a GET has no body."""
        search = {"method": "GET", "path": "/find", "query": {"q": "{query}", "of": "{namespace}"}}
        backend = opened_as()
        server.script = lambda asked: Reply(body=[])
        other = configured(server, {"requests": {"recall": {"path": "/find"}}})
        other.recall(BOX, "When?", 3)
        configured(server, {"requests": {"recall": search}}).recall(BOX, "When?", 3)
        posted, got = server.asked
        assert (posted.path, posted.body["query"]) == ("/find", "When?")
        assert (got.method, got.query, got.body) == ("GET", {"q": ["When?"], "of": [BOX.namespace]}, None)
        assert backend.capabilities == other.capabilities

    def test_pages_are_turned_until_there_are_enough(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """Pages are asked for until there are k hits or no more pages, and each says where it begins."""
        backend = opened_as(**OTHERWISE)
        backend.remember(BOX, [replace(PIANO, id=f"m-{n}") for n in range(7)])
        endless = {**OTHERWISE["requests"]["recall"]["query"], "top": "{k}0"}  # more than were asked for
        recall = {**OTHERWISE["requests"]["recall"], "query": endless}
        generous = configured(server, {**OTHERWISE, "requests": {**OTHERWISE["requests"], "recall": recall}})
        for asking, k, hits, pages in (
            (backend, 2, 2, 1),
            (backend, 3, 3, 2),
            (backend, 20, 7, 4),
            (generous, 3, 4, 2),
        ):
            server.asked.clear()
            assert len(asking.recall(BOX, "piano", k).hits) == hits
            assert [asked.query.get("from") for asked in server.asked] == [None, ["2"], ["4"], ["6"]][:pages]

    def test_pages_without_an_end_are_an_error(
        self, server: MemoryServer, opened_as: Callable[..., Backend], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A server that always has another page is not asked for ever."""
        monkeypatch.setattr(adapter, "MAX_PAGES", 3)
        backend = opened_as(**OTHERWISE)
        server.script = lambda asked: Reply(body={"data": {"groups": [{"items": []}]}, "page": {"next": 1}})
        with pytest.raises(BackendError) as raised:
            backend.recall(BOX, "piano", 5)
        assert raised.value.permanent
        assert len(server.asked) == 3

    def test_costs_and_replies_are_read(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """Calls, tokens and money are summed over requests; a reply comes back as text."""
        costs = {"calls": "usage.calls", "tokens": "usage.tokens[*]", "money": "usage.usd", "reply": "said"}
        backend = opened_as(answers=costs)
        usage = {"calls": 1, "tokens": [10, 5], "usd": 0.25}
        server.script = lambda asked: Reply(body={"results": [], "usage": usage, "said": "At ten."})
        assert backend.remember(BOX, [PIANO, FERRY]) == Usage(2, 30, 0.5)
        answer = backend.recall(BOX, "When?", 5)
        assert (answer.usage, answer.reply) == (Usage(1, 15, 0.25), "At ten.")

    def test_the_server_tells_its_version(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """The version stands in a header or in an answer, and what decides answers has a digest."""
        backend = opened_as(**OTHERWISE)
        assert backend.versions()["server"] == "7.1"
        body = {"requests": OTHERWISE["requests"], "answers": {**OTHERWISE["answers"], "version": "name"}}
        del body["answers"]["version_header"]
        other = configured(server, {**OTHERWISE, **body})
        assert other.versions()["server"] == "memories"
        assert other.versions()["url"] == f"{server.url}/"
        assert other.versions()["contract"] != backend.versions()["contract"]
        assert configured(server, {}).versions().keys() == {"url", "contract"}

    def test_distances_are_turned_round(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """Where less is better a score is the distance below zero, so that the best is the highest."""
        backend = opened_as(**OTHERWISE)
        backend.remember(BOX, [FERRY, PIANO])
        best, other = backend.recall(BOX, "piano tuner", 2).hits
        assert best.id == "m-piano"
        assert 0.0 == best.score > other.score == -1.0  # type: ignore[operator]


class TestOnlyOurOwn:
    def test_a_reset_reaches_every_user_planted(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """Where the server drops user by user, another handle too drops all that were planted, and nobody
        else."""
        backend, other = opened_as(), opened_as()
        server.answer(Asked("POST", "/add", {}, {}, {**_anybody(), "user_id": "production/anna"}))
        for user in ("anna", "bruno"):
            backend.remember(replace(BOX, user=user), [PIANO])
        other.reset(Scope(BOX.namespace))
        assert [row.user for row in server.rows] == ["production/anna"]

    def test_what_a_killed_process_left_is_dropped(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """The first memory of a user finds the user empty, whatever is left of an earlier process."""
        backend = opened_as()
        left = {**_anybody(), "user_id": f"{BOX.namespace}/anna"}
        server.answer(Asked("POST", "/add", {}, {}, left))
        backend.reset(Scope(BOX.namespace))
        backend.remember(BOX, [PIANO])
        backend.remember(BOX, [FERRY])
        assert [row.text for row in server.rows] == [PIANO.text, FERRY.text]

    def test_a_server_that_drops_everything_is_found_out(self, server: MemoryServer) -> None:
        """Where a bystander does not survive the first reset, the error says so and no other is sent."""
        backend = configured(server, {})
        server.wipes = True
        with pytest.raises(BackendError, match="takes no notice of whose memories") as raised:
            backend.reset(BOX)
        assert raised.value.permanent
        assert server.paths().count("/reset") == 1

    def test_a_server_of_another_contract_is_not_reset(self, server: MemoryServer) -> None:
        """Where nothing can be remembered no reset is sent: it might mean something else there."""
        backend = configured(server, {})
        server.script = lambda asked: Reply(404) if asked.path == "/add" else None
        with pytest.raises(BackendError, match="remember by POST /add: HTTP 404"):
            backend.reset(BOX)
        assert server.paths() == ["/add"]

    @pytest.mark.parametrize("method", ["DELETE", "POST"])
    def test_a_reset_that_does_not_exist_is_no_empty_namespace(
        self, server: MemoryServer, method: str
    ) -> None:
        """404 is fine for a DELETE, which finds nothing to delete; any other request has failed for good."""
        reset = {"method": method, "path": "/boxes/{namespace}"}
        backend = configured(server, {"requests": {"reset": reset}})
        if method == "DELETE":
            return backend.reset(BOX)
        with pytest.raises(BackendError, match=r"reset by POST /boxes/\{namespace\}: HTTP 404") as raised:
            backend.reset(BOX)
        assert raised.value.permanent

    def test_the_bystander_is_no_trace(self, server: MemoryServer) -> None:
        """It stands in a namespace of memtrend's, only at the first reset, and is gone after it."""
        backend = configured(server, {})
        backend.reset(BOX)
        assert server.rows == []
        assert server.asked[0].body["user_id"].startswith("memtrend-bystander-")
        server.asked.clear()
        backend.reset(BOX)
        assert server.paths() == ["/reset"]

    @pytest.mark.parametrize("verb", ["remember", "amend", "forget", "forget_user"])
    def test_nothing_is_changed_elsewhere(
        self, server: MemoryServer, opened_as: Callable[..., Backend], verb: str
    ) -> None:
        """No verb that changes anything asks about a namespace that is not memtrend's."""
        backend = opened_as(**MORE)
        arguments = {"remember": [[PIANO]], "amend": ["m", "text"], "forget": [["m"]]}.get(verb, [])
        with pytest.raises(BackendError, match="is not memtrend's"):
            getattr(backend, verb)(Scope("production"), *arguments)
        assert server.asked == []

    def test_an_empty_name_never_shortens_a_path(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """DELETE /memories/ is not what DELETE /memories/{id} means for an empty id."""
        forget = {"method": "DELETE", "path": "/{namespace}/{id}"}
        backend = opened_as(requests={"forget": forget})
        with pytest.raises(BackendError, match="nothing to put into the path"):
            backend.forget(BOX, [""])
        backend.forget(BOX, ["..", "a/b?c#d"])
        assert server.paths() == [f"/{BOX.namespace}/%2E%2E", f"/{BOX.namespace}/a%2Fb%3Fc%23d"]


def _anybody() -> dict[str, Any]:
    return {"id": "1", "text": "Somebody's.", "metadata": {}}


class TestSettling:
    def test_waits_for_what_was_planted_last(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """It returns at the first search that finds the last memory, and not before."""
        backend = opened_as()
        backend.remember(BOX, [PIANO, FERRY])
        server.late = 2
        server.asked.clear()
        backend.settle(BOX)
        assert [asked.body["query"] for asked in server.asked] == [FERRY.text] * 3

    def test_a_memory_rewritten_is_found_by_its_id(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """A server that keeps ids may rewrite texts."""
        backend = opened_as()
        backend.remember(BOX, [PIANO])
        rewritten = [{"text": "Piano: Fridays.", "metadata": {ID_KEY: "m-piano"}}]
        server.script = lambda asked: Reply(body=rewritten)
        backend.settle(BOX)

    def test_asks_the_server_where_it_can_tell(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """With a request of its own it waits for the answer that was named, and searches for nothing."""
        backend = opened_as(**OTHERWISE)
        waiting = iter([2, 1, 0])
        server.script = lambda asked: Reply(body={"waiting": next(waiting)})
        backend.settle(BOX)
        assert server.paths() == [f"/v2/{BOX.namespace}/status"] * 3

    def test_nothing_planted_is_nothing_to_wait_for(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """Before the first memory, of blank texts, and once the last memory is gone, nothing is asked."""
        backend = opened_as(**MORE)
        gone: list[Callable[[], object]] = [
            lambda: backend.reset(BOX),
            lambda: backend.forget_user(BOX),
            lambda: backend.forget(BOX, [PIANO.id]),
            lambda: backend.amend(BOX, PIANO.id, "other"),
        ]
        backend.settle(BOX)
        assert server.asked == []
        for go in gone:
            backend.remember(BOX, [PIANO, replace(FERRY, text=" ")])
            backend.settle(BOX)
            assert server.asked[-1].body["query"] == PIANO.text
            go()
            server.asked.clear()
            backend.settle(BOX)
            assert server.asked == []


class TestManners:
    @pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503])
    def test_what_may_pass_is_passing(
        self, server: MemoryServer, opened_as: Callable[..., Backend], status: int
    ) -> None:
        """A busy server is a passing error with its status; nothing is asked twice in here."""
        backend = opened_as()
        server.script = lambda asked: Reply(status, {"error": "busy"})
        with pytest.raises(BackendError, match=f"recall by POST /search: HTTP {status}.*busy") as raised:
            backend.recall(BOX, "When?", 5)
        assert not raised.value.permanent
        assert len(server.asked) == 1

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422])
    def test_what_will_not_pass_is_not(
        self, server: MemoryServer, opened_as: Callable[..., Backend], status: int
    ) -> None:
        """A refused key or request is a permanent error."""
        backend = opened_as()
        server.script = lambda asked: Reply(status, {"error": "no"})
        with pytest.raises(BackendError, match=f"HTTP {status}") as raised:
            backend.recall(BOX, "When?", 5)
        assert raised.value.permanent

    def test_planting_is_never_repeated(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """A plant that failed may have been stored: it is sent once, and those after it are not."""
        backend = opened_as()
        server.script = lambda asked: Reply(503) if asked.path == "/add" else None
        with pytest.raises(BackendError):
            backend.remember(BOX, [PIANO, FERRY])
        assert server.paths().count("/add") == 1

    def test_a_redirect_is_not_followed(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """A key never goes where a server points to."""
        backend = opened_as(token=KEY)
        server.script = lambda asked: Reply(307, headers={"Location": f"{server.url}/elsewhere"})
        with pytest.raises(BackendError, match="HTTP 307: redirects are not followed") as raised:
            backend.recall(BOX, "When?", 5)
        assert raised.value.permanent
        assert server.paths() == ["/search"]

    def test_a_dropped_connection_is_passing(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """A server that hangs up may be restarting."""
        backend = opened_as()
        server.script = lambda asked: Reply(dropped=True)
        with pytest.raises(BackendError, match="RemoteProtocolError") as raised:
            backend.recall(BOX, "When?", 5)
        assert not raised.value.permanent

    def test_nobody_there_is_passing(self, server: MemoryServer) -> None:
        """A refused connection names backend and verb, and may be a restart."""
        backend = configured(server, {})
        server.stop()
        with pytest.raises(
            BackendError, match="backend ours, recall by POST /search: ConnectError"
        ) as raised:
            backend.recall(BOX, "When?", 5)
        assert not raised.value.permanent

    @pytest.mark.parametrize(
        ("slow", "said"),
        [
            (lambda release: Reply(until=release), "ReadTimeout"),
            (lambda release: Reply(endless=release), "had no end after 0.1 s"),
        ],
    )
    def test_a_slow_server_is_given_up(
        self, server: MemoryServer, opened_as: Callable[..., Backend], slow: Any, said: str
    ) -> None:
        """No answer within `timeout` seconds, or one that drips on, is a passing error."""
        backend, release = opened_as(timeout=0.1), threading.Event()
        server.script = lambda asked: slow(release)
        with pytest.raises(BackendError, match=said) as raised:
            backend.recall(BOX, "When?", 5)
        release.set()
        assert not raised.value.permanent

    def test_an_answer_has_its_bounds(
        self, server: MemoryServer, opened_as: Callable[..., Backend], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A server cannot fill the memory."""
        monkeypatch.setattr(http_manners, "MAX_BYTES", 1000)
        backend = opened_as()
        server.script = lambda asked: Reply(body=b"[" + b" " * 1000 + b"]")
        with pytest.raises(BackendError, match="longer than 1000 bytes") as raised:
            backend.recall(BOX, "When?", 5)
        assert raised.value.permanent

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (b"<html>not <b>JSON", "not JSON: <html>not <b>JSON"),
            (b"[" * 100_000, r"not JSON: \[\["),
            (b'[{"text": "a", "score": NaN}]', "not JSON"),
            (b"\xff\xfe", "not JSON"),
            (b"", "no list of hits at results"),
            ({"results": {}}, "no list of hits at results"),
            ({"found": []}, "no list of hits at results"),
            ("text", "no list of hits at results"),
            ([{"id": "1"}], "a hit without a text"),
            ([{"id": "1", "text": 5}], "a hit without a text"),
            (["a"], "a hit without a text"),
            ([{"id": "1", "text": "a", "metadata": "b"}], "metadata that are none"),
            ([{"id": "1", "text": "a", "score": "high"}], "a score that is no number"),
            ([{"id": "1", "text": "a", "score": {}}], "a score that is no number"),
        ],
    )
    def test_rubbish_is_an_error(
        self, server: MemoryServer, opened_as: Callable[..., Backend], answer: Any, said: str
    ) -> None:
        """An answer that cannot be read is a permanent error that shows how it begins, and never a hit."""
        backend = opened_as()
        server.script = lambda asked: Reply(body=answer)
        with pytest.raises(BackendError, match=said) as raised:
            backend.recall(BOX, "When?", 5)
        assert raised.value.permanent
        assert len(str(raised.value)) < 400

    @pytest.mark.parametrize("answer", [{"count": "3"}, {"count": True}, {"count": {}}, {}])
    def test_a_count_is_a_number(
        self, server: MemoryServer, opened_as: Callable[..., Backend], answer: Any
    ) -> None:
        """What is no number, and no list to count, is no count."""
        backend = opened_as(**MORE)
        server.script = lambda asked: Reply(body=answer)
        with pytest.raises(BackendError, match="no number and no list at count"):
            backend.count(BOX)

    def test_an_answer_that_is_not_needed_may_be_anything(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """ "OK" is a fine answer to a memory."""
        backend = opened_as()
        server.script = lambda asked: Reply(body=b"OK")
        assert backend.remember(BOX, [PIANO]) == Usage()


@dataclass
class Clock:
    """Time that passes only while somebody sleeps."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class TestPace:
    def test_requests_go_out_evenly(self) -> None:
        """At four a second each waits a quarter after the one before, and idle time saves up nothing."""
        clock = Clock()
        pace = Pace(4, clock, clock.sleep)
        times = []
        for _ in range(4):
            pace.wait()
            times.append(clock.now)
        clock.now = 10.0
        for _ in range(2):
            pace.wait()
            times.append(clock.now)
        assert times == [0.0, 0.25, 0.5, 0.75, 10.0, 10.25]

    def test_threads_share_one_pace(self) -> None:
        """However many threads ask, each gets a turn of its own."""
        clock, turns, lock = Clock(), list[float](), threading.Lock()

        def sleep(seconds: float) -> None:
            # Nobody's sleep moves the clock, so that turns are told by how long each was to wait.
            with lock:
                turns.append(seconds)
            raise InterruptedError

        pace = Pace(10, clock, sleep)

        def ask(_: int) -> None:
            try:
                pace.wait()
            except InterruptedError:
                return

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(ask, range(40)))
        assert sorted(turns) == pytest.approx([n / 10 for n in range(1, 40)])

    def test_a_server_that_wants_peace_has_it(self) -> None:
        """After Retry-After nobody asks before its time; a shorter one later does not shorten it."""
        clock = Clock()
        pace = Pace(None, clock, clock.sleep)
        pace.wait()
        pace.leave_alone(3)
        pace.leave_alone(1)
        pace.wait()
        pace.wait()
        assert clock.slept == [3]

    def test_who_waits_already_waits_on(self) -> None:
        """A complaint that comes while one waits for its turn counts for it too."""
        clock = Clock()

        def sleep(seconds: float) -> None:
            if not clock.slept:
                pace.leave_alone(5)
            clock.sleep(seconds)

        pace = Pace(1, clock, sleep)
        pace.wait()
        pace.wait()
        assert clock.now == 5

    def test_nobody_waits_for_ever(self) -> None:
        """A turn further off than a call may take is a passing error, and takes nobody's turn."""
        clock = Clock()
        pace = Pace(None, clock, clock.sleep)
        pace.leave_alone(3600)
        with pytest.raises(BackendError, match="its turn is 3600 s off") as raised:
            pace.wait()
        assert not raised.value.permanent
        assert clock.slept == []

    def test_waiting_is_not_the_backends_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What a call waits for its turn is left out of its latency."""
        clock = Clock()
        monkeypatch.setattr(timing.time, "perf_counter", clock)
        pace = Pace(1, clock, clock.sleep)
        pace.wait()
        assert timing.timed(pace.wait).ms == 0.0
        assert clock.slept == [1.0]

    @pytest.mark.parametrize(
        ("said", "seconds"),
        [
            ("7", 7.0),
            (" 0 ", 0.0),
            ("Mon, 30 Nov 2026 12:00:30 GMT", 30.0),
            ("Mon, 30 Nov 2026 11:59:30 GMT", 0.0),
            ("", 0.0),
            ("-5", 0.0),
            ("soon", 0.0),
            ("²", 0.0),
        ],
    )
    def test_retry_after_is_read(self, said: str, seconds: float) -> None:
        """As seconds, or as a date by the server's own clock; nonsense is no wait."""
        headers = httpx.Headers(
            {"Date": "Mon, 30 Nov 2026 12:00:00 GMT", "Retry-After": said.encode("utf-8")}
        )
        assert retry_after(headers) == seconds

    @pytest.mark.parametrize("status", [429, 503])
    def test_retry_after_holds_for_every_verb(
        self, server: MemoryServer, opened_as: Callable[..., Backend], status: int
    ) -> None:
        """A server that asked for an hour of peace is not asked again by anyone: the error says why."""
        backend = opened_as()
        server.script = lambda asked: Reply(status, headers={"Retry-After": "3600"})
        for _ in range(2):
            with pytest.raises(BackendError) as raised:
                backend.recall(BOX, "When?", 5)
            assert not raised.value.permanent
        with pytest.raises(BackendError, match=r"its turn is \d+ s off"):
            backend.remember(BOX, [PIANO])
        assert len(server.asked) == 1


class TestSecrets:
    def test_the_token_is_a_bearer(self, server: MemoryServer, opened_as: Callable[..., Backend]) -> None:
        """Token and headers go out with every request, those of one request with it alone."""
        server.token = KEY
        count = {**MORE["requests"]["count"], "headers": {"X-For": "{user}", "X-Own": SecretStr("own")}}
        backend = opened_as(token=SecretStr(KEY), headers={"X-Team": "memory"}, requests={"count": count})
        backend.count(replace(BOX, user="Zoë\n"))
        backend.recall(BOX, "When?", 5)
        first, second = (asked.headers for asked in server.asked)
        assert first["authorization"] == second["authorization"] == f"Bearer {KEY}"
        assert (first["x-team"], first["x-for"], first["x-own"]) == ("memory", "Zo%C3%AB%0A", "own")
        assert second["x-team"] == "memory"
        assert "x-own" not in second

    @pytest.mark.parametrize(
        "options",
        [
            {"token": KEY},
            {"headers": {"X-Api-Key": KEY}},
            {"headers": {"Authorization": f"Token {KEY}"}},
            {"requests": {"recall": {"headers": {"X-Api-Key": KEY}}}},
        ],
    )
    @pytest.mark.parametrize(
        "echo",
        [
            lambda key: Reply(401, {"error": f"Incorrect key: {key}"}),
            lambda key: Reply(200, f"<html>{key}</html>".encode()),
            lambda key: Reply(500, {"error": "x" * 170 + key}),
            lambda key: Reply(400, {"error": f"?key={quoted_whole(key)}"}),
            lambda key: Reply(200, [{"id": key}]),
        ],
    )
    def test_no_secret_is_told(
        self,
        server: MemoryServer,
        opened_as: Callable[..., Backend],
        options: Any,
        echo: Any,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Whatever the server repeats, and wherever the key stood, no error and no log shows any of it."""
        caplog.set_level(logging.DEBUG)
        backend = opened_as(**options)
        server.script = lambda asked: echo(KEY)
        with pytest.raises(BackendError) as raised:
            backend.recall(BOX, "When?", 5)
        told = str(raised.value) + repr(raised.value.__cause__) + caplog.text + repr(backend.versions())
        assert not any(part in told for part in (KEY, KEY[:12], quoted_whole(KEY)))
        assert "***" in str(raised.value)

    def test_the_version_is_no_secret_either(
        self, server: MemoryServer, opened_as: Callable[..., Backend]
    ) -> None:
        """Nor does a key get into what identifies the backend, nor decide it."""
        backend = opened_as(**{**OTHERWISE, "token": KEY})
        server.script = lambda asked: Reply(body={}, headers={"X-Server-Version": f"7 for {KEY}"})
        assert backend.versions()["server"] == "7 for ***"
        other = configured(server, {**OTHERWISE, "token": "another"})
        assert other.versions()["contract"] == backend.versions()["contract"]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"url": f"http://me:{quoted_whole(KEY)}@h"}, "url: give the credentials as `token`"),
            ({"url": f"http://h/?key={KEY}"}, "url: give what follows"),
            ({"token": f"{KEY}\n"}, "token: a header is one line"),
            ({"headers": {"X": f"{KEY}é"}}, "headers.X: a header is one line"),
            (
                {"requests": {"recall": {"query": {"api_key": KEY, "n": "{namespace}"}}}},
                "requests.recall.query: api_key: a secret belongs in headers",
            ),
            (
                {"requests": {"recall": {"query": {"accessToken": KEY, "n": "{namespace}"}}}},
                "requests.recall.query: accessToken: a secret",
            ),
            ({"tokn": KEY}, "tokn: unknown key; known: url, token, headers, timeout"),
        ],
    )
    def test_a_secret_in_the_wrong_place_is_refused(self, options: dict[str, Any], said: str) -> None:
        """Where it would be shown or could not be sent the key is named, the value is not."""
        with pytest.raises(BackendError) as raised:
            open_backend(BackendConfig("ours", "http", {"url": "http://h", **options}))
        assert said in str(raised.value)
        assert KEY not in unquote(str(raised.value))


class TestConfiguration:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"url": "ftp://h"}, "url: URL scheme should be 'http' or 'https'"),
            ({"timeout": 0}, "timeout: Input should be greater than 0"),
            ({"rate": -1}, "rate: Input should be greater than 0"),
            ({"capabilities": ["amend"]}, "capabilities"),
            ({"config": {"a": 1}}, "config: unknown key; known: url,"),
            ({"requests": {"add": {}}}, "requests.add: unknown key; known: remember, recall, reset, amend,"),
            (
                {"requests": {"recall": {"url": "/x"}}},
                "requests.recall.url: unknown key; known: path, method, body",
            ),
            ({"requests": {"count": {"body": {}}}}, "requests.count.path: Field required"),
            ({"requests": {"recall": {"path": "search"}}}, "requests.recall.path"),
            ({"requests": {"recall": {"path": "/search?x=1"}}}, "requests.recall.path"),
            ({"requests": {"recall": {"method": "LOOK"}}}, "requests.recall.method"),
            (
                {"requests": {"recall": {"body": {"q": "{query}", "u": "{namespace} {usr}"}}}},
                "requests.recall: unknown placeholder {usr}; known: {cursor}, {domains}, {k}, {namespace},",
            ),
            (
                {"requests": {"reset": {"body": {"user_id": "{user}"}}}},
                "requests.reset: must name {namespace}",
            ),
            (
                {"requests": {"remember": {"body": {"user": "{namespace}"}}}},
                "requests.remember: must name {text} or {memories}",
            ),
            (
                {"requests": {"forget": {"path": "/memories/{id}"}}},
                "requests.forget: must name {namespace} or {stored}",
            ),
            (
                {"requests": {"remember": {"body": {"n": "{namespace}", "all": "{memories}"}}}},
                "{memories} in the body and `each` go together",
            ),
            ({"requests": {"remember": {"each": {"text": "{text}"}}}}, "`each` go together"),
            ({"answers": {"txt": "a"}}, "answers.txt: unknown key; known: hits, id, text, score"),
            ({"answers": {"text": "a..b"}}, "answers.text: not a path: names joined by dots"),
        ],
    )
    def test_what_is_wrong_is_told_when_opened(self, options: dict[str, Any], said: str) -> None:
        """Each mistake is a permanent error that names the key, and those there are."""
        with pytest.raises(BackendError) as raised:
            open_backend(BackendConfig("ours", "http", {"url": "http://h", **options}))
        assert raised.value.permanent
        assert said in str(raised.value)

    def test_a_name_in_a_query_may_sound_secret(self) -> None:
        """What is filled in is no secret, nor is a number, whatever they are called."""
        query = {"key": "{namespace}", "token": 100, "keyword": "on", "q": "{query}"}
        open_backend(
            BackendConfig("ours", "http", {"url": "http://h", "requests": {"recall": {"query": query}}})
        )

    def test_all_mistakes_are_told_at_once(self) -> None:
        """Nobody has to start five times to find five mistakes."""
        options = {
            "tokn": "x",
            "timeout": -1,
            "answers": {"hits": "[", "score": "a b"},
            "requests": {"reset": {"body": {"all": "{everything}"}}, "wipe": {}},
        }
        with pytest.raises(BackendError) as raised:
            open_backend(BackendConfig("ours", "http", options))
        told = str(raised.value)
        for place in ("url", "tokn", "timeout", "answers.hits", "answers.score", "requests.wipe"):
            assert f" {place}: " in told
        assert (
            "requests.reset: unknown placeholder {everything}; known: {namespace}, {user}; must name" in told
        )

    def test_what_is_documented_can_be_opened(self) -> None:
        """Each section shown for it in docs/backends.md is accepted as it stands there."""
        page = Path(__file__).parents[3] / "docs" / "backends.md"
        section = page.read_text(encoding="utf-8").split("\n## `http`")[1].split("\n## ")[0]
        blocks = re.findall(r"(?s)```toml\n(.*?)```", section)
        assert len(blocks) == 2
        for block in blocks:
            for name, options in tomllib.loads(block)["backends"].items():
                open_backend(BackendConfig(name, options.pop("type"), options)).close()

    def test_no_module_of_ours_hides_the_standard_one(self) -> None:
        """A worker, which is started as a file beside this adapter, still imports the standard library's
        `http`."""
        file = Path(adapter.__file__).with_name("handed.py")
        code = f"import runpy, sys; print(sys.path); runpy.run_path({str(file)!r})"
        for command in (["-I", str(file)], ["-I", "-c", code]):
            subprocess.run([sys.executable, *command], check=True, capture_output=True, timeout=60)


TEXT = st.text(st.characters(codec=None), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
LITERAL = st.text(st.characters(codec="utf-8", exclude_characters="{}"), max_size=10)


class TestWords:
    @given(st.lists(st.tuples(LITERAL, TEXT), min_size=1, max_size=4), LITERAL)
    def test_texts_are_put_where_they_belong(self, parts: list[tuple[str, str]], end: str) -> None:
        """Whatever texts stand in for placeholders, braces included, each appears once and as it is."""
        values = {f"p{n}": value for n, (_, value) in enumerate(parts)}
        template = "".join(f"{literal}{{p{n}}}" for n, (literal, _) in enumerate(parts)) + end
        assert placeholders(template) == values.keys()
        whole = "".join(literal + value for literal, value in parts) + end
        assert filled({"key": ["x" + template]}, values) == {"key": ["x" + whole]}

    @given(JSON.filter(lambda value: value is not None))
    def test_a_placeholder_alone_keeps_its_type(self, value: Any) -> None:
        """A number stays a number, a list a list, down to what is within."""
        assert filled({"a": ["{v}"], "b": {"c": "{v}"}}, {"v": value}) == {"a": [value], "b": {"c": value}}

    @given(TEXT.filter(bool), TEXT.filter(bool))
    def test_a_path_keeps_its_shape(self, one: str, other: str) -> None:
        """No name adds, ends or leaves a segment of a path, and each comes out as it went in."""
        path = path_of("/a/{one}/b/x-{other}", {"one": one, "other": other})
        assert httpx.URL(f"http://h{path}").raw_path.decode() == path
        _, a, first, b, second = path.split("/")
        assert (a, b) == ("a", "b")
        assert unquote(first) == well_formed(one)
        assert unquote(second) == f"x-{well_formed(other)}"

    @given(JSON)
    def test_a_template_without_placeholders_stays(self, template: Any) -> None:
        """What holds no braces and no nulls is sent as it is written."""
        plain = json.loads(json.dumps(template).replace("{", "(").replace("}", ")").replace("null", "0"))
        assert filled(plain, {}) == plain
        assert placeholders(plain) == set()

    def test_braces_can_be_written(self) -> None:
        """Doubled braces stand for the text, and braces around anything else for themselves."""
        template = "{{k}} {k} { k } {} {k-1} {{k}"
        assert filled(template, {"k": 5}) == "{k} 5 { k } {} {k-1} {5"
        assert placeholders(template) == {"k"}

    def test_what_has_nothing_to_say_is_left_out(self) -> None:
        """A key or an entry of one placeholder goes with its null, and a longer text has a gap."""
        template = {"a": "{v}", "b": ["{v}", 1], "c": "x{v}", "d": {"e": "{v}"}}
        assert filled(template, {"v": None}) == {"b": [1], "c": "x", "d": {}}

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("results", [[{"id": 1, "tags": ["x", "y"]}, {"id": 2}, {"id": None}]]),
            ("results[*].id", [1, 2]),
            ("results[0].tags[1]", ["y"]),
            ("results[*].tags[*]", ["x", "y"]),
            ("results[9].id", []),
            ("nested.deep.er", ["here"]),
            ("nested.deep[0]", []),
            ("nested[*]", []),
            ("x-y.ü", []),
            ("missing|nested.deep.er", ["here"]),
            ("missing | none | results[1].id", [2]),
            ("missing", []),
            ("$.nested.deep.er", ["here"]),
            ("$", None),
        ],
    )
    def test_paths_lead_into_answers(self, path: str, expected: list[Any] | None) -> None:
        """Names, places, each of a list, the first way that leads anywhere; what is not there is nothing."""
        answer = {
            "results": [{"id": 1, "tags": ["x", "y"]}, {"id": 2}, {"id": None}],
            "nested": {"deep": {"er": "here"}},
            "none": None,
        }
        assert found(path, answer) == ([answer] if expected is None else expected)

    @given(st.text(alphabet="ab.[]*0|$ ", max_size=12), JSON)
    def test_any_path_is_read_or_refused(self, path: str, answer: Any) -> None:
        """A path is refused whatever the answer, or leads somewhere or nowhere in any; never to a null."""
        try:
            parsed(path)
        except ValueError:
            with pytest.raises(ValueError, match="not a path"):
                found(path, answer)
            return
        assert None not in found(path, answer)
