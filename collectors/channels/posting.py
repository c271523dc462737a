"""A document sent to an address, and what the answer means: the same for all that speak HTTP."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

import httpx

from collectors.backends.http_manners import retry_after
from collectors.channels import Refused

PASSING = frozenset({408, 425, 429})
"""Of the errors that are the sender's, those that pass."""


MOST_BYTES = 64 * 1024
"""Of an answer that are read, so that the connection can be kept; what it says is not looked at."""


class Posting:
    """A connection that is kept between messages. Follows no redirect."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url, self._timeout = url, timeout
        self._client = httpx.Client(timeout=timeout, follow_redirects=False)

    def post(self, body: bytes, headers: Mapping[str, str]) -> int:
        """Returns the status. Raises `Refused`."""
        told = {"content-type": "application/json", "user-agent": "memtrend", **headers}
        try:
            with self._client.stream("POST", self._url, content=body, headers=told) as answer:
                status, said = answer.status_code, answer.headers
                self._read(answer)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError):
            raise Refused("its url is no address that can be sent to; set another one") from None
        except httpx.HTTPError as error:
            raise Refused(f"no answer ({type(error).__name__})") from None
        if 200 <= status < 300:
            return status
        raise _refusal(status, said)

    def _read(self, answer: httpx.Response) -> None:
        """Not for ever: what comes a byte at a time would never be too late. Where it breaks off, the status
        has been said all the same."""
        deadline = time.monotonic() + self._timeout
        with suppress(httpx.HTTPError):
            for _ in answer.iter_raw():
                if answer.num_bytes_downloaded > MOST_BYTES or time.monotonic() > deadline:
                    return

    def close(self) -> None:
        self._client.close()


def _refusal(status: int, headers: httpx.Headers) -> Refused:
    if 300 <= status < 400:
        reason = f"HTTP {status}: it has moved, and redirects are not followed; set its new url"
        return Refused(reason, status=status)
    permanent = 400 <= status < 500 and status not in PASSING
    wait = 0.0 if permanent else retry_after(headers)
    return Refused(f"HTTP {status}", permanent=permanent, retry_after=wait, status=status)
