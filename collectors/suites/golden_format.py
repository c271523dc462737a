"""The golden JSONL format, field by field: what a line may hold, and what is wrong when it does not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated, Any, NamedTuple

import regex
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from collectors.matching import compiled, shape

INVALID_REGEX = "invalid-regex"


def _pattern(text: str) -> str:
    try:
        if not shape(text).plain:
            compiled(text)
    except (regex.error, RecursionError) as error:
        told = f"is not a regular expression: {error}"
        raise PydanticCustomError(INVALID_REGEX, "{told}", {"told": told}) from None
    return text


def _moment(value: Any) -> Any:
    """A day is its first moment in UTC; a time without a zone is UTC."""
    if not isinstance(value, str):
        raise ValueError("should be an ISO date or time such as 2026-03-04 or 2026-03-04T09:30:00Z")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("should be an ISO date or time such as 2026-03-04 or 2026-03-04T09:30:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


FILL_IN = "<fill in"
"""How a draft marks what a person has still to say."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("should not be blank")
    if text.startswith(FILL_IN):
        raise ValueError("is still a draft: write here what its <angle brackets> ask for")
    return text


def _true(value: bool) -> bool:
    if not value:
        raise ValueError("should be true")
    return value


MAX_K = 10_000

Text = Annotated[str, AfterValidator(_not_blank)]
Pattern = Annotated[Text, AfterValidator(_pattern)]
Moment = Annotated[datetime, BeforeValidator(_moment)]
FileName = Annotated[str, Field(pattern=r"^\w[\w.-]{0,99}$")]


MAX_DEPTH = 32
"""Levels of a line. Much deeper, and what comes later would run out of stack."""


def parsed(line: str) -> Any:
    """The line's JSON value. Raises ValueError also for what Python alone reads as JSON, or would drop in
    silence: NaN, half a surrogate pair, a field written twice."""
    value = json.loads(line, object_pairs_hook=_once)
    if _depth(value) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return value


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = sorted(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"{', '.join(map(repr, twice))} stands twice in one object")
    return found


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Write(Line):
    """A memory: a plain string, or an object."""

    text: Text
    id: Text | None = None
    role: Text = "user"
    at: Moment | None = None
    user: Text | None = None
    domain: Text | None = None
    session: Text | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_string(cls, value: Any) -> Any:
        if not isinstance(value, str | dict):
            raise ValueError("should be a string, or an object with a text")
        return {"text": value} if isinstance(value, str) else value


class Asked(Line):
    """What is expected of an answer, and how the question is asked."""

    expect_any: list[Pattern] = []
    expect_all: list[Pattern] = []
    expect_ids: list[Text] = []
    forbid_top1: list[Pattern] = []
    forbid_any: list[Pattern] = []
    forbid_ids: list[Text] = []
    only_ids: list[Text] | None = None
    at_most: Annotated[int, Field(ge=0)] | None = None
    expect_metadata: dict[Text, Annotated[dict[Text, Any], Field(min_length=1)]] = {}
    stable: Annotated[bool, AfterValidator(_true)] = False
    abstain: bool = False
    k: Annotated[int, Field(gt=0, le=MAX_K)] = 5
    leg: Text | None = None
    user: Text | None = None
    domains: list[Text] = []
    session: Text | None = None

    @property
    def expects_something(self) -> bool:
        given = {name: getattr(self, name) for name in EXPECTATIONS}
        counted = given.pop("only_ids") is not None or given.pop("at_most") is not None
        return counted or any(given.values())

    def refuse_without_expectation(self) -> None:
        if not self.expects_something:
            alone = " (abstain alone forbids nothing)" if self.abstain else ""
            raise ValueError(f"should have at least one of {', '.join(EXPECTATIONS)}{alone}")


EXPECTATIONS = (
    *("expect_any", "expect_all", "expect_ids", "forbid_top1", "forbid_any", "forbid_ids", "only_ids"),
    *("at_most", "expect_metadata", "stable"),
)


class PlantStep(Line):
    plant: Annotated[list[Write], Field(min_length=1)]


