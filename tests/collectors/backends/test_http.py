"""A memory behind a URL: what it is asked, what is made of its answers, and what is left alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from collectors.backend import Backend, BackendConfig, BackendError, Usage, open_backend
from collectors.backends import http as adapter
from collectors.backends.base import ID_KEY
from collectors.contract import contract_report
from collectors.suite import Scope
from tests.collectors.backends import test_contract
from tests.collectors.backends.memory_server import (
    BOX,
    FERRY,
    MORE,
    OTHERWISE,
    PIANO,
    Asked,
    MemoryServer,
    Reply,
    configured,
)

WAYS = {"more": MORE, "otherwise": OTHERWISE}


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


class TestHttpContract(test_contract.TestContract):
    """All that a memory owes its users, through either contract of the server."""

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

    @pytest.mark.parametrize("failing", ["/search", "/reset"])
    @pytest.mark.parametrize("status", [500, 401])
    def test_no_bystander_is_left_by_a_reset_that_failed(
        self, server: MemoryServer, failing: str, status: int
    ) -> None:
        """Whatever stops the first reset, it goes at once, or where the server cannot, with the next try."""
        backend = configured(server, {})
        broken = iter([Reply(status)])
        server.script = lambda asked: next(broken, None) if asked.path == failing else None
        with pytest.raises(BackendError, match=f"HTTP {status}") as raised:
            backend.reset(BOX)
        assert raised.value.permanent == (status == 401)
        assert server.rows == []
        down = iter([Reply(503)] * 2)
        server.script = lambda asked: next(down, None) if asked.path == "/reset" else None
        with pytest.raises(BackendError, match="HTTP 503"):
            backend.reset(BOX)
        assert len(server.rows) == 1
        backend.reset(BOX)
        assert server.rows == []

    def test_a_lost_answer_leaves_no_bystander(self, server: MemoryServer) -> None:
        """One that was stored though its answer never came goes with the next try."""
        backend = configured(server, {})

        def stored(asked: Asked) -> Reply:
            server.script = lambda asked: None
            server.answer(asked)
            return Reply(dropped=True)

        server.script = stored
        with pytest.raises(BackendError, match="remember by POST /add"):
            backend.reset(BOX)
        assert len(server.rows) == 1
        backend.reset(BOX)
        assert server.rows == []

    @pytest.mark.parametrize("way", [{"capabilities": ["ids"]}, {"capabilities": ["metadata"]}, OTHERWISE])
    def test_what_others_planted_is_not_reset(self, server: MemoryServer, way: dict[str, Any]) -> None:
        """Where rows of ours can be told by their hits, one that is not stops the reset, for good."""
        theirs = {"id": "1", "text": "A lantern.", "metadata": {}, "content": "A lantern.", "attributes": {}}
        user = f"{BOX.namespace}/anna"
        server.answer(Asked("POST", "/add", {}, {}, {**theirs, "user_id": user}))
        server.answer(Asked("POST", f"/v2/{BOX.namespace}/users/anna/memories", {}, {}, [theirs]))
        there = list(server.rows)
        backend = configured(server, way)
        with pytest.raises(BackendError, match="1 memories in it are not memtrend's") as raised:
            backend.reset(BOX)
        assert raised.value.permanent
        assert server.rows == there

    def test_nor_by_the_first_memory_of_a_user(self, server: MemoryServer) -> None:
        """A user that is planted after the reset is emptied then, and looked at before."""
        backend = configured(server, {"capabilities": ["ids"]})
        backend.reset(Scope(BOX.namespace))
        server.answer(Asked("POST", "/add", {}, {}, {**_anybody(), "user_id": f"{BOX.namespace}/anna"}))
        with pytest.raises(BackendError, match="1 memories in it are not memtrend's"):
            backend.remember(BOX, [PIANO])
        assert [row.text for row in server.rows] == ["Somebody's."]

    @pytest.mark.parametrize("way", [{"capabilities": ["ids"]}, {"capabilities": ["metadata"]}, OTHERWISE])
    def test_what_an_earlier_process_planted_is_reset(
        self, server: MemoryServer, way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It bears memtrend's mark, so it goes."""
        earlier = configured(server, way)
        earlier.reset(BOX)
        earlier.remember(BOX, [PIANO])
        monkeypatch.setattr(adapter, "_known", defaultdict(adapter._Known))
        configured(server, way).reset(BOX)
        assert server.rows == []

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
