"""The two small languages of the `http` backend: templates that make requests, paths that read answers.

A template is any JSON value with `{name}` in its strings; `{{name}}` stands for the text `{name}`. A path is
`results[*].id`: names joined by dots, `[0]` for one entry of a list and `[*]` for each, `$` for the answer
itself, `|` between paths of which the first that leads anywhere counts. Stdlib only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from collectors.backend import BackendError
from collectors.backends.base import well_formed

Values = Mapping[str, Any]
"""Placeholder -> what stands for it; None where there is nothing to say."""

_PLACEHOLDER = re.compile(r"\{\{(?P<spared>\w+)\}\}|\{(?P<name>\w+)\}")
_STEP = re.compile(r"\.?(?P<name>[^.\[\]|$\s]+)|\[(?P<index>[0-9]+|\*)\]")

Step = str | int | None
"""A name, a place in a list (from 0), or None for each of its entries."""


# Templates


def placeholders(template: Any) -> frozenset[str]:
    """The names in all strings of the template; keys are no templates."""
    return frozenset(_names(template))


def _names(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield from (match["name"] for match in _PLACEHOLDER.finditer(template) if match["name"])
    elif isinstance(template, Mapping | list):
        for part in template.values() if isinstance(template, Mapping) else template:
            yield from _names(part)


def filled(template: Any, values: Values) -> Any:
    """The template with its placeholders replaced. A string that is one placeholder alone becomes the value,
    of whatever type; where that is None, its key or entry is left out."""
    if isinstance(template, Mapping):
        made = {key: filled(part, values) for key, part in template.items()}
        return {key: part for key, part in made.items() if part is not None}
    if isinstance(template, list):
        return [part for part in (filled(inner, values) for inner in template) if part is not None]
    if not isinstance(template, str):
        return template
    alone = _PLACEHOLDER.fullmatch(template)
    if alone and alone["name"]:
        return values[alone["name"]]
    return _replaced(template, values, _text)


def path_of(template: str, values: Values) -> str:
    """As `filled`, for the path of a URL: a value is quoted whole, so that it is never more than the segment,
    or the part of one, that the template makes of it. Raises a permanent `BackendError` for an empty one,
    with which the path would mean something else."""

    def quoted(value: Any) -> str:
        if not (text := _text(value)):
            raise BackendError(f"nothing to put into the path {template!r}", permanent=True)
        return quoted_whole(text)

    return _replaced(template, values, quoted)


def quoted_whole(value: Any) -> str:
    """Percent-encoded, dots included where there is nothing else: `..` would lead elsewhere."""
    text = quote(well_formed(_text(value)), safe="")
    return text if text.strip(".") else text.replace(".", "%2E")


def headers_of(template: Mapping[str, str], values: Values) -> dict[str, str]:
    """As `filled`, for headers: values are percent-encoded, since a header holds no lines and no umlauts."""
    return {name: _replaced(text, values, quoted_whole) for name, text in template.items()}


def query_of(template: Mapping[str, Any], values: Values) -> dict[str, str | list[str]]:
    """As `filled`, for the query of a URL: texts, and lists of them where a name stands several times."""
    return {
        name: [well_formed(_text(entry)) for entry in value]
        if isinstance(value, list)
        else well_formed(_text(value))
        for name, value in filled(template, values).items()
    }


def _replaced(template: str, values: Values, told: Callable[[Any], str]) -> str:
    def one(match: re.Match[str]) -> str:
        return told(values[match["name"]]) if match["name"] else f"{{{match['spared']}}}"

    return _PLACEHOLDER.sub(one, template)


def _text(value: Any) -> str:
    """A value within a longer text: itself where it is one, "" for None, else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# Paths


@lru_cache(maxsize=256)
def parsed(path: str) -> tuple[tuple[Step, ...], ...]:
    """The ways to try, in order. Raises ValueError for what is no path."""
    return tuple(_steps(way.strip()) for way in path.split("|"))


def _steps(way: str) -> tuple[Step, ...]:
    rest, steps = way.removeprefix("$"), list[Step]()
    if not way or (way[0] != "$" and rest[0] == "."):
        raise ValueError("not a path: names joined by dots, [0], [*], $ for the whole answer")
    while rest:
        match = _STEP.match(rest)
        # A name follows a dot, unless it is the first.
        if match is None or (match["name"] and rest[0] != "." and rest != way):
            raise ValueError("not a path: names joined by dots, [0], [*], $ for the whole answer")
        steps.append(match["name"] or _index(match["index"]))
        rest = rest[match.end() :]
    return tuple(steps)


def _index(text: str) -> int | None:
    return None if text == "*" else int(text)


def found(path: str, answer: Any) -> list[Any]:
    """What the path leads to, in order; nothing where it leads nowhere, or to nulls alone."""
    for steps in parsed(path):
        if there := [value for value in _walked(steps, [answer]) if value is not None]:
            return there
    return []


def _walked(steps: tuple[Step, ...], values: list[Any]) -> list[Any]:
    for step in steps:
        values = [part for value in values for part in _parts(step, value)]
    return values


def _parts(step: Step, value: Any) -> list[Any]:
    if isinstance(step, str):
        return [value[step]] if isinstance(value, Mapping) and step in value else []
    if not isinstance(value, list):
        return []
    return value if step is None else value[step : step + 1]


def first(path: str, answer: Any) -> Any:
    """The first of what the path leads to, or None."""
    return next(iter(found(path, answer)), None)
