"""A secret in every key that may hold one: what settings show by themselves, and what refuses them says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from store import hiding
from store.origins import keys_in_force
from store.settings import SettingsError, load_settings, public
from tests.planted import WAYS, leaks, leaves, planted
from tests.planted_tour import BASE, Tour, forgetful, inside

__all__ = ["forgetful"]
"""A fixture of each test here."""


@pytest.mark.parametrize("way", WAYS)
def test_settings_show_no_secret(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a secret is given, it is in force, and neither repr, nor what is public, nor a text that quotes
    it tells it."""
    made = planted(tmp_path, BASE, way)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(tmp_path / "memtrend.toml")
    in_force = repr(settings.model_dump()) + _revealed(settings)
    assert leaks(in_force, made.cores) == made.cores
    shown = f"{settings} {settings!r} {public(settings)} {keys_in_force(settings)}"
    assert leaks(shown, made.cores) == {}
    assert leaks(hiding.redacted(in_force), made.cores) == {}


def _revealed(settings: Any) -> str:
    return "".join(_secrets(settings))


def _secrets(value: Any) -> Iterator[str]:
    if hasattr(value, "get_secret_value"):
        yield value.get_secret_value()
    elif isinstance(value, Mapping | BaseModel):
        inner = value.values() if isinstance(value, Mapping) else vars(value).values()
        for one in inner:
            yield from _secrets(one)


LEAVES = [".".join(path) for path, _ in leaves()]


@pytest.mark.parametrize("wrong", ["text", "list", "table"])
def test_nonsense_is_refused_without_being_quoted(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that was put under the wrong key, or in the wrong form, is not told by what refuses it."""
    secret = "qu4rtz999x"
    value = {"text": f'"{secret}"', "list": f'["{secret}", 1]', "table": f'{{ {secret} = "{secret}" }}'}[
        wrong
    ]
    refused = 0
    for leaf in LEAVES:
        top, _, inner = leaf.partition(".")
        text = f"[{top}]\n{inner} = {value}\n" if inner else f"{top} = {value}\n"
        (tmp_path / "memtrend.toml").write_text(text, encoding="utf-8")
        with suppress(SettingsError):
            load_settings(tmp_path / "memtrend.toml")
            continue
        refused += 1
        with pytest.raises(SettingsError) as raised:
            load_settings(tmp_path / "memtrend.toml")
        assert f'"{secret}"' not in str(raised.value), leaf
        assert (
            wrong == "table" or secret not in f"{raised.value} {raised.value!r} {raised.value.__cause__}"
        ), leaf
    assert refused > len(LEAVES) / 3


@pytest.mark.parametrize("command", ["run --json", "--debug doctor --json", "collect"])
def test_a_server_that_cannot_be_reached_tells_no_password(command: str, tmp_path: Path) -> None:
    """The URL of a database is told without its password, where it cannot be opened too."""
    made = Tour(tmp_path, planted(tmp_path, BASE, "inline"), {})
    for name in ("small.jsonl", "indiscreet.py"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert inside(made, command) != 0
    said = made.said[command]
    assert "127.0.0.1" in said
    assert leaks(said, made.planted.cores) == {}
