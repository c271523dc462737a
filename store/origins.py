"""Where each key of the configuration comes from: a variable, the file, or nowhere, which is its default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from store.columns import to_json
from store.settings import DELIMITER, PREFIX, Settings, public

DEFAULT = "default"


class Key(NamedTuple):
    """A dotted key that is in force. `value` as JSON, fit to show, None for what is not set; `origin`: the
    name of the file (with `: KEY_file` where that is what it says of a secret) or of the environment variable
    that sets it, or `DEFAULT`."""

    name: str
    value: str | None
    origin: str


def keys_in_force(settings: Settings, *, readable: bool = True) -> list[Key]:
    """Every key, secrets hidden, the sections that have keys of their own first. What the file says is read
    again: whoever asks has just loaded it. `readable` False: it is broken now, and origins are ""."""
    written = _written(settings) if readable else {}
    file = settings.source.name if settings.source else ""
    return [
        Key(".".join(path), _shown(value), _origin(path, written, file) if readable else "")
        for path, value in _leaves(_ordered(public(settings)), ())
    ]


def _ordered(sections: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(sections.items(), key=lambda item: item[0] in ("backends", "suites", "schedules")))


def _written(settings: Settings) -> Mapping[str, Any]:
    if settings.source is None:
        return {}
    return tomllib.loads(settings.source.read_text(encoding="utf-8"))


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)))
    else:
        yield path, value


def _shown(value: Any) -> str | None:
    return None if value is None else to_json(value)


def _origin(path: tuple[str, ...], written: Mapping[str, Any], file: str) -> str:
    return _variable(path) or _place(path, written, file) or DEFAULT


def _place(path: tuple[str, ...], written: Any, file: str) -> str | None:
    """Where the file sets the key. A secret may stand in another one, which `KEY_file` names."""
    for place, step in enumerate(path):
        if not isinstance(written, Mapping):
            return None
        if step not in written:
            secret = place == len(path) - 1 and f"{step}_file" in written
            return f"{file}: {step}_file" if secret else None
        written = written[step]
    return file


def _variable(path: tuple[str, ...]) -> str | None:
    """The variable that sets the key, or a section around it."""
    name = PREFIX + DELIMITER.join(path).upper()
    return next(
        (
            variable
            for variable in sorted(os.environ)
            if variable.upper().startswith(PREFIX)
            and f"{name}{DELIMITER}".startswith(variable.upper().removesuffix("_FILE") + DELIMITER)
        ),
        None,
    )
