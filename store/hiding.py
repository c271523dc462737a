"""Secrets: where they may stand, and how they are kept from being shown. Pure but for reading their files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HIDDEN = "***"

_SECRET_KEY = re.compile(
    r"(^|[_\-.])(key|token|secret|passw(or)?d|passphrase|pwd|authorization|credentials?|cookie|dsn)s?$"
    r"|api_?keys?$"
)
_COUNT_OF_TOKENS = re.compile(r"(max|min|num|n|total)_.*tokens$|^tokens$")
_SECRET_VALUE = re.compile(r"^(Bearer |Basic |sk-)")
_URL_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):[^/\s]*@")
_URL_PARAMETER = re.compile(r"(?i)([?&][^=&\s]*(?:key|token|secret|password|signature|sig)=)[^&\s]+")
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
    return os.environ[name]


def hidden(value: Any, key: str = "") -> Any:
    """A JSON value with all that looks like a secret replaced by `***`: by its key, or by its look."""
    if is_secret_key(key) and value not in (None, ""):
        return HIDDEN
    if isinstance(value, Mapping):
        return {name: hidden(inner, str(name)) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [hidden(inner) for inner in value]
    return _hidden_text(value) if isinstance(value, str) else value


def is_secret_key(key: str) -> bool:
    """Whether a key names a secret: `api_key`, `apiKey`, `X-Api-Key`, `token`, but not `max_tokens`."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()
    return bool(_SECRET_KEY.search(plain)) and not _COUNT_OF_TOKENS.search(plain)


def _hidden_text(text: str) -> str:
    if _SECRET_VALUE.match(text):
        return HIDDEN
    text = _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
    return _URL_PARAMETER.sub(rf"\1{HIDDEN}", text)
