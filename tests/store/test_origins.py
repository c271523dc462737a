"""Where each key of the configuration comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.origins import DEFAULT, keys_in_force
from store.settings import load_settings

WRITTEN = """
[limits]
timeout = 5

[api]
token_file = "token"

[backends.notes]
type = "keyword"
own = { api_key = "sk-hush-hush-hush", depth = 3 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("hush-hush-token")
    path = tmp_path / "memtrend.toml"
    path.write_text(WRITTEN)
    return path


def test_each_key_says_who_set_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable beats the file, the file the default; of a secret it is told which key names its file."""
    monkeypatch.setenv("MEMTREND_LIMITS__ATTEMPTS", "7")
    keys = {key.name: key for key in keys_in_force(load_settings(file))}
    assert keys["limits.timeout"][1:] == ("5.0", "memtrend.toml")
    assert keys["limits.attempts"][1:] == ("7", "MEMTREND_LIMITS__ATTEMPTS")
    assert keys["limits.concurrency"].origin == DEFAULT
    assert keys["api.token"][1:] == ('"***"', "memtrend.toml: token_file")
    assert keys["backends.notes.own.depth"][1:] == ("3", "memtrend.toml")
    assert keys["backends.notes.owner"].origin == DEFAULT
    assert keys["dashboard.writes"].value is None


def test_no_value_is_a_secret(file: Path) -> None:
    """What looks like a secret is hidden wherever it stands."""
    assert "hush" not in str(keys_in_force(load_settings(file)))


def test_a_section_in_one_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variable that sets a whole section is the origin of its keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMTREND_LIMITS", '{"timeout": 4}')
    keys = {key.name: key for key in keys_in_force(load_settings())}
    assert keys["limits.timeout"].origin == "MEMTREND_LIMITS"
    assert keys["dashboard.port"].origin == DEFAULT


def test_a_broken_file_tells_no_origin(file: Path) -> None:
    """What was loaded before stays to be shown, though nobody can say any more where it came from."""
    settings = load_settings(file)
    file.write_text("[limits")
    assert {key.origin for key in keys_in_force(settings, readable=False)} == {""}
