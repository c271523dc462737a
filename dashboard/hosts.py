"""By which names the server may be called.

A page of another site, whose name was made to lead to this machine, calls by that name, and a browser lets it
read the answers. So a server that only this machine reaches answers to this machine's names alone.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboard import configuration, data
from store.settings import SettingsError


def is_known(host: str, listens_on: str, names: Collection[str]) -> bool:
    """Whether a `Host` header is one to answer to: an address in digits, this machine, or one of `names`.
    Without any of these a server that others reach answers to all."""
    if not names and listens_on not in data.LOOPBACK:
        return True
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    return name == "localhost" or name in {known.lower() for known in names} or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class KnownHosts:
    """Answers 421 under any other name, to pages and machines alike."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self.app
        if scope["type"] in ("http", "websocket"):
            host = Headers(scope=scope).get("host", "")
            if not is_known(host, st.get_option("server.address") or "", _names()):
                told = f"not called by a name of this server: {host[:100]!r}; [dashboard] hosts lists them"
                answer = JSONResponse({"error": told}, 421)
        await answer(scope, receive, send)


def _names() -> Collection[str]:
    """Without a configuration that can be read there are none, and the pages say so."""
    try:
        return configuration.settings().dashboard.hosts
    except SettingsError:
        return ()
