"""What the section of an `http` backend may say: read and judged once, when it is opened."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    SecretStr,
    ValidationError,
    field_validator,
)

from collectors.backend import BackendConfig, BackendError
from collectors.backends.http_words import parsed, placeholders

JOINED = "{namespace}/{user}"
"""A user of memtrend's, where the server knows only users: no other user of the server bears such a name."""

CONTRACT: Mapping[str, Mapping[str, Any]] = {
    "remember": {
        "path": "/add",
        "body": {
            "id": f"{JOINED}/{{id}}",
            "text": "{text}",
            "user_id": JOINED,
            "session_id": "{session}",
            "metadata": "{metadata}",
        },
    },
    "recall": {
        "path": "/search",
        "body": {
            "query": "{query}",
            "user_id": JOINED,
            "limit": "{k}",
            "session_id": "{session}",
            "domains": "{domains}",
        },
    },
    "reset": {"path": "/reset", "body": {"user_id": JOINED}},
}
"""What is asked where the section is silent."""

_PLACE = frozenset({"namespace", "user"})
_MEMORY = frozenset({"id", "text", "role", "at", "domain", "session", "metadata"})
FILLED: Mapping[str, frozenset[str]] = {
    "remember": _PLACE | _MEMORY | {"memories"},
    "recall": _PLACE | {"query", "k", "session", "domains", "cursor"},
    "reset": _PLACE,
    "amend": _PLACE | {"id", "stored", "text"},
    "forget": _PLACE | {"id", "stored", "ids"},
    "forget_user": _PLACE,
    "count": _PLACE | {"cursor"},
    "settle": _PLACE,
    "version": frozenset(),
}
"""Verb -> the placeholders of its request."""

NEEDED: Mapping[str, tuple[str, ...]] = {
    "remember": ("namespace", "text|memories"),
    "recall": ("namespace", "query"),
    "reset": ("namespace",),
    "amend": ("namespace|stored", "id|stored", "text"),
    "forget": ("namespace|stored", "id|ids|stored"),
    "forget_user": ("namespace", "user"),
    "count": ("namespace",),
}
"""Verb -> what its request must name, one of each: without the namespace it would reach what is not ours."""

_SECRET = re.compile(r"(key|token|secret|password|auth|authorization|credentials?|signature)$", re.IGNORECASE)
_HEADER = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _header(value: SecretStr) -> SecretStr:
    if not _HEADER.fullmatch(value.get_secret_value()):
        raise ValueError("a header is one line of printable ASCII, with no blanks around it")
    return value


Header = Annotated[SecretStr, AfterValidator(_header)]


class Request(_Section):
    """One request. `each`: the shape of one entry of `{memories}`, with which all go in one request."""

    path: str = Field(pattern=r"^/[^?#\s]*$")
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    body: Any = None
    query: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, Header] = Field(default_factory=dict)
    each: Any = None

    @field_validator("query")
    @classmethod
    def _no_secrets(cls, query: dict[str, Any]) -> dict[str, Any]:
        constant = [
            name for name, value in query.items() if isinstance(value, str) and not placeholders(value)
        ]
        if suspects := [name for name in constant if _SECRET.search(name)]:
            raise ValueError(f"{', '.join(suspects)}: a secret belongs in headers, since URLs are logged")
        return query

    @property
    def plain_headers(self) -> dict[str, str]:
        return {name: value.get_secret_value() for name, value in self.headers.items()}

    @property
    def named(self) -> frozenset[str]:
        """The placeholders in all of its parts."""
        return placeholders([self.path, self.body, self.query, self.plain_headers, self.each])


