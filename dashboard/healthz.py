"""/healthz: whether the record can be read and written, and on request whether the collector lives."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dashboard.machines import Resource, database, heartbeat_age, let_go, unknown_parameter, wrong
from store import health_words
from store.errors import StoreError
from store.settings import SettingsError


class Health(Resource):
    """200 while the record can be read and, as far as it shows, written. The collector counts only with
    ?collector=required, since a dashboard that is started again because of a dead collector would help
    nobody."""

    def get(self, request: Request) -> Response:
        if unknown := unknown_parameter(request, ["collector"]):
            return unknown
        asked = request.query_params.get("collector")
        if asked not in (None, "required"):
            return wrong("collector", f"{asked[:30]!r} is not known; known: required")
        try:
            database().check()
            trouble = database().trouble()
            return _failed(trouble) if trouble else _told(heartbeat_age(), required=asked is not None)
        except (StoreError, SettingsError) as error:
            let_go(error)
            return _failed(str(error))


def _failed(why: str) -> Response:
    return JSONResponse({"ok": False, "error": why}, 503)


def _told(age: float | None, *, required: bool) -> Response:
    alive = health_words.is_alive(age)
    told: dict[str, Any] = {"ok": alive or not required}
    told |= {"collector_alive": alive, "collector_heartbeat_age_s": age and round(age, 1)}
    if not told["ok"]:
        seen = "never said that it lives" if age is None else f"last said {age:.0f} s ago that it lives"
        told["error"] = f"the collector {seen}: memtrend collect starts one"
    return JSONResponse(told, 200 if told["ok"] else 503)
