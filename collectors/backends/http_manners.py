"""How a server behind a URL is spoken to: not too often, not for ever, and without telling secrets."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, NoReturn
from urllib.parse import quote

import httpx

from collectors.backend import BackendError
from collectors.backends.base import PASSING_STATUS, well_formed
from collectors.backends.http_config import Config, Request
from collectors.backends.http_words import Values, filled, headers_of, path_of, query_of
from collectors.timing import apart

MAX_BYTES = 32 * 1024 * 1024
"""Of one answer, unpacked."""
MAX_WAIT_S = 20.0
"""The longest that a call waits for its turn: less than a call may take."""
SHORTEST_SECRET = 4
SHOWN = 200
"""Characters of an answer that an error repeats."""


class Pace:
    """When the next request may go out, for all threads together: at an even `rate` (requests a second, None
    for any), and not before the server wants to be asked again."""

    def __init__(
        self,
        rate: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._apart_s = 1 / rate if rate else 0.0
        self._clock, self._sleep, self._lock = clock, sleep, threading.Lock()
        self._free_at = self._left_alone_until = clock()

    def wait(self) -> None:
        """Return when it is this caller's turn; the time is not the backend's. Raises `BackendError` where
        that is longer off than `MAX_WAIT_S`."""
        turn = self._reserved()
        while (left := self._left(turn)) > 0:  # again, since the server may have complained meanwhile
            with apart():
                self._sleep(left)

    def _reserved(self) -> float:
        with self._lock:
            now = self._clock()
            turn = max(now, self._free_at, self._left_alone_until)
            if turn - now > MAX_WAIT_S:
                raise BackendError(f"the server is not asked: its turn is {turn - now:.0f} s off")
            self._free_at = turn + self._apart_s
            return turn

    def _left(self, turn: float) -> float:
        with self._lock:
            return min(max(turn, self._left_alone_until) - self._clock(), MAX_WAIT_S)

    def leave_alone(self, seconds: float) -> None:
        """The server wants no request for so long."""
        with self._lock:
            self._left_alone_until = max(self._left_alone_until, self._clock() + seconds)


def retry_after(headers: httpx.Headers) -> float:
    """Seconds to wait, 0 where the header is missing or senseless. A date is read by the server's clock."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said)
    if (asked := _moment(said)) is None:
        return 0.0
    now = _moment(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (asked - now).total_seconds())


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Refused(BackendError):
    """An answer that is none, with its status."""

    def __init__(self, message: str, status: int, *, permanent: bool) -> None:
        super().__init__(message, permanent=permanent)
        self.status = status


class Answer:
    """A good answer. Read as JSON only when asked for: some verbs need nothing of it."""

    def __init__(self, said: bytes, headers: httpx.Headers, fault: Callable[[str], BackendError]) -> None:
        self.said, self.headers, self.fault = said, headers, fault

    @cached_property
    def value(self) -> Any:
        """None for an empty one. Raises a permanent `BackendError` that repeats how the answer begins."""
        if not self.said.strip():
            return None
        try:
            return json.loads(self.said, parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise self.fault("the answer is not JSON") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class Caller:
    """Sends requests, from several threads at once if need be. Nothing is asked twice: the runner knows what
    may be. Redirects are not followed, since they would take the key elsewhere."""

    def __init__(self, config: Config, name: str) -> None:
        self._base, self._name, self._timeout = str(config.url).rstrip("/"), name, config.timeout
        self._pace = Pace(config.rate)
        headers = {name: value.get_secret_value() for name, value in config.headers.items()}
        if config.token:
            headers["Authorization"] = f"Bearer {config.token.get_secret_value()}"
        requests = [request for _, request in config.requests if request]
        self._secrets = _variants(
            [*headers.values(), *(text for request in requests for text in request.plain_headers.values())]
        )
        self._client = httpx.Client(headers=headers, timeout=config.timeout, follow_redirects=False)

    def ask(self, verb: str, request: Request, values: Values) -> Answer:
        """Raises `BackendError`, permanent where asking again is useless."""
        where = f"backend {self._name}, {verb} by {request.method} {request.path}"
        sent = self._made(request, values)
        self._pace.wait()
        try:
            with self._client.stream(**sent) as response:
                said = self._read(response, where)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Without its cause, which holds the request and so the key.
            lasting = not isinstance(error, httpx.TransportError) or isinstance(
                error, httpx.LocalProtocolError | httpx.UnsupportedProtocol
            )
            raise self._error(f"{where}: {error!r}", permanent=lasting) from None
        self._judge(response, said, where)
        return Answer(said, response.headers, lambda fault: self._told(where, fault, said))

    def _made(self, request: Request, values: Values) -> dict[str, Any]:
        made: dict[str, Any] = {
            "method": request.method,
            "url": self._base + path_of(request.path, values),
            "params": query_of(request.query, values),
            "headers": headers_of(request.plain_headers, values),
        }
        body = filled(request.body, values)
        if body is not None:
            text = json.dumps(body, ensure_ascii=False, default=str)
            made["content"] = well_formed(text).encode()
            made["headers"].setdefault("Content-Type", "application/json")
        return made

    def _read(self, response: httpx.Response, where: str) -> bytes:
        said, deadline = bytearray(), time.monotonic() + self._timeout
        for part in response.iter_bytes():
            said += part
            if len(said) > MAX_BYTES:
                raise self._error(f"{where}: the answer is longer than {MAX_BYTES} bytes", permanent=True)
            if time.monotonic() > deadline:
                raise self._error(f"{where}: the answer had no end after {self._timeout:g} s")
        return bytes(said)

    def _judge(self, response: httpx.Response, said: bytes, where: str) -> None:
        status = response.status_code
        if response.is_success:
            return
        if status in (429, 503):
            self._pace.leave_alone(retry_after(response.headers))
        if 300 <= status < 400:
            told = f"{where}: HTTP {status}: redirects are not followed; configure the URL it leads to"
            raise Refused(told, status, permanent=True)
        passing = status in PASSING_STATUS or status >= 500
        told = str(self._told(where, f"HTTP {status}", said))
        raise Refused(told, status, permanent=not passing)

    def _told(self, where: str, fault: str, said: bytes) -> BackendError:
        beginning = self.without_secrets(said.decode("utf-8", "replace")).strip()[:SHOWN]
        return self._error(f"{where}: {fault}{f': {beginning}' if beginning else ''}", permanent=True)

    def _error(self, message: str, *, permanent: bool = False) -> BackendError:
        return BackendError(self.without_secrets(message), permanent=permanent)

    def without_secrets(self, text: str) -> str:
        """Servers repeat the key in their complaint about it. Before a text is cut, or half a key would
        stay."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def close(self) -> None:
        self._client.close()


def _variants(headers: Iterable[str]) -> list[str]:
    """The secrets in the ways that an answer may repeat them, longest first."""
    plain = {part for header in headers for part in _parts(header)}
    written = {form for secret in plain for form in _forms(secret)}
    return sorted((secret for secret in written if len(secret) >= SHORTEST_SECRET), key=len, reverse=True)


def _parts(header: str) -> Iterator[str]:
    """The value whole, without its scheme, and what its fields hold: any of them may be the secret."""
    yield header
    for field in re.split(r"[;,]", header):
        word = (field.split() or [""])[-1]
        yield word
        yield word.partition("=")[2].strip('"')


def _forms(secret: str) -> tuple[str, ...]:
    encoded = base64.b64encode(secret.encode()).decode()
    return secret, quote(secret, safe=""), json.dumps(secret)[1:-1], encoded
