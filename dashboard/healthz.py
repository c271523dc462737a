"""/healthz: whether the record can be read and written, and on request whether the collector lives and the
configuration is in force."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dashboard import configuration
from dashboard.machines import Resource, database, heartbeat_age, let_go, unknown_parameter, wrong
from store import health_words
from store.errors import StoreError
from store.settings import SettingsError

REQUIRABLE = ("collector", "configuration")


class Health(Resource):
    """200 while the record can be read and, as far as it shows, written. Collector and configuration count
    only with ?collector=required and ?configuration=required, since a dashboard that is started again because
    of a dead collector or a broken file would help nobody."""

    def get(self, request: Request) -> Response:
        if unknown := unknown_parameter(request, REQUIRABLE):
            return unknown
        for name, asked in request.query_params.items():
            if asked != "required":
                return wrong(name, f"{asked[:30]!r} is not known; known: required")
        try:
            return _answer(request.query_params)
        except (StoreError, SettingsError) as error:
            let_go(error)
            return _failed(str(error))


def _answer(required: Container[str]) -> Response:
    database().check()
    if trouble := database().trouble():
        return _failed(trouble)
    return _told(heartbeat_age(), configuration.refused(database()), required)


def _failed(why: str) -> Response:
    return JSONResponse({"ok": False, "error": why}, 503)


def _told(age: float | None, refused: str, required: Container[str]) -> Response:
    """`age` of the collector's heartbeat in seconds; `refused`: why the configuration is not in force."""
    alive = health_words.is_alive(age)
    told: dict[str, Any] = {
        "collector_alive": alive,
        "collector_heartbeat_age_s": age and round(age, 1),
        "configuration_broken": bool(refused),
        "configuration_error": refused or None,
    }
    dead = "" if alive or "collector" not in required else _dead(age)
    error = "; ".join(filter(None, (dead, refused if "configuration" in required else "")))
    told |= {"error": error} if error else {}
    return JSONResponse({"ok": not error, **told}, 503 if error else 200)


def _dead(age: float | None) -> str:
    seen = "never said that it lives" if age is None else f"last said {age:.0f} s ago that it lives"
    return f"the collector {seen}: memtrend collect starts one"
