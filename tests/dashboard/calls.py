"""What tests of the API have in common: a token, and a call that is answered without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx

from dashboard import server

TOKEN = "open-sesame-41"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
RUN = {"suite": "golden", "backend": "keyword"}

Call = Callable[..., httpx.Response]


def call(method: str, where: str, headers: dict[str, str] | None = None, **sent: Any) -> httpx.Response:
    """`call("POST", "/api/runs", json={...})`, with the token unless told otherwise."""

    async def asked() -> httpx.Response:
        inside = httpx.ASGITransport(app=server.app)
        async with httpx.AsyncClient(transport=inside, base_url="http://127.0.0.1") as client:
            return await client.request(method, where, headers=BEARER | (headers or {}), **sent)

    return asyncio.run(asked())
