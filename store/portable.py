"""A baseline as a file, which travels where the record does not: hashes, passes and what it ran on. Pure.

No question, no memory and no answer is in it, so that it may lie in any cache; its own hash says whether it
is still what was written.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from store.baselines import Decision, Night
from store.errors import StoreError

FORMAT = 1
PASSED, LOST, NONE = "1", "0", "-"
"""An answer in a row: a character a case, in the order of the file's cases."""


class CarriedAnswer(NamedTuple):
    """Of a case by name and hash, in a trial of a night. `value`: 1 for passed, 0 for lost."""

    run_id: int
    name: str
    hash: str
    trial: int
    value: float


class Carried(NamedTuple):
    """A baseline from elsewhere. Its nights are numbered from below 0 up to -1, oldest first, so that they
    are no run of the record; `decisions`: the pin or hold in force where it was made, if there was one;
    `environment`: what its newest run ran on; `quarantined`: case -> when that ends, as it was decided there;
    `retired`: cases that are asked no more; `hash`: of the content."""

    suite: str
    suite_version: str
    backend: str
    environment: Mapping[str, Any]
    cases: tuple[tuple[str, str], ...]
    nights: tuple[Night, ...]
    rows: tuple[tuple[str, ...], ...]
    decisions: tuple[Decision, ...]
    quarantined: Mapping[str, datetime]
    retired: frozenset[str]
    hash: str = ""

    @property
    def answers(self) -> Iterator[CarriedAnswer]:
        for night, rows in zip(self.nights, self.rows, strict=True):
            for trial, row in enumerate(rows, start=1):
                for (name, digest), mark in zip(self.cases, row, strict=True):
                    if mark != NONE:
                        yield CarriedAnswer(night.run_id, name, digest, trial, float(mark == PASSED))

    def answered(self, run_ids: Collection[int]) -> set[str]:
        """Names of the cases that were answered in these nights."""
        return {one.name for one in self.answers if one.run_id in run_ids}

    def quarantined_at(self, now: datetime) -> set[str]:
        return {name for name, until in self.quarantined.items() if until > now}


class Against(NamedTuple):
    """What a run is held against in place of its baseline: `decisions` stand in place of those in the record,
    and the nights of `carried`, where there is one, in place of its runs."""

    decisions: Sequence[Decision]
    carried: Carried | None = None


def written(carried: Carried) -> str:
    """As the text of a file, with its hash."""
    content = _content(carried)
    return json.dumps({**content, "hash": _hash(content)}, indent=1, ensure_ascii=False) + "\n"


def _content(carried: Carried) -> dict[str, Any]:
    numbers = {night.run_id: number for number, night in enumerate(carried.nights)}
    return {
        "format": FORMAT,
        "suite": carried.suite,
        "suite_version": carried.suite_version,
        "backend": carried.backend,
        "cases": [list(case) for case in carried.cases],
        "nights": [
            {
                "at": night.at.isoformat(),
                "primed": night.primed,
                "system": dict(night.system),
                "passes": list(rows),
            }
            for night, rows in zip(carried.nights, carried.rows, strict=True)
        ],
        "decisions": [_decided(decision, numbers) for decision in carried.decisions],
        "quarantined": {name: until.isoformat() for name, until in sorted(carried.quarantined.items())},
        "retired": sorted(carried.retired),
        "environment": carried.environment,
    }


def _decided(decision: Decision, numbers: Mapping[int, int]) -> dict[str, Any]:
    """Its runs by their place among the nights."""
    nights = [numbers[run_id] for run_id in decision.run_ids if run_id in numbers]
    told = decision._asdict() | {"at": decision.at.isoformat(), "nights": nights}
    del told["run_ids"]
    return told


def _hash(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read(text: str) -> Carried:
    """Raises `StoreError` for what is no baseline, was changed since it was written, or is of a format that
    this version does not know."""
    try:
        content = json.loads(text)
        told = content.pop("hash")
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        raise StoreError("this is no baseline file; memtrend baseline export writes one") from None
    if told != _hash(content):
        raise StoreError(
            "the baseline file was changed since it was written: its hash is another; export anew"
        )
    if content.get("format") != FORMAT:
        raise StoreError(f"a baseline file of format {content.get('format')}; this memtrend reads {FORMAT}")
    try:
        return _carried(_File.model_validate_json(text))
    except ValidationError as error:
        raise StoreError(f"this is no baseline file: {_first(error)}; export anew") from None


def _first(error: ValidationError) -> str:
    """Of what is wrong, the first: where, and what; no value."""
    item = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, item['loc'])) or 'content'}: {item['msg']}"


# What is in a file: a right hash says that nobody changed it, and not that it is a baseline


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Night(_Part):
    at: AwareDatetime
    primed: bool
    system: dict[str, str]
    passes: tuple[Annotated[str, Field(pattern=f"^[{PASSED}{LOST}{NONE}]*$")], ...]


class _Decision(_Part):
    action: Literal["pin", "hold"]
    nights: tuple[Annotated[int, Field(ge=0)], ...]
    reason: str
    author: str
    at: AwareDatetime


class _File(_Part):
    format: int
    suite: str
    suite_version: str
    backend: str
    cases: tuple[tuple[str, str], ...]
    nights: Annotated[tuple[_Night, ...], Field(min_length=1)]
    decisions: tuple[_Decision, ...]
    quarantined: dict[str, AwareDatetime]
    retired: tuple[str, ...]
    environment: dict[str, Any]
    hash: str

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if any(len(row) != len(self.cases) for night in self.nights for row in night.passes):
            raise ValueError("a row has another length than there are cases")
        if any(number >= len(self.nights) for one in self.decisions for number in one.nights):
            raise ValueError("a decision is about a night that is not there")
        if any(later.at < night.at for night, later in pairwise(self.nights)):
            raise ValueError("the nights are not in order")
        return self


def _carried(file: _File) -> Carried:
    ids = range(-len(file.nights), 0)
    return Carried(
        file.suite,
        file.suite_version,
        file.backend,
        file.environment,
        file.cases,
        tuple(
            Night(run_id, night.at, True, tuple(sorted(night.system.items())), night.primed)
            for run_id, night in zip(ids, file.nights, strict=True)
        ),
        tuple(night.passes for night in file.nights),
        tuple(
            Decision(one.action, tuple(ids[number] for number in one.nights), one.reason, one.author, one.at)
            for one in file.decisions
        ),
        file.quarantined,
        frozenset(file.retired),
        file.hash,
    )
