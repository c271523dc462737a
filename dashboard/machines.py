"""What the answers to machines have in common: the server's record and configuration, and JSON for whatever
went wrong."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from functools import lru_cache

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dashboard import configuration
from store import health_words, queries
from store.database import Database, open_database
from store.errors import RecordReplaced


@lru_cache(maxsize=1)
def database() -> Database:
    """The server's own: routes run outside Streamlit's caches. A failure is not kept."""
    return open_database(configuration.settings().database.url.get_secret_value())


def forget() -> None:
    """Read the configuration and open the record anew when next asked."""
    if database.cache_info().currsize:
        database().close()
    database.cache_clear()
    configuration.refresh()


def let_go(error: Exception) -> None:
    """Open what stands in the record's place when next asked. A record that is gone is held on to, or an
    empty one would be made in its place."""
    if isinstance(error, RecordReplaced):
        forget()


class Resource(HTTPEndpoint):
    """A path that answers in JSON whatever the method: those that it has no function for with 405."""

    async def method_not_allowed(self, request: Request) -> Response:
        allowed = ", ".join(self._allowed_methods)
        told = f"{request.url.path} takes {allowed}, not {request.method[:20]}"
        return JSONResponse({"error": told}, 405, {"Allow": allowed})


def wrong(field: str, problem: str) -> Response:
    """400 with the field that is wrong."""
    return JSONResponse({"error": f"{field}: {problem}", "field": field}, 400)


def unknown_parameter(request: Request, known: Collection[str]) -> Response | None:
    """400 where the address asks for something by a name that is not known: a misspelt filter would seem to
    have worked."""
    for name in request.query_params:
        if name not in known:
            return wrong(name[:100], f"unknown parameter; known: {', '.join(known)}")
    return None


def broken(request: Request, error: Exception) -> Response:
    """Record or configuration cannot be read: says so to machines as the pages do to people."""
    let_go(error)
    return JSONResponse({"error": str(error)}, 503)


def heartbeat_age() -> float | None:
    """Seconds since the collector last said that it lives; None when it never did."""
    return health_words.silence(queries.heartbeats(database()), datetime.now(UTC))
