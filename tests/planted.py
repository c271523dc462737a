"""A configuration with a secret of its own in every place that may hold one, found by walking its models."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from pydantic import SecretStr

from store.settings import Settings
from store.settings_words import section_of

NAME = "planted"
"""What the sections are called whose names are the user's."""


class Place(NamedTuple):
    """A key that may hold a secret. `free`: it takes anything, as a vendor's configuration does."""

    path: tuple[str, ...]
    free: bool

    def __str__(self) -> str:
        return ".".join(self.path)


def leaves(section: Any = Settings, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, annotation) of every key of the configuration."""
    for name, field in section.model_fields.items():
        yield from _below(field.annotation, (*path, field.alias or name))
    if section.model_config.get("extra") == "allow":
        yield (*path, "option"), dict[str, Any]


def _below(annotation: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    values = [inner for inner in get_args(annotation) if section_of(inner)]
    if section := section_of(annotation):
        yield from leaves(section, path)
    elif values:
        named = getattr(annotation, "__origin__", None) is dict
        yield from leaves(values[0], (*path, NAME) if named else path)
    else:
        yield path, annotation


def places() -> list[Place]:
    return [
        Place(path, free)
        for path, annotation in leaves()
        if (free := dict[str, Any] in (annotation, *get_args(annotation))) or _is_secret(annotation)
    ]


def _is_secret(annotation: Any) -> bool:
    return SecretStr in (annotation, *get_args(annotation))


# Planting -------------------------------------------------------------------------------------------------

WAYS = ("inline", "env", "file", "env_file")


class Planted(NamedTuple):
    """What memtrend.toml says, which variables are set, and where each secret stands, by its core: the part
    that no quoting changes."""

    config: dict[str, Any]
    environment: dict[str, str]
    cores: dict[str, str]


def planted(folder: Path, base: Mapping[str, Any], way: str, leave: tuple[str, ...] = ()) -> Planted:
    """The configuration `base` with secrets, written into the folder, with the files that it names. Places in
    `leave` stay as they are. way: how secrets stand in keys that are made for one."""
    made = Planted(json.loads(json.dumps(base)), {}, {})
    for place in places():
        if str(place) not in leave:
            _plant(made, place, way, folder)
    lines = (f"{key} = {_toml(value)}\n" for key, value in made.config.items())
    (folder / "memtrend.toml").write_text("".join(lines), encoding="utf-8")
    return made


def _plant(made: Planted, place: Place, way: str, folder: Path) -> None:
    *around, key = place.path
    section = made.config
    for step in around:
        section = section.setdefault(step, {})
    if place.free:
        section[key] = _anything(made, place, folder)
    elif way == "env":
        made.environment[_variable(place)] = _secret(made, place, key)
    elif way == "env_file":
        made.environment[f"{_variable(place)}_FILE"] = str(folder / _file(folder, _secret(made, place, key)))
    elif way == "file":
        section[f"{key}_file"] = _file(folder, _secret(made, place, key))
    else:
        section[key] = _secret(made, place, key)


def _variable(place: Place) -> str:
    return f"MEMTREND_{'__'.join(place.path)}".upper()


def _secret(made: Planted, place: Place, what: str) -> str:
    core = f"qu4rtz{len(made.cores):03d}x"
    made.cores[core] = f"{place}, {what}"
    if what == "url":
        return f"postgresql://ann:{core}%2F%22@127.0.0.1:9/memtrend?application_name=a"
    return f'{core}"/+\\ {core}'


def _file(folder: Path, secret: str) -> str:
    path = folder / f"secret-{sum(1 for _ in folder.glob('secret-*'))}"
    path.write_text(secret, encoding="utf-8")
    return path.name


def _anything(made: Planted, place: Place, folder: Path) -> dict[str, Any]:
    """Every way in which a vendor's configuration holds secrets."""

    def secret(what: str) -> str:
        return _secret(made, place, what)

    def bare(what: str) -> str:
        return secret(what).partition('"')[0]

    name = f"VENDOR_{len(made.environment)}"
    made.environment[name] = secret("${env:}")
    return {
        "api_key": secret("api_key"),
        "inner": [{"password": secret("password"), "account": "ann"}],
        "headers": {"Authorization": f"Bearer {bare('bearer')}", "Cookie": secret("cookie")},
        "arguments": ["--token", secret("argument")],
        "address": f"https://ann:{bare('userinfo')}@127.0.0.1:9/v1",
        "query": f"https://127.0.0.1:9/v1?sig={bare('query')}",
        "plain": f"${{env:{name}}}",
        "filed": f"of ${{file:{_file(folder, secret('${file:}'))}}}",
    }


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


# Finding --------------------------------------------------------------------------------------------------


def leaks(text: str | bytes, cores: Mapping[str, str]) -> dict[str, str]:
    """The places whose secret stands in a text, plainly or in Base64: {core: place}."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return {core: place for core, place in cores.items() if any(form in data for form in forms(core))}


def forms(core: str) -> set[bytes]:
    """Letters and digits stand as they are in a URL, in JSON and in a repr; in Base64 they depend on what
    comes before, of which only the inner part is looked for."""
    shifted = (base64.b64encode(b"\0" * shift + core.encode())[4:-4] for shift in range(3))
    return {core.encode(), *shifted}
