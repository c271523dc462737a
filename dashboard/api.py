"""/api: what deploys and scripts ask. Reading needs no token, as the pages need none; asking for a run and
drawing a mark do.

/api/runs              GET: runs, newest first: ?suite= &backend= &status= &limit= &offset=
                       POST {suite, backend, subset?, meta?}: ask for a run
/api/runs/ID           one run with its cases
/api/runs/request-ID   what became of a request
/api/marks             POST {text, at?, meta?}: draw a line on every chart
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dashboard import addresses, configuration
from dashboard.bodies import B, MarkBody, RunBody, Wrong, read_body, read_key
from dashboard.limiter import RateLimit
from dashboard.machines import Resource, database, unknown_parameter, wrong
from store import queries, shapes, writes
from store.queries import Answer, RunFilter
from store.records import RequestRow

FILTERS = ("suite", "backend", "status", "limit", "offset")
STATUSES = ("running", "whole", "invalid", "void", "interrupted")
LARGEST_PAGE = 500
PREFIX = "request-"
"""What tells the id of a request from that of a run, under one path."""

LIMIT = RateLimit()
"""Of calls that write: 60 at once, and one a second from then on."""


# Reading --------------------------------------------------------------------------------------------------


class Runs(Resource):
    """Whole numbers only in limit and offset; 400 names the one that is not."""

    def get(self, request: Request) -> Response:
        if unknown := unknown_parameter(request, FILTERS):
            return unknown
        try:
            _refuse_unknown("status", request.query_params.getlist("status"), STATUSES)
            limit, offset = _number(request, "limit", 20), _number(request, "offset", 0)
        except Wrong as error:
            return wrong(error.field, error.problem)
        given = request.query_params.getlist
        chosen = RunFilter(
            suites=given("suite") or None, backends=given("backend") or None, statuses=given("status") or None
        )
        rows = queries.runs(database(), **chosen, limit=min(limit, LARGEST_PAGE), offset=offset)
        total = queries.count_runs(database(), **chosen)
        return JSONResponse({**shapes.run_list(rows), "total": total})

    async def post(self, request: Request) -> Response:
        return await _written(request, RunBody, _ask_for_run)


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    found = addresses.number(text)
    if found is None:
        raise Wrong(name, f"{text[:30]!r} is not a whole number from 0 to {addresses.LARGEST}")
    return found


class Run(Resource):
    """One run with its cases, by id; or a request, by the id that asking for a run gave."""

    def get(self, request: Request) -> Response:
        text = request.path_params["id"]
        return _request(text) if text.startswith(PREFIX) else _run(text)


def _run(text: str) -> Response:
    run_id = addresses.number(text)
    row = None if run_id is None else queries.run(database(), run_id)
    if row is None:
        return JSONResponse({"error": f"no run {text[:30]}; /api/runs lists them"}, 404)
    return JSONResponse(shapes.run_with_cases(row, queries.run_cases(database(), row.id)))


def _request(text: str) -> Response:
    request_id = addresses.number(text.removeprefix(PREFIX))
    answer = None if request_id is None else queries.answer(database(), request_id)
    if answer is None:
        return JSONResponse({"error": f"no {text[:30]}; POST /api/runs makes one"}, 404)
    return JSONResponse(_answer(answer))


def _answer(answer: Answer) -> dict[str, Any]:
    row, payload = answer.request, answer.request.payload
    return {
        **_handle(row),
        "state": answer.state,
        "run_ids": answer.run_ids,
        "error": row.error,
        "suite": payload.get("suite"),
        "backend": payload.get("backend"),
        "subset": payload.get("tag") or None,
        "meta": payload.get("meta", {}),
        "created_at": shapes.moment(row.created_at),
        "claimed_at": shapes.moment(row.claimed_at),
        "finished_at": shapes.moment(row.finished_at),
    }


def _handle(row: RequestRow) -> dict[str, str]:
    return {"id": f"{PREFIX}{row.id}", "url": f"/api/runs/{PREFIX}{row.id}"}


class Unknown(Resource):
    """Without it Streamlit answers any path with its page, and a misspelt call would seem to work."""

    async def dispatch(self) -> None:
        known = "/api/runs, /api/runs/ID, /api/marks"
        told = JSONResponse({"error": f"no {self.scope['path'][:100]}; known: {known}"}, 404)
        await told(self.scope, self.receive, self.send)


# Writing --------------------------------------------------------------------------------------------------


class Marks(Resource):
    async def post(self, request: Request) -> Response:
        return await _written(request, MarkBody, _draw_mark)


async def _written(request: Request, kind: type[B], write: Callable[[B, str], Response]) -> Response:
    """What `write` answers to the body and the key of a call that may write."""
    if refused := _refusal(request):
        return refused
    try:
        asked, key = await read_body(request, kind), read_key(request)
        return await run_in_threadpool(write, asked, key)
    except Wrong as error:
        return wrong(error.field, error.problem)


def _refusal(request: Request) -> Response | None:
    """Who brings the token has a limit of its own: nobody without it can use that up."""
    token = configuration.settings().api.token
    if token is None:
        told = "no token is configured, so nothing is taken; set api.token_file, or MEMTREND_API__TOKEN"
        return JSONResponse({"error": told}, 403)
    known = _brings(request, token.get_secret_value())
    host = request.client.host if request.client else ""
    if wait := LIMIT.wait("token" if known else f"host {host}"):
        seconds = math.ceil(wait)
        told = f"too many calls; the next one is taken in {seconds} s"
        return JSONResponse({"error": told}, 429, {"Retry-After": str(seconds)})
    if not known:
        told = "wrong token, or none; send Authorization: Bearer TOKEN"
        return JSONResponse({"error": told}, 401, {"WWW-Authenticate": "Bearer"})
    return None


def _brings(request: Request, token: str) -> bool:
    """Compares hashes, in constant time: neither the token nor its length shows in how long it takes."""
    scheme, _, brought = request.headers.get("Authorization", "").partition(" ")
    given, wanted = (sha256(text).digest() for text in (brought.strip().encode("latin-1"), token.encode()))
    return hmac.compare_digest(given, wanted) and scheme.lower() == "bearer"


def _ask_for_run(asked: RunBody, key: str) -> Response:
    """A queued request. Names are checked against what the collector has told of its configuration."""
    db = database()
    own = [row.name for row in queries.backends(db) if not row.control_of]
    _refuse_unknown("suite", [asked.suite], [row.name for row in queries.suites(db)])
    _refuse_unknown("backend", [asked.backend], own)
    if asked.subset is not None:
        _refuse_unknown("subset", [asked.subset], [row.tag for row in queries.suite_tags(db, asked.suite)])
    payload = {"suite": asked.suite, "backend": asked.backend, "tag": asked.subset or "", "meta": asked.meta}
    answer = queries.answer(db, writes.ask_for_run(db, payload, key))
    assert answer is not None
    made = {**_handle(answer.request), "state": answer.state}
    return JSONResponse(made, 202, {"Location": made["url"]})


def _refuse_unknown(field: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            told = ", ".join(known[:50]) or "none yet; a collector writes them when it starts"
            raise Wrong(field, f"unknown name {name[:50]!r}; known: {told}")


def _draw_mark(asked: MarkBody, key: str) -> Response:
    mark_id = writes.draw_mark(database(), asked.text, asked.at, asked.meta, key)
    return JSONResponse({"id": mark_id, "text": asked.text, "meta": asked.meta}, 201)