def _completed(verb: str) -> Callable[[Any], Any]:
    """What a request leaves out is the contract's; a body only where its method has one."""

    def complete(given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        usual = dict(CONTRACT.get(verb, {}))
        if given.get("method") in ("GET", "DELETE"):
            usual.pop("body", None)
        return {**usual, **given}

    return complete


def _sensible(verb: str) -> Callable[[Request], Request]:
    def judged(request: Request) -> Request:
        if faults := list(_faults(verb, request)):
            raise ValueError("; ".join(faults))
        return request

    return judged


def _faults(verb: str, request: Request) -> list[str]:
    known = FILLED[verb]
    shown = ", ".join(f"{{{name}}}" for name in sorted(known)) or "none"
    unknown = [f"unknown placeholder {{{name}}}; known: {shown}" for name in sorted(request.named - known)]
    missing = [
        f"must name {' or '.join(f'{{{name}}}' for name in needed.split('|'))}"
        for needed in NEEDED.get(verb, ())
        if not request.named & set(needed.split("|"))
    ]
    listed = "memories" in placeholders(request.body)
    apart = ["{memories} in the body and `each` go together"] if listed != (request.each is not None) else []
    return unknown + missing + apart


def _default(verb: str) -> Any:
    return Request.model_validate(CONTRACT[verb])


_Remember = Annotated[Request, BeforeValidator(_completed("remember")), AfterValidator(_sensible("remember"))]
_Recall = Annotated[Request, BeforeValidator(_completed("recall")), AfterValidator(_sensible("recall"))]
_Reset = Annotated[Request, BeforeValidator(_completed("reset")), AfterValidator(_sensible("reset"))]


class Requests(_Section):
    """Verb -> its request; None where the server is not asked for it."""

    remember: _Remember = Field(default_factory=lambda: _default("remember"))
    recall: _Recall = Field(default_factory=lambda: _default("recall"))
    reset: _Reset = Field(default_factory=lambda: _default("reset"))
    amend: Annotated[Request, AfterValidator(_sensible("amend"))] | None = None
    forget: Annotated[Request, AfterValidator(_sensible("forget"))] | None = None
    forget_user: Annotated[Request, AfterValidator(_sensible("forget_user"))] | None = None
    count: Annotated[Request, AfterValidator(_sensible("count"))] | None = None
    settle: Annotated[Request, AfterValidator(_sensible("settle"))] | None = None
    version: Annotated[Request, AfterValidator(_sensible("version"))] | None = None


def _path(path: str) -> str:
    parsed(path)
    return path


Path = Annotated[str, AfterValidator(_path)]


class Answers(_Section):
    """Where things stand in answers. `hits` leads to the hits of a recall; `id`, `text`, `score`, `metadata`
    start at one of them, all others at the whole answer. `stored`: the server's own ids of what was just
    remembered. `next`: what goes into {cursor} to have the next page. `settled` leads to what must equal
    `settled_is`. `version_header` beats `version`."""

    hits: Path = "results|memories|$"
    id: Path = "id"
    text: Path = "text|memory|content"
    score: Path = "score"
    metadata: Path = "metadata"
    reply: Path | None = None
    calls: Path | None = None
    tokens: Path | None = None
    money: Path | None = None
    stored: Path | None = None
    next: Path | None = None
    count: Path = "count|total|results"
    settled: Path | None = None
    settled_is: Any = True
    version: Path = "version"
    version_header: str | None = None


class Config(_Section):
    """`timeout` in seconds for a whole answer; `rate` in requests a second; `capabilities`: what no request
    tells of the server."""

    url: HttpUrl
    token: Header | None = None
    headers: dict[str, Header] = Field(default_factory=dict)
    timeout: float = Field(default=20.0, gt=0)
    rate: float | None = Field(default=None, gt=0)
    higher_is_better: bool = True
    capabilities: frozenset[Literal["ids", "metadata", "concurrent", "durable", "deterministic"]] = (
        frozenset()
    )
    requests: Requests = Field(default_factory=Requests)
    answers: Answers = Field(default_factory=Answers)

    @property
    def bears_marks(self) -> bool:
        """Whether what memtrend planted can be told by its hits: by the metadata, or by an id that says
        whose it is."""
        remember = self.requests.remember
        joined = f"{JOINED}/{{id}}" in json.dumps(
            [remember.path, remember.body, remember.query, remember.each]
        )
        told = {"metadata": "metadata" in remember.named, "ids": joined}
        return any(told[capability] for capability in told.keys() & self.capabilities)

    @field_validator("url")
    @classmethod
    def _bare(cls, url: HttpUrl) -> HttpUrl:
        if url.username or url.password:
            raise ValueError("give the credentials as `token` or in `headers`: the URL is shown")
        if url.query or url.fragment:
            raise ValueError("give what follows ? as `query` of the requests")
        return url


def parse(config: BackendConfig) -> Config:
    """Raises a permanent `BackendError` that names all that is wrong, and never shows a value."""
    given = {name: value for name, value in config.options.items() if name != "config" or value}
    try:
        return Config.model_validate(given)
    except ValidationError as error:
        faults = "; ".join(_told(fault["loc"], fault["type"], fault["msg"]) for fault in error.errors())
        raise BackendError(f"backend {config.name}: {faults}", permanent=True) from None


def _told(place: tuple[int | str, ...], kind: str, message: str) -> str:
    where = ".".join(map(str, place))
    if kind == "extra_forbidden":
        sections: dict[tuple[int | str, ...], type[BaseModel]] = {
            (): Config,
            ("requests",): Requests,
            ("answers",): Answers,
        }
        known = sections.get(place[:-1], Request).model_fields
        return f"{where}: unknown key; known: {', '.join(known)}"
    return f"{where}: {message.removeprefix('Value error, ')}"
