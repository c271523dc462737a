"""How a memory behind a URL is treated: its failures, its pace, its secrets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from pydantic import SecretStr

from collectors import timing
from collectors.backend import Backend, BackendConfig, BackendError, Usage, open_backend
from collectors.backends import http_manners
from collectors.backends.http_manners import Pace, retry_after
from collectors.backends.http_words import quoted_whole
from tests.collectors.backends.memory_server import (
    BOX,
    FERRY,
    KEY,
    MORE,
    OTHERWISE,
    PIANO,
    MemoryServer,
    Reply,
    configured,
)


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
            {"headers": {"Cookie": f"sid={KEY}; theme=dark"}},
            {"headers": {"Cookie": f"theme=dark;sid={KEY}"}},
            {"headers": {"Authorization": f'Digest username="anna", response="{KEY}", qop=auth'}},
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
