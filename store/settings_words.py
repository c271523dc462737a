"""What is wrong with a setting, in words: its dotted key, what was expected, and no value."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails


def said_of(error: ValidationError, root: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """(key, text) for everything wrong; `root` is the model of all sections."""
    for item in error.errors(include_context=False, include_url=False):
        place = _place(item["loc"], root)
        yield place.key, _said(item, place.known)


def is_secret(annotation: Any) -> bool:
    return annotation is SecretStr or SecretStr in get_args(annotation)


def section_of(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def sections_of(annotation: Any) -> type[BaseModel] | None:
    """Of a table of sections by name."""
    return section_of(get_args(annotation)[1]) if get_origin(annotation) is dict else None


class _Place(NamedTuple):
    key: str
    known: list[str]


def _place(location: tuple[int | str, ...], root: type[BaseModel]) -> _Place:
    """The key that an error is about, without pydantic's own steps into it, and what its section knows."""
    section: Any = root
    known: list[str] = []
    path: list[str] = []
    for step in location:
        if step == "[key]":
            break
        inner = section_of(section)
        if inner is not None:
            known = keys_of(inner)
            field = next((field for key, field in _fields(inner) if key == step), None)
            section = field.annotation if field else None
        elif named := sections_of(section):
            section = named
        else:
            break
        path.append(str(step))
    return _Place(".".join(path), known)


def keys_of(section: type[BaseModel]) -> list[str]:
    """As they are written, sorted."""
    return sorted(
        key
        for name, field in _fields(section)
        for key in ((name, f"{name}_file") if is_secret(field.annotation) else (name,))
    )


def _fields(section: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """By key: a word that Python keeps for itself has another name in the model."""
    return ((field.alias or name, field) for name, field in section.model_fields.items())


_SAID = {
    "model_type": "should be a table",
    "dict_type": "should be a table",
    "string_pattern_mismatch": "a name is letters or digits first; dots, dashes and underscores may follow",
    "too_short": "should not be empty",
}


def _said(item: ErrorDetails, known: list[str]) -> str:
    if item["type"] == "extra_forbidden":
        return f"unknown key; known: {', '.join(known)}"
    if item["type"] == "missing":
        return f"missing{_meant(str(item['loc'][-1]), item['input'])}"
    return _SAID.get(item["type"], item["msg"].removeprefix("Value error, ").removeprefix("Input "))


def _meant(key: str, section: Any) -> str:
    """The key that is there and looks like the one that is missing."""
    close = get_close_matches(key, section) if isinstance(section, dict) else []
    return f"; is {close[0]!r} meant to be it?" if close else ""
