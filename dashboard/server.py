"""The web server: the pages, and beside them what machines ask for.

/healthz   whether the record can be read; on request also whether collector and configuration are well
/metrics   the figures, for Prometheus
/api       runs, requests for runs, and marks: see `dashboard/api.py`
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dashboard import configuration, loggers  # noqa: F401  first, for what loggers does to Streamlit's
from dashboard.api import Marks, Run, Runs, Unknown
from dashboard.healthz import Health
from dashboard.hosts import KnownHosts
from dashboard.machines import broken
from dashboard.metrics import Metrics
from store import logs
from store.errors import StoreError
from store.sections import LogSection
from store.settings import SettingsError

HERE = Path(__file__).parent
SELDOM = 200_000
"""Objects made between two looks for garbage in cycles. One trend is 30,000, and with Python's 700 the whole
of what is loaded is looked through again and again while they are read."""
DRAW = ("pandas", "plotly.graph_objects", "scipy.special", "dashboard.charts", "store.comparing")
"""What most pages load with their first viewer: a second, of which the first viewer would see nothing."""
LOG = logs.get("dashboard")


def _logged(request: Request, error: Exception) -> Response:
    LOG.error("a call could not be answered", path=request.url.path, reason=str(error))
    return broken(request, error)


@asynccontextmanager
async def _life(_: st.App) -> AsyncIterator[None]:
    """From listening to the end, in the log as the collector's is."""
    LOG.info("the dashboard listens", url=_url())
    Thread(target=_load, name="memtrend-load", daemon=True).start()
    yield
    LOG.info("the dashboard ends")


def _load() -> None:
    """Loads what pages draw with while nobody has come yet."""
    for name in DRAW:
        import_module(name)


def _url() -> str:
    host = st.get_option("server.address") or ""
    return f"http://{f'[{host}]' if ':' in host else host}:{st.get_option('server.port')}"


app = st.App(
    HERE / "app.py",
    lifespan=_life,
    routes=[
        Route("/healthz", Health),
        Route("/metrics", Metrics),
        Route("/api/runs", Runs),
        Route("/api/runs/{id}", Run),
        Route("/api/marks", Marks),
        Route("/api", Unknown),
        Route("/api/{path:path}", Unknown),
    ],
    middleware=[Middleware(KnownHosts), Middleware(GZipMiddleware, minimum_size=1024)],
    exception_handlers={StoreError: _logged, SettingsError: _logged},
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
    """Serve until TERM or INT; nothing but entries of the log is printed."""
    logs.begin(_log_section())
    gc.set_threshold(SELDOM)
    # uvicorn raises the signal once more when it has stopped, which would be no good ending.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with logs.alone():
        app.run(config=config(host, port))


def _log_section() -> LogSection:
    """What is read here is what pages go by when the file breaks before one of them was opened. A file that
    is broken already keeps no page from saying so."""
    try:
        return configuration.settings().log
    except SettingsError:
        return LogSection()


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
