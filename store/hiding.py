"""Secrets: where they may stand, and how they are kept from being shown.

`hidden` is for a configuration, `redacted` for any text: a vendor's error may repeat the key it was given, so
a process remembers every secret that its configuration brought.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

HIDDEN = "***"
SHORTEST = 4
"""Characters of a secret that is looked for in texts: a shorter one would be found in harmless words."""

_SECRET_KEY = re.compile(
    r"password|passwd|pass(phrase|code|key)|secret|credential|conn(ection)?_?str|tokens?(_|$)"
    r"|(api|access|private|session|account|signing|encryption|master)_?keys?(_|$)|(^|_)keys?$"
    r"|(^|_)(o?auth|authori[sz]ation|authentication|bearer|cookie|creds|dsn|jwt|pass|pat|pem|pwd|sig|signature)s?(_|$)"
)
_HARMLESS_KEY = re.compile(
    r"(^|_)(max|min|num|n|total|avg|prompt|completion|input|output|context|stop|special|pad|[ebs]os|unk)_(.*_)?tokens?"
    r"|_(limit|count|size|length|budget|window|ttl|type|kind|method|mode|enabled|required|url|name)s?$"
    r"|(^|_)(primary|partition|sort|foreign|text|content|payload|metadata|vector|id|memory)_keys?$"
)
_LOOKS = [
    re.compile(r"(?<=://)[^/@\s:]*:(?P<secret>[^/\s]+)@"),
    re.compile(r"(?<=://)(?P<secret>[^/@\s:]+):?@"),
    re.compile(r"\b(?:Bearer|Basic)\s+(?P<secret>[^\s\"',;]+)"),
    re.compile(r"(?s)(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z))"),
    re.compile(
        r"\b(?P<secret>[spr]k-[\w-]{6,}|gh[a-z]_\w{10,}|github_pat_\w+|xox[a-z]-[\w-]+|AKIA[0-9A-Z]{16}"
        r"|AIza[\w-]{20,}|eyJ[\w-]{6,}(?:\.[\w-]+)*)"
    ),
]
_QUOTE = r"(?:\\?[\"'])"
_ASSIGNED = re.compile(
    rf"(?<![\w.-])(?P<name>[\w.-]++){_QUOTE}?\s*(?:=|:\s*(?={_QUOTE}))\s*{_QUOTE}?"
    r"(?!(?:Bearer|Basic)\s)(?P<secret>[^\s\"'&;,]+)"
)
"""`name=value` and `"name": "value"`; without quotes, what follows a colon is prose."""
_PLACEHOLDER = re.compile(r"\$\{(env|file):([^}]+)\}")


class SecretProblem(Exception):
    """Why a secret cannot be had. The message names no value and no file: either may be the secret."""


def read_secret(path: Path) -> str:
    """The text of a secret's file without blanks around it."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SecretProblem(f"the file it names cannot be read ({reason})") from None
    if not text:
        raise SecretProblem("the file it names is empty")
    remember_secret(text)
    return text


def filled_in(value: Any, folder: Path, key: str, problem: Callable[[str, str], None]) -> Any:
    """A value with every ${env:NAME} and ${file:PATH} in its strings replaced; paths are relative to
    `folder`. What cannot be replaced is told to `problem` by key, and stays."""
    if isinstance(value, Mapping):
        return {name: filled_in(inner, folder, f"{key}.{name}", problem) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled_in(inner, folder, f"{key}.{i}", problem) for i, inner in enumerate(value)]
    if not isinstance(value, str):
        return value
    try:
        return _PLACEHOLDER.sub(lambda match: _placed(match[1], match[2], folder), value)
    except SecretProblem as error:
        problem(key, str(error))
        return value


def _placed(kind: str, name: str, folder: Path) -> str:
    if kind == "file":
        return read_secret(folder / Path(name).expanduser())
    if name not in os.environ:
        raise SecretProblem(f"the environment variable {name} is not set")
    remember_secret(os.environ[name])
    return os.environ[name]


# Showing


def hidden(value: Any, key: str = "") -> Any:
    """A JSON value with all that looks like a secret replaced by `***`: by its key, or by its look."""
    return _replaced(value, key, lambda secret: HIDDEN)


def redacted(text: str) -> str:
    """A text without the secrets that this process remembers, and without what looks like one."""
    for secret in sorted(_remembered, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _replaced_in(text, lambda secret: HIDDEN)


_remembered: set[str] = set()


def remember_secret(secret: str) -> None:
    """From now on `redacted` hides it, also as it stands in a URL, in JSON, or in a repr; what a URL quoted,
    also as it was before."""
    in_urls = (quote(secret, safe=safe, errors="replace") for safe in ("", "/", "/!$&'()*+,;=:@~"))
    forms = {secret, unquote(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1], *in_urls}
    _remembered.update(form for form in forms if len(form) >= SHORTEST)


def remember_secrets(value: Any) -> None:
    """Remember all that `hidden` would hide in a JSON value."""

    def remember(secret: Any) -> str:
        for text in _texts(secret):
            remember_secret(text)
            remember_secret(text.rpartition(" ")[2])  # of "Bearer abc", a server may repeat the latter
        return HIDDEN

    _replaced(value, "", remember)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _replaced(value: Any, key: str, by: Callable[[Any], str]) -> Any:
    if _is_secret(key, value):
        return by(value)
    if isinstance(value, Mapping):
        return {name: _replaced(inner, str(name), by) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [
            _replaced(inner, _flag(before), by) for before, inner in zip(("", *value), value, strict=False)
        ]
    return _replaced_in(value, by) if isinstance(value, str) else value


def _is_secret(key: str, value: Any) -> bool:
    counts = key.lower().endswith("tokens") and isinstance(value, int | float)
    return is_secret_key(key) and not (counts or value is None or value == "" or isinstance(value, bool))


def is_secret_key(key: str) -> bool:
    """Whether a key names a secret: `api_key`, `apiKey`, `X-Api-Key`, `token`, but not `max_tokens`."""
    plain = re.sub(r"[\W_]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)).lower()
    return bool(_SECRET_KEY.search(plain)) and not _HARMLESS_KEY.search(plain)


def _flag(before: Any) -> str:
    """The name of an option whose value comes next in a list of arguments: ["--token", "..."]."""
    return before.lstrip("-") if isinstance(before, str) and before.startswith("-") else ""


def _replaced_in(text: str, by: Callable[[str], str]) -> str:
    for look in _LOOKS:
        text = look.sub(lambda match: _without_secret(match, by), text)
    return _ASSIGNED.sub(lambda match: _without_secret(match, by) if _names_secret(match) else match[0], text)


def _names_secret(assigned: re.Match[str]) -> bool:
    """A mere `key` is any key, but in a URL."""
    if assigned["name"].lower() in ("key", "keys"):
        return assigned.string[: assigned.start()].endswith(("?", "&"))
    return is_secret_key(assigned["name"])


def _without_secret(match: re.Match[str], by: Callable[[str], str]) -> str:
    start, end = (place - match.start() for place in match.span("secret"))
    return match[0][:start] + by(match["secret"]) + match[0][end:]
