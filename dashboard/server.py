"""The web server: the pages, and beside them what machines ask for.

/healthz            200 while the record can be read; says how old the collector's heartbeat is
/api/runs           runs, newest first: ?suite= &backend= &status= &limit= &offset=
/api/runs/ID        one run with its cases
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from dashboard import addresses
from store import queries, shapes
from store.database import Database, open_database
from store.errors import StoreError
from store.queries import RunFilter
from store.settings import SettingsError, load_settings

HERE = Path(__file__).parent
COLLECTOR = "collector"
LARGEST_PAGE = 500
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@lru_cache(maxsize=1)
def _database() -> Database:
    """The server's own: routes run outside Streamlit's caches. A failure is not kept."""
    return open_database(load_settings().database.url.get_secret_value())


# Routes ---------------------------------------------------------------------------------------------------


def healthz(request: Request) -> JSONResponse:
    """Whether the record can be read, and when the collector last said that it lives."""
    try:
        beats = queries.heartbeats(_database())
    except (StoreError, SettingsError) as error:
        return JSONResponse({"ok": False, "error": str(error)}, 503)
    ages = {beat.name: round((datetime.now(UTC) - beat.at).total_seconds(), 1) for beat in beats}
    return JSONResponse({"ok": True, "collector_heartbeat_age_s": ages.get(COLLECTOR)})


def runs(request: Request) -> JSONResponse:
    """Whole numbers only in limit and offset; 400 names the one that is not."""
    try:
        limit, offset = _number(request, "limit", 20), _number(request, "offset", 0)
    except ValueError as error:
        return JSONResponse({"error": str(error)}, 400)
    given = request.query_params.getlist
    chosen = RunFilter(
        suites=given("suite") or None, backends=given("backend") or None, statuses=given("status") or None
    )
    rows = queries.runs(_database(), **chosen, limit=min(limit, LARGEST_PAGE), offset=offset)
    total = queries.count_runs(_database(), **chosen)
    return JSONResponse({**shapes.run_list(rows), "total": total})


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    found = addresses.number(text)
    if found is None:
        raise ValueError(f"{name}: {text[:30]!r} is not a whole number from 0 to {addresses.LARGEST}")
    return found


def run(request: Request) -> JSONResponse:
    """One run with its cases, by id."""
    text = request.path_params["id"]
    run_id = addresses.number(text)
    row = None if run_id is None else queries.run(_database(), run_id)
    if row is None:
        return JSONResponse({"error": f"no run {text[:30]}; /api/runs lists them"}, 404)
    return JSONResponse(shapes.run_with_cases(row, queries.run_cases(_database(), row.id)))


def unknown(request: Request) -> JSONResponse:
    """Without it Streamlit answers any path with its page, and a misspelt call would seem to work."""
    return JSONResponse({"error": f"no {request.url.path}; known: /api/runs, /api/runs/ID"}, 404)


def broken(request: Request, error: Exception) -> JSONResponse:
    """Record or configuration cannot be read: says so to machines as the pages do to people."""
    return JSONResponse({"error": str(error)}, 503)


app = st.App(
    HERE / "app.py",
    routes=[
        Route("/healthz", healthz),
        Route("/api/runs", runs),
        Route("/api/runs/{id}", run),
        Route("/api", unknown, methods=METHODS),
        Route("/api/{path:path}", unknown, methods=METHODS),
    ],
    middleware=[Middleware(GZipMiddleware, minimum_size=1024)],
    exception_handlers={StoreError: broken, SettingsError: broken},
)


# Start ----------------------------------------------------------------------------------------------------


def config(host: str, port: int) -> dict[str, Any]:
    """Streamlit's settings, by dotted name. They come from the package, so that the look holds wherever
    memtrend is started: by itself Streamlit reads them from the working directory only."""
    own = tomllib.loads((HERE / "streamlit.toml").read_text(encoding="utf-8"))
    return {**_dotted(own), "server.address": host, "server.port": port}


def _dotted(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def main(host: str = "127.0.0.1", port: int = 8501) -> None:
    """Serve until TERM or INT."""
    app.run(config=config(host, port))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dashboard.server", description="Serve the dashboard.")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: this machine only)"
    )
    parser.add_argument("--port", type=int, default=8501)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = _arguments()
    main(arguments.host, arguments.port)
