"""What a machine may send: the fields, what they may be, and in words what is wrong with them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from starlette.requests import Request

from store.hiding import hidden
from store.marks import mark_text, mark_time, one_line

LARGEST = 64 * 1024
IDEMPOTENCY_KEY = "Idempotency-Key"


class Wrong(Exception):
    """What is wrong with a call, and where."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


def _moment(value: Any) -> Any:
    """Pydantic by itself would take a bare number as well."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError("should be a time with its zone, such as 2026-03-04T09:30:00Z")
    return mark_time(at)


def _text(text: str) -> str:
    """Several lines, but nothing that a record or a page could not hold."""
    for line in re.split(r"[\n\t]", text):
        one_line(line)
    return text


Moment = Annotated[datetime, BeforeValidator(_moment)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Key = Annotated[Name, AfterValidator(one_line)]
Value = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_text)]
Meta = Annotated[dict[Key, Value], Field(max_length=50), AfterValidator(hidden)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class RunBody(Body):
    """A run to ask for. `subset`: the tag of the cases that are asked; without it, all of them."""

    suite: Name
    backend: Name
    subset: Name | None = None
    meta: Meta = {}


class MarkBody(Body):
    """A line to draw on every chart. `at` None is now."""

    text: Annotated[str, AfterValidator(mark_text)]
    at: Moment | None = None
    meta: Meta = {}


B = TypeVar("B", bound=Body)


async def read_body(request: Request, kind: type[B]) -> B:
    """Raises `Wrong`, which names the field."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > LARGEST:
            raise Wrong("body", f"larger than {LARGEST} bytes")
    try:
        return kind.model_validate_json(bytes(content))
    except ValidationError as error:
        raise _first(error, kind) from None


def read_key(request: Request) -> str:
    """The name that a call goes by, so that it can be repeated; "" without one. Raises `Wrong`."""
    key = request.headers.get(IDEMPOTENCY_KEY)
    if key is not None and not re.fullmatch(r"[\x20-\x7e]{1,200}", key):
        raise Wrong(IDEMPOTENCY_KEY, "should be 1 to 200 printable characters of ASCII")
    return key or ""


def _first(error: ValidationError, kind: type[Body]) -> Wrong:
    item = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(step)[:100] for step in item["loc"] if step != "[key]") or "body"
    match item["type"]:
        case "missing":
            return Wrong(field, "is missing")
        case "extra_forbidden":
            return Wrong(field, f"unknown key; known: {', '.join(kind.model_fields)}")
        case "json_invalid":
            return Wrong(field, item["msg"])
        case "model_type" | "model_attributes_type":
            return Wrong(field, "should be a JSON object")
    return Wrong(
        field, item["msg"].removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    )