class AmendStep(Line):
    amend: Text
    text: Text


class ForgetStep(Line):
    forget: Annotated[list[Text], Field(min_length=1)]


class ForgetUserStep(Line):
    forget_user: Text


class SessionStep(Line):
    session: Text


class ReopenStep(Line):
    reopen: Annotated[bool, AfterValidator(_true)]


class ProbeStep(Asked):
    probe: Text

    @model_validator(mode="after")
    def _expects(self) -> ProbeStep:
        self.refuse_without_expectation()
        return self


STEPS: dict[str, type[Line]] = {
    "probe": ProbeStep,
    "plant": PlantStep,
    "amend": AmendStep,
    "forget": ForgetStep,
    "forget_user": ForgetUserStep,
    "session": SessionStep,
    "reopen": ReopenStep,
}


def _step_kind(value: Any) -> str | None:
    """The first of the step words in the object; a probe may carry a `session` of its own."""
    return next((word for word in STEPS if isinstance(value, dict) and word in value), None)


Step = Annotated[
    Annotated[ProbeStep, Tag("probe")]
    | Annotated[PlantStep, Tag("plant")]
    | Annotated[AmendStep, Tag("amend")]
    | Annotated[ForgetStep, Tag("forget")]
    | Annotated[ForgetUserStep, Tag("forget_user")]
    | Annotated[SessionStep, Tag("session")]
    | Annotated[ReopenStep, Tag("reopen")],
    Discriminator(
        _step_kind,
        custom_error_type="step",
        custom_error_message=f"should be an object with one of {', '.join(STEPS)}",
    ),
]


class Case(Asked):
    id: Text
    writes: list[Write] = []
    query: Text | None = None
    steps: list[Step] = []
    tags: list[Text] = []
    source: str = ""
    critical: bool = False
    cluster: Text | None = None
    world: FileName | None = None
    near: list[Text] = []

    @model_validator(mode="after")
    def _one_form(self) -> Case:
        if self.steps:
            self._refuse_fields_of_the_short_form()
        elif self.query is None:
            raise ValueError("should have query, or steps with a probe")
        else:
            self.refuse_without_expectation()
        if self.near and not self.world:
            raise ValueError("near picks memories of a world: give world too")
        return self

    def _refuse_fields_of_the_short_form(self) -> None:
        allowed = "id steps tags source critical cluster world near user domains k".split()  # noqa: SIM905
        extra = sorted(self.model_fields_set - set(allowed))
        if extra:
            raise ValueError(f"{', '.join(extra)}: with steps, give these inside a step")
        if not any(isinstance(step, ProbeStep) for step in self.steps):
            raise ValueError("steps should hold at least one probe")

    @property
    def own_namespace(self) -> bool:
        """Cases with steps, with near-misses of their own or without a world share theirs with nobody."""
        return bool(self.steps or self.near or not self.world)


class Wrong(NamedTuple):
    """`field: what was expected`, and what lint calls it."""

    text: str
    rule: str


def explain(error: ValidationError) -> list[Wrong]:
    """Each thing that is wrong with a line."""
    found = []
    for item in error.errors(include_url=False, include_context=False):
        path = [str(part) for part, _ in groupby(item["loc"])]  # pydantic names a step twice: tag and field
        message = item["msg"].removeprefix("Value error, ").removeprefix("Input ")
        if item["type"] == "extra_forbidden":
            known = _object_of(item["loc"], error.title).model_fields
            message = f"is not a field here; known fields: {', '.join(known)}"
        if item["type"] == "missing":
            message = "should be there"
        rule = INVALID_REGEX if item["type"] == INVALID_REGEX else "malformed"
        found.append(Wrong(f"{'.'.join(path) or 'line'}: {message}", rule))
    return found


def _object_of(path: tuple[int | str, ...], line: str) -> type[Line]:
    """What the field at the path is a field of; `line` names the model of the whole line."""
    match path:
        case (*_, "writes" | "plant", int(), _):
            return Write
        case ("steps", int(), str(word), *_):
            return STEPS[word]
        case _:
            return Write if line == Write.__name__ else Case
